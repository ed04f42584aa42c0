//! What runs used, added up only where that makes sense.

use rallypoint_model::ids::{RoomId, SessionId, TaskId};
use rallypoint_model::money::Money;
use rallypoint_model::time::Timestamp;
use rallypoint_model::usage::{Quality, TokenCounts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UsageInput {
    /// Only of this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Only of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Only of tasks that this room asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// Only runs that ended at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Only runs that ended before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// What some runs used together. Every sum is what is known: `unknownRuns` and `unknownCostRuns` say how many runs are
/// not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageTotals {
    /// Runs that ended.
    pub runs: u64,
    /// Those of them whose tokens are not known.
    pub unknown_runs: u64,
    /// Those of them whose tokens are estimated.
    pub estimated_runs: u64,
    /// Tokens of all others and the estimated ones.
    pub tokens: TokenCounts,
    /// Costs, one of each currency.
    pub cost: Vec<Money>,
    /// Runs whose cost is not known.
    pub unknown_cost_runs: u64,
    /// Runs whose cost is estimated.
    #[serde(default)]
    pub estimated_cost_runs: u64,
    /// Runs whose cost is the agent's own account.
    pub agent_cost_runs: u64,
    /// How well the sum of tokens is known: `estimated` as soon as one run's are, or are missing.
    #[serde(default)]
    pub tokens_quality: Quality,
    /// The same for the cost.
    #[serde(default)]
    pub cost_quality: Quality,
    /// The same by model, by its name; runs of an unknown model are under none.
    pub by_model: Vec<ModelUsage>,
}

/// What one model was used for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsage {
    /// Its name; absent when it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Runs that it answered.
    pub runs: u64,
    /// Known tokens of these.
    pub tokens: TokenCounts,
    /// Known costs of these.
    pub cost: Vec<Money>,
    /// Those of the runs whose tokens are estimated.
    #[serde(default)]
    pub estimated_runs: u64,
    /// Those of the runs whose cost is estimated.
    #[serde(default)]
    pub estimated_cost_runs: u64,
}
