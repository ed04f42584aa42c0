//! Facts of rooms.

use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::progress::ProgressMode;

use crate::changes::{Changes, RowRef};
use crate::state::{KeyedFact, Room, State};

/// Where the key of a request for a room is kept, apart from the keys of deliveries.
pub(crate) fn room_key(idempotency_key: &str) -> String {
    format!("room|{idempotency_key}")
}

pub(super) fn room_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    match &record.event {
        Event::RoomCreated { room_id, room_kind, title, conversation, idempotency_key } => {
            if let Some(key) = idempotency_key {
                let key = room_key(key);
                state.keys.insert(key.clone(), KeyedFact::Room { id: *room_id });
                changes.keys.push(key);
            }
            state.rooms.insert(
                *room_id,
                Room {
                    id: *room_id,
                    kind: *room_kind,
                    title: title.clone(),
                    incarnation: 1,
                    messages: 0,
                    created_at: record.at,
                    mailbox: Vec::new(),
                    session_id: None,
                    conversation: conversation.clone(),
                    earlier_messages: 0,
                    reset_at: None,
                    progress: ProgressMode::default(),
                },
            );
            changes.touch(RowRef::Room(*room_id));
        }
        Event::RoomReset { room_id, incarnation, .. } => {
            if let Some(room) = state.rooms.get_mut(room_id) {
                room.incarnation = *incarnation;
                room.earlier_messages = room.messages;
                room.reset_at = Some(record.at);
                // What waited was meant for the conversation that is over, and so was its main agent's session.
                room.mailbox.clear();
                room.session_id = None;
                changes.touch(RowRef::Room(*room_id));
            }
        }
        _ => {}
    }
}
