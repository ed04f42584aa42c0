//! Looking for words in everything that is kept.

use rallypoint_model::found::FoundKind;
use rallypoint_model::ids::{MessageId, RoomId, RunId, SessionId, TaskId};
use rallypoint_model::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Look for words.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchInput {
    /// Words that are all to be there, whatever their case and accents. Each may be the beginning of a longer one;
    /// words in double quotes stand one after the other.
    pub text: String,
    /// Only tasks, only messages, or only other events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FoundKind>,
    /// Only in this room; `main` names the world's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<String>,
    /// Only of this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Rows at most; 100 when absent, 500 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// What was found, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HitPage {
    /// The rows.
    pub items: Vec<Hit>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// What it is.
    pub kind: FoundKind,
    /// Number of its event in the journal.
    pub seq: i64,
    /// Kind of its event.
    pub event_kind: String,
    /// When it happened.
    pub at: Timestamp,
    /// The task that it belongs to.
    pub task_id: Option<TaskId>,
    /// The room that it belongs to.
    pub room_id: Option<RoomId>,
    /// The session that it belongs to.
    pub session_id: Option<SessionId>,
    /// The run that it belongs to.
    pub run_id: Option<RunId>,
    /// The message, where it is one.
    pub message_id: Option<MessageId>,
    /// Part of its text around what was found, on one line.
    pub snippet: String,
}
