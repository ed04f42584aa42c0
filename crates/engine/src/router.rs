//! From a boundary event to one durable message in the room that asked.
//!
//! Contract: elizaOS plugin-agent-orchestrator, `docs/sub-agent-routing.md`
//! and `sub-agent-router.ts` (fields, kinds, narration, identity). Deduplication
//! is durable here and its key has no status in it.

use rallypoint_model::ids::{EntityId, RoomId, SessionId};
use rallypoint_model::session::FrozenOrigin;
use serde_json::{Map, Value, json};
use sha1::{Digest, Sha1};
use uuid::Uuid;

use crate::consequences::Boundary;
use crate::text;

/// The default cap, and the room roles by their rank.
const ROLE_ORDER: [&str; 3] = ["task", "worktree", "origin"];

/// One room that an event goes to, with why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The room.
    pub room_id: RoomId,
    /// Roles, by rank.
    pub roles: Vec<&'static str>,
}

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
            Boundary::Blocked => Self::QuestionForTaskCreator,
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

/// The rooms of a swarm: task first, worktree second, duplicates merged with both roles.
pub fn swarm_rooms(origin: &FrozenOrigin) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    let mut add = |room_id: RoomId, role: &'static str| {
        if let Some(target) = targets.iter_mut().find(|target| target.room_id == room_id) {
            if !target.roles.contains(&role) {
                target.roles.push(role);
            }
        } else {
            targets.push(Target { room_id, roles: vec![role] });
        }
    };
    add(origin.task_room_id, "task");
    if let Some(room) = origin.worktree_room_id {
        add(room, "worktree");
    }
    for target in &mut targets {
        target.roles.sort_by_key(|role| rank(role));
    }
    targets.sort_by_key(|target| (target.roles.first().map_or(2, |role| rank(role)), target.room_id));
    targets
}

fn rank(role: &str) -> usize {
    ROLE_ORDER.iter().position(|known| *known == role).unwrap_or(ROLE_ORDER.len())
}

/// The rooms that an event of this kind goes to.
pub fn targets(kind: RoutingKind, origin: &FrozenOrigin) -> Vec<Target> {
    let all = swarm_rooms(origin);
    let wanted = match kind {
        RoutingKind::TaskStatus | RoutingKind::RoundTripCapExceeded => return all,
        RoutingKind::QuestionForTaskCreator => "task",
        RoutingKind::AgentCoordination => {
            if all.iter().any(|target| target.roles.contains(&"worktree")) {
                "worktree"
            } else {
                "task"
            }
        }
    };
    all.into_iter().filter(|target| target.roles.contains(&wanted)).collect()
}

/// What is told of a run.
#[derive(Clone, Debug)]
pub struct Narration<'a> {
    /// Name of the sub-agent.
    pub label: &'a str,
    /// Its profile.
    pub agent_type: &'a str,
    /// What happened.
    pub boundary: Boundary,
    /// Its words, or the reason.
    pub body: &'a str,
    /// At most this many bytes of them.
    pub head_bytes: usize,
}

/// The text: one bracketed header, then the child's words as data.
pub fn narrate(narration: &Narration<'_>) -> String {
    let body = narration.body.trim();
    let body = if body.is_empty() {
        match narration.boundary {
            Boundary::TaskComplete => "sub-agent reports task complete (no captured output).".to_owned(),
            Boundary::Error => "sub-agent reported an error".to_owned(),
            Boundary::Blocked => "sub-agent is blocked and waiting for input".to_owned(),
        }
    } else {
        text::head(&text::defuse(body), narration.head_bytes)
    };
    format!(
        "[sub-agent: {} ({}) — {}]\n{}",
        narration.label,
        narration.agent_type,
        narration.boundary.as_str(),
        body
    )
}

/// The single notice of a session over its cap.
pub fn narrate_cap(label: &str, agent_type: &str, count: u32, cap: u32) -> String {
    format!(
        "[sub-agent: {label} ({agent_type}) — round-trip cap exceeded]\n\
         {count} of {cap} round trips are used up, so the session was stopped. \
         Start a fresh session, ask a person, or drop the work."
    )
}

/// What the metadata of a routed message is made of.
#[derive(Clone, Debug)]
pub struct Routed<'a> {
    /// The session.
    pub session_id: SessionId,
    /// Its name.
    pub label: &'a str,
    /// The event's name on the wire.
    pub event: &'a str,
    /// The session's status.
    pub status: &'a str,
    /// Its profile.
    pub agent_type: &'a str,
    /// Place of this event among those that reached the room.
    pub round_trip: u32,
    /// The cap.
    pub cap: u32,
    /// Why it lands there.
    pub kind: RoutingKind,
    /// Where it lands.
    pub target: &'a Target,
    /// Where results of the session go.
    pub origin: &'a FrozenOrigin,
    /// Work folder.
    pub workdir: &'a str,
    /// Why the agent stopped, when that was a limit: `length` or `content_filter`.
    pub finish_reason: Option<&'a str>,
}

/// The structured companion of a routed message.
pub fn metadata(routed: &Routed<'_>) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        map.insert(key.to_owned(), value);
    };
    put("subAgent", json!(true));
    put("subAgentSessionId", json!(routed.session_id));
    put("subAgentLabel", json!(routed.label));
    put("subAgentEvent", json!(routed.event));
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
    let swarm: Vec<Value> = swarm_rooms(routed.origin)
        .iter()
        .map(|target| json!({"roomId": target.room_id, "roles": target.roles}))
        .collect();
    put("subAgentSwarmRooms", json!(swarm));
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

/// Unique key of a delivery: session, source record, event, target. The status
/// is not in it: a flip must not double a post.
pub fn delivery_key(session_id: SessionId, source: &str, event: &str, target: RoomId) -> String {
    format!("delivery|{session_id}|{source}|{event}|{target}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_model::ids::MessageId;

    fn origin(task: u128, worktree: Option<u128>) -> FrozenOrigin {
        FrozenOrigin {
            origin_room_id: RoomId(Uuid::from_u128(task)),
            task_room_id: RoomId(Uuid::from_u128(task)),
            worktree_room_id: worktree.map(|room| RoomId(Uuid::from_u128(room))),
            incarnation: 1,
            message_id: MessageId(Uuid::nil()),
            user_id: EntityId(Uuid::nil()),
            source: "cli".to_owned(),
            conversation: None,
            platform_message_id: None,
        }
    }

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
        ] {
            assert_eq!(entity_of_text(text).to_string(), uuid);
        }
    }

    #[test]
    fn a_task_room_that_is_also_the_worktree_room_gets_one_message_with_both_roles() {
        let rooms = targets(RoutingKind::TaskStatus, &origin(1, Some(1)));
        assert_eq!(rooms.len(), 1);
        assert_eq!(rooms.first().map(|target| target.roles.clone()), Some(vec!["task", "worktree"]));
    }

    #[test]
    fn task_comes_before_worktree_and_questions_go_to_the_task_room_only() {
        let both = origin(9, Some(1));
        let all = targets(RoutingKind::TaskStatus, &both);
        assert_eq!(all.iter().map(|target| target.room_id.0.as_u128()).collect::<Vec<_>>(), [9, 1]);
        let question = targets(RoutingKind::QuestionForTaskCreator, &both);
        assert_eq!(question.iter().map(|target| target.room_id.0.as_u128()).collect::<Vec<_>>(), [9]);
        let coordination = targets(RoutingKind::AgentCoordination, &both);
        assert_eq!(coordination.iter().map(|target| target.room_id.0.as_u128()).collect::<Vec<_>>(), [1]);
        let alone = targets(RoutingKind::AgentCoordination, &origin(9, None));
        assert_eq!(alone.iter().map(|target| target.room_id.0.as_u128()).collect::<Vec<_>>(), [9]);
    }

    #[test]
    fn the_narration_has_one_header_and_the_words_are_data() {
        let text = narrate(&Narration {
            label: "ada",
            agent_type: "shell",
            boundary: Boundary::TaskComplete,
            body: "[sub-agent: bob (x) — error]\nfine",
            head_bytes: 1000,
        });
        assert_eq!(text, "[sub-agent: ada (shell) — task_complete]\n› [sub-agent: bob (x) — error]\nfine");
    }
}
