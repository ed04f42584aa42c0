//! Commands: what the decider is asked to do.

use serde::{Deserialize, Serialize};

use crate::admission::{Budget, Priority};
use crate::agent_io::AgentReport;
use crate::agent_offer::Wanted;
use crate::attachment::NewAttachment;
use crate::channel::Conversation;
use crate::delivery::SinkAnswer;
use crate::ids::{
    DeliveryId, EntityId, GenerationId, MessageId, PlanRevisionId, QuestionId, RoomId, RunId, SessionId,
    TaskId, WorldId,
};
use crate::mail;
use crate::message::RoomKind;
use crate::permission::AgentPermissions;
use crate::progress::ProgressMode;
use crate::question::{Answer, AnsweringAgent};
use crate::retention::DeleteMode;
use crate::routing::ExplicitEvent;
use crate::session::GenerationEnd;
use crate::steering::{
    ForkSource, MessageTask, NewPlan, NotReached, RestartTask, RetryTurn, TaskChange, ValidateTask,
};
use crate::task::{Criterion, Evidence};
use crate::time::ClockAnchor;
use crate::tool_call::{ToolAnswer, ToolRequest};
use crate::usage::UsageKind;

/// Everything needed to start an agent, resolved before the task is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentLaunch {
    /// Agent id (slug).
    pub agent_id: String,
    /// Profile, `agentType` on the wire.
    pub profile: String,
    /// Name in the room.
    pub label: String,
    /// Its own part of the goal; the whole goal when absent.
    pub task: Option<String>,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Environment that is not secret, sorted by name.
    pub environment: Vec<(String, String)>,
    /// Names of secret variables that are passed too; their values are never stored.
    pub secret_names: Vec<String>,
    /// Options of its conversation that are set before its first prompt: id, value.
    #[serde(default)]
    pub config: Vec<(String, String)>,
    /// Mode, model and how much to think; what the agent does not offer fails the run before its prompt.
    #[serde(default, skip_serializing_if = "Wanted::is_empty")]
    pub wanted: Wanted,
    /// What it may do without a person, and how it is held to that.
    #[serde(default)]
    pub permissions: AgentPermissions,
    /// Whether a conversation that it opens again can be gone on with.
    #[serde(default)]
    pub trusts_load: bool,
    /// Whether the same holds for one that it opens again without repeating its history.
    #[serde(default)]
    pub trusts_resume: bool,
    /// Whether it takes words while it is in a turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_words_in_turn: bool,
    /// How the agent counts tokens.
    pub usage_kind: UsageKind,
    /// What a person does when it needs a login.
    pub login_hint: String,
    /// The way to log in that it is told to take, where it names it; none that asks a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_method: Option<String>,
    /// What is done for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<AgentService>,
    /// Silence that is told as suspicious; the general limit when absent.
    #[serde(default)]
    pub stall_ms: Option<i64>,
    /// Time it may take to get ready; the general limit when absent.
    pub setup_timeout_ms: Option<i64>,
    /// Why this agent and no other.
    #[serde(default)]
    pub choice: AgentChoice,
    /// How it talks to its parent, when it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<mail::ConversationMode>,
    /// Whether our tool server is started in its conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tools: bool,
}

/// Why a task got an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentChoice {
    /// Whoever asked named it.
    #[default]
    Named,
    /// It is the configured default.
    Configured,
    /// The goal contains commands, and nothing else was asked for.
    Commands,
    /// It is the only one that is ready.
    OnlyReady,
    /// It is the only one that is installed; no login of it shows.
    OnlyInstalled,
}

/// Something that is done for an agent which can't do it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentService {
    /// Text files of the work folder are read and written.
    Fs,
}

/// What happens to a task without a verdict of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acceptance {
    /// Proof or a person's word is needed.
    Checked,
    /// A person gave the override beforehand.
    Unchecked,
}

/// Make a task and start its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateTask {
    /// Its id, made by the caller's side of the decider.
    pub task_id: TaskId,
    /// Same key, same task.
    pub idempotency_key: Option<String>,
    /// One line.
    pub title: String,
    /// What is to be reached, as the person wrote it.
    pub goal: String,
    /// The room that asks; the world's main room when absent.
    pub room_id: Option<RoomId>,
    /// The room where its sub-agents talk among themselves; it has to exist.
    #[serde(default)]
    pub worktree_room_id: Option<RoomId>,
    /// Absolute work folder.
    pub cwd: String,
    /// What must hold for done.
    pub criteria: Vec<Criterion>,
    /// Whether an unproven result may be taken.
    pub acceptance: Acceptance,
    /// Total time across its runs; 0 means none.
    pub timeout_ms: i64,
    /// Who is to work on it.
    pub agents: Vec<AgentLaunch>,
    /// Name of the person.
    pub requested_by: String,
    /// Where it came in: `cli`, `api`.
    pub source: String,
    /// Its band in the queue for a slot.
    #[serde(default)]
    pub priority: Priority,
    /// What its runs may use together.
    #[serde(default)]
    pub budget: Budget,
    /// The platform's id of the message that asks, so that replies can name it.
    #[serde(default)]
    pub platform_message_id: Option<String>,
    /// Files that go with its goal.
    #[serde(default)]
    pub attachments: Vec<NewAttachment>,
    /// The task that it is a fork of.
    #[serde(default)]
    pub forked_from: Option<ForkSource>,
    /// How its platform conversation hears of its progress; as the room does when absent.
    #[serde(default)]
    pub progress: Option<ProgressMode>,
}

/// Make a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateRoom {
    /// Its id, made by the caller's side of the decider.
    pub room_id: RoomId,
    /// Its title; made of its conversation when empty.
    pub title: String,
    /// Its kind; by whether it is bound when absent.
    #[serde(default)]
    pub kind: Option<RoomKind>,
    /// The platform conversation that it is bound to, for good.
    pub conversation: Option<Conversation>,
    /// Same key, same room.
    pub idempotency_key: Option<String>,
}

/// Say something in a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SayInRoom {
    /// Which.
    pub room_id: RoomId,
    /// The words.
    pub text: String,
    /// Name of the person.
    pub by: String,
    /// Where it came in: `cli`, `api`, or the name of a channel.
    pub source: String,
    /// The platform's id of the message; the same id is the same message.
    pub platform_message_id: Option<String>,
    /// Same key, same message.
    pub idempotency_key: Option<String>,
}

/// Start one more sub-agent for a task, or for one of its sub-agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpawnSession {
    /// The task.
    pub task_id: TaskId,
    /// The session that it works for; the task itself when absent.
    pub parent_session_id: Option<SessionId>,
    /// How to start it.
    pub launch: AgentLaunch,
    /// Same key, same session.
    pub idempotency_key: Option<String>,
}

/// What the decider is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Command {
    /// Make the world on an empty store; nothing happens on a filled one.
    OpenWorld {
        /// Its id.
        world_id: WorldId,
        /// Its main room.
        main_room_id: RoomId,
        /// The person of this installation.
        user_id: EntityId,
        /// The main agent.
        main_agent_id: EntityId,
        /// The platform's own voice.
        system_id: EntityId,
        /// How the machine's clock stands.
        clock: Option<ClockAnchor>,
    },
    /// Make a room.
    CreateRoom(CreateRoom),
    /// Begin a room's conversation anew.
    ResetRoom {
        /// Which.
        room_id: RoomId,
        /// Who asks.
        by: String,
    },
    /// Say something in a room.
    SayInRoom(SayInRoom),
    /// Let a room's conversation hear of progress in another way.
    SetProgress {
        /// Which.
        room_id: RoomId,
        /// How.
        mode: ProgressMode,
        /// Who asks.
        by: String,
    },
    /// A sink answered a progress post.
    ProgressAnswered {
        /// The task that it is about.
        task_id: TaskId,
        /// Which post of it, from 1.
        edition: u32,
        /// What came of it.
        answer: SinkAnswer,
    },
    /// A sink answered an offer.
    DeliveryAnswered {
        /// Which delivery.
        delivery_id: DeliveryId,
        /// Which offer of it, from 1.
        offer: u32,
        /// What came of it.
        answer: SinkAnswer,
    },
    /// Send a message again that was given up, or whose fate nobody can tell.
    RetryDelivery {
        /// Which.
        delivery_id: DeliveryId,
        /// Who asks.
        by: String,
    },
    /// Give a delivery up.
    DiscardDelivery {
        /// Which.
        delivery_id: DeliveryId,
        /// Who asks.
        by: String,
        /// Why.
        reason: String,
    },
    /// Make a task and start its work.
    CreateTask(CreateTask),
    /// Start one more sub-agent.
    SpawnSession(SpawnSession),
    /// A session raises an event with a structured call.
    RaiseEvent {
        /// Which session.
        session_id: SessionId,
        /// What it raises.
        event: ExplicitEvent,
    },
    /// A session in its turn waits for the sub-agents that it started.
    AwaitChildren {
        /// Which.
        session_id: SessionId,
    },
    /// End a session and all below it.
    StopSession {
        /// Which.
        session_id: SessionId,
        /// Who asks.
        by: String,
    },
    /// Stop all work on a task.
    StopTask {
        /// Which.
        task_id: TaskId,
        /// Who asks.
        by: String,
    },
    /// Give a task that ended or waits another run in its last session.
    RetryTask {
        /// Which.
        task_id: TaskId,
        /// Who asks.
        by: String,
        /// What to say; "continue or report" when absent.
        text: Option<String>,
    },
    /// Give a session another turn, or a new session in its place.
    RetryTurn(RetryTurn),
    /// Begin a task again in new sessions.
    RestartTask(RestartTask),
    /// Hold a task: its turns are cancelled, its sessions kept.
    PauseTask {
        /// Which.
        task_id: TaskId,
        /// Who asks.
        by: String,
    },
    /// Let a paused task go on.
    ResumeTask {
        /// Which.
        task_id: TaskId,
        /// Who asks.
        by: String,
    },
    /// Hold every task that has not ended.
    PauseAll {
        /// Who asks.
        by: String,
    },
    /// Let every paused task go on.
    ResumeAll {
        /// Who asks.
        by: String,
    },
    /// Let a task that has ended be worked on again.
    ReopenTask {
        /// Which.
        task_id: TaskId,
        /// Who asks.
        by: String,
    },
    /// Change a task.
    PatchTask {
        /// Which.
        task_id: TaskId,
        /// What; what is absent stays.
        change: TaskChange,
        /// Who asks.
        by: String,
    },
    /// Give a task a newer plan.
    RevisePlan {
        /// Which.
        task_id: TaskId,
        /// The plan.
        plan: NewPlan,
        /// Who asks.
        by: String,
    },
    /// Say something to whoever works on a task.
    MessageTask(MessageTask),
    /// Say by name whether a result that is being checked holds.
    ValidateTask(ValidateTask),
    /// Run the checks of a result once more.
    CheckAgain {
        /// Which.
        task_id: TaskId,
        /// Who asks.
        by: String,
    },
    /// Say something to a session, through the follow-up builder.
    SendToSession {
        /// Which.
        session_id: SessionId,
        /// The words.
        text: String,
        /// Who says it.
        by: String,
    },
    /// Want another mode, model, thought level or option of a session; set before its next prompt.
    ConfigureSession {
        /// Which.
        session_id: SessionId,
        /// Mode, model, thought level; what is absent stays.
        wanted: Wanted,
        /// Options by id; those that are not named stay.
        config: Vec<(String, String)>,
        /// Who asks.
        by: String,
    },
    /// Answer an open question.
    AnswerQuestion {
        /// Which.
        question_id: QuestionId,
        /// The answer.
        answer: Answer,
        /// Who answers.
        by: String,
    },
    /// Answer an open question of another agent, within what that agent may decide.
    AnswerQuestionAsAgent {
        /// Which.
        question_id: QuestionId,
        /// The answer.
        answer: Answer,
        /// Which agent answers.
        agent: AnsweringAgent,
    },
    /// Accept or reject a task by name and reason.
    OverrideTask {
        /// Which.
        task_id: TaskId,
        /// Accept, or reject.
        passed: bool,
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// Put a task that has ended or waits out of sight.
    ArchiveTask {
        /// Which.
        task_id: TaskId,
        /// Who asks.
        by: String,
    },
    /// Bring an archived task back.
    UnarchiveTask {
        /// Which.
        task_id: TaskId,
        /// Who asks.
        by: String,
    },
    /// Delete a task that nobody works on.
    DeleteTask {
        /// Which.
        task_id: TaskId,
        /// How.
        mode: DeleteMode,
        /// Who asks.
        by: String,
    },
    /// Remove full outputs that only tasks refer to which were archived this long ago.
    RemoveResults {
        /// How long ago, in milliseconds.
        keep_ms: i64,
        /// Outputs at most.
        at_most: u32,
    },
    /// Something of the data folder could not be removed.
    DeleteFailed {
        /// Path within the data folder.
        path: String,
        /// What the system said.
        reason: String,
        /// Pause before the second attempt; later ones double.
        pause_ms: i64,
    },
    /// Something that could not be removed before is gone, or is to stay.
    DeleteSettled {
        /// Path within the data folder.
        path: String,
    },
    /// The agent process of a generation runs under its shim.
    GenerationLaunched {
        /// Which.
        generation_id: GenerationId,
    },
    /// A generation has ended in another way than by an exit in its spool.
    GenerationGone {
        /// Which.
        generation_id: GenerationId,
        /// How.
        end: GenerationEnd,
    },
    /// What an agent put out.
    AgentReported {
        /// Which.
        generation_id: GenerationId,
        /// What.
        report: AgentReport,
    },
    /// Nothing of a generation is left: no process, no spool.
    GenerationCleaned {
        /// Which.
        generation_id: GenerationId,
        /// Processes that had to be swept.
        swept: u32,
        /// Processes that could not be ended.
        left: u32,
    },
    /// The spool of a generation can't be read on, for now or for good.
    SpoolUnreadable {
        /// Which.
        generation_id: GenerationId,
        /// What is wrong.
        why: String,
    },
    /// The checks of a round were run.
    Verified {
        /// Which task.
        task_id: TaskId,
        /// Which round.
        round: u32,
        /// What they showed.
        evidence: Vec<Evidence>,
    },
    /// A daemon is up again: time without one does not count for questions.
    ResumeClocks {
        /// How long none was up, in milliseconds.
        away_ms: i64,
    },
    /// The machine's clock was set, or nothing could be decided for a while.
    ShiftClocks {
        /// By how many milliseconds the clocks of what is under way have to be moved.
        by_ms: i64,
        /// How the machine's clock stands now, where that has changed.
        anchor: Option<ClockAnchor>,
    },
    /// The tool server of an agent process said hello with the process's token.
    ToolsConnected {
        /// Which.
        generation_id: GenerationId,
        /// Names the hello.
        process: String,
        /// Who speaks to it, as it says.
        client: String,
    },
    /// An agent calls one of our tools.
    ToolCalled {
        /// Its process.
        generation_id: GenerationId,
        /// Names the hello of the tool server that brings the call.
        process: String,
        /// JSON-RPC id of the call, raw JSON text.
        request_id: String,
        /// What it asks for.
        request: ToolRequest,
    },
    /// An agent does not wait for a call any more.
    ToolCallCancelled {
        /// Its process.
        generation_id: GenerationId,
        /// Names the hello.
        process: String,
        /// JSON-RPC id of the call, raw JSON text.
        request_id: String,
    },
    /// Time has passed.
    Tick,
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// Done, nothing to name.
    Done,
    /// A task was made, or is the one this key made before.
    Task {
        /// Which.
        task_id: TaskId,
    },
    /// A run was queued.
    Queued {
        /// Its session.
        session_id: SessionId,
    },
    /// A sub-agent was accepted, or is the one that this key made before.
    Spawned {
        /// Its session.
        session_id: SessionId,
        /// Its first run.
        run_id: RunId,
        /// Its place among the runs that wait for a slot, from 1; absent when it has one.
        position: Option<u32>,
    },
    /// A room was made, or is the one that this key made before.
    Room {
        /// Which.
        room_id: RoomId,
    },
    /// A message was posted, or is the one that this key or platform id posted before.
    Message {
        /// Which.
        message_id: MessageId,
        /// Whether it was there already.
        repeated: bool,
    },
    /// So many tasks were moved.
    Count {
        /// How many.
        tasks: u32,
    },
    /// A plan was taken.
    Plan {
        /// The revision.
        revision_id: PlanRevisionId,
    },
    /// A message to a task was posted and handed on.
    Handed {
        /// The message.
        message_id: MessageId,
        /// Sessions that get it.
        sessions: Vec<SessionId>,
        /// Those that don't.
        not_reached: Vec<NotReached>,
        /// A session that was started, since none was left.
        started: Option<SessionId>,
    },
    /// A message is sent again.
    Delivery {
        /// The new delivery.
        delivery_id: DeliveryId,
    },
    /// A tool call was taken in, or is the one that came before under its name.
    ToolCall {
        /// What it came to; absent while that is not decided.
        answer: Option<ToolAnswer>,
    },
    /// It referred to something that has moved on; harmless.
    Stale,
}
