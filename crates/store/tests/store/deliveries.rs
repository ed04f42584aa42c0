//! Deliveries and rooms read back as they were.

use rallypoint_engine::apply::apply;
use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::State;
use rallypoint_model::channel::{ChannelFacts, Conversation};
use rallypoint_model::command::{Command, CreateRoom, CreateTask, SayInRoom};
use rallypoint_model::delivery::SinkAnswer;
use rallypoint_model::ids::RoomId;
use uuid::Uuid;

use crate::place::Place;
use crate::recorded::Recorded;
use crate::world::{World, task};

pub(crate) const ROOM: RoomId = RoomId(Uuid::from_u128(0x300));

pub(crate) fn bound<P: Place>() -> Recorded<P> {
    let mut recorded = Recorded::new();
    let world = &mut recorded.world;
    world
        .state
        .channels
        .insert("hook".to_owned(), ChannelFacts { takes_key: true, ..ChannelFacts::default() });
    world.ok(Command::CreateRoom(CreateRoom {
        kind: None,
        room_id: ROOM,
        title: String::new(),
        conversation: Some(Conversation {
            channel: "hook".to_owned(),
            account: None,
            peer: "team".to_owned(),
            thread: Some("042".to_owned()),
        }),
        idempotency_key: Some("k".to_owned()),
    }));
    recorded
}

pub(crate) fn say(world: &mut World, room_id: RoomId, text: &str) {
    world.ok(Command::SayInRoom(SayInRoom {
        room_id,
        text: text.to_owned(),
        by: "kim".to_owned(),
        source: "test".to_owned(),
        platform_message_id: None,
        idempotency_key: None,
    }));
}

pub(crate) fn deliveries_and_a_reset_room_are_loaded_as_they_were_and_as_the_journal_says<P: Place>() {
    let mut recorded = bound::<P>();
    let world = &mut recorded.world;
    world.ok(Command::CreateTask(CreateTask { room_id: Some(ROOM), ..task(1) }));
    let first = world.state.open_deliveries().next().expect("an acknowledgement").clone();
    let answer = SinkAnswer::Failed { why: "500".to_owned() };
    world.ok(Command::DeliveryAnswered { delivery_id: first.id, offer: first.offers, answer });
    world.ok(Command::ResetRoom { room_id: ROOM, by: "kim".to_owned() });
    let (_folder, store, world) = recorded.reopen();
    let loaded = store.load().expect("a state");
    assert_eq!(loaded.deliveries, world.state.deliveries);
    assert_eq!(loaded.rooms, world.state.rooms);
    assert_eq!(loaded.keys, world.state.keys);
    assert_eq!((loaded.rooms[&ROOM].incarnation, loaded.rooms[&ROOM].earlier_messages), (2, 2));
    let mut replayed = State::default();
    for record in &world.journal {
        apply(&mut replayed, record, &mut Changes::default());
    }
    assert_eq!((replayed.deliveries, replayed.rooms), (loaded.deliveries, loaded.rooms));
}
