//! Input and output types of the operations. Wire form: camelCase.

mod configure;
mod retention;
mod usage;

use std::collections::BTreeMap;

use rallypoint_model::admission::{Budget, Priority};
use rallypoint_model::agent_offer::{AgentCapabilities, ConversationOffer, NativeAgent, Wanted};
use rallypoint_model::attachment::Attachment;
use rallypoint_model::channel::Conversation;
use rallypoint_model::command::AgentChoice;
use rallypoint_model::event::ResultRef;
use rallypoint_model::ids::{GenerationId, QuestionId, RoomId, RunId, SessionId, TaskId};
use rallypoint_model::message::{Message, RoomKind};
use rallypoint_model::progress::ProgressMode;
use rallypoint_model::question::{Answer, AnsweringAgent, QuestionKind, QuestionStatus};
use rallypoint_model::retention::Deletion;
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunPurpose, RunStatus};
use rallypoint_model::session::{GenerationStatus, SessionStatus};
use rallypoint_model::steering::{ForkSource, PlanRevision};
use rallypoint_model::task::{AgentRequest, Criterion, Evidence, TaskReason, TaskStatus, Verdict};
use rallypoint_model::time::Timestamp;
use rallypoint_model::tool_call::ToolsStatus;
use rallypoint_model::usage::{ContextFill, Measured, TokenCounts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rooms::RoomMember;
use crate::steering::PauseView;
use crate::trees::StopView;

pub use configure::{AttachmentInput, ConfigureInput};
pub use retention::{ArchiveTaskInput, DeleteTaskInput, SessionRef, TranscriptView};
pub use usage::{ModelUsage, UsageInput, UsageTotals};

/// Nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

/// A way in for a browser.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessLink {
    /// To be opened once, within the minutes of the limit `accessLinkMinutes`.
    pub url: String,
}

/// The daemon as it is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    /// Program version.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Absolute data folder.
    pub data_folder: String,
    /// Number of this decider's term.
    pub epoch: u64,
    /// Whether it ends by itself when idle.
    pub ends_when_idle: bool,
    /// Start time.
    pub started_at: Timestamp,
    /// Runs without an outcome.
    pub open_runs: u32,
    /// Questions without an answer.
    pub open_questions: u32,
    /// Agent processes.
    pub generations: u32,
    /// Generations whose processes could not all be ended.
    pub unclean_generations: u32,
    /// Last sequence number of the journal.
    pub last_seq: i64,
    /// Address of the TCP listener, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
}

/// Make a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateTaskInput {
    /// What is to be reached.
    pub goal: String,
    /// One line; the goal's first line when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Who is to work on it; one default agent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentRequest>,
    /// Absolute work folder; a scratch folder of the task when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The room that asks; the world's main room when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// The room where its sub-agents talk among themselves; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_room_id: Option<RoomId>,
    /// Commands that must exit 0 in the work folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Statements that a person accepts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<String>,
    /// Total time across the task's runs in milliseconds; 0 means none.
    #[serde(default)]
    pub timeout_ms: i64,
    /// Take the result without proof; a person's override given beforehand.
    #[serde(default)]
    pub unchecked: bool,
    /// What its agents may do without a person, where a request for one does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<rallypoint_model::permission::Preset>,
    /// Band in the queue for a slot; `normal` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// What the task's runs may use together; no limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Files that go with the goal: their content as a picture or a resource where an agent takes it, else their address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<AttachmentInput>,
    /// Same key, same task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The platform's id of the message that asks, in the conversation that the room is bound to. Replies name it,
    /// and without a key of its own the request is the same for the same id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform_message_id: Option<String>,
    /// How the room's conversation hears of this work while it goes on; as it is set for the room when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressMode>,
    /// The caller's allow-listed environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Name of the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// Where it came in; `api` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Names a task.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskRef {
    /// Its id.
    pub task_id: TaskId,
}

/// Stop a task.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopTaskInput {
    /// Its id.
    pub task_id: TaskId,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How long the answer waits for the end of every process, in milliseconds, 60 000 at most; at once when absent.
    /// The stop goes on either way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// Give a task another run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryTaskInput {
    /// Its id.
    pub task_id: TaskId,
    /// What to say to the session; "continue or report" when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The caller's allow-listed environment, for secrets that a daemon before this one held in memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Take or refuse a result by name and reason.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OverrideTaskInput {
    /// Its id.
    pub task_id: TaskId,
    /// Take it, or refuse it.
    pub passed: bool,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// Say something to a session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendInput {
    /// Its id.
    pub session_id: SessionId,
    /// The words.
    pub text: String,
    /// Who says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A page of something, newest first unless said otherwise.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListTasksInput {
    /// Only tasks of this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    /// Archived ones too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_archived: bool,
    /// Only those in whose title, goal, criteria or names and kinds of agents this text is, whatever its letters' case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Only those that this room asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// Only those of this band.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Only those that are paused, or only those that are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Only forks of this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    /// Rows at most; 100 when absent, 500 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A task in a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskSummary {
    /// Its id.
    pub task_id: TaskId,
    /// One line.
    pub title: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// Why it stands there.
    pub reason: Option<TaskReason>,
    /// The room that asked.
    pub room_id: RoomId,
    /// Sub-agents.
    pub sessions: u32,
    /// Its band in the queue for a slot.
    #[serde(default)]
    pub priority: Priority,
    /// That it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PauseView>,
    /// The task that it is a fork of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When something last happened.
    pub updated_at: Timestamp,
    /// When it was put out of sight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
}

/// Tasks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskPage {
    /// The rows.
    pub items: Vec<TaskSummary>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
}

/// A sub-agent of a task.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// Its id.
    pub session_id: SessionId,
    /// Its key.
    pub session_key: String,
    /// Name in the room.
    pub label: String,
    /// The sub-agent that it works for; the main agent when absent.
    #[serde(default)]
    pub parent_session_id: Option<SessionId>,
    /// Place in the tree, from 1.
    #[serde(default)]
    pub depth: u32,
    /// Profile.
    pub agent_type: String,
    /// Status.
    pub status: SessionStatus,
    /// Its process, when it has one.
    pub generation: Option<GenerationView>,
    /// What it was first asked to do, as one text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub goal_prompt: String,
    /// Corrective and continuing prompts that it got.
    #[serde(default)]
    pub retry_count: u32,
    /// Boundary events that reached the room.
    pub round_trips: u32,
    /// Tool at work, when one is.
    pub active_tool: Option<String>,
    /// Tokens, or why they are not known.
    pub usage: Measured<TokenCounts>,
    /// What its runs used together.
    pub used: UsageTotals,
    /// How full its context was when it last said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextFill>,
    /// Whether what is said to it goes on in the same conversation.
    #[serde(default)]
    pub can_go_on: bool,
    /// The agent's id of its conversation, as long as it may be opened again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session_id: Option<String>,
    /// What the agent offers to set, and how that stands; absent while it said nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<ConversationOffer>,
    /// Mode, model and thought level that are wanted of it.
    #[serde(default, skip_serializing_if = "Wanted::is_empty")]
    pub wanted: Wanted,
    /// Helpers that the agent has of its own, in conversations over the same connection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub native_agents: Vec<NativeAgent>,
}

/// An agent process.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenerationView {
    /// Its id.
    pub generation_id: GenerationId,
    /// How it stands.
    pub status: GenerationStatus,
    /// Frames understood.
    pub frames: u64,
    /// Whether it has our tools.
    #[serde(default)]
    pub tools: ToolsStatus,
    /// What it said about itself; the raw answer stands in its event.
    #[serde(default)]
    pub capabilities: AgentCapabilities,
}

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    /// Its id.
    pub run_id: RunId,
    /// Its session.
    pub session_id: SessionId,
    /// Why it exists.
    pub purpose: RunPurpose,
    /// The run before it.
    pub predecessor: Option<RunId>,
    /// Where it stands.
    pub status: RunStatus,
    /// Its place among the runs that wait for a slot, from 1; absent for one that does not.
    #[serde(default)]
    pub queue_position: Option<u32>,
    /// Since when it is suspected of being stalled; a suspicion, never a verdict.
    pub detecting_since: Option<Timestamp>,
    /// Its outcome.
    pub outcome: Option<RunOutcome>,
    /// Why.
    pub reason: Option<OutcomeReason>,
    /// Its full output, by reference.
    pub result: Option<ResultRef>,
    /// When it was accepted.
    pub queued_at: Timestamp,
    /// When its prompt was given to the agent.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// A task, whole.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    /// Its id.
    pub task_id: TaskId,
    /// One line.
    pub title: String,
    /// The goal as written.
    pub goal: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// Why it stands there.
    pub reason: Option<TaskReason>,
    /// The room that asked.
    pub room_id: RoomId,
    /// The world's main room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_room_id: Option<RoomId>,
    /// Work folder.
    pub cwd: String,
    /// What must hold.
    pub criteria: Vec<Criterion>,
    /// What was observed in the last round of checks.
    pub evidence: Vec<Evidence>,
    /// What it amounted to.
    pub verdict: Option<Verdict>,
    /// Rounds of checks so far.
    pub rounds: u32,
    /// Corrective prompts sent so far.
    pub corrective_rounds: u32,
    /// Corrective prompts at most.
    #[serde(default)]
    pub corrective_limit: u32,
    /// Continuing prompts in a row at most, after which a person is asked.
    #[serde(default)]
    pub resume_limit: u32,
    /// That it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PauseView>,
    /// What it waits for, in words, while it is blocked or waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_reason: Option<String>,
    /// Last words of the run that completed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_summary: Option<String>,
    /// The plan that is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanRevision>,
    /// The task that it is a fork of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkSource>,
    /// Sub-agents.
    pub sessions: Vec<SessionView>,
    /// Why it got its agent, when nobody named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_choice: Option<AgentChoice>,
    /// Runs, oldest first.
    pub runs: Vec<RunView>,
    /// Questions that wait.
    pub open_questions: Vec<QuestionView>,
    /// Nothing more happens by itself: no open run, no check, no turn is due.
    pub settled: bool,
    /// Exit code of `rally run` for this state; absent while it is not settled.
    pub exit_code: Option<i32>,
    /// The main agent's last words on it.
    pub last_reply: Option<String>,
    /// Its band in the queue for a slot.
    #[serde(default)]
    pub priority: Priority,
    /// What its runs may use together.
    #[serde(default)]
    pub budget: Budget,
    /// What its runs used together.
    pub used: UsageTotals,
    /// Files that went with its goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The tree of it that is being ended, or was ended last.
    #[serde(default)]
    pub last_stop: Option<StopView>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When it was put out of sight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
    /// That it was deleted, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Deletion>,
}

/// A question.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionView {
    /// Its id.
    pub question_id: QuestionId,
    /// What is asked.
    pub question: QuestionKind,
    /// Where it stands.
    pub status: QuestionStatus,
    /// The task that waits.
    pub task_id: TaskId,
    /// The session that waits.
    pub session_id: Option<SessionId>,
    /// Name of the session that waits.
    pub label: Option<String>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it expires.
    pub deadline_at: Timestamp,
}

/// Which questions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListQuestionsInput {
    /// Only of this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Rows at most; 100 when absent, 500 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Questions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionList {
    /// The open ones, oldest first.
    pub items: Vec<QuestionView>,
    /// Where the next page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Answer a question.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerInput {
    /// Its id.
    pub question_id: QuestionId,
    /// The answer.
    pub answer: Answer,
    /// Who answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The agent that answers, where it is no person; then `by` does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AnsweringAgent>,
}

/// A room.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoomView {
    /// Its id.
    pub room_id: RoomId,
    /// Its kind.
    pub kind: RoomKind,
    /// Its title.
    pub title: String,
    /// Messages in it.
    pub messages: u64,
    /// Those of them from before its last reset.
    #[serde(default)]
    pub earlier_messages: u64,
    /// Rises when it is reset.
    #[serde(default)]
    pub incarnation: u32,
    /// When it was last reset.
    #[serde(default)]
    pub reset_at: Option<Timestamp>,
    /// The platform conversation that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// How its conversation hears of work that goes on.
    #[serde(default)]
    pub progress: ProgressMode,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who is in it now, and what each may do there.
    #[serde(default)]
    pub members: Vec<RoomMember>,
}

/// Rooms.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoomList {
    /// The rows, in the order in which they were made.
    pub items: Vec<RoomView>,
    /// Where the next page begins.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A page of a room.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoomMessagesInput {
    /// The room; `main` names the world's own.
    pub room_id: String,
    /// Only messages of this task, those from before a reset too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Messages from before the last reset too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Rows at most; 100 when absent, 500 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Messages, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessagePage {
    /// The rows.
    pub items: Vec<Message>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
}

/// A part of the journal, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventsInput {
    /// Only of this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Only of this room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// Only after this sequence number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// Rows at most; 100 when absent, 500 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Rows of the journal, each of the form described in `docs/events.md`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    /// The rows.
    pub items: Vec<serde_json::Value>,
    /// Sequence number to continue after, when there is more.
    pub next_after: Option<i64>,
}

/// One kind of agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// Name for `--agent`.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Whether it is part of this program.
    pub built_in: bool,
    /// Whether its program was found.
    pub installed: bool,
    /// Where, or what was looked for.
    pub program: String,
    /// How to install it, when it is not there.
    pub install_hint: String,
    /// How to log in.
    pub login_hint: String,
    /// Its version, where it was asked for and could be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether a login shows.
    #[serde(default)]
    pub login: LoginState,
    /// What shows it: the name of a variable or of a file, never what is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_shown_by: Option<String>,
    /// Where its project documents it.
    #[serde(default)]
    pub docs_url: String,
    /// Whether a task that names no agent may get it: installed, and no login is known to be missing.
    #[serde(default)]
    pub ready: bool,
}

/// Whether an agent is logged in, as far as that shows from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoginState {
    /// A key or a login is there; whether the provider takes it only a run can tell.
    Present,
    /// Nothing of what would show one is there.
    Absent,
    /// It can't be told.
    #[default]
    Unknown,
    /// It needs none.
    NotNeeded,
}

/// Look closely at agents.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreflightInput {
    /// Names; all that are listed when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The caller's allow-listed environment; the daemon's own when empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// Agents.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentList {
    /// The rows.
    pub items: Vec<AgentView>,
}

/// Names a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunRef {
    /// Its id.
    pub run_id: RunId,
}

/// The full output of a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultView {
    /// Its run.
    pub run_id: RunId,
    /// Digest and size.
    pub result: ResultRef,
    /// The text.
    pub text: String,
}
