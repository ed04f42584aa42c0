//! Facts about a task that front ends ask for, derived and never stored.

use rallypoint_model::delivery::DeliveryStatus;
use rallypoint_model::ids::TaskId;
use rallypoint_model::session::SessionStatus;
use rallypoint_model::task::TaskStatus;

use crate::consequences::{exit_code, session_status_of_outcome, session_status_of_run};
use crate::progress::is_to_be_told;
use crate::state::{Session, State, Task};

/// Whether nothing more happens to a task by itself.
pub fn is_settled(state: &State, task: &Task) -> bool {
    let turn_waits = state
        .rooms
        .get(&task.origin_room_id)
        .is_some_and(|room| room.mailbox.iter().any(|item| item.task_id == Some(task.id)));
    if task.pause.is_some() {
        // It goes on when somebody says so; until then nothing of it is an end.
        return false;
    }
    let blocked_run_waits = task.status == TaskStatus::Blocked;
    let open_run = state.task_has_open_run(task);
    !turn_waits && !task.verification_due && (!open_run || blocked_run_waits && !works(state, task))
}

/// Whether a run of the task goes on without a person.
fn works(state: &State, task: &Task) -> bool {
    use rallypoint_model::run::RunStatus as S;
    state.open_runs_of(task.id).any(|run| match run.status {
        S::Queued | S::Starting | S::Running | S::Settling | S::WaitingChildren => true,
        S::WaitingApproval | S::WaitingQuestion | S::WaitingLogin | S::Terminal => false,
    })
}

/// Exit code of `rally run`, once the task is settled.
pub fn settled_exit_code(state: &State, task_id: TaskId) -> Option<i32> {
    let task = state.tasks.get(&task_id)?;
    is_settled(state, task).then(|| exit_code(task.status, task.reason))
}

/// Status of a session as the routing contract names it.
pub fn session_status(state: &State, session: &Session) -> SessionStatus {
    if session.stopped || session.capped {
        return SessionStatus::Stopped;
    }
    if let Some(run) = session.open_run.and_then(|id| state.runs.get(&id)) {
        return session_status_of_run(run.status, !run.open_tools.is_empty());
    }
    if !session.queue.is_empty() {
        return SessionStatus::Running;
    }
    let asks = session.task_id.is_some_and(|task_id| {
        state.open_questions(task_id).any(|question| question.session_id == Some(session.id))
    });
    if asks {
        return SessionStatus::Blocked;
    }
    let last = session.last_run.and_then(|id| state.runs.get(&id));
    if last.is_some_and(crate::state::Run::was_paused) {
        return SessionStatus::Ready;
    }
    match last.and_then(|run| run.outcome) {
        Some(outcome) => session_status_of_outcome(outcome),
        None => SessionStatus::Running,
    }
}

/// The tool that a session uses now.
pub fn active_tool(state: &State, session: &Session) -> Option<String> {
    let run = session.open_run.and_then(|id| state.runs.get(&id))?;
    run.open_tools.values().next().cloned()
}

/// Whether nothing is left that a daemon would have to stay for.
pub fn is_idle(state: &State) -> bool {
    let open_run = state.open_runs().next().is_some();
    let open_question = state.all_open_questions().next().is_some();
    let process = state.open_generations().next().is_some();
    let delivery = state
        .open_deliveries()
        .any(|delivery| matches!(delivery.status, DeliveryStatus::Pending | DeliveryStatus::Offered));
    let check = state.open_tasks().any(|task| task.verification_due && task.pause.is_none());
    let progress = state.tasks_with_progress().any(|task| is_to_be_told(state, task));
    !(open_run || open_question || process || delivery || check || progress)
}
