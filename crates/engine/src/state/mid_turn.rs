//! What an agent was given in its turn.

use rallypoint_model::ids::{GenerationId, RunId};
use rallypoint_model::mail::Mail;
use serde::{Deserialize, Serialize};

/// Mail on its way into a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MidTurn {
    /// The run whose turn it is.
    pub run_id: RunId,
    /// The process.
    pub generation_id: GenerationId,
    /// Number of the input.
    pub seq: u64,
    /// The mail; it returns to the inbox where the agent provably does not have it.
    pub mail: Vec<Mail>,
}
