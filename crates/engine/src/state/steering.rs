//! How a person steers a task.

use rallypoint_model::ids::{PlanRevisionId, RunId};
use rallypoint_model::run::OutcomeReason;
use rallypoint_model::steering::PlanRevision;
use rallypoint_model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Run, State, Task};

/// A task is paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// Who asked.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Runs whose turns it cancelled, oldest first.
    pub runs: Vec<RunId>,
    /// The last run that ended otherwise while it lasted: what follows from that waits.
    pub ended: Option<RunId>,
}

impl Task {
    /// The plan that is followed, when there is one.
    pub fn plan(&self) -> Option<&PlanRevision> {
        self.plan_id.and_then(|id| self.plan_of(id))
    }

    /// The plan of this id.
    pub fn plan_of(&self, id: PlanRevisionId) -> Option<&PlanRevision> {
        self.plans.iter().find(|revision| revision.id == id)
    }
}

impl Run {
    /// Whether its turn was cancelled by a pause.
    pub fn was_paused(&self) -> bool {
        matches!(self.reason, Some(OutcomeReason::Paused { .. }))
    }
}

impl State {
    /// Whether a run belongs to a task that is paused.
    pub fn is_held(&self, run: &Run) -> bool {
        run.task_id.and_then(|id| self.tasks.get(&id)).is_some_and(|task| task.pause.is_some())
    }
}
