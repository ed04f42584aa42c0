//! Routing: roles of rooms, events that an agent raises by itself, why an event reached no room.

use serde::{Deserialize, Serialize};

use crate::ids::RoomId;

/// What a room is for a session. The order is the rank.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RoomRole {
    /// Status, hand-over and questions.
    Task,
    /// Peers in one work tree.
    Worktree,
    /// The room that asked, where that is another one.
    Origin,
}

impl RoomRole {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Worktree => "worktree",
            Self::Origin => "origin",
        }
    }
}

/// A room of a swarm, with what it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SwarmRoom {
    /// The room.
    pub room_id: RoomId,
    /// Its roles.
    pub roles: Vec<RoomRole>,
}

/// An event that an agent raises by itself, by its name on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ExplicitKind {
    /// It asks whoever made the task.
    QuestionForTaskCreator,
    /// It tells its peers something.
    AgentCoordination,
}

/// How an event came to be known. Later ones are weaker: words can be quoted, a call can not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventSource {
    /// The runtime saw it.
    Runtime,
    /// The agent raised it with a structured call.
    Call,
    /// The agent's words began with the event's name.
    Banner,
}

impl EventSource {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Call => "call",
            Self::Banner => "banner",
        }
    }
}

/// An event that a session raises with a structured call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplicitEvent {
    /// Which.
    pub kind: ExplicitKind,
    /// The words; not empty.
    pub text: String,
    /// Names the call within its session: a call that comes again is told once.
    pub call_id: String,
}

/// Why an event of a session reached no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotRouted {
    /// The router is switched off.
    Disabled,
    /// The session is over its round-trip cap.
    Capped,
}

impl NotRouted {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Capped => "capped",
        }
    }
}

/// Whether boundary events reach rooms at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouterSwitch {
    /// As always.
    #[default]
    On,
    /// Events are journalled, and never told later.
    Off,
}
