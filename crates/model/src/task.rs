//! Tasks: goal, criteria, evidence, status and what moves it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{CriterionId, EvidenceId, RunId};
use crate::time::Timestamp;

/// Where a task stands. `paused` and `archived` are flags beside it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Made, no session yet.
    Open,
    /// A session works on it.
    Active,
    /// A person must act.
    WaitingOnUser,
    /// A session waits for an answer.
    Blocked,
    /// A completion was reported and is being checked.
    Validating,
    /// Proven, or accepted by a person by name.
    Done,
    /// Ended without reaching its goal.
    Failed,
    /// Its work was cut; nothing says how far it got.
    Interrupted,
}

impl TaskStatus {
    /// Every status, for tables and their tests.
    pub const ALL: [Self; 8] = [
        Self::Open,
        Self::Active,
        Self::WaitingOnUser,
        Self::Blocked,
        Self::Validating,
        Self::Done,
        Self::Failed,
        Self::Interrupted,
    ];

    /// Whether the task has ended.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Active => "active",
            Self::WaitingOnUser => "waiting_on_user",
            Self::Blocked => "blocked",
            Self::Validating => "validating",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What may move a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskTrigger {
    /// A session is ready or uses a tool.
    SessionActive,
    /// A session waits for an answer.
    SessionBlocked,
    /// Only a person can go on.
    AwaitingUser,
    /// What was waited for was answered.
    Answered,
    /// The last open run reported completion.
    CompletionReported,
    /// Every required criterion has proof.
    ValidationPassed,
    /// At least one required criterion has none.
    ValidationFailed,
    /// A corrective or continuing prompt goes to the same session.
    Retrying,
    /// Failed with no budget left.
    Unrecoverable,
    /// The last worker was stopped or lost.
    Interrupted,
    /// A person reopened a task that never ran.
    Reopened,
    /// A person restarted a task that ran.
    Restarted,
    /// A person accepted it by name and reason.
    HumanOverridePassed,
    /// A person rejected it by name and reason.
    HumanOverrideFailed,
}

impl TaskTrigger {
    /// Every trigger, for tables and their tests.
    pub const ALL: [Self; 14] = [
        Self::SessionActive,
        Self::SessionBlocked,
        Self::AwaitingUser,
        Self::Answered,
        Self::CompletionReported,
        Self::ValidationPassed,
        Self::ValidationFailed,
        Self::Retrying,
        Self::Unrecoverable,
        Self::Interrupted,
        Self::Reopened,
        Self::Restarted,
        Self::HumanOverridePassed,
        Self::HumanOverrideFailed,
    ];
}

/// Why a task stands where it stands, beyond its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskReason {
    /// Proof for every required criterion.
    Proven,
    /// A person accepted it beforehand with `--unchecked`.
    Unchecked,
    /// A person overrode the verdict.
    Overridden,
    /// Corrective rounds are used up and criteria are still unmet.
    VerificationExhausted,
    /// A check could not tell.
    VerificationInconclusive,
    /// A person must accept or reject the result.
    AcceptanceAsked,
    /// A session asked something.
    QuestionAsked,
    /// An agent needs a login.
    LoginNeeded,
    /// The agent ended without a usable result.
    NoUsableResult,
    /// A run failed.
    RunFailed,
    /// A time limit was reached.
    TimedOut,
    /// Stopped on request.
    Stopped,
    /// A run was cut or lost.
    Cut,
    /// The round-trip cap was reached.
    Capped,
    /// The waiting question reached its deadline.
    QuestionExpired,
    /// A person opened it again and has yet to say what is to be done.
    Reopened,
}

/// How one criterion is checked. Chosen by the person or configuration, never by the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CriterionCheck {
    /// We run this shell command in the work folder; exit 0 passes.
    Command {
        /// The shell text, given to `sh -c`.
        command: String,
    },
    /// This file exists in the work folder and is not empty.
    File {
        /// Path relative to the work folder.
        path: String,
    },
    /// A person answers.
    Human {
        /// What the person is asked.
        text: String,
    },
}

/// One thing that must hold for done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Criterion {
    /// Its id.
    pub id: CriterionId,
    /// What must hold, for people and agents.
    pub text: String,
    /// How it is checked.
    pub check: CriterionCheck,
}

/// What a check says. "Cannot tell" is a value of its own and never a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceResult {
    /// The criterion holds.
    Passed,
    /// It does not hold.
    Failed,
    /// It could not be established.
    Inconclusive,
}

/// One observation, with the procedure that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// Its id.
    pub id: EvidenceId,
    /// The criterion it speaks to.
    pub criterion_id: CriterionId,
    /// What it says.
    pub result: EvidenceResult,
    /// The command that ran, the file that was read, or the person who answered.
    pub procedure: String,
    /// Exit code of the command, where one ran to its end.
    pub exit_code: Option<i32>,
    /// When the procedure began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// What was seen, head and tail, for people.
    pub detail: String,
}

/// What the checks of one round amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every required criterion passed.
    Passed,
    /// At least one failed.
    Failed,
    /// None failed, at least one could not be established.
    Inconclusive,
    /// Machine checks passed, a person must still answer.
    NeedsPerson,
}

/// One sub-agent that a task asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRequest {
    /// Agent id or profile name.
    pub agent: String,
    /// Name in the room; the agent's name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its own part of the goal; the whole goal when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Program and arguments, when not taken from the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// Where the program of its profile is, when it is to be found there and nowhere else. Absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Names of variables of the caller's environment that it gets besides those of its profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// Options of its conversation, such as its mode or model, by id; they win over those of its profile.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub config: std::collections::BTreeMap<String, String>,
    /// Mode, model and how much to think; what the agent does not offer fails the run before its prompt.
    #[serde(default, skip_serializing_if = "crate::agent_offer::Wanted::is_empty")]
    pub wanted: crate::agent_offer::Wanted,
    /// How it talks to its parent; not at all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<crate::mail::ConversationMode>,
    /// What it may do without a person; its profile's or the configured preset when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<crate::permission::Preset>,
}

/// A run's claim at its end, parsed from its completion report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The run that made it.
    pub run_id: RunId,
    /// The report as parsed.
    pub report: Value,
}
