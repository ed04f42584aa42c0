//! How a followed task ended: exit code, last lines, last object.

use rallypoint_model::run::RunStatus;
use rallypoint_model::task::TaskStatus;
use rallypoint_ops::types::TaskView;
use serde_json::{Value, json};

use crate::duration;
use crate::failure::{FAILED, WAITING};
use crate::show::narrator::Line;
use crate::show::task_view;
use crate::show::text::{Shown, harmless};

/// The last line of `--json`: an object of its own kind after the events.
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

/// The exit code that the daemon names. It names none for a task that can only wait.
pub(crate) fn exit_code(task: &TaskView) -> u8 {
    let unsaid = if task.open_questions.is_empty() { FAILED } else { WAITING };
    task.exit_code.and_then(|code| u8::try_from(code).ok()).unwrap_or(unsaid)
}

/// The main agent's last words, unless they were told, and where the task stands.
pub(crate) fn lines(task: &TaskView, told: Option<&str>) -> Vec<Line> {
    let last_end = task.runs.iter().filter_map(|run| run.ended_at).max();
    let at = task.ended_at.or(last_end).unwrap_or(task.created_at);
    let line = |text: &str| Line { at, who: "rally".to_owned(), text: text.to_owned() };
    let reply = task.last_reply.as_deref().filter(|reply| Some(*reply) != told).unwrap_or_default();
    let mut lines: Vec<Line> = harmless(reply, Shown::Whole).lines().map(line).collect();
    let took = duration::words(at.since(task.created_at));
    lines.push(line(&format!("{}, after {took} ({})", task_view::standing(task), task.task_id)));
    lines
}

/// What the person can do next, where the task did not end well.
pub(crate) fn hints(task: &TaskView, exit_code: u8) -> Vec<String> {
    let mut hints: Vec<String> = task.open_questions.iter().flat_map(task_view::question).collect();
    if exit_code != 0 {
        hints.push(format!("hint: {}", next_step(task)));
    }
    hints
}

fn next_step(task: &TaskView) -> String {
    let id = task.task_id;
    match task.status {
        TaskStatus::WaitingOnUser | TaskStatus::Blocked if task.open_questions.is_empty() => {
            format!("`rally task retry {id}` lets it go on, `rally task override {id} …` decides it")
        }
        TaskStatus::WaitingOnUser | TaskStatus::Blocked => {
            "`rally question answer …` lets it go on".to_owned()
        }
        TaskStatus::Interrupted => format!("`rally task retry {id}` lets it go on"),
        TaskStatus::Open
        | TaskStatus::Active
        | TaskStatus::Validating
        | TaskStatus::Done
        | TaskStatus::Failed => format!("`rally task show {id}` shows what happened"),
    }
}

/// Whether all that could still happen waits for an answer.
pub(crate) fn waits_for_a_person(task: &TaskView) -> bool {
    let waits = |status: RunStatus| {
        matches!(status, RunStatus::Terminal | RunStatus::WaitingApproval | RunStatus::WaitingQuestion)
    };
    !task.open_questions.is_empty()
        && matches!(task.status, TaskStatus::Blocked | TaskStatus::WaitingOnUser)
        && task.runs.iter().all(|run| waits(run.status))
}
