//! What was going on when the daemon was killed, told afterwards from the journal.

use std::collections::BTreeSet;

use rallypoint_engine::state::State;
use rallypoint_model::run::{RunPurpose, RunStatus};
use rallypoint_model::session::GenerationStatus;

/// Something that a kill can hit. One kill may hit several, since several tasks are at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Nothing at all was going on.
    Idle,
    /// A run waited for its process.
    Starting,
    /// A prompt was journalled, and perhaps with its agent, and not answered.
    PromptOpen,
    /// An answer was there and late frames were still taken in.
    Settling,
    /// Checks were run.
    Verifying,
    /// A process was being ended, or its leftovers removed.
    Cleaning,
}

impl Phase {
    /// Every phase, in the order of a task's life.
    pub const ALL: [Self; 6] =
        [Self::Idle, Self::Starting, Self::PromptOpen, Self::Settling, Self::Verifying, Self::Cleaning];
}

/// The phases of a state.
pub(crate) fn phases(state: &State) -> BTreeSet<Phase> {
    let runs = state.runs.values().filter(|run| run.purpose != RunPurpose::Turn).filter_map(|run| match run
        .status
    {
        RunStatus::Queued | RunStatus::Starting => Some(Phase::Starting),
        RunStatus::Running
        | RunStatus::WaitingApproval
        | RunStatus::WaitingQuestion
        | RunStatus::WaitingChildren
        | RunStatus::WaitingLogin => Some(Phase::PromptOpen),
        RunStatus::Settling => Some(Phase::Settling),
        RunStatus::Terminal => None,
    });
    let checks = state.tasks.values().filter(|task| task.verification_due).map(|_| Phase::Verifying);
    let processes = state
        .generations
        .values()
        .filter(|generation| match generation.status {
            GenerationStatus::Stopping => true,
            GenerationStatus::Ended => generation.cleaned.is_none(),
            GenerationStatus::Launching | GenerationStatus::Opening | GenerationStatus::Ready => false,
        })
        .map(|_| Phase::Cleaning);
    let mut found: BTreeSet<Phase> = runs.chain(checks).chain(processes).collect();
    if found.is_empty() {
        found.insert(Phase::Idle);
    }
    found
}

/// Processes that had to be found again after a kill.
pub(crate) fn to_recover(state: &State) -> usize {
    state.generations.values().filter(|generation| generation.cleaned.is_none()).count()
}
