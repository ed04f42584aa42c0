//! What a killed shim or agent may do to a task, and what it may not.
//!
//! A task none of whose processes was cut must end as if nobody had killed anything. One that was hit may end badly,
//! but it must end, say so, and never claim more than happened.

use rallypoint_engine::state::{Run, Task};
use rallypoint_model::run::{OutcomeReason, RunOutcome};
use rallypoint_model::session::GenerationEnd;
use rallypoint_model::task::{EvidenceResult, TaskReason, TaskStatus};

use crate::journal::Journal;

/// Whether processes other than the daemon were killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// None: every task comes to the end that its work leads to.
    None,
    /// Some: a task may be cut.
    Possible,
}

/// Signal number of SIGKILL.
const KILLED: i32 = 9;

/// Whether a run ended because a process of ours was killed.
pub(super) fn is_cut(run: &Run) -> bool {
    match (run.outcome, &run.reason) {
        (Some(RunOutcome::Lost | RunOutcome::Interrupted), _) => true,
        (Some(RunOutcome::Failed), Some(OutcomeReason::AgentExited { signal, .. })) => {
            *signal == Some(KILLED)
        }
        _ => false,
    }
}

/// Whether a process of this task was killed, at work or between two prompts.
pub(super) fn was_harmed(journal: &Journal, task: &Task) -> bool {
    journal.state.generations.values().filter(|it| task.sessions.contains(&it.session_id)).any(|generation| {
        match &generation.end {
            Some(GenerationEnd::Exited { signal, .. }) => *signal == Some(KILLED),
            Some(GenerationEnd::Lost | GenerationEnd::NeverStarted) => true,
            _ => false,
        }
    })
}

/// What is wrong with the end of a task that was hit, if anything is.
pub(super) fn untruth(journal: &Journal, task: &Task) -> Option<String> {
    let runs = || task.runs.iter().filter_map(|id| journal.state.runs.get(id));
    let last = runs().max_by_key(|run| (run.ended_at, run.id))?;
    let completed = runs().any(|run| run.outcome == Some(RunOutcome::Completed));
    let true_to_last = match task.status {
        TaskStatus::Done => {
            let proven = !task.evidence.is_empty()
                && task.evidence.iter().all(|evidence| evidence.result == EvidenceResult::Passed);
            completed && proven && task.reason == Some(TaskReason::Proven)
        }
        TaskStatus::Failed => last.outcome == Some(RunOutcome::Failed),
        TaskStatus::Interrupted => {
            matches!(last.outcome, Some(RunOutcome::Lost | RunOutcome::Interrupted))
        }
        // The work was done and did not hold, and the agent that should have gone on is gone.
        TaskStatus::WaitingOnUser => {
            last.outcome == Some(RunOutcome::Completed)
                && task.evidence.iter().any(|evidence| evidence.result != EvidenceResult::Passed)
        }
        TaskStatus::Open | TaskStatus::Active | TaskStatus::Blocked | TaskStatus::Validating => false,
    };
    (!true_to_last).then(|| {
        format!(
            "is {:?} because of {:?}, though its last run ended as {:?} ({:?})",
            task.status, task.reason, last.outcome, last.reason
        )
    })
}
