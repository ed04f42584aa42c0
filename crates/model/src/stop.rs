//! Stopping a tree: which sessions it covers and how each of them ended.

use serde::{Deserialize, Serialize};

use crate::ids::{RunId, SessionId};
use crate::run::RunOutcome;

/// A session that a stop covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopNode {
    /// Which.
    pub session_id: SessionId,
    /// Its run at that moment, or else its last one.
    pub run_id: Option<RunId>,
}

/// A session of a stop, once nothing of it works any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoppedNode {
    /// Which.
    pub session_id: SessionId,
    /// Its run, when it had one.
    pub run_id: Option<RunId>,
    /// Its name in the room.
    pub label: String,
    /// How that run ended; absent when it never had one.
    pub outcome: Option<RunOutcome>,
    /// Processes that could not be ended.
    pub left: u32,
}
