//! The completion report at the end of a message.

use rallypoint_model::completion::{CompletionReport, ReportedStatus};
use serde_json::Value;

/// The report as the fenced block that ends a message.
pub(crate) fn block(report: &CompletionReport) -> String {
    block_of(&serde_json::to_value(report).unwrap_or_default())
}

/// Any report as that block. Strings in it have no line ends, so that nothing
/// in it can look like the end of the fence.
pub(crate) fn block_of(report: &Value) -> String {
    format!("```json\n{report:#}\n```\n")
}

/// A report of a failure.
pub(crate) fn failed(reason: String) -> CompletionReport {
    CompletionReport { status: ReportedStatus::Failed, reason, ..CompletionReport::default() }
}
