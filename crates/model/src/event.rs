//! Events: facts of the journal.

mod kind;
mod planned;
mod scope;

pub use planned::{PlannedAction, ReplyRole};

use serde::{Deserialize, Serialize};

use crate::admission::{Budget, Priority};
use crate::agent_io::{AgentInput, AgentOutput, PromptBlock};
use crate::agent_offer::{AgentCapabilities, ConversationOffer, Wanted};
use crate::attachment::Attachment;
use crate::channel::Conversation;
use crate::command::{Acceptance, AgentLaunch};
use crate::completion::CompletionReport;
use crate::delivery::{Hop, MovedDelivery, QueuedDelivery};
use crate::ids::{
    DeliveryId, EntityId, GenerationId, MessageId, QuestionId, RoomId, RunId, SessionId, TaskId, WorldId,
};
use crate::mail::Mail;
use crate::message::{Message, RoomKind};
use crate::mid_turn::MidTurnMoved;
use crate::permission::PermissionDecision;
use crate::progress::{OfferedProgress, ProgressModeSet, SettledProgress};
use crate::question::{Answer, QuestionKind, QuestionStatus};
use crate::retention::DeleteMode;
use crate::routing::NotRouted;
use crate::run::{OutcomeReason, RunOutcome, RunPurpose, RunStatus, RunTrigger};
use crate::session::{FrozenOrigin, GenerationEnd, GenerationStatus, SessionKind};
use crate::steering::{
    ForkSource, TaskPatched, TaskPaused, TaskPlanRevised, TaskReopened, TaskRestarted, TaskResumed,
};
use crate::stop::{StopNode, StoppedNode};
use crate::task::{Criterion, Evidence, TaskReason, TaskStatus, TaskTrigger, Verdict};
use crate::time::{ClockAnchor, Timestamp};
use crate::tool_call::{ToolAnswer, ToolCall};
use crate::usage::{RunUsage, TokenCounts};

pub use scope::{Aggregate, Scope};

/// Version of the payload schema written by this build.
pub const EVENT_SCHEMA_VERSION: u32 = 1;

/// One row of the journal. The one schema of `--json`, event stream and transcripts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventRecord {
    /// Global order, from 1; 0 until it is stored.
    pub seq: i64,
    /// When it was decided.
    pub at: Timestamp,
    /// What it belongs to.
    #[serde(flatten)]
    pub aggregate: Aggregate,
    /// Order within the aggregate, from 1.
    pub version: u64,
    /// Payload schema.
    pub schema: u32,
    /// What set it off: an id of a command or message, when there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<String>,
    /// What it concerns.
    #[serde(flatten)]
    pub scope: Scope,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// A result as it is referred to: the full text stands in the store under its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultRef {
    /// SHA-256 of the stored bytes, hex.
    pub digest: String,
    /// Their number.
    pub bytes: u64,
}

/// A fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "data", rename_all_fields = "camelCase")]
pub enum Event {
    /// The world was made.
    #[serde(rename = "world.opened")]
    WorldOpened {
        /// Its id.
        world_id: WorldId,
        /// Its main room.
        main_room_id: RoomId,
        /// The person.
        user_id: EntityId,
        /// The main agent.
        main_agent_id: EntityId,
        /// The platform's voice.
        system_id: EntityId,
        /// How the machine's clock stood.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clock: Option<ClockAnchor>,
    },
    /// The clocks of what is under way were moved, because the machine's clock was set, or because the machine or the
    /// daemon did not run for a while.
    #[serde(rename = "clock.shifted")]
    ClockShifted {
        /// By how many milliseconds; negative when the machine's clock was set back.
        by_ms: i64,
        /// How the machine's clock stands from now on, where that has changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        anchor: Option<ClockAnchor>,
    },
    /// A room was made.
    #[serde(rename = "room.created")]
    RoomCreated {
        /// Its id.
        room_id: RoomId,
        /// Its kind.
        room_kind: RoomKind,
        /// Its title.
        title: String,
        /// The platform conversation that it is bound to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation: Option<Conversation>,
        /// Key of the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idempotency_key: Option<String>,
    },
    /// A room's conversation begins anew; what was said before is kept.
    #[serde(rename = "room.reset")]
    RoomReset {
        /// Which.
        room_id: RoomId,
        /// The incarnation that begins.
        incarnation: u32,
        /// Who asked.
        by: String,
        /// Turns that still waited and are dropped with the reason `requester_reset`.
        dropped_turns: u32,
    },
    /// A message is to be brought to a platform conversation.
    #[serde(rename = "delivery.queued")]
    DeliveryQueued(QueuedDelivery),
    /// A delivery moved, through its table.
    #[serde(rename = "delivery.moved")]
    DeliveryMoved(MovedDelivery),
    /// A delivery has longer, because no daemon was up for a while.
    #[serde(rename = "delivery.extended")]
    DeliveryExtended {
        /// Which.
        delivery_id: DeliveryId,
        /// When it is given up now.
        deadline_at: Timestamp,
    },
    /// A room, or one task, hears of progress in another way.
    #[serde(rename = "progress.mode_set")]
    ProgressModeSet(ProgressModeSet),
    /// A progress post is given to its channel.
    #[serde(rename = "progress.offered")]
    ProgressOffered(OfferedProgress),
    /// What became of it.
    #[serde(rename = "progress.settled")]
    ProgressSettled(SettledProgress),
    /// Words are given to an agent in its turn, or what became of them.
    #[serde(rename = "session.mid_turn")]
    MidTurnMoved(MidTurnMoved),
    /// The end of a run goes another way, because the conversation that asked for it was reset.
    #[serde(rename = "result.rerouted")]
    ResultRerouted {
        /// The run.
        run_id: RunId,
        /// Who was tried, in order, each with its reason.
        hops: Vec<Hop>,
    },
    /// A message entered a room. The row is the delivery.
    #[serde(rename = "message.posted")]
    MessagePosted {
        /// The message.
        message: Message,
        /// Unique key of the delivery, for what must arrive once.
        delivery_key: Option<String>,
    },
    /// A task was made.
    #[serde(rename = "task.created")]
    TaskCreated {
        /// Its id.
        task_id: TaskId,
        /// Key of the request.
        idempotency_key: Option<String>,
        /// One line.
        title: String,
        /// The goal as written.
        goal: String,
        /// The room that asked.
        origin_room_id: RoomId,
        /// The room where its sub-agents talk among themselves.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worktree_room_id: Option<RoomId>,
        /// Absolute work folder.
        cwd: String,
        /// What must hold.
        criteria: Vec<Criterion>,
        /// Whether an unproven result may be taken.
        acceptance: Acceptance,
        /// When its total time is up.
        deadline_at: Option<Timestamp>,
        /// Its total time.
        timeout_ms: i64,
        /// Who is to work on it.
        agents: Vec<AgentLaunch>,
        /// The person.
        requested_by: String,
        /// Where it came in.
        source: String,
        /// Limit of corrective rounds, frozen at its start.
        corrective_rounds: u32,
        /// Its band in the queue for a slot.
        #[serde(default)]
        priority: Priority,
        /// What its runs may use together.
        #[serde(default)]
        budget: Budget,
        /// The platform's id of the message that asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        platform_message_id: Option<String>,
        /// Files that go with its goal.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// The task that it is a fork of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<ForkSource>,
    },
    /// A task moved, through its table.
    #[serde(rename = "task.status_changed")]
    TaskStatusChanged {
        /// Which.
        task_id: TaskId,
        /// From.
        from: TaskStatus,
        /// To.
        to: TaskStatus,
        /// What moved it.
        trigger: TaskTrigger,
        /// Why it stands there.
        reason: Option<TaskReason>,
    },
    /// The checks of a round were recorded.
    #[serde(rename = "task.verified")]
    TaskVerified {
        /// Which.
        task_id: TaskId,
        /// Round, from 1.
        round: u32,
        /// What was seen.
        evidence: Vec<Evidence>,
        /// What it amounts to.
        verdict: Verdict,
        /// Texts of the criteria that are not met.
        unmet: Vec<String>,
    },
    /// Somebody asked to stop the task.
    #[serde(rename = "task.stop_requested")]
    TaskStopRequested {
        /// Which.
        task_id: TaskId,
        /// Who.
        by: String,
    },
    /// A tree of sessions is being ended.
    #[serde(rename = "tree.stop_requested")]
    TreeStopRequested {
        /// The task.
        task_id: TaskId,
        /// The session at its root; the whole task when absent.
        root_session_id: Option<SessionId>,
        /// Who asks.
        by: String,
        /// What it covers, parents before their children.
        nodes: Vec<StopNode>,
    },
    /// Nothing of a tree that was to be ended works any more.
    #[serde(rename = "tree.stopped")]
    TreeStopped {
        /// The task.
        task_id: TaskId,
        /// The session at its root; the whole task when absent.
        root_session_id: Option<SessionId>,
        /// Who asked.
        by: String,
        /// How each of them ended, parents before their children.
        nodes: Vec<StoppedNode>,
        /// How many ended in which way.
        counts: std::collections::BTreeMap<String, u32>,
    },
    /// A person took or refused the result by name and reason.
    #[serde(rename = "task.overridden")]
    TaskOverridden {
        /// Which.
        task_id: TaskId,
        /// Taken, or refused.
        passed: bool,
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// A task was paused: its turns are cancelled, what waits is held, its sessions are kept.
    #[serde(rename = "task.paused")]
    TaskPaused(TaskPaused),
    /// A paused task goes on.
    #[serde(rename = "task.resumed")]
    TaskResumed(TaskResumed),
    /// A task that had ended was opened again.
    #[serde(rename = "task.reopened")]
    TaskReopened(TaskReopened),
    /// A person changed a task.
    #[serde(rename = "task.patched")]
    TaskPatched(TaskPatched),
    /// A task has a newer plan.
    #[serde(rename = "task.plan_revised")]
    TaskPlanRevised(TaskPlanRevised),
    /// A task was begun again.
    #[serde(rename = "task.restarted")]
    TaskRestarted(TaskRestarted),
    /// A task was put out of sight, its sessions with it.
    #[serde(rename = "task.archived")]
    TaskArchived {
        /// Which.
        task_id: TaskId,
        /// Who, or the limit that did it.
        by: String,
    },
    /// An archived task was brought back.
    #[serde(rename = "task.unarchived")]
    TaskUnarchived {
        /// Which.
        task_id: TaskId,
        /// Who.
        by: String,
    },
    /// A task was deleted.
    #[serde(rename = "task.deleted")]
    TaskDeleted {
        /// Which.
        task_id: TaskId,
        /// How.
        mode: DeleteMode,
        /// Who.
        by: String,
    },
    /// Full outputs of an archived task were removed because their time was over.
    #[serde(rename = "task.results_removed")]
    TaskResultsRemoved {
        /// Which.
        task_id: TaskId,
        /// Digests of the outputs.
        digests: Vec<String>,
    },
    /// Something illegal was reported by an agent; kept, not acted on.
    #[serde(rename = "trigger.refused")]
    TriggerRefused {
        /// What machine.
        machine: String,
        /// Its state.
        state: String,
        /// The trigger.
        trigger: String,
    },
    /// A question was opened.
    #[serde(rename = "question.opened")]
    QuestionOpened {
        /// Its id.
        question_id: QuestionId,
        /// What is asked.
        question: QuestionKind,
        /// Task that waits.
        task_id: TaskId,
        /// Run that waits, for an approval.
        run_id: Option<RunId>,
        /// Session that waits.
        session_id: Option<SessionId>,
        /// The agent's JSON-RPC id, for an approval.
        request_id: Option<String>,
        /// When it expires.
        deadline_at: Timestamp,
    },
    /// The policy decided about an agent's request for permission.
    #[serde(rename = "permission.decided")]
    PermissionDecided {
        /// Process that asked.
        generation_id: GenerationId,
        /// Run that it asked for.
        run_id: RunId,
        /// The agent's JSON-RPC id, raw JSON text.
        request_id: String,
        /// Tool kind as it came; `other` when none came.
        tool_kind: String,
        /// What it wants to do.
        title: String,
        /// What is decided.
        decision: PermissionDecision,
        /// Layer that decided.
        layer: String,
        /// Rule or preset that decided.
        rule: String,
        /// Kind of the option that the agent is answered with. Absent when it is asked, and
        /// when it offers none of the kind and is answered `cancelled`.
        option_kind: Option<String>,
    },
    /// A question waits longer, because nobody was there to take its answer for a while.
    #[serde(rename = "question.extended")]
    QuestionExtended {
        /// Which.
        question_id: QuestionId,
        /// When it expires now.
        deadline_at: Timestamp,
    },
    /// A question was closed, once.
    #[serde(rename = "question.closed")]
    QuestionClosed {
        /// Which.
        question_id: QuestionId,
        /// How.
        status: QuestionStatus,
        /// The answer.
        answer: Option<Answer>,
        /// By whom.
        by: String,
    },
    /// A session was made, its origin frozen.
    #[serde(rename = "session.created")]
    SessionCreated {
        /// Its id.
        session_id: SessionId,
        /// Its key.
        session_key: String,
        /// Whose it is.
        session_kind: SessionKind,
        /// Its task.
        task_id: Option<TaskId>,
        /// Its room, for a room's own session.
        room_id: Option<RoomId>,
        /// Its own identity.
        entity_id: EntityId,
        /// How to start its agent.
        launch: Option<AgentLaunch>,
        /// Where its results go.
        origin: Option<FrozenOrigin>,
        /// The session that it works for; the main agent when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_session_id: Option<SessionId>,
        /// Place in the tree: 1 for a sub-agent of the main agent, 0 for a room's own session.
        #[serde(default)]
        depth: u32,
        /// Key of the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idempotency_key: Option<String>,
    },
    /// An agent said what can be set in the conversation of a session, and how that stands.
    #[serde(rename = "session.offered")]
    SessionOffered {
        /// Which.
        session_id: SessionId,
        /// The process that said so.
        generation_id: GenerationId,
        /// All of it, as it stands now.
        offer: ConversationOffer,
    },
    /// Something else is wanted of a session from its next prompt on.
    #[serde(rename = "session.configured")]
    SessionConfigured {
        /// Which.
        session_id: SessionId,
        /// Mode, model, thought level, as wanted now.
        wanted: Wanted,
        /// Options by id, as wanted now.
        config: Vec<(String, String)>,
        /// Who asked.
        by: String,
    },
    /// A boundary event of a session is told in no room, now or later.
    #[serde(rename = "session.event_kept")]
    SessionEventKept {
        /// Which session.
        session_id: SessionId,
        /// Its run.
        run_id: RunId,
        /// Name of the event.
        event: String,
        /// What it would have said, shortened.
        text: String,
        /// Why.
        why: NotRouted,
    },
    /// Something is said to a session; it waits until the session takes it.
    #[serde(rename = "session.mail_received")]
    SessionMailReceived {
        /// Which session.
        session_id: SessionId,
        /// What.
        mail: Mail,
    },
    /// A session's mail was taken, once: into a run, or dropped for a reason.
    #[serde(rename = "session.mail_taken")]
    SessionMailTaken {
        /// Which session.
        session_id: SessionId,
        /// Keys of the mail.
        keys: Vec<String>,
        /// The run that brings it; none when it is dropped.
        run_id: Option<RunId>,
        /// Why it is dropped; empty when it is brought.
        why: String,
    },
    /// A run was accepted.
    #[serde(rename = "run.queued")]
    RunQueued {
        /// Its id.
        run_id: RunId,
        /// Its session.
        session_id: SessionId,
        /// The run before it.
        predecessor: Option<RunId>,
        /// Why it exists.
        purpose: RunPurpose,
        /// What it says, made by the prompt builders; empty for a main agent's turn.
        blocks: Vec<PromptBlock>,
        /// The message that set it off, for a main agent's turn.
        trigger_message_id: Option<MessageId>,
        /// Unique key, for what must be said to the session once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivery_key: Option<String>,
    },
    /// A run moved, through its table.
    #[serde(rename = "run.moved")]
    RunMoved {
        /// Which.
        run_id: RunId,
        /// From.
        from: RunStatus,
        /// To.
        to: RunStatus,
        /// What moved it.
        trigger: RunTrigger,
    },
    /// The agent answered; late frames are still taken in.
    #[serde(rename = "run.answered")]
    RunAnswered {
        /// Which.
        run_id: RunId,
        /// Stop reason as it came.
        stop_reason: String,
        /// Frame of the answer.
        frame: u64,
        /// Tokens, when reported.
        usage: Option<TokenCounts>,
    },
    /// What its agent has said so far of what an open run uses. The newest counts; it is no part of the one before.
    #[serde(rename = "run.counted")]
    RunCounted {
        /// Which.
        run_id: RunId,
        /// Tokens, as the agent counts.
        tokens: TokenCounts,
        /// Whether the agent said it of the whole turn, with the answer that ended it.
        whole: bool,
    },
    /// Somebody wants a run cancelled.
    #[serde(rename = "run.cancel_requested")]
    RunCancelRequested {
        /// Which.
        run_id: RunId,
        /// Who.
        by: String,
        /// The end it gets when the agent goes along or has to be forced.
        reason: OutcomeReason,
    },
    /// A run has been silent for longer than is usual. A suspicion, never a verdict.
    #[serde(rename = "run.suspected")]
    RunSuspected {
        /// Which.
        run_id: RunId,
        /// Since when nothing came.
        silent_since: Timestamp,
    },
    /// A suspected run gave a sign of life.
    #[serde(rename = "run.reassured")]
    RunReassured {
        /// Which.
        run_id: RunId,
    },
    /// A run has its one outcome.
    #[serde(rename = "run.ended")]
    RunEnded {
        /// Which.
        run_id: RunId,
        /// The outcome.
        outcome: RunOutcome,
        /// Why.
        reason: OutcomeReason,
        /// The full output.
        result: Option<ResultRef>,
        /// What the worker claims.
        claim: Option<CompletionReport>,
        /// Its last words without the report, at most 2,000 characters.
        summary: String,
        /// Last frame that counts.
        last_frame: u64,
    },
    /// What a run used is known as far as it ever will be.
    #[serde(rename = "run.used")]
    RunUsed {
        /// Which.
        run_id: RunId,
        /// What.
        usage: RunUsage,
    },
    /// An agent process is to be started for a session.
    #[serde(rename = "generation.started")]
    GenerationStarted {
        /// Its id.
        generation_id: GenerationId,
        /// Its session.
        session_id: SessionId,
        /// The run that it was started for.
        run_id: RunId,
    },
    /// A generation moved.
    #[serde(rename = "generation.moved")]
    GenerationMoved {
        /// Which.
        generation_id: GenerationId,
        /// To.
        status: GenerationStatus,
    },
    /// The agent said hello.
    #[serde(rename = "generation.initialized")]
    GenerationInitialized {
        /// Which.
        generation_id: GenerationId,
        /// Name and version, when given.
        agent: String,
        /// Whether it can open earlier conversations again.
        load_session: bool,
        /// What it said about itself.
        #[serde(default)]
        capabilities: AgentCapabilities,
    },
    /// An earlier conversation could not be opened again.
    #[serde(rename = "generation.load_failed")]
    GenerationLoadFailed {
        /// Which.
        generation_id: GenerationId,
        /// What the agent said.
        message: String,
    },
    /// The conversation with the agent is open.
    #[serde(rename = "generation.opened")]
    GenerationOpened {
        /// Which.
        generation_id: GenerationId,
        /// Agent's id of it.
        agent_session_id: String,
    },
    /// Something is to be said to the agent process. It is accepted when its spool holds it.
    #[serde(rename = "generation.input")]
    GenerationInput {
        /// Which.
        generation_id: GenerationId,
        /// Number, from 1; the JSON-RPC id of a request.
        seq: u64,
        /// What.
        input: AgentInput,
        /// The run that it is for.
        run_id: Option<RunId>,
    },
    /// The spool holds an input whole.
    #[serde(rename = "generation.input_accepted")]
    GenerationInputAccepted {
        /// Which.
        generation_id: GenerationId,
        /// Number.
        seq: u64,
    },
    /// The agent answered a request that set an option.
    #[serde(rename = "generation.option_set")]
    GenerationOptionSet {
        /// Which.
        generation_id: GenerationId,
        /// Number of the input.
        seq: u64,
        /// Empty when it went well, else what the agent said.
        problem: Option<String>,
    },
    /// The tool server of an agent process said hello with the process's token.
    #[serde(rename = "generation.tools_connected")]
    GenerationToolsConnected {
        /// Which.
        generation_id: GenerationId,
        /// Names the hello.
        process: String,
        /// Who speaks to it, as it says.
        client: String,
    },
    /// An agent called one of our tools.
    #[serde(rename = "session.tool_called")]
    SessionToolCalled {
        /// Its session.
        session_id: SessionId,
        /// Its process.
        generation_id: GenerationId,
        /// How the call came: `mcp`.
        source: String,
        /// The call, without its answer.
        call: ToolCall,
    },
    /// What a tool call came to is decided.
    #[serde(rename = "session.tool_answered")]
    SessionToolAnswered {
        /// Its session.
        session_id: SessionId,
        /// Its process.
        generation_id: GenerationId,
        /// Names the hello of the tool server.
        process: String,
        /// JSON-RPC id of the call, raw JSON text.
        request_id: String,
        /// What it came to.
        answer: ToolAnswer,
    },
    /// Something else worth keeping about a generation.
    #[serde(rename = "generation.noted")]
    GenerationNoted {
        /// Which.
        generation_id: GenerationId,
        /// What, as a stable word: `junk`, `oversized`, `stderr`, `refused_method`, `request_failed`.
        note: String,
        /// How many, where it counts.
        count: u64,
        /// Details for people.
        detail: String,
    },
    /// The agent process is gone.
    #[serde(rename = "generation.ended")]
    GenerationEnded {
        /// Which.
        generation_id: GenerationId,
        /// How.
        end: GenerationEnd,
    },
    /// Nothing of it is left.
    #[serde(rename = "generation.cleaned")]
    GenerationCleaned {
        /// Which.
        generation_id: GenerationId,
        /// Processes that had to be swept.
        swept: u32,
        /// Processes that could not be ended.
        left: u32,
    },
    /// An agent put something out.
    #[serde(rename = "agent.output")]
    AgentOutput {
        /// Its generation.
        generation_id: GenerationId,
        /// First frame covered.
        first_frame: u64,
        /// Last frame covered.
        last_frame: u64,
        /// Whether it came after the run's end was decided, or before its prompt.
        late: bool,
        /// Whether it is history that an agent repeated while it opened a conversation again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replay: bool,
        /// The agent's id of the conversation, where it is another one than the session's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        foreign_session: Option<String>,
        /// What.
        output: AgentOutput,
    },
    /// A main agent's plan was stored.
    #[serde(rename = "turn.planned")]
    TurnPlanned {
        /// The turn's run.
        run_id: RunId,
        /// The plan, in order.
        actions: Vec<PlannedAction>,
    },
    /// One action of a plan was carried out.
    #[serde(rename = "turn.action_done")]
    TurnActionDone {
        /// The turn's run.
        run_id: RunId,
        /// Place in the plan.
        index: u32,
        /// Empty when it went well, else why not.
        problem: Option<String>,
    },
}
