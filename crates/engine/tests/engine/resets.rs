//! A room that is reset: what belongs to the conversation before does not enter the new one, and is not lost.

use rallypoint_engine::due::{Effect, due};
use rallypoint_model::command::{Command, CreateRoom, SayInRoom};
use rallypoint_model::delivery::DeliveryStatus;
use rallypoint_model::event::Event;
use rallypoint_model::ids::{RoomId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::message::Message;
use rallypoint_model::refusal::RefusalCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::deliveries::{asked_in, bound_room, offered, world_with_hook};
use crate::host::{Host, Verb};
use crate::invariants::{documents, replay};
use crate::questions::blocked;
use crate::tasks::done;
use crate::trees::{deep, spawn};
use crate::world::{MAIN_ROOM, World, task};

fn reset(world: &mut World, room_id: RoomId) {
    world.ok(Command::ResetRoom { room_id, by: "kim".to_owned() });
}

fn in_room(world: &World, room_id: RoomId) -> Vec<&Message> {
    world.messages().into_iter().filter(|message| message.room_id == room_id).collect()
}

/// Names and kinds of what was posted since, with its room.
fn since(world: &World, before: usize) -> Vec<(RoomId, String)> {
    let posted = world.messages().into_iter().skip(before);
    posted.map(|message| (message.room_id, message.name.clone())).collect()
}

fn rerouted(world: &World) -> Vec<Value> {
    let hops = world.facts("result.rerouted").into_iter().filter_map(|event| match event {
        Event::ResultRerouted { hops, .. } => Some(json!(hops)),
        _ => None,
    });
    hops.collect()
}

#[test]
fn what_a_run_brings_after_the_reset_of_its_room_goes_to_the_main_room_with_every_hop_recorded() {
    let mut world = world_with_hook(true, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    let id = world.create(asked_in(room_id, 1));
    reset(&mut world, room_id);
    let before = world.messages().len();
    Host::ada(vec![done("Fixed.")]).finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    let posted = since(&world, before);
    assert_eq!(
        posted,
        [(MAIN_ROOM, "ada".to_owned()), (MAIN_ROOM, "system".to_owned()), (MAIN_ROOM, "main".to_owned())]
    );
    let way = json!([
        {"roomId": room_id, "incarnation": 1, "result": "passed_over", "why": "requester_reset"},
        {"roomId": MAIN_ROOM, "incarnation": 1, "result": "posted"},
    ]);
    assert_eq!(rerouted(&world), std::slice::from_ref(&way));
    for message in in_room(&world, MAIN_ROOM) {
        assert_eq!(message.metadata["earlierIncarnation"], json!({"roomId": room_id, "incarnation": 1}));
    }
    assert_eq!(in_room(&world, MAIN_ROOM)[0].metadata["deliveryHops"], way);
    // The result is there, and the conversation on the platform hears nothing of it.
    assert!(world.last_run(id).result.is_some());
    let out: Vec<String> = offered(&world).into_iter().map(|sending| sending.text).collect();
    assert_eq!(out, ["Started `ada`."], "only what was out before the reset");
    assert_eq!(world.state.deliveries.len(), 1);
    assert_eq!(documents(&replay(&world.journal)), documents(&world.state));
}

#[test]
fn a_reset_drops_what_waits_for_the_conversation_before_with_its_reason_and_tells_the_main_room() {
    let mut world = world_with_hook(true, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    let id = world.create(asked_in(room_id, 1));
    Host::ada(vec![done("Fixed.")]).finish(&mut world, id);
    let out = offered(&world).remove(0);
    reset(&mut world, room_id);
    let waiting =
        world.state.deliveries.values().find(|delivery| delivery.id != out.delivery_id).expect("one");
    assert_eq!(
        (waiting.status, waiting.reason.as_deref()),
        (DeliveryStatus::Discarded, Some("requester_reset"))
    );
    let told = in_room(&world, MAIN_ROOM);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].text.contains("its room was reset") && told[0].text.contains("rally result get"),
        "{told:?}"
    );
    // What was out already is not called back, and not tried again either.
    let doubt = rallypoint_model::delivery::SinkAnswer::Unknown { why: "cut".to_owned() };
    let mut other = World::new();
    other.state = world.state.clone();
    other.ok(Command::DeliveryAnswered { delivery_id: out.delivery_id, offer: out.offer, answer: doubt });
    assert_eq!(
        other.state.deliveries[&out.delivery_id].status,
        DeliveryStatus::Ambiguous,
        "a doubt stays one"
    );
    let answer = rallypoint_model::delivery::SinkAnswer::Failed { why: "500".to_owned() };
    world.ok(Command::DeliveryAnswered { delivery_id: out.delivery_id, offer: out.offer, answer });
    let first = &world.state.deliveries[&out.delivery_id];
    assert_eq!((first.status, first.reason.as_deref()), (DeliveryStatus::Discarded, Some("requester_reset")));
    assert!(!due(&world.state, &world.limits).iter().any(|effect| matches!(effect, Effect::Send(_))));
    assert_eq!(documents(&replay(&world.journal)), documents(&world.state));
}

#[test]
fn the_second_incarnation_gets_what_it_asked_for_and_nothing_meant_for_the_first() {
    let mut world = world_with_hook(true, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    let first = world.create(asked_in(room_id, 1));
    reset(&mut world, room_id);
    let second = world.create(asked_in(room_id, 2));
    let mut host = Host::ada(vec![done("First."), done("Second.")]);
    host.finish(&mut world, first);
    host.finish(&mut world, second);
    let of = |task_id: TaskId, room: RoomId| {
        in_room(&world, room).into_iter().filter(|message| message.task_id == Some(task_id)).count()
    };
    assert_eq!(of(second, MAIN_ROOM), 0);
    assert_eq!((of(first, room_id), of(first, MAIN_ROOM)), (2, 3), "request and acknowledgement were before");
    let incarnations: Vec<u32> = in_room(&world, room_id).iter().map(|message| message.incarnation).collect();
    assert_eq!(incarnations, [1, 1, 2, 2, 2, 2, 2]);
    assert_eq!(world.state.rooms[&room_id].earlier_messages, 2);
    let sessions: Vec<&str> = world
        .state
        .sessions
        .values()
        .filter(|session| session.room_id == Some(room_id))
        .map(|session| session.key.as_str())
        .collect();
    assert_eq!(sessions.len(), 2, "another conversation has another session of its main agent: {sessions:?}");
    assert_ne!(sessions[0], sessions[1]);
}

#[test]
fn a_child_whose_parent_lives_is_heard_by_it_and_no_room_is_told() {
    let mut world = World::with_limits(deep());
    world.ok(Command::CreateRoom(CreateRoom {
        kind: None,
        room_id: RoomId(Uuid::from_u128(0x301)),
        title: "side".to_owned(),
        conversation: None,
        idempotency_key: None,
    }));
    let room_id = RoomId(Uuid::from_u128(0x301));
    let mut create = task(1);
    create.room_id = Some(room_id);
    let id = world.create(create);
    let mut host = Host::new(&[("ada", vec![vec![Verb::Ask("ls")]]), ("bob", vec![done("Seen.")])]);
    host.work(&mut world);
    let parent = world.session(id);
    let child = spawn(&mut world, id, Some(parent), "bob");
    reset(&mut world, room_id);
    let before = world.messages().len();
    host.finish(&mut world, id);
    assert_eq!(world.state.sessions[&child].open_run, None, "the child has ended");
    assert_eq!(since(&world, before).iter().filter(|(_, name)| name == "bob").count(), 0);
    assert_eq!(
        rerouted(&world),
        [json!([
            {"roomId": room_id, "incarnation": 1, "result": "passed_over", "why": "requester_reset"},
            {"sessionId": parent, "label": "ada", "result": "queued"},
        ])]
    );
    let queued = world.facts("run.queued");
    assert!(queued.iter().any(|event| matches!(event, Event::RunQueued { delivery_key: Some(key), .. } if key.contains(&child.to_string()))));
}

#[test]
fn a_question_of_work_whose_room_was_reset_is_asked_in_the_main_room() {
    let mut world = world_with_hook(true, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    let id = world.create(asked_in(room_id, 1));
    reset(&mut world, room_id);
    Host::ada(vec![blocked()]).finish(&mut world, id);
    let asked = world.messages().into_iter().rfind(|message| message.metadata["role"] == "question");
    let asked = asked.expect("a question");
    assert_eq!(asked.room_id, MAIN_ROOM);
    assert!(asked.text.contains("Which branch?"));
}

#[test]
fn the_main_room_takes_what_its_own_earlier_incarnation_asked_for_marked_as_that() {
    let mut world = World::new();
    let id = world.create(task(1));
    reset(&mut world, MAIN_ROOM);
    let before = world.messages().len();
    Host::ada(vec![done("Fixed.")]).finish(&mut world, id);
    let posted: Vec<&Message> = world.messages().into_iter().skip(before).collect();
    assert_eq!(posted.len(), 3);
    for message in posted {
        assert_eq!((message.room_id, message.incarnation), (MAIN_ROOM, 2));
        assert_eq!(message.metadata["earlierIncarnation"], json!({"roomId": MAIN_ROOM, "incarnation": 1}));
    }
    assert_eq!(
        rerouted(&world),
        [json!([
            {"roomId": MAIN_ROOM, "incarnation": 1, "result": "passed_over", "why": "requester_reset"},
            {"roomId": MAIN_ROOM, "incarnation": 2, "result": "posted"},
        ])]
    );
}

#[test]
fn a_message_of_a_platform_enters_once_under_its_senders_name() {
    let mut world = World::new();
    let say = |text: &str, id: Option<&str>| {
        Command::SayInRoom(SayInRoom {
            room_id: MAIN_ROOM,
            text: text.to_owned(),
            by: "noor".to_owned(),
            source: "hook".to_owned(),
            platform_message_id: id.map(str::to_owned),
            idempotency_key: None,
        })
    };
    let first = world.ok(say("hi", Some("7")));
    let again = world.ok(say("hi, edited", Some("7")));
    assert_eq!(json!(again)["message_id"], json!(first)["message_id"]);
    assert_eq!((&json!(first)["repeated"], &json!(again)["repeated"]), (&json!(false), &json!(true)));
    let said = in_room(&world, MAIN_ROOM);
    assert_eq!(said.len(), 1);
    assert_eq!((said[0].name.as_str(), &said[0].metadata["platformMessageId"]), ("noor", &json!("7")));
    assert_eq!(world.refused(say("  ", None)).0, RefusalCode::Invalid);
    let (code, text) = world.refused(say(&"x".repeat(16 * 1024 + 1), None));
    assert_eq!(code, RefusalCode::Limit);
    assert!(text.contains("`messageHeadBytes`"), "{text}");
    world.ok(say("hi", None));
    world.ok(say("hi", None));
    assert_eq!(in_room(&world, MAIN_ROOM).len(), 3);
}
