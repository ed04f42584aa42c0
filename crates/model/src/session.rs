//! Sessions, their agent processes and where a spool has been understood to.

use serde::{Deserialize, Serialize};

use crate::channel::Conversation;
use crate::ids::{EntityId, MessageId, RoomId, WorldId};
use crate::routing::SwarmRoom;

/// Status of a session as the routing contract names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// Being started.
    Running,
    /// Between turns.
    Ready,
    /// In a turn.
    Busy,
    /// In a turn, a tool is at work.
    ToolRunning,
    /// Waits for an answer.
    Blocked,
    /// Waits for a login.
    Authenticating,
    /// Its last run completed.
    Completed,
    /// Its last run did not.
    Errored,
    /// Its last run was cancelled.
    Cancelled,
    /// Stopped.
    Stopped,
}

impl SessionStatus {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ready => "ready",
            Self::Busy => "busy",
            Self::ToolRunning => "tool_running",
            Self::Blocked => "blocked",
            Self::Authenticating => "authenticating",
            Self::Completed => "completed",
            Self::Errored => "errored",
            Self::Cancelled => "cancelled",
            Self::Stopped => "stopped",
        }
    }
}

/// Whose session it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// A sub-agent's.
    SubAgent,
    /// A room's own, for its main agent's turns.
    Room,
}

/// Where results of a session go: written once, at spawn, and never rebuilt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrozenOrigin {
    /// The room that asked.
    pub origin_room_id: RoomId,
    /// The task's room.
    pub task_room_id: RoomId,
    /// The room for peers, where one exists.
    pub worktree_room_id: Option<RoomId>,
    /// The room that owns the task, as the contract names it; absent in journals of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// The rooms of the swarm with their roles, as given; the router merges what is the same room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub swarm_rooms: Vec<SwarmRoom>,
    /// The world; absent in journals of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world_id: Option<WorldId>,
    /// Name of the sub-agent; empty in journals of before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The room's incarnation at spawn; a reset room is another one.
    pub incarnation: u32,
    /// The message that asked.
    pub message_id: MessageId,
    /// Who asked.
    pub user_id: EntityId,
    /// Where the request came in: `cli`, `api`, `room`.
    pub source: String,
    /// The platform conversation that the room was bound to when it asked, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// The platform's id of the message that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform_message_id: Option<String>,
}

/// How a generation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GenerationStatus {
    /// To be launched, or being launched.
    Launching,
    /// Its process runs; the protocol is being set up.
    Opening,
    /// Ready for prompts.
    Ready,
    /// To be ended, or being ended.
    Stopping,
    /// Its process and tree are gone.
    Ended,
}

/// How a generation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GenerationEnd {
    /// The agent process exited; its spool says so.
    Exited {
        /// Exit code.
        code: Option<i32>,
        /// Signal.
        signal: Option<i32>,
    },
    /// Nothing of it was ever started.
    NeverStarted,
    /// The program could not be started.
    StartFailed {
        /// What happened.
        message: String,
    },
    /// Shim and agent are gone without a record of the end.
    Lost,
    /// The machine was started anew since; its spool may lack what was last written.
    Rebooted,
    /// Its environment was held in memory only and is gone.
    EnvironmentLost {
        /// Names of the variables that are missing.
        names: Vec<String>,
    },
}

/// First byte of a generation's spool that has not been understood.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct SpoolCursor {
    /// Position of the record that holds the byte.
    pub record: u64,
    /// Bytes of that record's data already understood.
    pub skip: u32,
    /// Frames understood so far; the next frame has this number plus one.
    pub frames: u64,
}
