//! Words that are given to an agent in its turn.

use serde::{Deserialize, Serialize};

use crate::ids::{GenerationId, RunId, SessionId};

/// One step of words on their way into a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum MidTurnStep {
    /// They are given to the agent, and in no inbox any more.
    Given {
        /// Its process.
        generation_id: GenerationId,
        /// Number of the input.
        seq: u64,
        /// Keys of the mail.
        keys: Vec<String>,
    },
    /// The agent has worked them in.
    Taken,
    /// It provably has not; they are back in the inbox and become a turn of their own.
    Returned {
        /// Why.
        why: String,
    },
    /// The turn ended before the agent said so. Nobody can tell, so they are not said again.
    Unknown,
}

/// Words on their way into a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MidTurnMoved {
    /// The session.
    pub session_id: SessionId,
    /// The run whose turn it is.
    pub run_id: RunId,
    /// What happened.
    #[serde(flatten)]
    pub step: MidTurnStep,
}
