//! The active sub-agents of each room.

use std::collections::{BTreeMap, BTreeSet};

use rallypoint_model::ids::{RoomId, SessionId};
use rallypoint_model::session::FrozenOrigin;

use super::State;
use crate::changes::RowRef;
use crate::roster::{News, Roster, session_of};
use crate::router::swarm_rooms;

/// A roster for each room that has, or had, active sub-agents.
#[derive(Clone, Debug, Default)]
pub struct Rosters {
    rooms: BTreeMap<RoomId, Roster>,
}

/// Two are equal that show the same; a room without anybody is as one that never had any.
impl PartialEq for Rosters {
    fn eq(&self, other: &Self) -> bool {
        let filled = |it: &Self| -> Vec<(RoomId, Roster)> {
            let rooms = it.rooms.iter().filter(|(_, roster)| !roster.is_empty());
            rooms.map(|(room_id, roster)| (*room_id, roster.clone())).collect()
        };
        filled(self) == filled(other)
    }
}

impl Rosters {
    /// The roster of a room, where it has one.
    pub fn of_room(&self, room_id: RoomId) -> Option<&Roster> {
        self.rooms.get(&room_id)
    }

    /// What the main agent of a room has not been told of its sub-agents; it is told with this.
    pub(crate) fn news(&mut self, room_id: RoomId) -> Option<News> {
        self.rooms.entry(room_id).or_default().news()
    }

    /// Another main agent knows nothing.
    pub(crate) fn forget_told(&mut self, room_id: RoomId) {
        if let Some(roster) = self.rooms.get_mut(&room_id) {
            roster.forget_told();
        }
    }

    /// Lines that were made so far, in all rooms.
    pub fn rendered_lines(&self) -> u64 {
        self.rooms.values().map(Roster::rendered_lines).sum()
    }
}

impl State {
    /// Brings the rosters in line with one row.
    pub(crate) fn list(&mut self, row: RowRef) {
        let Some(id) = session_of(self, row) else { return };
        let Some(origin) = self.sessions.get(&id).and_then(|session| session.origin.as_ref()) else { return };
        let rooms = rooms_of(origin);
        let mut rosters = std::mem::take(&mut self.rosters);
        for room_id in rooms {
            rosters.rooms.entry(room_id).or_default().look_at(self, id);
        }
        self.rosters = rosters;
    }

    /// The active sub-agents of a room, in the order of its roster.
    pub fn active_in(&self, room_id: RoomId) -> Vec<SessionId> {
        self.rosters.of_room(room_id).map(|roster| roster.ids().collect()).unwrap_or_default()
    }
}

/// The rooms whose main agents see a session: where it was asked for, and where its events go.
fn rooms_of(origin: &FrozenOrigin) -> BTreeSet<RoomId> {
    let swarm = swarm_rooms(origin).into_iter().map(|room| room.room_id);
    swarm.chain([origin.origin_room_id]).collect()
}
