//! Tasks that are over, and transcripts.

use rallypoint_model::ids::{SessionId, TaskId};
use rallypoint_model::retention::DeleteMode;
use rallypoint_model::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Archive a task, or bring it back.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchiveTaskInput {
    /// Its id.
    pub task_id: TaskId,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Stop whoever works on it first; without it, a task that is worked on is not archived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_active: bool,
}

/// Delete a task. Whoever works on it is stopped first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteTaskInput {
    /// Its id.
    pub task_id: TaskId,
    /// How; it is only hidden when absent.
    #[serde(default)]
    pub mode: DeleteMode,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Names a session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionRef {
    /// Its id.
    pub session_id: SessionId,
}

/// Where a transcript is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptView {
    /// Its session.
    pub session_id: SessionId,
    /// Absolute path of the file: rows of the journal, one a line.
    pub path: String,
    /// When the session was archived with its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
}
