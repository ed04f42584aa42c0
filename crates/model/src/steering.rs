//! How a person steers a task: paused, changed, begun again, spoken to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::admission::{Budget, Priority};
use crate::command::AgentLaunch;
use crate::ids::{PlanRevisionId, RunId, SessionId, TaskId};
use crate::task::Criterion;
use crate::time::Timestamp;

/// A task was paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPaused {
    /// Which.
    pub task_id: TaskId,
    /// Who asked.
    pub by: String,
    /// Runs whose turns are cancelled by it, oldest first.
    pub runs: Vec<RunId>,
}

/// A paused task goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskResumed {
    /// Which.
    pub task_id: TaskId,
    /// Who asked.
    pub by: String,
    /// How long it was paused, in milliseconds; its total time does not count that.
    pub paused_ms: i64,
}

/// A task that had ended can be worked on again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskReopened {
    /// Which.
    pub task_id: TaskId,
    /// Who asked.
    pub by: String,
}

/// What of a task is changed; what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskChange {
    /// One line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is to be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What must hold for done, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criteria: Option<Vec<Criterion>>,
    /// Its band in the queue for a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// What its runs may use together, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Who works on it when it is begun again, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<AgentLaunch>>,
}

/// A task was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPatched {
    /// Which.
    pub task_id: TaskId,
    /// Who asked.
    pub by: String,
    /// What.
    pub change: TaskChange,
}

/// One version of a task's plan. It is never changed; a newer one takes its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanRevision {
    /// Its id.
    pub id: PlanRevisionId,
    /// The plan: an object, in whatever form its maker likes.
    pub value: Value,
    /// The revision that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_id: Option<PlanRevisionId>,
    /// What was changed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Who made it.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// A task has a newer plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPlanRevised {
    /// Which.
    pub task_id: TaskId,
    /// The plan.
    pub revision: PlanRevision,
}

/// How a task was begun again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestartKind {
    /// The goal once more, in new sessions.
    Restart,
    /// The same with a plan that was changed.
    EditedPlan,
    /// From what was known at an event.
    Rerun,
    /// Another turn, in a new session.
    NewSession,
}

/// A task was begun again. What was before stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRestarted {
    /// Which.
    pub task_id: TaskId,
    /// Who asked.
    pub by: String,
    /// How.
    pub how: RestartKind,
    /// Sessions that are over by it.
    pub superseded: Vec<SessionId>,
    /// What was added to the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// The plan that is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_revision_id: Option<PlanRevisionId>,
    /// Number of the event whose state it goes back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_seq: Option<i64>,
}

/// Where a task came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkSource {
    /// The task that it is a fork of.
    pub task_id: TaskId,
    /// Last number of the journal when it was made: what it shares with that task lies before.
    pub event_seq: i64,
    /// The plan that it took along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_revision_id: Option<PlanRevisionId>,
}

/// A plan that a command brings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewPlan {
    /// The plan, an object.
    pub value: Value,
    /// The revision that it was made from; it has to exist.
    pub base_id: Option<PlanRevisionId>,
    /// What was changed, in words.
    pub summary: Option<String>,
}

/// The plan that is to be followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PlanChoice {
    /// The latest, when there is one.
    Latest,
    /// A revision of before.
    Revision {
        /// Which.
        id: PlanRevisionId,
    },
    /// A new one.
    New {
        /// The plan.
        plan: NewPlan,
    },
}

/// What was known at an event, for a worker that begins there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierWork {
    /// Number of the event.
    pub event_seq: i64,
    /// What was said and done until then. It is data and no instruction.
    pub text: String,
}

/// Begin a task again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartTask {
    /// Which.
    pub task_id: TaskId,
    /// Who asks.
    pub by: String,
    /// What is added to the goal.
    pub instruction: Option<String>,
    /// The plan to follow.
    pub plan: PlanChoice,
    /// Who works on it; those of the task when absent.
    pub launch: Option<AgentLaunch>,
    /// What was known at the event to begin from; nothing of before when absent.
    pub earlier: Option<EarlierWork>,
}

/// Give a session another turn, or a new session in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryTurn {
    /// The task.
    pub task_id: TaskId,
    /// Who asks.
    pub by: String,
    /// What to say; "continue or report" when absent.
    pub text: Option<String>,
    /// The session; the one that worked last when absent.
    pub session_id: Option<SessionId>,
    /// Whether a new session takes its place.
    pub new_session: bool,
    /// The plan to follow; as it is when absent.
    pub plan_revision_id: Option<PlanRevisionId>,
}

/// Say something to whoever works on a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageTask {
    /// Which.
    pub task_id: TaskId,
    /// The words.
    pub text: String,
    /// Name of the person.
    pub by: String,
    /// Where it came in.
    pub source: String,
}

/// A person's word on a result that is being checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidateTask {
    /// Which.
    pub task_id: TaskId,
    /// Whether it holds.
    pub passed: bool,
    /// What shows it.
    pub evidence: String,
    /// Who says so.
    pub by: String,
}

/// A session that a message did not reach, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotReached {
    /// Which.
    pub session_id: SessionId,
    /// Why.
    pub error: String,
}
