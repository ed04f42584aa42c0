//! From a boundary event to one durable message in the room that asked.
//!
//! Contract: elizaOS plugin-agent-orchestrator, `docs/sub-agent-routing.md`
//! and `sub-agent-router.ts` (fields, kinds, narration, identity). Deduplication
//! is durable here and its key has no status in it.

mod narration;
mod routing;

use rallypoint_model::ids::{EntityId, RoomId, SessionId};
use rallypoint_model::routing::{EventSource, RoomRole, SwarmRoom};
use rallypoint_model::session::FrozenOrigin;
use serde_json::{Map, Value, json};
use sha1::{Digest, Sha1};
use uuid::Uuid;

use crate::consequences::Boundary;

pub use narration::{Narration, Payload, Read, kind_of_banner, narrate, narrate_cap, read, without_banner};
pub use routing::{Happening, RoutedPost, Routing, Rules, Teller, route};

/// Why a message landed in its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutingKind {
    /// Something ended.
    TaskStatus,
    /// Something is asked of whoever made the task.
    QuestionForTaskCreator,
    /// Something for peers.
    AgentCoordination,
    /// The session is over its cap.
    RoundTripCapExceeded,
}

impl RoutingKind {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TaskStatus => "TASK_STATUS",
            Self::QuestionForTaskCreator => "QUESTION_FOR_TASK_CREATOR",
            Self::AgentCoordination => "AGENT_COORDINATION",
            Self::RoundTripCapExceeded => "ROUND_TRIP_CAP_EXCEEDED",
        }
    }

    /// The kind of a boundary event; being blocked is a question by default.
    pub fn of(boundary: Boundary) -> Self {
        match boundary {
            Boundary::TaskComplete | Boundary::Error => Self::TaskStatus,
            Boundary::Blocked | Boundary::QuestionForTaskCreator => Self::QuestionForTaskCreator,
            Boundary::AgentCoordination => Self::AgentCoordination,
        }
    }
}

/// Identity of a sub-agent: the SHA-1 of `<agentId>:acpx:sub-agent:<sessionId>`
/// shaped like a version 5 UUID. It has no namespace bytes, so it is not the
/// UUIDv5 of RFC 4122.
pub fn sub_agent_entity(agent_id: &str, session_id: SessionId) -> EntityId {
    entity_of_text(&format!("{agent_id}:acpx:sub-agent:{session_id}"))
}

fn entity_of_text(text: &str) -> EntityId {
    let digest = Sha1::digest(text.as_bytes());
    let mut bytes = [0_u8; 16];
    for (to, from) in bytes.iter_mut().zip(digest.iter()) {
        *to = *from;
    }
    if let Some(byte) = bytes.get_mut(6) {
        *byte = (*byte & 0x0f) | 0x50;
    }
    if let Some(byte) = bytes.get_mut(8) {
        *byte = (*byte & 0x3f) | 0x80;
    }
    EntityId(Uuid::from_bytes(bytes))
}

/// The rooms of a swarm, each once: what the origin lists, then the task's
/// room, then the room for peers. Roles of one room are merged and ordered;
/// rooms are ordered by their best role, then by id.
pub fn swarm_rooms(origin: &FrozenOrigin) -> Vec<SwarmRoom> {
    let mut rooms: Vec<SwarmRoom> = Vec::new();
    let mut add =
        |room_id: RoomId, role: RoomRole| match rooms.iter_mut().find(|room| room.room_id == room_id) {
            Some(room) if !room.roles.contains(&role) => room.roles.push(role),
            Some(_) => {}
            None => rooms.push(SwarmRoom { room_id, roles: vec![role] }),
        };
    for room in &origin.swarm_rooms {
        for role in &room.roles {
            add(room.room_id, *role);
        }
    }
    add(origin.task_room_id, RoomRole::Task);
    if let Some(room) = origin.worktree_room_id {
        add(room, RoomRole::Worktree);
    }
    for room in &mut rooms {
        room.roles.sort_unstable();
    }
    rooms.sort_by_key(|room| (room.roles.first().copied(), room.room_id));
    rooms
}

/// The rooms that an event of this kind goes to.
pub fn targets(kind: RoutingKind, origin: &FrozenOrigin) -> Vec<SwarmRoom> {
    let all = swarm_rooms(origin);
    let wanted = match kind {
        RoutingKind::TaskStatus | RoutingKind::RoundTripCapExceeded => return all,
        RoutingKind::QuestionForTaskCreator => RoomRole::Task,
        RoutingKind::AgentCoordination => {
            if all.iter().any(|room| room.roles.contains(&RoomRole::Worktree)) {
                RoomRole::Worktree
            } else {
                RoomRole::Task
            }
        }
    };
    // The role that was asked for stands first: it says why the message is there.
    all.into_iter()
        .filter(|room| room.roles.contains(&wanted))
        .map(|mut room| {
            room.roles.sort_by_key(|role| (*role != wanted, *role));
            room
        })
        .collect()
}

/// What the metadata of a routed message is made of.
#[derive(Clone, Debug)]
pub(crate) struct Routed<'a> {
    pub(crate) session_id: SessionId,
    pub(crate) label: &'a str,
    pub(crate) event: &'a str,
    pub(crate) status: &'a str,
    pub(crate) agent_type: &'a str,
    pub(crate) round_trip: u32,
    pub(crate) cap: u32,
    pub(crate) kind: RoutingKind,
    pub(crate) by: EventSource,
    pub(crate) target: &'a SwarmRoom,
    pub(crate) origin: &'a FrozenOrigin,
    pub(crate) workdir: &'a str,
    pub(crate) finish_reason: Option<&'a str>,
}

/// The structured companion of a routed message.
pub(crate) fn metadata(routed: &Routed<'_>) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        map.insert(key.to_owned(), value);
    };
    put("subAgent", json!(true));
    put("subAgentSessionId", json!(routed.session_id));
    put("subAgentLabel", json!(routed.label));
    put("subAgentEvent", json!(routed.event));
    put("subAgentEventSource", json!(routed.by));
    put("subAgentStatus", json!(routed.status));
    put("subAgentAgentType", json!(routed.agent_type));
    put("subAgentActualAgentType", json!(routed.agent_type));
    put("subAgentRoundTrip", json!(routed.round_trip));
    put("subAgentRoundTripCap", json!(routed.cap));
    if routed.kind == RoutingKind::RoundTripCapExceeded {
        put("subAgentCapExceeded", json!(true));
    }
    put("subAgentRoutingKind", json!(routed.kind.as_str()));
    put("subAgentTargetRoomId", json!(routed.target.room_id));
    put("subAgentTargetRoomRole", json!(routed.target.roles.first()));
    put("subAgentTargetRoomRoles", json!(routed.target.roles));
    put("subAgentSwarmRooms", json!(swarm_rooms(routed.origin)));
    put("subAgentWorkdir", json!(routed.workdir));
    if let Some(finish) = routed.finish_reason {
        put("subAgentFinishReason", json!(finish));
    }
    put("taskRoomId", json!(routed.origin.task_room_id));
    if let Some(room) = routed.origin.worktree_room_id {
        put("worktreeRoomId", json!(room));
    }
    put("originUserId", json!(routed.origin.user_id));
    put("originMessageId", json!(routed.origin.message_id));
    put("originSource", json!(routed.origin.source));
    if let Some(id) = &routed.origin.platform_message_id {
        put("originConnectorMessageId", json!(id));
    }
    map
}

/// Unique key of a delivery: session, source record, event, target. The source
/// record is named by what makes it unique (the end of a run, the id of a
/// request or call), since its place in the journal is only known at its
/// commit. The status is not in the key: a flip must not double a post.
pub fn delivery_key(session_id: SessionId, source: &str, event: &str, target: RoomId) -> String {
    format!("delivery|{session_id}|{source}|{event}|{target}")
}

#[cfg(test)]
mod tests {
    use super::entity_of_text;

    #[test]
    fn sub_agent_identities_are_as_published() {
        for (text, uuid) in [
            (
                "00000000-0000-0000-0000-000000000001:acpx:sub-agent:01234567-89ab-cdef-0123-456789abcdef",
                "e40faf22-09ab-5cf7-80ed-52edcfc70e69",
            ),
            (
                "b850bc30-45f8-0041-a00a-83df46d8555d:acpx:sub-agent:pty-1717243200000-ab12cd34",
                "9dfce515-c68c-591a-8c4a-8647f3e31655",
            ),
            (
                "00000000-0000-0000-0000-000000000001:acpx:sub-agent:sess-2",
                "f270517f-245c-536a-9b18-91672bc628be",
            ),
            (
                "00000000-0000-0000-0000-000000000001:acpx:sub-agent:shared",
                "38cb953a-61d6-5c8e-a65e-33a876be92ef",
            ),
            (
                "b850bc30-45f8-0041-a00a-83df46d8555d:acpx:sub-agent:shared",
                "081054e9-e4ef-57fd-a6b5-bd8838b7db28",
            ),
        ] {
            assert_eq!(entity_of_text(text).to_string(), uuid);
        }
    }
}
