//! Messages for platform conversations: what is sent, in which order, how often, and how it ends.

use rallypoint_engine::due::{Effect, Sending, due, next_wakeup};
use rallypoint_engine::view::is_idle;
use rallypoint_model::channel::{ChannelFacts, Conversation};
use rallypoint_model::command::{Command, CreateRoom, CreateTask, Outcome};
use rallypoint_model::delivery::{DeliveryStatus, SinkAnswer};
use rallypoint_model::ids::{DeliveryId, RoomId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::refusal::RefusalCode;
use uuid::Uuid;

use crate::host::Host;
use crate::invariants::{Auditor, documents, replay};
use crate::tasks::done;
use crate::world::{World, task, word};

const HOUR_MS: i64 = 3_600_000;

pub(crate) fn conversation(peer: &str, thread: Option<&str>) -> Conversation {
    Conversation {
        channel: "hook".to_owned(),
        account: Some("bot".to_owned()),
        peer: peer.to_owned(),
        thread: thread.map(str::to_owned),
    }
}

/// A world with a channel `hook`.
pub(crate) fn world_with_hook(takes_key: bool, limits: Limits) -> World {
    let mut world = World::with_limits(limits);
    world.state.channels.insert("hook".to_owned(), ChannelFacts { takes_key, ..ChannelFacts::default() });
    world
}

pub(crate) fn bound_room(world: &mut World, number: u128, peer: &str) -> RoomId {
    let room_id = RoomId(Uuid::from_u128(0x300 + number));
    world.ok(Command::CreateRoom(CreateRoom {
        kind: None,
        room_id,
        title: String::new(),
        conversation: Some(conversation(peer, Some("042"))),
        idempotency_key: None,
    }));
    room_id
}

pub(crate) fn asked_in(room_id: RoomId, number: u128) -> CreateTask {
    CreateTask { room_id: Some(room_id), platform_message_id: Some(format!("m{number}")), ..task(number) }
}

/// What is with a sink now.
pub(crate) fn offered(world: &World) -> Vec<Sending> {
    let effects = due(&world.state, &world.limits);
    effects
        .into_iter()
        .filter_map(|effect| if let Effect::Send(it) = effect { Some(it) } else { None })
        .collect()
}

fn one(world: &World) -> Sending {
    match offered(world).as_slice() {
        [one] => one.clone(),
        other => panic!("{} messages are with a sink", other.len()),
    }
}

fn answer(world: &mut World, sending: &Sending, answer: SinkAnswer) -> Outcome {
    world.ok(Command::DeliveryAnswered { delivery_id: sending.delivery_id, offer: sending.offer, answer })
}

fn taken(id: &str) -> SinkAnswer {
    SinkAnswer::Receipt { id: Some(id.to_owned()), warning: None }
}

fn busy() -> SinkAnswer {
    SinkAnswer::Busy { why: "it answered 429".to_owned(), retry_after_ms: None }
}

fn failed() -> SinkAnswer {
    SinkAnswer::Failed { why: "it answered 500".to_owned() }
}

fn unknown() -> SinkAnswer {
    SinkAnswer::Unknown { why: "the connection was cut".to_owned() }
}

/// Takes everything that is offered until nothing is; the texts in order.
fn take_all(world: &mut World) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(sending) = offered(world).first().cloned() {
        answer(world, &sending, taken("r"));
        texts.push(sending.text);
    }
    texts
}

fn status(world: &World, id: DeliveryId) -> (DeliveryStatus, u32, u32) {
    let delivery = &world.state.deliveries[&id];
    (delivery.status, delivery.attempts, delivery.waits)
}

/// The last entry of the system, with its room.
fn last_entry(world: &World) -> (RoomId, String, serde_json::Value) {
    let messages = world.messages();
    let entry = messages.iter().rev().find(|message| message.name == "system").expect("an entry");
    (entry.room_id, entry.text.clone(), entry.metadata.clone())
}

fn check_journal(world: &World) {
    let mut auditor = Auditor::default();
    world.journal.iter().for_each(|record| auditor.audit(record));
    assert_eq!(documents(&replay(&world.journal)), documents(&world.state));
}

#[test]
fn replies_of_a_bound_room_go_to_its_whole_conversation_in_their_order_and_nothing_else_does() {
    let mut world = world_with_hook(true, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    let id = world.create(asked_in(room_id, 1));
    assert!(!is_idle(&world.state));
    let first = one(&world);
    assert_eq!(first.conversation, conversation("team", Some("042")));
    assert_eq!((first.text.as_str(), first.reply_to.as_deref()), ("Started `ada`.", Some("m1")));
    let mut host = Host::ada(vec![done("Fixed.")]);
    host.finish(&mut world, id);
    // The terminal reply waits behind the acknowledgement.
    assert_eq!(one(&world).delivery_id, first.delivery_id);
    assert_eq!(world.state.open_deliveries().count(), 2);
    let texts = take_all(&mut world);
    assert_eq!(texts.len(), 2);
    assert!(texts[1].starts_with("Fixed.\n\nDone, with proof:"), "{texts:?}");
    assert_eq!(
        next_wakeup(
            &world.state,
            &Limits {
                archive_after_minutes: rallypoint_model::length::Minutes::whole(0),
                ..Limits::default()
            }
        ),
        None
    );
    let session = &world.state.sessions[&world.session(id)];
    let origin = session.origin.as_ref().expect("an origin");
    assert_eq!(origin.conversation, Some(conversation("team", Some("042"))));
    assert_eq!(origin.platform_message_id.as_deref(), Some("m1"));
    check_journal(&world);
}

#[test]
fn a_room_that_is_bound_to_nothing_sends_nothing() {
    let mut world = world_with_hook(true, Limits::default());
    let mut host = Host::ada(vec![done("Fixed.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert!(world.state.deliveries.is_empty());
}

#[test]
fn a_busy_channel_waits_for_hours_without_one_attempt_and_then_takes_it_at_the_first() {
    let mut world = world_with_hook(false, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    world.create(asked_in(room_id, 1));
    let id = one(&world).delivery_id;
    for waits in 1..=200 {
        let sending = one(&world);
        answer(&mut world, &sending, busy());
        assert_eq!(status(&world, id), (DeliveryStatus::Pending, 0, waits));
        while offered(&world).is_empty() {
            assert!(world.pass_to_wakeup());
        }
    }
    let sending = one(&world);
    answer(&mut world, &sending, taken("r1"));
    assert_eq!(status(&world, id), (DeliveryStatus::Consumed, 1, 200));
    assert_eq!(world.state.deliveries[&id].receipt.as_deref(), Some("r1"));
    assert_eq!(world.state.deliveries[&id].text, None);
}

#[test]
fn a_channel_that_says_when_it_wants_to_be_asked_again_is_asked_then() {
    let mut world = world_with_hook(false, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    world.create(asked_in(room_id, 1));
    let sending = one(&world);
    let again = SinkAnswer::Busy { why: "later".to_owned(), retry_after_ms: Some(700_000) };
    answer(&mut world, &sending, again);
    world.pass(699_999);
    assert_eq!(offered(&world), []);
    world.pass(1);
    assert_eq!(one(&world).offer, 2);
}

#[test]
fn failures_count_pauses_grow_and_the_last_attempt_tells_the_room_and_wakes_its_main_agent() {
    let mut world = world_with_hook(true, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    let task_id = world.create(asked_in(room_id, 1));
    let mut host = Host::ada(vec![done("Fixed.")]);
    host.finish(&mut world, task_id);
    take_all(&mut world);
    let run_id = world.last_run(task_id).id;
    world.ok(Command::RetryTask { task_id, by: "kim".to_owned(), text: None });
    host.turns.insert("ada".to_owned(), [done("Fixed again.")].into());
    host.finish(&mut world, task_id);
    let sending = one(&world);
    let mut pauses = Vec::new();
    for attempt in 1..=8 {
        let sending = one(&world);
        assert_eq!((sending.offer, sending.sink_key), (attempt, sending.sink_key));
        answer(&mut world, &sending, if attempt % 2 == 0 { failed() } else { unknown() });
        let asked = world.now;
        while attempt < 8 && offered(&world).is_empty() {
            assert!(world.pass_to_wakeup());
        }
        pauses.push(world.now.since(asked) / 1000);
    }
    assert_eq!(pauses, [5, 25, 125, 600, 600, 600, 600, 0]);
    assert_eq!(status(&world, sending.delivery_id).0, DeliveryStatus::Failed);
    let (room, text, metadata) = last_entry(&world);
    assert_eq!(room, room_id);
    assert!(text.contains("it answered 500 (8/8 attempts, the limit is `deliveryAttempts`)"), "{text}");
    let last = world.last_run(task_id).id;
    assert_ne!(last, run_id);
    assert!(text.contains(&format!("`rally result get {last}`")), "{text}");
    assert_eq!(metadata["deliveryStatus"], "failed");
    assert_eq!(metadata["result"]["bytes"], 12);
    assert_eq!(metadata["turn"]["kind"], "delivery_given_up");
    // The turn says nothing: its words would go the same way.
    assert_eq!(offered(&world), []);
    assert!(world.state.open_deliveries().next().is_none());
    check_journal(&world);
}

#[test]
fn a_final_refusal_is_not_tried_again_and_delays_nothing_behind_it() {
    let mut world = world_with_hook(true, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    let id = world.create(asked_in(room_id, 1));
    Host::ada(vec![done("Fixed.")]).finish(&mut world, id);
    let first = one(&world);
    answer(&mut world, &first, SinkAnswer::Refused { why: "it answered 404".to_owned() });
    assert_eq!(status(&world, first.delivery_id), (DeliveryStatus::Failed, 1, 0));
    assert!(one(&world).text.starts_with("Fixed."));
}

#[test]
fn a_channel_without_keys_that_broke_off_leaves_a_doubt_that_is_told_and_never_sent_again_by_itself() {
    let mut world = world_with_hook(false, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    world.create(asked_in(room_id, 1));
    let first = one(&world);
    answer(&mut world, &first, unknown());
    assert_eq!(status(&world, first.delivery_id), (DeliveryStatus::Ambiguous, 1, 0));
    let (_, text, metadata) = last_entry(&world);
    assert!(
        text.contains("may or may not have reached it") && text.contains("rally delivery retry"),
        "{text}"
    );
    assert_eq!(metadata.get("turn"), None);
    world.pass(48 * HOUR_MS);
    assert!(offered(&world).iter().all(|sending| sending.delivery_id != first.delivery_id));
    // A late receipt settles it.
    assert_eq!(answer(&mut world, &first, taken("r1")), Outcome::Done);
    assert_eq!(status(&world, first.delivery_id).0, DeliveryStatus::Consumed);
    assert_eq!(answer(&mut world, &first, taken("r1")), Outcome::Stale);
    check_journal(&world);
}

#[test]
fn after_a_restart_an_offer_goes_again_under_its_key_only_where_the_channel_takes_keys_then_and_now() {
    for (then, now, kept) in
        [(true, true, true), (false, false, false), (false, true, false), (true, false, false)]
    {
        let mut world = world_with_hook(then, Limits::default());
        let room_id = bound_room(&mut world, 1, "team");
        world.create(asked_in(room_id, 1));
        let before = one(&world);
        world
            .state
            .channels
            .insert("hook".to_owned(), ChannelFacts { takes_key: now, ..ChannelFacts::default() });
        world.state.offered_here.clear();
        assert_eq!(
            offered(&world).len(),
            usize::from(kept),
            "nothing in doubt is due even before it is told"
        );
        world.ok(Command::Tick);
        if kept {
            assert_eq!(one(&world), before);
        } else {
            assert_eq!(offered(&world), [], "{then} {now}");
            assert_eq!(status(&world, before.delivery_id).0, DeliveryStatus::Ambiguous);
        }
    }
}

#[test]
fn an_answer_to_an_earlier_offer_is_not_taken_for_the_one_that_is_out() {
    let mut world = world_with_hook(true, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    world.create(asked_in(room_id, 1));
    let first = one(&world);
    answer(&mut world, &first, failed());
    assert_eq!(answer(&mut world, &first, SinkAnswer::Refused { why: "no".to_owned() }), Outcome::Stale);
    while offered(&world).is_empty() {
        assert!(world.pass_to_wakeup());
    }
    assert_eq!(answer(&mut world, &first, SinkAnswer::Refused { why: "no".to_owned() }), Outcome::Stale);
    assert_eq!(one(&world).sink_key, first.sink_key);
}

#[test]
fn a_stuck_conversation_keeps_its_own_order_and_delays_no_other() {
    let mut world = world_with_hook(true, Limits::default());
    let (stuck, free) = (bound_room(&mut world, 1, "stuck"), bound_room(&mut world, 2, "free"));
    let mut host = Host::ada(vec![done("One."), done("Two.")]);
    let first = world.create(asked_in(stuck, 1));
    host.finish(&mut world, first);
    let second = world.create(asked_in(free, 2));
    host.finish(&mut world, second);
    let with = |world: &World, peer: &str| {
        offered(world).into_iter().find(|sending| sending.conversation.peer == peer)
    };
    let head = with(&world, "stuck").expect("the first of the stuck one");
    answer(&mut world, &head, failed());
    assert_eq!(with(&world, "stuck"), None, "the second does not overtake the first");
    let mut texts = Vec::new();
    while let Some(sending) = with(&world, "free") {
        answer(&mut world, &sending, taken("r"));
        texts.push(sending.text.lines().next().unwrap_or_default().to_owned());
    }
    assert_eq!(texts, ["Started `ada`.", "Two."]);
    while with(&world, "stuck").is_none() {
        assert!(world.pass_to_wakeup());
    }
    assert_eq!(with(&world, "stuck").map(|sending| sending.delivery_id), Some(head.delivery_id));
}

#[test]
fn the_deadline_counts_only_time_with_a_daemon_and_its_end_is_told() {
    let mut world = world_with_hook(true, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    world.create(asked_in(room_id, 1));
    let sending = one(&world);
    let later = SinkAnswer::Busy { why: "away".to_owned(), retry_after_ms: Some(HOUR_MS) };
    answer(&mut world, &sending, later.clone());
    world.now = world.now.plus(100 * HOUR_MS);
    world.ok(Command::ResumeClocks { away_ms: 100 * HOUR_MS });
    world.ok(Command::Tick);
    for _ in 0..24 {
        let Some(sending) = offered(&world).first().cloned() else { break };
        answer(&mut world, &sending, later.clone());
        world.pass(HOUR_MS);
    }
    let (status, attempts, _) = status(&world, sending.delivery_id);
    assert_eq!((status, attempts), (DeliveryStatus::Expired, 0));
    let id = serde_json::json!(sending.delivery_id);
    let messages = world.messages();
    let told = messages.iter().find(|message| message.metadata["deliveryId"] == id).expect("an entry");
    assert!(told.text.contains("`deliveryDeadlineHours`): away"), "{told:?}");
    assert_eq!(told.metadata["turn"]["kind"], "delivery_given_up");
    check_journal(&world);
}

#[test]
fn what_no_channel_can_take_is_held_back_with_its_reason_and_goes_when_one_can() {
    let mut world = world_with_hook(true, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    let facts = world.state.channels.remove("hook").expect("the channel");
    let id = world.create(asked_in(room_id, 1));
    assert_eq!(offered(&world), []);
    let held = world.state.open_deliveries().next().expect("a delivery").clone();
    assert_eq!(held.status, DeliveryStatus::Suspended);
    assert_eq!(held.reason.as_deref(), Some("the channel `hook` is not in the configuration"));
    let refused = world.refused(Command::RetryDelivery { delivery_id: held.id, by: "kim".to_owned() });
    assert_eq!(refused.0, RefusalCode::Conflict);
    assert!(!world.state.deliveries.is_empty() && world.task(id).ended_at.is_none());
    world.state.channels.insert("hook".to_owned(), facts);
    world.ok(Command::Tick);
    assert_eq!(one(&world).delivery_id, held.id);
}

#[test]
fn a_message_that_is_sent_again_has_the_same_key_only_where_nobody_knows_whether_it_arrived() {
    for (first_answer, same_key) in [(unknown(), true), (SinkAnswer::Refused { why: "no".to_owned() }, false)]
    {
        let mut world = world_with_hook(false, Limits::default());
        let room_id = bound_room(&mut world, 1, "team");
        world.create(asked_in(room_id, 1));
        let first = one(&world);
        answer(&mut world, &first, first_answer);
        let retry = Command::RetryDelivery { delivery_id: first.delivery_id, by: "kim".to_owned() };
        let Outcome::Delivery { delivery_id } = world.ok(retry.clone()) else { panic!("no delivery") };
        let again = one(&world);
        assert_eq!((again.delivery_id, again.text), (delivery_id, first.text.clone()));
        assert_eq!(again.sink_key == first.sink_key, same_key);
        let (code, text) = world.refused(retry);
        assert_eq!(code, RefusalCode::Conflict);
        assert!(text.contains(&delivery_id.to_string()), "{text}");
        check_journal(&world);
    }
}

#[test]
fn a_delivery_that_a_person_gives_up_is_told_and_one_that_is_out_can_not_be_called_back() {
    let mut world = world_with_hook(true, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    world.create(asked_in(room_id, 1));
    let sending = one(&world);
    let discard = Command::DiscardDelivery {
        delivery_id: sending.delivery_id,
        by: "kim".to_owned(),
        reason: "too late".to_owned(),
    };
    assert_eq!(world.refused(discard.clone()).0, RefusalCode::Conflict);
    answer(&mut world, &sending, failed());
    world.ok(discard.clone());
    assert_eq!(status(&world, sending.delivery_id).0, DeliveryStatus::Discarded);
    assert!(last_entry(&world).1.contains("given up by kim: too late"));
    assert_eq!(world.ok(discard), Outcome::Done);
    check_journal(&world);
}

#[test]
fn a_failure_after_the_channel_had_it_is_a_warning_and_no_reason_to_send_it_again() {
    let mut world = world_with_hook(false, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    world.create(asked_in(room_id, 1));
    let sending = one(&world);
    let warned = SinkAnswer::Receipt { id: None, warning: Some("its receipt can't be read".to_owned()) };
    answer(&mut world, &sending, warned);
    let delivery = &world.state.deliveries[&sending.delivery_id];
    assert_eq!(delivery.status, DeliveryStatus::Consumed);
    assert_eq!(delivery.warning.as_deref(), Some("its receipt can't be read"));
}

#[test]
fn a_room_is_made_once_for_a_key_and_a_conversation_belongs_to_one_room() {
    let mut world = world_with_hook(true, Limits::default());
    let create = |number: u128, key: Option<&str>, peer: &str| {
        Command::CreateRoom(CreateRoom {
            kind: None,
            room_id: RoomId(Uuid::from_u128(number)),
            title: String::new(),
            conversation: Some(conversation(peer, None)),
            idempotency_key: key.map(str::to_owned),
        })
    };
    let first = world.ok(create(1, Some("k"), "team"));
    assert_eq!(world.ok(create(2, Some("k"), " team ")), first);
    assert_eq!(world.refused(create(3, Some("k"), "other")).0, RefusalCode::KeyReused);
    let (code, text) = world.refused(create(4, None, "team"));
    assert_eq!(code, RefusalCode::Conflict);
    assert!(text.contains("00000000-0000-0000-0000-000000000001"), "{text}");
    world.ok(Command::CreateRoom(CreateRoom {
        kind: None,
        room_id: RoomId(Uuid::from_u128(5)),
        title: String::new(),
        conversation: Some(conversation("team", Some("7"))),
        idempotency_key: None,
    }));
    let mut elsewhere = conversation("team", None);
    elsewhere.channel = "pigeon".to_owned();
    let (code, text) = world.refused(Command::CreateRoom(CreateRoom {
        kind: None,
        room_id: RoomId(Uuid::from_u128(6)),
        title: "x".to_owned(),
        conversation: Some(elsewhere),
        idempotency_key: None,
    }));
    assert_eq!(code, RefusalCode::Invalid);
    assert!(text.contains("pigeon"), "{text}");
    assert_eq!(world.state.rooms[&RoomId(Uuid::from_u128(5))].title, "hook/bot team #7");
    assert_eq!(word(&world.state.rooms[&RoomId(Uuid::from_u128(5))].kind), "channel");
}

#[test]
fn a_purged_task_sends_nothing_more_and_what_it_sent_is_kept_without_its_words() {
    let mut world = world_with_hook(true, Limits::default());
    let room_id = bound_room(&mut world, 1, "team");
    let task_id: TaskId = world.create(asked_in(room_id, 1));
    Host::ada(vec![done("The SECRET is out.")]).finish(&mut world, task_id);
    let sending = one(&world);
    let purge = Command::DeleteTask {
        task_id,
        mode: rallypoint_model::retention::DeleteMode::Purge,
        by: "kim".to_owned(),
    };
    let (code, text) = world.refused(purge.clone());
    assert_eq!(code, RefusalCode::Conflict);
    assert!(text.contains("on its way"), "{text}");
    answer(&mut world, &sending, failed());
    world.ok(purge);
    assert_eq!(offered(&world), []);
    assert!(world.state.open_deliveries().next().is_none());
    let rows = serde_json::to_string(&world.state.deliveries).expect("rows");
    assert!(!rows.contains("SECRET") && !rows.contains("Started"), "{rows}");
    assert!(rows.contains("\"peer\":\"team\""), "{rows}");
}
