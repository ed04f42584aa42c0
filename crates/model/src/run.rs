//! Runs: one piece of work given to a session, from accepted to exactly one outcome.

use serde::{Deserialize, Serialize};

use crate::money::decimal;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Accepted, waits for a slot or for the session.
    Queued,
    /// Its agent process is being made ready.
    Starting,
    /// The prompt is with the agent.
    Running,
    /// The agent waits for the answer to a permission request.
    WaitingApproval,
    /// The agent waits for the answer to a question.
    WaitingQuestion,
    /// It waits for runs that it started.
    WaitingChildren,
    /// The agent wants a login.
    WaitingLogin,
    /// The agent has answered; late frames are still taken in.
    Settling,
    /// It has its one outcome.
    Terminal,
}

impl RunStatus {
    /// Every status, for tables and their tests.
    pub const ALL: [Self; 9] = [
        Self::Queued,
        Self::Starting,
        Self::Running,
        Self::WaitingApproval,
        Self::WaitingQuestion,
        Self::WaitingChildren,
        Self::WaitingLogin,
        Self::Settling,
        Self::Terminal,
    ];
}

impl RunStatus {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::WaitingApproval => "waiting_approval",
            Self::WaitingQuestion => "waiting_question",
            Self::WaitingChildren => "waiting_children",
            Self::WaitingLogin => "waiting_login",
            Self::Settling => "settling",
            Self::Terminal => "terminal",
        }
    }
}

/// What may move a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunTrigger {
    /// A slot is free; the agent process is being made ready.
    Admitted,
    /// Its process is gone and its prompt was provably never accepted.
    Requeued,
    /// The prompt was given to the agent process.
    Prompted,
    /// The agent asks for permission.
    ApprovalAsked,
    /// The agent asks a question.
    QuestionAsked,
    /// It waits for its children.
    ChildrenAwaited,
    /// The agent wants a login.
    LoginAsked,
    /// What it waited for is there.
    Resumed,
    /// The agent answered the prompt.
    Answered,
    /// Its outcome is decided.
    Ended,
}

impl RunTrigger {
    /// Every trigger, for tables and their tests.
    pub const ALL: [Self; 10] = [
        Self::Admitted,
        Self::Requeued,
        Self::Prompted,
        Self::ApprovalAsked,
        Self::QuestionAsked,
        Self::ChildrenAwaited,
        Self::LoginAsked,
        Self::Resumed,
        Self::Answered,
        Self::Ended,
    ];
}

/// How a run ended. One per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// `end_turn` with text.
    Completed,
    /// `end_turn` with nothing said.
    CompletedEmpty,
    /// Cut by a token or request limit of the agent.
    Incomplete,
    /// Refused, in error, or dead.
    Failed,
    /// A time limit of ours.
    TimedOut,
    /// Cancelled, and the agent said so.
    Cancelled,
    /// Ended by force.
    Killed,
    /// Cut, and not to be repeated by itself.
    Interrupted,
    /// Its process is gone without a trace of its end.
    Lost,
    /// The round-trip cap ended it.
    Capped,
}

impl RunOutcome {
    /// Every outcome, for tables and their tests.
    pub const ALL: [Self; 10] = [
        Self::Completed,
        Self::CompletedEmpty,
        Self::Incomplete,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::Killed,
        Self::Interrupted,
        Self::Lost,
        Self::Capped,
    ];
}

impl RunOutcome {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::CompletedEmpty => "completed_empty",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Killed => "killed",
            Self::Interrupted => "interrupted",
            Self::Lost => "lost",
            Self::Capped => "capped",
        }
    }
}

/// Why, with platform causes kept apart from agent causes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OutcomeReason {
    /// The agent ended its turn by itself.
    EndTurn,
    /// The agent's own limit, as it named it.
    AgentLimit {
        /// `max_tokens` or `max_turn_requests`.
        limit: String,
    },
    /// The worker itself reports failure.
    Reported {
        /// Its words.
        reason: String,
    },
    /// The model refused.
    Refusal,
    /// A stop reason that we do not know.
    UnknownStop {
        /// As it came.
        stop_reason: String,
    },
    /// The agent answered with an error.
    AgentError {
        /// JSON-RPC code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// The agent wants a login that only a person can do.
    LoginNeeded {
        /// What the profile advises.
        hint: String,
    },
    /// What is wanted of the conversation is not offered, or was refused; the prompt was not given.
    NotOffered {
        /// What, and what is offered.
        message: String,
    },
    /// The agent process ended before it answered.
    AgentExited {
        /// Exit code, when it had one.
        code: Option<i32>,
        /// Signal, when one ended it.
        signal: Option<i32>,
        /// Last lines of its error output.
        stderr: String,
    },
    /// Platform: the program is not there or can't be started.
    StartFailed {
        /// What happened.
        message: String,
    },
    /// Platform: the agent did not get ready in time.
    SetupTimedOut {
        /// The limit in milliseconds.
        limit_ms: i64,
        /// Last lines of its error output.
        stderr: String,
    },
    /// Platform: a time limit.
    Deadline {
        /// Name of the limit.
        limit: String,
        /// Its length in milliseconds.
        limit_ms: i64,
    },
    /// Platform: stopped on request, and how.
    StopAsked {
        /// Who asked.
        by: String,
    },
    /// Platform: its task was paused; it goes on in the same session.
    Paused {
        /// Who asked.
        by: String,
    },
    /// Platform: recovery could not prove what happened.
    Recovery {
        /// What is known.
        message: String,
    },
    /// The agent's output could not be understood.
    Garbled {
        /// What is known.
        message: String,
    },
    /// The round-trip cap.
    Cap {
        /// The cap.
        cap: u32,
    },
    /// Platform: what the task may use is used up.
    Budget {
        /// Name of the limit: `budget.tokens`, `budget.activeMs`, `budget.cost` (numbers in millionths of a unit) or
        /// `budget.unknownCost` (numbers of runs).
        limit: String,
        /// What was used.
        used: u64,
        /// What may be.
        cap: u64,
    },
}

impl OutcomeReason {
    /// One line for a person.
    pub fn words(&self) -> String {
        match self {
            Self::EndTurn => "the agent ended its turn".to_owned(),
            Self::AgentLimit { limit } => format!("the agent stopped at its own limit `{limit}`"),
            Self::Reported { reason } => reason.clone(),
            Self::Refusal => "the model refused".to_owned(),
            Self::UnknownStop { stop_reason } if stop_reason == "cancelled" => {
                "the agent cancelled its turn although nobody asked it to".to_owned()
            }
            Self::UnknownStop { stop_reason } => {
                format!("the agent stopped for a reason that is not known here: `{stop_reason}`")
            }
            Self::AgentError { code, message } => format!("the agent answered with error {code}: {message}"),
            Self::LoginNeeded { hint } => format!("the agent needs a login: {hint}"),
            Self::AgentExited { code, signal, stderr } => {
                let end = match (code, signal) {
                    (Some(code), _) => {
                        format!("the agent process ended with exit code {code} before it answered")
                    }
                    (None, Some(signal)) => {
                        format!("the agent process was ended by signal {signal} before it answered")
                    }
                    (None, None) => "the agent process ended before it answered".to_owned(),
                };
                if stderr.is_empty() { end } else { format!("{end}; its last words: {stderr}") }
            }
            Self::StartFailed { message } => format!("the agent could not be started: {message}"),
            Self::SetupTimedOut { limit_ms, stderr } => {
                let text = format!("the agent was not ready within {} s", limit_ms / 1000);
                if stderr.is_empty() { text } else { format!("{text}; its last words: {stderr}") }
            }
            Self::Deadline { limit, limit_ms } => {
                format!("the time limit `{limit}` of {} s was reached", limit_ms.saturating_add(999) / 1000)
            }
            Self::StopAsked { by } => format!("stopped by {by}"),
            Self::Paused { by } => format!("paused by {by}"),
            Self::Recovery { message } | Self::Garbled { message } | Self::NotOffered { message } => {
                message.clone()
            }
            Self::Cap { cap } => format!("the round-trip cap of {cap} was reached"),
            Self::Budget { limit, used, cap } if limit == "budget.cost" => {
                format!("the task's limit `{limit}` is used up ({}/{})", decimal(*used), decimal(*cap))
            }
            Self::Budget { limit, used, .. } if limit == "budget.unknownCost" => {
                format!(
                    "the cost of {used} runs of the task is not known, and its budget does not allow that"
                )
            }
            Self::Budget { limit, used, cap } => {
                format!("the task's limit `{limit}` is used up ({used}/{cap})")
            }
        }
    }
}

/// Why a run exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPurpose {
    /// The goal, for the first time.
    Goal,
    /// Unmet criteria after a check.
    Corrective,
    /// "Continue or report" after an unusable end.
    Continuing,
    /// A message of a person or the main agent.
    FollowUp,
    /// A main agent's turn on something that happened in its room.
    Turn,
}
