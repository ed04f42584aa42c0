//! Events of real sessions in the rooms of a swarm: origin, calls, banners, the switch.

use rallypoint_model::command::{Command, CreateRoom, Outcome};
use rallypoint_model::event::Event;
use rallypoint_model::ids::{RoomId, SessionId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::message::{Message, RoomKind};
use rallypoint_model::refusal::RefusalCode;
use rallypoint_model::routing::{ExplicitEvent, ExplicitKind, NotRouted, RouterSwitch};
use uuid::Uuid;

use crate::host::{Host, Verb};
use crate::tasks::done;
use crate::world::{MAIN_ROOM, World, task};

const PEERS: RoomId = RoomId(Uuid::from_u128(0xb1));

/// A task with a room for peers, whose agent plays these turns.
fn swarm(limits: Limits, turns: Vec<Vec<Verb>>) -> (World, Host, TaskId, SessionId) {
    let mut world = World::with_limits(limits);
    world.ok(Command::CreateRoom(CreateRoom {
        room_id: PEERS,
        kind: Some(RoomKind::Worktree),
        title: "peers".to_owned(),
        conversation: None,
        idempotency_key: None,
    }));
    let mut create = task(1);
    create.worktree_room_id = Some(PEERS);
    let id = world.create(create);
    let mut host = Host::ada(turns);
    host.work(&mut world);
    let session = world.session(id);
    (world, host, id, session)
}

fn raise(session_id: SessionId, kind: ExplicitKind, text: &str, call_id: &str) -> Command {
    let event = ExplicitEvent { kind, text: text.to_owned(), call_id: call_id.to_owned() };
    Command::RaiseEvent { session_id, event }
}

fn told(world: &World) -> Vec<&Message> {
    world.messages().into_iter().filter(|message| message.source == "sub_agent").collect()
}

#[test]
fn the_origin_is_recorded_whole_and_frozen_when_a_session_is_made() {
    let (world, _host, id, session) = swarm(Limits::default(), vec![vec![]]);
    let origin = world.state.sessions[&session].origin.clone().expect("an origin");
    assert_eq!(
        serde_json::to_value(&origin).expect("serialises"),
        serde_json::json!({
            "messageId": world.task(id).origin_message_id,
            "roomId": MAIN_ROOM, "originRoomId": MAIN_ROOM, "taskRoomId": MAIN_ROOM, "worktreeRoomId": PEERS,
            "swarmRooms": [{"roomId": MAIN_ROOM, "roles": ["task"]}, {"roomId": PEERS, "roles": ["worktree"]}],
            "worldId": "00000000-0000-0000-0000-0000000000a1",
            "userId": "00000000-0000-0000-0000-0000000000a3",
            "label": "ada", "source": "cli", "incarnation": 1,
        })
    );
    let journalled = world.facts("session.created").into_iter().find_map(|event| match event {
        Event::SessionCreated { session_id, origin, .. } if *session_id == session => origin.clone(),
        _ => None,
    });
    assert_eq!(journalled, Some(origin));
}

#[test]
fn an_end_is_one_message_in_each_room_and_one_round_trip_and_one_turn() {
    let (mut world, mut host, id, session) = swarm(Limits::default(), vec![done("Fixed.")]);
    host.finish(&mut world, id);
    let rooms: Vec<RoomId> = told(&world).iter().map(|message| message.room_id).collect();
    assert_eq!(rooms, [MAIN_ROOM, PEERS]);
    let turns: Vec<bool> = told(&world).iter().map(|it| it.metadata.get("turn").is_some()).collect();
    assert_eq!((turns, world.state.sessions[&session].round_trips), (vec![true, false], 1));
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    // The answer stands in the room of the role that was asked for first.
    let replies: Vec<RoomId> = world
        .messages()
        .into_iter()
        .filter(|message| message.metadata["role"] == "terminal")
        .map(|message| message.room_id)
        .collect();
    assert_eq!(replies, [MAIN_ROOM]);
}

#[test]
fn a_call_is_told_once_and_marked_as_such() {
    let (mut world, _host, _id, session) = swarm(Limits::default(), vec![vec![]]);
    for _ in 0..2 {
        world.ok(raise(session, ExplicitKind::AgentCoordination, "I hold lib.rs.", "c1"));
    }
    world.ok(raise(session, ExplicitKind::QuestionForTaskCreator, "Which branch?", "c2"));
    world.ok(raise(session, ExplicitKind::QuestionForTaskCreator, "Which branch?", "c3"));
    let seen: Vec<(RoomId, String, String)> = told(&world)
        .iter()
        .map(|message| {
            let word = |field: &str| message.metadata[field].as_str().unwrap_or_default().to_owned();
            (message.room_id, word("subAgentRoutingKind"), word("subAgentEventSource"))
        })
        .collect();
    let question = (MAIN_ROOM, "QUESTION_FOR_TASK_CREATOR".to_owned(), "call".to_owned());
    let coordination = (PEERS, "AGENT_COORDINATION".to_owned(), "call".to_owned());
    assert_eq!(seen, [coordination, question.clone(), question]);
}

#[test]
fn an_event_needs_words_and_a_turn() {
    let (mut world, mut host, id, session) = swarm(Limits::default(), vec![done("Fixed.")]);
    let (code, _) = world.refused(raise(session, ExplicitKind::AgentCoordination, " ", "c1"));
    assert_eq!(code, RefusalCode::Invalid);
    host.finish(&mut world, id);
    let (code, words) = world.refused(raise(session, ExplicitKind::AgentCoordination, "late", "c1"));
    assert_eq!(code, RefusalCode::Conflict);
    assert!(words.contains("in no turn"), "{words}");
}

#[test]
fn last_words_that_begin_with_the_banner_of_a_question_ask_it() {
    let turn = done("**QUESTION_FOR_TASK_CREATOR:** Which branch?");
    let (mut world, mut host, id, _) = swarm(Limits::default(), vec![turn]);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "blocked(question_asked), exit 3: goal completed");
    let asked = world.open_questions()[0].question.clone();
    assert_eq!(serde_json::to_value(asked).expect("serialises")["text"], "Which branch?");
    let told = told(&world);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].text, "[sub-agent: ada (shell) — blocked]\nWhich branch?");
    assert_eq!(told[0].metadata["subAgentEventSource"], "banner");
}

#[test]
fn while_the_router_is_off_events_are_journalled_and_never_told_later() {
    let (mut world, mut host, id, session) = swarm(Limits::default(), vec![done("Fixed."), done("Again.")]);
    world.router = RouterSwitch::Off;
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    let kept: Vec<(String, NotRouted)> = world
        .facts("session.event_kept")
        .into_iter()
        .filter_map(|event| match event {
            Event::SessionEventKept { event, why, .. } => Some((event.clone(), *why)),
            _ => None,
        })
        .collect();
    assert_eq!(kept, [("task_complete".to_owned(), NotRouted::Disabled)]);
    assert_eq!((told(&world).len(), world.state.sessions[&session].kept_events), (0, 1));
    world.router = RouterSwitch::On;
    world.pass(60_000);
    assert_eq!(told(&world).len(), 0, "what was kept was told later");
}

#[test]
fn events_over_the_cap_are_kept_and_counted() {
    let limits = Limits { round_trip_cap: 1, ..Limits::default() };
    let (mut world, _host, _id, session) = swarm(limits, vec![vec![]]);
    for call in ["c1", "c2", "c2"] {
        let command = raise(session, ExplicitKind::AgentCoordination, call, call);
        // The notice ends the turn, and then nothing can be raised.
        let _refused = world.decide(&command);
    }
    let kinds: Vec<&str> =
        told(&world).iter().filter_map(|message| message.metadata["subAgentRoutingKind"].as_str()).collect();
    assert_eq!(kinds, ["AGENT_COORDINATION", "ROUND_TRIP_CAP_EXCEEDED", "ROUND_TRIP_CAP_EXCEEDED"]);
    let capped = &world.state.sessions[&session];
    assert_eq!((capped.capped, capped.round_trips, capped.kept_events), (true, 2, 1));
}

#[test]
fn a_room_is_made_with_a_title_and_a_task_names_one_that_is_there() {
    let mut world = World::new();
    let mut make = |room_kind: RoomKind, title: &str| {
        let command = Command::CreateRoom(CreateRoom {
            room_id: PEERS,
            kind: Some(room_kind),
            title: title.to_owned(),
            conversation: None,
            idempotency_key: None,
        });
        world.decide(&command).map_err(|refusal| refusal.code)
    };
    assert_eq!(make(RoomKind::Worktree, " "), Err(RefusalCode::Invalid));
    assert_eq!(make(RoomKind::Main, "x"), Err(RefusalCode::Invalid));
    assert_eq!(make(RoomKind::Channel, "x"), Err(RefusalCode::Invalid));
    assert_eq!(make(RoomKind::Worktree, "peers"), Ok(Outcome::Room { room_id: PEERS }));
    assert_eq!(make(RoomKind::Worktree, "again"), Err(RefusalCode::Conflict));
    let mut create = task(1);
    create.worktree_room_id = Some(RoomId(Uuid::from_u128(0xb2)));
    assert_eq!(world.refused(Command::CreateTask(create)).0, RefusalCode::NotFound);
}
