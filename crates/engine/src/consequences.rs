//! What follows from what: one table that router, views, API and exit codes share.

use rallypoint_model::routing::ExplicitKind;
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunStatus};
use rallypoint_model::session::SessionStatus;
use rallypoint_model::task::{TaskReason, TaskStatus};

/// A boundary event by its name on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// The turn ended with something to look at.
    TaskComplete,
    /// The turn ended without.
    Error,
    /// It waits for an answer.
    Blocked,
    /// It asks whoever made the task.
    QuestionForTaskCreator,
    /// It tells its peers something.
    AgentCoordination,
}

impl Boundary {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TaskComplete => "task_complete",
            Self::Error => "error",
            Self::Blocked => "blocked",
            Self::QuestionForTaskCreator => "QUESTION_FOR_TASK_CREATOR",
            Self::AgentCoordination => "AGENT_COORDINATION",
        }
    }

    /// Every boundary event.
    pub const ALL: [Self; 5] = [
        Self::TaskComplete,
        Self::Error,
        Self::Blocked,
        Self::QuestionForTaskCreator,
        Self::AgentCoordination,
    ];

    /// The boundary event of this name; `None` for all that streams (`agent_message_chunk`, `tool_running`,
    /// `ready` and the like), which informs watchers and never asks for a decision.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|boundary| boundary.as_str() == name)
    }
}

impl From<ExplicitKind> for Boundary {
    fn from(kind: ExplicitKind) -> Self {
        match kind {
            ExplicitKind::QuestionForTaskCreator => Self::QuestionForTaskCreator,
            ExplicitKind::AgentCoordination => Self::AgentCoordination,
        }
    }
}

/// Session status while a run has no outcome.
pub fn session_status_of_run(status: RunStatus, tool_at_work: bool) -> SessionStatus {
    match status {
        RunStatus::Queued | RunStatus::Starting => SessionStatus::Running,
        RunStatus::Running | RunStatus::Settling => {
            if tool_at_work {
                SessionStatus::ToolRunning
            } else {
                SessionStatus::Busy
            }
        }
        RunStatus::WaitingApproval | RunStatus::WaitingQuestion => SessionStatus::Blocked,
        RunStatus::WaitingLogin => SessionStatus::Authenticating,
        RunStatus::WaitingChildren => SessionStatus::Busy,
        RunStatus::Terminal => SessionStatus::Ready,
    }
}

/// Session status after a run's outcome.
pub fn session_status_of_outcome(outcome: RunOutcome) -> SessionStatus {
    match outcome {
        RunOutcome::Completed => SessionStatus::Completed,
        RunOutcome::CompletedEmpty
        | RunOutcome::Incomplete
        | RunOutcome::Failed
        | RunOutcome::TimedOut
        | RunOutcome::Interrupted
        | RunOutcome::Lost => SessionStatus::Errored,
        RunOutcome::Cancelled => SessionStatus::Cancelled,
        RunOutcome::Killed | RunOutcome::Capped => SessionStatus::Stopped,
    }
}

/// Boundary event of an outcome; none where a system entry tells it instead.
pub fn boundary_of_outcome(outcome: RunOutcome) -> Option<Boundary> {
    match outcome {
        RunOutcome::Completed => Some(Boundary::TaskComplete),
        RunOutcome::CompletedEmpty
        | RunOutcome::Incomplete
        | RunOutcome::Failed
        | RunOutcome::TimedOut
        | RunOutcome::Interrupted
        | RunOutcome::Lost
        | RunOutcome::Capped => Some(Boundary::Error),
        RunOutcome::Cancelled | RunOutcome::Killed => None,
    }
}

/// Exit code of `rally run` for a task in which nothing more happens by itself.
pub fn exit_code(status: TaskStatus, reason: Option<TaskReason>) -> i32 {
    match status {
        TaskStatus::Done => 0,
        TaskStatus::Failed => match reason {
            Some(TaskReason::TimedOut) => 4,
            _ => 1,
        },
        TaskStatus::Interrupted => match reason {
            Some(TaskReason::Stopped) => 130,
            _ => 1,
        },
        TaskStatus::WaitingOnUser => match reason {
            Some(TaskReason::VerificationExhausted | TaskReason::VerificationInconclusive) => 5,
            Some(TaskReason::NoUsableResult) => 1,
            _ => 3,
        },
        TaskStatus::Blocked | TaskStatus::Open | TaskStatus::Active | TaskStatus::Validating => 3,
    }
}

/// Whether a person must log in before the agent can be used.
pub fn needs_login(reason: &OutcomeReason) -> bool {
    matches!(reason, OutcomeReason::LoginNeeded { .. })
}
