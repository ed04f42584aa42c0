//! Input and output types of the operations by which a person steers a task. Wire form: camelCase.

use std::collections::BTreeMap;

use rallypoint_model::admission::{Budget, Priority};
use rallypoint_model::ids::{MessageId, PlanRevisionId, RoomId, RunId, SessionId, TaskId};
use rallypoint_model::message::Message;
use rallypoint_model::steering::{NotReached, PlanRevision};
use rallypoint_model::task::AgentRequest;
use rallypoint_model::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::types::UsageTotals;

/// Names a task and who asks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SteerInput {
    /// Its id.
    pub task_id: TaskId,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Names who asks for something that concerns every task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SteerAllInput {
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// How many tasks were moved.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SteeredView {
    /// Their number.
    pub tasks: u32,
}

/// Change a task; what is absent stays.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PatchTaskInput {
    /// Its id.
    pub task_id: TaskId,
    /// One line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is to be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Commands that must exit 0 in the work folder. With `accept`, all criteria from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<String>>,
    /// Statements that a person accepts. With `checks`, all criteria from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<Vec<String>>,
    /// Its band in the queue for a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// What its runs may use together, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Who works on it when it is begun again, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<AgentRequest>>,
    /// The caller's allow-listed environment, for secrets that a daemon before this one held in memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Make another task of one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForkTaskInput {
    /// The task that it is made of.
    pub task_id: TaskId,
    /// One line; that of the task with `(fork)` behind it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is to be reached; as there when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Commands that must exit 0 in the work folder. With `accept`, all criteria; those of the task when both are absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<String>>,
    /// Statements that a person accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<Vec<String>>,
    /// Its band in the queue for a slot; as there when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// What its runs may use together; as there when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Who works on it; as there when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentRequest>,
    /// Absolute work folder; as there when absent, but never the scratch folder of another task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The room that asks; as there when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// The caller's allow-listed environment, for secrets that a daemon before this one held in memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Say something to whoever works on a task.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageTaskInput {
    /// Its id.
    pub task_id: TaskId,
    /// The words.
    pub text: String,
    /// Where it came in; `api` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The caller's allow-listed environment, for secrets that a daemon before this one held in memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What became of a message to a task.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessagedView {
    /// The message in the room.
    pub message_id: MessageId,
    /// It is kept, whoever gets it.
    pub recorded: bool,
    /// Sessions that get it.
    pub forwarded_to: Vec<SessionId>,
    /// Sessions that don't, each with the reason.
    pub failed_to: Vec<NotReached>,
    /// A session that was started for it, since none was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<SessionId>,
}

/// Begin a task again in new sessions. What was before stays.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestartTaskInput {
    /// Its id.
    pub task_id: TaskId,
    /// What is added to the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// The plan to follow; the latest when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_revision_id: Option<PlanRevisionId>,
    /// Stop whoever works on it first; without it, that is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_active: bool,
    /// Who works on it; those of the task when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRequest>,
    /// The caller's allow-listed environment, for secrets that a daemon before this one held in memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// The same with a plan that was changed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestartWithPlanInput {
    /// Its id.
    pub task_id: TaskId,
    /// The plan, an object in whatever form its maker likes.
    pub plan: Value,
    /// The revision that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_plan_revision_id: Option<PlanRevisionId>,
    /// What was changed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit_summary: Option<String>,
    /// What is added to the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// Stop whoever works on it first; without it, that is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_active: bool,
    /// Who works on it; those of the task when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRequest>,
    /// The caller's allow-listed environment, for secrets that a daemon before this one held in memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Begin a task again from what was known at an event. What came after it stays in the journal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RerunTaskInput {
    /// Its id.
    pub task_id: TaskId,
    /// Number of the event in the journal; it has to concern the task.
    pub event_seq: i64,
    /// What is added to the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// The plan to follow; the latest when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_revision_id: Option<PlanRevisionId>,
    /// Stop whoever works on it first; without it, that is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_active: bool,
    /// Who works on it; those of the task when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRequest>,
    /// The caller's allow-listed environment, for secrets that a daemon before this one held in memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Give a session one more turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryTurnInput {
    /// Its id.
    pub task_id: TaskId,
    /// What to say; "continue or report" when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// A message of the task whose words are said again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The session; the one that worked last when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Whether a new session takes its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_session: bool,
    /// The plan to follow; as it is when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_revision_id: Option<PlanRevisionId>,
    /// The caller's allow-listed environment, for secrets that a daemon before this one held in memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Give a task a newer plan.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevisePlanInput {
    /// Its id.
    pub task_id: TaskId,
    /// The plan, an object in whatever form its maker likes.
    pub plan: Value,
    /// The revision that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_plan_revision_id: Option<PlanRevisionId>,
    /// What was changed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit_summary: Option<String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A part of what a task has, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskPartInput {
    /// Its id.
    pub task_id: TaskId,
    /// Rows at most; 100 when absent, 500 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Plans of a task, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanPage {
    /// The rows.
    pub items: Vec<PlanRevision>,
    /// Where the next page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Say by name whether a result that waits for a verdict holds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValidateTaskInput {
    /// Its id.
    pub task_id: TaskId,
    /// Whether it holds.
    pub passed: bool,
    /// What shows it.
    pub evidence: String,
    /// Who says so.
    pub by: String,
    /// Take it or refuse it although checks say otherwise; the evidence is then the reason.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub human_override: bool,
}

/// Run the checks of a result once more.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckTaskInput {
    /// Its id.
    pub task_id: TaskId,
    /// How long the answer waits for their end, in milliseconds, 60 000 at most; at once when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What an entry of a timeline is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimelineKind {
    /// Something was said.
    Message,
    /// Something happened.
    Event,
}

/// One entry of a timeline.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineItem {
    /// `message:` or `event:` and the number or id behind it.
    pub id: String,
    /// What it is.
    pub kind: TimelineKind,
    /// Its number in the journal.
    pub seq: i64,
    /// When.
    pub at: Timestamp,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// The row of the journal, of the form described in `docs/events.md`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Value>,
}

/// What was said and done, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelinePage {
    /// The rows.
    pub items: Vec<TimelineItem>,
    /// Where the next page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Rows of the journal that say who decided what, newest first, each of the form described in `docs/events.md`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionPage {
    /// The rows.
    pub items: Vec<Value>,
    /// Where the next page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What an artifact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// The full output of a run.
    Result,
    /// A file that went with the goal.
    Attachment,
}

/// Something that a task brought forth, or that went with it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactView {
    /// What it is.
    pub kind: ArtifactKind,
    /// In words.
    pub title: String,
    /// The run that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// SHA-256 of its bytes, hex.
    pub digest: String,
    /// Their number.
    pub bytes: u64,
    /// Whether its content was removed since.
    pub removed: bool,
    /// When it was made, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// Artifacts, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactPage {
    /// The rows.
    pub items: Vec<ArtifactView>,
    /// Where the next page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// All tasks that are not deleted, added up.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    /// Tasks.
    pub tasks: u32,
    /// Those of them by where they stand.
    pub by_status: BTreeMap<String, u32>,
    /// Those that are paused.
    pub paused: u32,
    /// Those that are archived.
    pub archived: u32,
    /// Those that wait for a person.
    pub waiting: u32,
    /// Sub-agents.
    pub sessions: u32,
    /// Those of them that are in a turn or wait for one.
    pub active_sessions: u32,
    /// What all runs used together.
    pub used: UsageTotals,
}

/// A run that waits for a slot.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedRun {
    /// Its place, from 1.
    pub position: u32,
    /// Its id.
    pub run_id: RunId,
    /// Its session.
    pub session_id: SessionId,
    /// Its task.
    pub task_id: TaskId,
    /// Its task's band.
    pub priority: Priority,
    /// When it was accepted.
    pub queued_at: Timestamp,
}

/// Who may work at once, and who waits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityView {
    /// Sub-agent runs at work at once, at most (`laneSubagent`).
    pub slots: u32,
    /// Slots in use.
    pub used: u32,
    /// Slots that are free.
    pub free: u32,
    /// Runs that may wait, at most (`queueDepth`).
    pub queue_depth: u32,
    /// Runs of paused tasks, which wait for no slot.
    pub held: u32,
    /// Runs that wait, the next one first.
    pub queue: Vec<QueuedRun>,
}

/// That a task is paused.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseView {
    /// Who asked.
    pub by: String,
    /// When.
    pub at: Timestamp,
}
