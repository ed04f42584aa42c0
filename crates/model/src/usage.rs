//! What a run used, where "unknown" is a value and never a zero.

use serde::{Deserialize, Serialize};

/// A fact that may be measured, estimated or not to be had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum Measured<T> {
    /// Reported by the agent or counted by us.
    Measured {
        /// The value.
        value: T,
    },
    /// Computed from something else.
    Estimated {
        /// The value.
        value: T,
    },
    /// Not known, and why.
    Unavailable {
        /// One line for a person.
        reason: String,
    },
}

/// Tokens of one run as the agent reported them, raw kind kept beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenCounts {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens thought, where reported apart.
    pub reasoning: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Tokens written to a cache.
    pub cache_write: u64,
}

impl TokenCounts {
    /// Input, output and reasoning together; cache apart.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output).saturating_add(self.reasoning)
    }
}

/// How an agent counts: fixed by its profile, since the numbers alone don't tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageKind {
    /// Numbers of this turn alone.
    PerTurn,
    /// Numbers of the whole session so far.
    Cumulative,
    /// Numbers of the last model call of the turn.
    LastCall,
    /// The agent reports none.
    None,
}
