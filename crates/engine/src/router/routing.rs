//! The decision on one event: into which rooms it goes, or why into none.

use rallypoint_model::ids::SessionId;
use rallypoint_model::routing::{EventSource, NotRouted, RoomRole, SwarmRoom};
use rallypoint_model::session::FrozenOrigin;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{
    Narration, Payload, Routed, RoutingKind, delivery_key, metadata, narrate, narrate_cap, read, targets,
};
use crate::consequences::Boundary;

/// The session that an event belongs to, as far as the router looks at it.
#[derive(Clone, Debug)]
pub struct Teller<'a> {
    /// Its id.
    pub session_id: SessionId,
    /// Its name.
    pub label: &'a str,
    /// Its profile.
    pub agent_type: &'a str,
    /// Its status as the contract names it.
    pub status: &'a str,
    /// Where its results go; nobody asked for a session without.
    pub origin: Option<&'a FrozenOrigin>,
    /// Its work folder.
    pub workdir: &'a str,
    /// Events of it that reached a room before.
    pub round_trips: u32,
    /// Whether it is over its cap.
    pub capped: bool,
    /// Why its agent stopped, when that was a limit: `length` or `content_filter`.
    pub finish_reason: Option<&'a str>,
}

/// One event.
#[derive(Clone, Debug)]
pub struct Happening<'a> {
    /// What happened.
    pub boundary: Boundary,
    /// What came with it.
    pub payload: &'a Payload,
    /// Whether the agent raised it with a structured call.
    pub by_call: bool,
    /// Names the record that it comes from, uniquely in its session.
    pub source: &'a str,
    /// Names the turn that it belongs to.
    pub turn: &'a str,
    /// Told instead of the narration, for a session that talks to its parent.
    pub told_as: Option<&'a str>,
}

/// What holds for every event.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether events reach rooms at all.
    pub enabled: bool,
    /// Events of one session that do.
    pub cap: u32,
    /// Bytes of a narration's body at most.
    pub head_bytes: usize,
}

/// A message for a room.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutedPost {
    /// Where it goes, the role that it goes there for first.
    pub target: SwarmRoom,
    /// Why.
    pub kind: RoutingKind,
    /// The text.
    pub text: String,
    /// Its structured companion.
    pub metadata: Map<String, Value>,
    /// Its unique key.
    pub delivery_key: String,
    /// Key of its text within its turn, for status events only.
    pub text_key: Option<String>,
}

/// What becomes of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Routing {
    /// It is told in these rooms, in this order; when it is the cap notice, the session ends.
    Told {
        /// The messages.
        posts: Vec<RoutedPost>,
        /// Whether the session is over its cap now.
        stops_session: bool,
    },
    /// It was told before.
    Repeated,
    /// No room asked for it.
    NoRoom,
    /// It is journalled and told nowhere, now or later.
    Kept(NotRouted),
}

/// Decides on one event. `known` says whether a key was used before.
pub fn route(
    teller: &Teller<'_>,
    happening: &Happening<'_>,
    rules: Rules,
    known: &dyn Fn(&str) -> bool,
) -> Routing {
    let Some(origin) = teller.origin else {
        return Routing::NoRoom;
    };
    if !rules.enabled {
        return Routing::Kept(NotRouted::Disabled);
    }
    if teller.capped {
        return Routing::Kept(NotRouted::Capped);
    }
    let round_trip = teller.round_trips.saturating_add(1);
    let said = read(happening.boundary, happening.payload);
    let by = if happening.by_call { EventSource::Call } else { said.by };
    let text = happening.told_as.map_or_else(
        || {
            narrate(&Narration {
                label: teller.label,
                agent_type: teller.agent_type,
                boundary: happening.boundary,
                body: &said.body,
                head_bytes: rules.head_bytes,
            })
        },
        str::to_owned,
    );
    let making = Making { teller, happening, rules, origin, round_trip };
    let mut posts = making.posts(said.kind, by, happening.boundary.as_str(), teller.status, &text);
    posts.retain(|post| !known(&post.delivery_key) && !post.text_key.as_deref().is_some_and(known));
    // What was told before is no round trip, so it is looked at before the cap is.
    if posts.is_empty() {
        return Routing::Repeated;
    }
    let over = round_trip > rules.cap;
    if over {
        let notice = narrate_cap(teller.label, teller.agent_type, round_trip, rules.cap);
        let kind = RoutingKind::RoundTripCapExceeded;
        posts = making.posts(kind, EventSource::Runtime, "round_trip_cap_exceeded", "stopped", &notice);
    }
    Routing::Told { posts, stops_session: over }
}

/// What the messages of one event have in common.
struct Making<'a> {
    teller: &'a Teller<'a>,
    happening: &'a Happening<'a>,
    rules: Rules,
    origin: &'a FrozenOrigin,
    round_trip: u32,
}

impl Making<'_> {
    fn posts(
        &self,
        kind: RoutingKind,
        by: EventSource,
        event: &str,
        status: &str,
        text: &str,
    ) -> Vec<RoutedPost> {
        let session_id = self.teller.session_id;
        let post = |(target, kind): (SwarmRoom, RoutingKind)| {
            let metadata = metadata(&Routed {
                session_id,
                label: self.teller.label,
                event,
                status,
                agent_type: self.teller.agent_type,
                round_trip: self.round_trip,
                cap: self.rules.cap,
                kind,
                by,
                target: &target,
                origin: self.origin,
                workdir: self.teller.workdir,
                finish_reason: self.teller.finish_reason,
            });
            let delivery_key = delivery_key(session_id, self.happening.source, event, target.room_id);
            // Two questions may have the same words, and each wants its answer.
            let text_key = (kind == RoutingKind::TaskStatus)
                .then(|| text_key(session_id, self.happening.turn, &target, text));
            RoutedPost { target, kind, text: text.to_owned(), metadata, delivery_key, text_key }
        };
        rooms(self.happening.boundary, kind, self.origin).into_iter().map(post).collect()
    }
}

/// Rooms, each with why. The end of a turn always reaches the task's room, also
/// when the agent's last words were meant for its peers.
fn rooms(boundary: Boundary, kind: RoutingKind, origin: &FrozenOrigin) -> Vec<(SwarmRoom, RoutingKind)> {
    let mut rooms: Vec<_> = targets(kind, origin).into_iter().map(|room| (room, kind)).collect();
    let ends_turn = matches!(boundary, Boundary::TaskComplete | Boundary::Error);
    if ends_turn && kind == RoutingKind::AgentCoordination {
        let others = targets(RoutingKind::TaskStatus, origin).into_iter().filter(|room| {
            room.roles.contains(&RoomRole::Task)
                && rooms.iter().all(|(known, _)| known.room_id != room.room_id)
        });
        let told: Vec<_> = others.map(|room| (room, RoutingKind::TaskStatus)).collect();
        rooms.splice(0..0, told);
    }
    rooms
}

/// Key of what a reader sees, within one turn and room.
fn text_key(session_id: SessionId, turn: &str, target: &SwarmRoom, text: &str) -> String {
    let digest: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("text|{session_id}|{turn}|{}|{digest}", target.room_id)
}
