//! What a run used, where "unknown" is a value and never a zero.

use serde::{Deserialize, Serialize};

use crate::money::Money;

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

impl<T> Measured<T> {
    /// How well it is known.
    pub fn quality(&self) -> Quality {
        match self {
            Self::Measured { .. } => Quality::Measured,
            Self::Estimated { .. } => Quality::Estimated,
            Self::Unavailable { .. } => Quality::Unavailable,
        }
    }
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
    /// Both together.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }

    /// What came since an earlier count of the same counter; nothing when one of its numbers went back.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            input: self.input.checked_sub(earlier.input)?,
            output: self.output.checked_sub(earlier.output)?,
            reasoning: self.reasoning.checked_sub(earlier.reasoning)?,
            cache_read: self.cache_read.checked_sub(earlier.cache_read)?,
            cache_write: self.cache_write.checked_sub(earlier.cache_write)?,
        })
    }

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

/// How full an agent's context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextFill {
    /// Tokens in it.
    pub used: u64,
    /// Tokens that it holds.
    pub size: u64,
}

/// What one run used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunUsage {
    /// Tokens of this run alone.
    pub tokens: Measured<TokenCounts>,
    /// The model, as the agent or the request names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it cost by our price table.
    pub cost: Measured<Money>,
    /// What it cost by the agent's own account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_cost: Option<Money>,
    /// Whether that is a guess: the agent counts over its whole process, and what is this run's own is not certain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agent_cost_estimated: bool,
}

impl RunUsage {
    /// The cost that counts: ours, and where we have none, the agent's.
    pub fn known_cost(&self) -> Option<Money> {
        match &self.cost {
            Measured::Measured { value } | Measured::Estimated { value } => Some(*value),
            Measured::Unavailable { .. } => self.agent_cost,
        }
    }

    /// How well that cost is known.
    pub fn cost_quality(&self) -> Quality {
        match (&self.cost, self.agent_cost) {
            (Measured::Unavailable { .. }, None) => Quality::Unavailable,
            (Measured::Unavailable { .. }, Some(_)) if self.agent_cost_estimated => Quality::Estimated,
            (Measured::Unavailable { .. }, Some(_)) | (Measured::Measured { .. }, _) => Quality::Measured,
            (Measured::Estimated { .. }, _) => Quality::Estimated,
        }
    }
}

/// How well something is known; the later word is the worse.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// Reported by the agent or counted by us.
    Measured,
    /// Computed from something else.
    Estimated,
    /// Not known.
    #[default]
    Unavailable,
}

/// What an agent said of its use in mid-turn, the newest of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageNoted {
    /// How full its context is.
    pub context: Option<ContextFill>,
    /// What its conversation has cost so far, by its own account.
    pub cost_so_far: Option<Money>,
    /// The model that answered last.
    pub model: Option<String>,
    /// Tokens that it named while its turn was open, as its profile says that it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenCounts>,
}
