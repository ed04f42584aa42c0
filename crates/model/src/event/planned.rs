//! What a main agent's turn plans to do.

use serde::{Deserialize, Serialize};

use crate::ids::{SessionId, TaskId};
use crate::run::RunPurpose;

/// One step of a main agent's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PlannedAction {
    /// Say something in the room.
    Reply {
        /// The words.
        text: String,
        /// What kind of reply it is in the life of the request.
        role: ReplyRole,
    },
    /// Say something to a session.
    SendToAgent {
        /// Which.
        #[serde(rename = "sessionId")]
        session_id: SessionId,
        /// The words.
        text: String,
        /// Why.
        purpose: RunPurpose,
    },
    /// End a session.
    StopAgent {
        /// Which.
        #[serde(rename = "sessionId")]
        session_id: SessionId,
    },
    /// Start the sub-agent that a task asks for, by its place in the request.
    SpawnAgent {
        /// The task.
        #[serde(rename = "taskId")]
        task_id: TaskId,
        /// Place in the task's list.
        index: u32,
    },
}

/// Place of a reply in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyRole {
    /// Work has begun.
    Acknowledgement,
    /// The person must act.
    Question,
    /// It has ended.
    Terminal,
}
