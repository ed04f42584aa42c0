//! Messages: the durable entries of a room.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{EntityId, MessageId, RoomId, TaskId};
use crate::time::Timestamp;

/// What kind of speaker an entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// A person.
    User,
    /// The agent that owns the room's voice.
    MainAgent,
    /// A sub-agent under its own identity.
    SubAgent,
    /// The platform itself.
    System,
}

/// Kind of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoomKind {
    /// The world's own room; never closed.
    Main,
    /// A task's room.
    Task,
    /// Coordination of peers in one work tree.
    Worktree,
    /// Two entities.
    Direct,
    /// Bound to a platform conversation.
    Channel,
}

/// One durable entry of a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Its room.
    pub room_id: RoomId,
    /// Who speaks.
    pub entity_id: EntityId,
    /// What kind of speaker that is.
    pub speaker: Speaker,
    /// Name shown.
    pub name: String,
    /// The text, at most the message head limit; longer results are referred to.
    pub text: String,
    /// Where it came from: `cli`, `api`, `sub_agent`, `main`, `system`.
    pub source: String,
    /// The message it answers.
    pub in_reply_to: Option<MessageId>,
    /// The task it belongs to.
    pub task_id: Option<TaskId>,
    /// Structured companion of the text.
    pub metadata: Value,
    /// When it was made.
    pub created_at: Timestamp,
    /// The room's incarnation that it belongs to; a reset begins another one.
    #[serde(default = "first_incarnation")]
    pub incarnation: u32,
}

/// What everything belongs to that was stored before rooms could be reset.
fn first_incarnation() -> u32 {
    1
}
