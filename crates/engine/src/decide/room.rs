//! Rooms: made, and named by tasks.

use rallypoint_model::command::{CreateTask, Outcome};
use rallypoint_model::event::{Aggregate, Event, Scope};
use rallypoint_model::ids::RoomId;
use rallypoint_model::message::RoomKind;
use rallypoint_model::refusal::{Refusal, RefusalCode};

use super::Deciding;

impl Deciding<'_, '_> {
    /// Makes a room. Its main room is the world's own, and a channel's room is bound by its channel.
    pub(crate) fn create_room(
        &mut self,
        room_id: RoomId,
        room_kind: RoomKind,
        title: &str,
    ) -> Result<Outcome, Refusal> {
        let title = title.trim();
        if title.is_empty() {
            return Err(Refusal::new(RefusalCode::Invalid, "a room needs a title"));
        }
        if matches!(room_kind, RoomKind::Main | RoomKind::Channel) {
            return Err(Refusal::new(RefusalCode::Invalid, "a room of this kind can't be made by itself")
                .with_hint("the kinds are: task, worktree, direct"));
        }
        if self.state.rooms.contains_key(&room_id) {
            return Err(Refusal::new(RefusalCode::Conflict, format!("the room `{room_id}` was made before")));
        }
        self.emit(
            Aggregate::Room(room_id),
            Scope { room_id: Some(room_id), ..Scope::default() },
            Event::RoomCreated { room_id, room_kind, title: title.to_owned() },
        );
        Ok(Outcome::Done)
    }

    /// Whether the room for the peers of a task is there.
    pub(crate) fn check_worktree_room(&self, create: &CreateTask) -> Result<(), Refusal> {
        match create.worktree_room_id {
            Some(room_id) if !self.state.rooms.contains_key(&room_id) => {
                Err(Refusal::not_found("room", room_id)
                    .with_hint("`rally room list` shows the rooms there are"))
            }
            Some(_) | None => Ok(()),
        }
    }
}
