//! The last line of `rally run --json`.

use rallypoint_ops::types::TaskView;
use serde_json::{Value, json};

/// The task as it ended: an object of its own kind beside the events.
pub(crate) fn object(task: &TaskView, exit_code: u8) -> Value {
    json!({
        "kind": "task.result",
        "taskId": task.task_id,
        "status": task.status,
        "reason": task.reason,
        "verdict": task.verdict,
        "exitCode": exit_code,
        "evidence": task.evidence,
        "criteria": task.criteria,
        "runs": task.runs,
        "reply": task.last_reply,
    })
}
