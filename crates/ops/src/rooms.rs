//! Input and output types of the operations on rooms. Wire form: camelCase.

use rallypoint_model::ids::RoomId;
use rallypoint_model::message::RoomKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Make a room.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateRoomInput {
    /// Its kind: `task`, `worktree` or `direct`.
    pub kind: RoomKind,
    /// Its title.
    pub title: String,
}

/// Names a room.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoomRef {
    /// Its id.
    pub room_id: RoomId,
}

/// Say something in a room. A sub-agent in conversation that it names with `@name` gets it too.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SayInput {
    /// The room; `main` names the world's own.
    pub room_id: String,
    /// The words.
    pub text: String,
    /// Who says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Same key, same message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}
