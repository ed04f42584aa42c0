//! The completion report: what a worker claims at its end.
//!
//! Shape: the last fenced `json` block of the final message, or the whole
//! message when it is one object (elizaOS plugin-agent-orchestrator,
//! `completion-envelope.ts`), plus optional `status` and `reason`.

use serde::{Deserialize, Serialize};

/// Its own word for how it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportedStatus {
    /// It claims to be finished.
    #[default]
    Completed,
    /// It says that it failed.
    Failed,
    /// It cannot go on without an answer.
    Blocked,
}

/// One test that the worker says it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedTest {
    /// The command.
    pub command: String,
    /// Its exit code.
    pub exit_code: i64,
    /// One line.
    #[serde(default)]
    pub summary: String,
}

/// What the worker says of one criterion. A claim, never evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedCriterion {
    /// The criterion's text.
    pub criterion: String,
    /// Whether it is said to be met.
    pub met: bool,
    /// What is said to show it.
    #[serde(default)]
    pub evidence: String,
}

/// The report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletionReport {
    /// How it ended, in its own word.
    #[serde(default)]
    pub status: ReportedStatus,
    /// Why, for `failed` and `blocked`; for `blocked` this is the question.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What changed.
    pub diff_summary: String,
    /// Paths said to be changed.
    pub files_changed: Vec<String>,
    /// Tests said to be run.
    pub test_results: Vec<ReportedTest>,
    /// Criteria as the worker sees them.
    pub acceptance_criteria_status: Vec<ReportedCriterion>,
    /// What may still be wrong.
    pub residual_risks: Vec<String>,
}
