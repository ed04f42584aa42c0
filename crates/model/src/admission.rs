//! What decides whether and when a run may start: the band of its task and what its task may use.

use serde::{Deserialize, Serialize};

use crate::money::Money;

/// Band of a task in the queue for a slot. Waiting raises it, so that none starves.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// After everything else.
    Low,
    /// As usual.
    #[default]
    Normal,
    /// Before what is usual.
    High,
    /// Before everything else.
    Urgent,
}

impl Priority {
    /// Every band, lowest first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Normal, Self::High, Self::Urgent];

    /// Its place, from 0.
    pub fn band(self) -> i64 {
        match self {
            Self::Low => 0,
            Self::Normal => 1,
            Self::High => 2,
            Self::Urgent => 3,
        }
    }

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Urgent => "urgent",
        }
    }
}

/// What the runs of a task may use together. Unset means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Budget {
    /// Tokens as agents report them; what they don't report can't be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Active time in milliseconds: from prompt to end, without the time spent waiting for children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_ms: Option<i64>,
    /// Money by our price table, or by the agent's own account where a price is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// What becomes of further runs once one of them had a cost that is not known.
    #[serde(skip_serializing_if = "UnknownCost::is_allowed")]
    pub unknown_cost: UnknownCost,
}

/// What a cost that is not known means for a budget of money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownCost {
    /// It counts as nothing; what is known is still held to the limit.
    #[default]
    Allow,
    /// No further run is started.
    Refuse,
}

impl UnknownCost {
    /// Whether it is the default.
    pub fn is_allowed(&self) -> bool {
        *self == Self::Allow
    }
}

impl Budget {
    /// Whether it limits nothing.
    pub fn is_unset(&self) -> bool {
        self.tokens.is_none() && self.active_ms.is_none() && self.cost.is_none()
    }
}
