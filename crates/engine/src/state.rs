//! The live state: what the journal says, folded.
//!
//! Fields marked `skip` are operational: they may be lost without changing
//! what is true (a cursor that is too old only means reading some bytes again,
//! which is harmless because every item carries its frame or input number).

mod delivery;
mod mid_turn;
mod progress;
mod rosters;
mod steering;
mod working;

use std::collections::{BTreeMap, BTreeSet};

use rallypoint_model::admission::{Budget, Priority};
use rallypoint_model::agent_io::{AgentInput, PromptBlock};
use rallypoint_model::agent_offer::{AgentCapabilities, ConversationOffer, NativeAgent};
use rallypoint_model::attachment::Attachment;
use rallypoint_model::channel::{ChannelFacts, Conversation};
use rallypoint_model::command::{Acceptance, AgentLaunch};
use rallypoint_model::completion::CompletionReport;
use rallypoint_model::event::{Aggregate, PlannedAction, ResultRef};
use rallypoint_model::ids::{
    DeliveryId, EntityId, GenerationId, MessageId, PlanRevisionId, QuestionId, RoomId, RunId, SessionId,
    TaskId, WorldId,
};
use rallypoint_model::mail::Mail;
use rallypoint_model::message::RoomKind;
use rallypoint_model::progress::ProgressMode;
use rallypoint_model::question::{Answer, QuestionKind, QuestionStatus};
use rallypoint_model::retention::{Deletion, FailedDelete};
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunPurpose, RunStatus};
use rallypoint_model::session::{FrozenOrigin, GenerationEnd, GenerationStatus, SessionKind, SpoolCursor};
use rallypoint_model::steering::{ForkSource, PlanRevision};
use rallypoint_model::stop::{StopNode, StoppedNode};
use rallypoint_model::task::{Criterion, Evidence, TaskReason, TaskStatus, Verdict};
use rallypoint_model::time::{ClockAnchor, Timestamp};
use rallypoint_model::tool_call::{ToolCall, ToolsConnected};
use rallypoint_model::usage::{RunUsage, TokenCounts, UsageNoted};
use serde::{Deserialize, Serialize};

use crate::voice::Voice;
pub use delivery::Delivery;
pub use mid_turn::MidTurn;
pub use progress::Progress;
pub use rosters::Rosters;
pub use steering::Pause;
pub use working::Working;

/// Everything live.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The world, once it is opened.
    pub world: Option<World>,
    /// Rooms.
    pub rooms: BTreeMap<RoomId, Room>,
    /// Tasks.
    pub tasks: BTreeMap<TaskId, Task>,
    /// Sessions.
    pub sessions: BTreeMap<SessionId, Session>,
    /// Runs.
    pub runs: BTreeMap<RunId, Run>,
    /// Generations.
    pub generations: BTreeMap<GenerationId, Generation>,
    /// Questions.
    pub questions: BTreeMap<QuestionId, Question>,
    /// Messages for platform conversations.
    #[serde(default)]
    pub deliveries: BTreeMap<DeliveryId, Delivery>,
    /// Channels of the configuration. Operational: told by the shell at each start.
    #[serde(skip)]
    pub channels: BTreeMap<String, ChannelFacts>,
    /// Deliveries that were offered since the shell loaded this state. Operational: it tells them from those that an
    /// earlier daemon offered and of which nobody heard again.
    #[serde(skip)]
    pub offered_here: BTreeSet<DeliveryId>,
    /// Keys of requests and deliveries, with what they made. Enforced by the store too.
    pub keys: BTreeMap<String, KeyedFact>,
    /// Versions of the aggregates.
    pub versions: BTreeMap<Aggregate, u64>,
    /// What could not be removed from the data folder, by path. Operational, stored apart.
    #[serde(default)]
    pub failed_deletes: BTreeMap<String, FailedDelete>,
    /// What is under way. Operational: made anew by [`State::reindex`] when a state is loaded.
    #[serde(skip)]
    pub working: Working,
    /// Who is active, by room. Operational: made anew with the indices.
    #[serde(skip)]
    pub rosters: Rosters,
}

/// What a unique key made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum KeyedFact {
    /// A task.
    Task {
        /// Which.
        id: TaskId,
    },
    /// A message.
    Message {
        /// Which.
        id: MessageId,
    },
    /// A session.
    Session {
        /// Which.
        id: SessionId,
    },
    /// A run that tells a session something once.
    Run {
        /// Which.
        id: RunId,
    },
    /// A room.
    Room {
        /// Which.
        id: RoomId,
    },
    /// A message for a platform conversation.
    Delivery {
        /// Which.
        id: DeliveryId,
    },
}

/// The world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct World {
    /// Its id.
    pub id: WorldId,
    /// Its main room.
    pub main_room_id: RoomId,
    /// The person of this installation.
    pub user_id: EntityId,
    /// The main agent.
    pub main_agent_id: EntityId,
    /// The platform's voice.
    pub system_id: EntityId,
    /// How the machine's clock stands, as the clocks of what is under way know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockAnchor>,
}

/// A room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Room {
    /// Its id.
    pub id: RoomId,
    /// Its kind.
    pub kind: RoomKind,
    /// Its title.
    pub title: String,
    /// Rises when the room is reset.
    pub incarnation: u32,
    /// Messages in it.
    pub messages: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// What waits for a turn of its main agent, oldest first.
    pub mailbox: Vec<MailboxItem>,
    /// Its own session, once its main agent had a turn.
    pub session_id: Option<SessionId>,
    /// The platform conversation that it is bound to.
    #[serde(default)]
    pub conversation: Option<Conversation>,
    /// Messages of earlier incarnations in it.
    #[serde(default)]
    pub earlier_messages: u64,
    /// When it was last reset.
    #[serde(default)]
    pub reset_at: Option<Timestamp>,
    /// How its conversation hears of progress.
    #[serde(default)]
    pub progress: ProgressMode,
}

/// Something that waits for a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MailboxItem {
    /// The message that is to be looked at.
    pub message_id: MessageId,
    /// Its task.
    pub task_id: Option<TaskId>,
    /// What happened.
    pub cause: TurnCause,
}

/// What a turn is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TurnCause {
    /// A person asked for a task.
    TaskRequested,
    /// A run reached a boundary.
    Boundary {
        /// Which run.
        #[serde(rename = "runId")]
        run_id: RunId,
    },
    /// A message for the room's platform conversation was given up.
    DeliveryGivenUp {
        /// Which delivery.
        #[serde(rename = "deliveryId")]
        delivery_id: DeliveryId,
    },
    /// A round of checks ended.
    Verified {
        /// Which round.
        round: u32,
    },
    /// A question was closed without an answer, or the task moved for another reason.
    Moved,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// One line.
    pub title: String,
    /// The goal as written.
    pub goal: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// Why it stands there.
    pub reason: Option<TaskReason>,
    /// The room that asked.
    pub origin_room_id: RoomId,
    /// The room's incarnation that asked.
    #[serde(default = "first_incarnation")]
    pub room_incarnation: u32,
    /// The platform conversation that the room was bound to when it asked, whole.
    #[serde(default)]
    pub conversation: Option<Conversation>,
    /// The platform's id of the message that asked.
    #[serde(default)]
    pub platform_message_id: Option<String>,
    /// The room where its sub-agents talk among themselves.
    #[serde(default)]
    pub worktree_room_id: Option<RoomId>,
    /// The message that asked, once it is in the room.
    pub origin_message_id: Option<MessageId>,
    /// Work folder.
    pub cwd: String,
    /// What must hold.
    pub criteria: Vec<Criterion>,
    /// Whether an unproven result may be taken.
    pub acceptance: Acceptance,
    /// When its total time is up.
    pub deadline_at: Option<Timestamp>,
    /// Its total time.
    pub timeout_ms: i64,
    /// Who is to work on it.
    pub agents: Vec<AgentLaunch>,
    /// Its sessions, in the order they were made.
    pub sessions: Vec<SessionId>,
    /// Its runs, in the order they were made.
    pub runs: Vec<RunId>,
    /// The person.
    pub requested_by: String,
    /// Where it came in.
    pub source: String,
    /// Limit of corrective rounds.
    pub corrective_limit: u32,
    /// Corrective prompts sent.
    pub corrective_rounds: u32,
    /// Rounds of checks recorded.
    pub rounds: u32,
    /// Whether a round of checks is to be run.
    pub verification_due: bool,
    /// When the last run ended; proof must be newer.
    pub last_run_ended_at: Option<Timestamp>,
    /// The run that completed last.
    pub last_completed_run: Option<RunId>,
    /// What was observed in the last round.
    pub evidence: Vec<Evidence>,
    /// What it amounted to.
    pub verdict: Option<Verdict>,
    /// Who asked to stop it.
    pub stop_requested_by: Option<String>,
    /// Its band in the queue for a slot.
    #[serde(default)]
    pub priority: Priority,
    /// What its runs may use together.
    #[serde(default)]
    pub budget: Budget,
    /// Files that go with its goal.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// Trees of it that are being ended, oldest first.
    #[serde(default)]
    pub stops: Vec<TreeStop>,
    /// The tree that was ended last.
    #[serde(default)]
    pub last_stop: Option<TreeStop>,
    /// That it is paused.
    #[serde(default)]
    pub pause: Option<Pause>,
    /// Its plans, oldest first.
    #[serde(default)]
    pub plans: Vec<PlanRevision>,
    /// The plan that is followed; the latest, unless another one was chosen.
    #[serde(default)]
    pub plan_id: Option<PlanRevisionId>,
    /// The task that it is a fork of.
    #[serde(default)]
    pub forked_from: Option<ForkSource>,
    /// Messages from sibling to sibling since a person last spoke.
    #[serde(default)]
    pub hops: u32,
    /// Times that a person spoke to its sub-agents.
    #[serde(default)]
    pub traces: u32,
    /// What was said to whoever asked for it.
    #[serde(default)]
    pub voice: Voice,
    /// What its platform conversation heard of its progress.
    #[serde(default)]
    pub progress: Progress,
    /// Words of the last terminal or asking reply.
    pub last_reply: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When something last happened.
    pub updated_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When it was put out of sight.
    #[serde(default)]
    pub archived_at: Option<Timestamp>,
    /// When it was last brought back; the archive's clock then starts anew.
    #[serde(default)]
    pub unarchived_at: Option<Timestamp>,
    /// That it was deleted, and how.
    #[serde(default)]
    pub deleted: Option<Deletion>,
}

/// What everything belongs to that was stored before rooms could be reset.
fn first_incarnation() -> u32 {
    1
}

/// A tree of sessions that is, or was, to be ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeStop {
    /// The session at its root; the whole task when absent.
    pub root_session_id: Option<SessionId>,
    /// Who asked.
    pub by: String,
    /// When.
    pub asked_at: Timestamp,
    /// What it covers, parents before their children.
    pub nodes: Vec<StopNode>,
    /// When nothing of it worked any more.
    pub ended_at: Option<Timestamp>,
    /// How each of them ended; empty until then.
    pub ended: Vec<StoppedNode>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Its key.
    pub key: String,
    /// Whose it is.
    pub kind: SessionKind,
    /// Its task.
    pub task_id: Option<TaskId>,
    /// Its room, for a room's own session.
    pub room_id: Option<RoomId>,
    /// Its identity.
    pub entity_id: EntityId,
    /// The session that it works for; the main agent when absent.
    #[serde(default)]
    pub parent_session_id: Option<SessionId>,
    /// Place in the tree: 1 for a sub-agent of the main agent, 0 for a room's own session.
    #[serde(default)]
    pub depth: u32,
    /// How to start its agent.
    pub launch: Option<AgentLaunch>,
    /// Where its results go.
    pub origin: Option<FrozenOrigin>,
    /// Its generation that is not ended.
    pub generation_id: Option<GenerationId>,
    /// What was said to it and is not taken, oldest first.
    #[serde(default)]
    pub inbox: Vec<Mail>,
    /// What its agent was given in its turn and has not answered.
    #[serde(default)]
    pub mid_turn: Option<MidTurn>,
    /// The run in whose turn its agent takes no more.
    #[serde(default)]
    pub not_in_turn: Option<RunId>,
    /// Its run without an outcome.
    pub open_run: Option<RunId>,
    /// Runs that wait for it, oldest first.
    pub queue: Vec<RunId>,
    /// Its last run with an outcome.
    pub last_run: Option<RunId>,
    /// Boundary events that reached its room.
    pub round_trips: u32,
    /// Boundary events that were told in no room.
    #[serde(default)]
    pub kept_events: u32,
    /// Whether it is over its cap.
    pub capped: bool,
    /// Whether it was stopped for good.
    pub stopped: bool,
    /// Agent's id of its conversation, as long as it may be opened again.
    pub agent_session_id: Option<String>,
    /// Whether the agent said that it can open conversations again.
    pub can_load: bool,
    /// Whether it said that it can do so without their history.
    #[serde(default)]
    pub can_resume: bool,
    /// What the agent offers to set in its conversation, once it said so.
    #[serde(default)]
    pub offer: Option<ConversationOffer>,
    /// The process that said so last.
    #[serde(default)]
    pub offered_by: Option<GenerationId>,
    /// Conversations that the agent opened for helpers of its own, in the order they were announced.
    #[serde(default)]
    pub native_agents: Vec<NativeAgent>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was put out of sight, with its task.
    #[serde(default)]
    pub archived_at: Option<Timestamp>,
}

/// How far a prompt has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptProgress {
    /// Not given to any process.
    NotSent,
    /// In the journal, perhaps in the spool.
    Journalled,
    /// Whole in the spool.
    Accepted,
    /// The agent has put out a frame since.
    Seen,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Its session.
    pub session_id: SessionId,
    /// Its task.
    pub task_id: Option<TaskId>,
    /// The run before it.
    pub predecessor: Option<RunId>,
    /// Why it exists.
    pub purpose: RunPurpose,
    /// What it says.
    pub blocks: Vec<PromptBlock>,
    /// The message that set it off, for a main agent's turn.
    pub trigger_message_id: Option<MessageId>,
    /// Where it stands.
    pub status: RunStatus,
    /// How far its prompt has got.
    pub prompt: PromptProgress,
    /// The generation that has its prompt.
    pub generation_id: Option<GenerationId>,
    /// Number of its prompt there.
    pub input_seq: Option<u64>,
    /// Starts of a process that were tried for it.
    pub attempts: u32,
    /// Who wants it cancelled, and the end that it then gets.
    pub cancel: Option<CancelAsked>,
    /// Since when it is suspected of being stalled.
    pub detecting_since: Option<Timestamp>,
    /// The agent's answer, while late frames are taken in.
    pub answer: Option<AgentAnswer>,
    /// Tool calls at work: id → title.
    pub open_tools: BTreeMap<String, String>,
    /// Tool calls that it made.
    #[serde(default)]
    pub tools: u32,
    /// Last frame that counts, once it has ended.
    pub last_frame: u64,
    /// The plan, for a main agent's turn.
    pub plan: Option<Vec<PlannedAction>>,
    /// Actions of the plan that are done.
    pub actions_done: u32,
    /// The task that a main agent's turn was about.
    #[serde(default)]
    pub about_task: Option<TaskId>,
    /// Its outcome.
    pub outcome: Option<RunOutcome>,
    /// Why.
    pub reason: Option<OutcomeReason>,
    /// Its full output.
    pub result: Option<ResultRef>,
    /// Whether the full output was removed since.
    #[serde(default)]
    pub result_removed: bool,
    /// What the worker reported with a tool call, the last time that it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<CompletionReport>,
    /// What the worker claims.
    pub claim: Option<CompletionReport>,
    /// Its last words without the report.
    pub summary: String,
    /// Tokens as reported.
    pub usage: Option<TokenCounts>,
    /// What it said of its use in mid-turn.
    #[serde(default)]
    pub noted: UsageNoted,
    /// What it used, once it has ended.
    #[serde(default)]
    pub used: Option<RunUsage>,
    /// When it was accepted.
    pub queued_at: Timestamp,
    /// When its process was being made ready.
    pub admitted_at: Option<Timestamp>,
    /// When its prompt was given.
    pub started_at: Option<Timestamp>,
    /// Since when it waits for its children.
    #[serde(default)]
    pub waits_since: Option<Timestamp>,
    /// Time that it waited for them before, in milliseconds; not active time.
    #[serde(default)]
    pub waited_ms: i64,
    /// When it last went on after that.
    #[serde(default)]
    pub resumed_at: Option<Timestamp>,
    /// Since when it works without waiting for somebody.
    pub working_since: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its words so far. Rebuilt from the journal for open runs.
    #[serde(skip)]
    pub said: Said,
}

/// A wish to cancel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelAsked {
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// The reason that the run then ends with.
    pub reason: OutcomeReason,
}

/// An agent's answer to a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentAnswer {
    /// Stop reason as it came.
    pub stop_reason: String,
    /// Its frame.
    pub frame: u64,
    /// When it was understood.
    pub at: Timestamp,
}

/// Words of a run: all of them, and where the last stretch begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Everything said to the reader.
    pub text: String,
    /// Where the words after the last tool call begin.
    pub last_stretch: usize,
    /// Last frame that was output.
    pub last_frame: u64,
}

impl Said {
    /// The words after the last tool call, or all of them when there are none after it.
    pub fn last_words(&self) -> &str {
        let tail = self.text.get(self.last_stretch..).unwrap_or_default();
        if tail.trim().is_empty() { &self.text } else { tail }
    }
}

/// One thing said to a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputEntry {
    /// Its number.
    pub seq: u64,
    /// What; gone once the spool holds it.
    pub input: Option<AgentInput>,
    /// What kind of request it is, for its answer.
    pub kind: InputKind,
    /// The run that it is for.
    pub run_id: Option<RunId>,
    /// Whether the spool holds it whole.
    pub accepted: bool,
    /// Whether an option was answered.
    #[serde(default)]
    pub answered: bool,
    /// What it sets, as the key of [`crate::settings::Setting`].
    #[serde(default)]
    pub setting_id: Option<String>,
}

/// Kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// Hello.
    Initialize,
    /// Log in.
    Authenticate,
    /// Open a conversation.
    NewSession,
    /// Open an earlier conversation.
    LoadSession,
    /// A prompt.
    Prompt,
    /// More words in the turn of a prompt.
    Steer,
    /// Set an option; a prompt waits for the answer.
    Option,
    /// End the conversation; the process is ended either way.
    Close,
    /// Anything that expects no answer, or whose answer changes nothing.
    Other,
}

/// A generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Generation {
    /// Its id.
    pub id: GenerationId,
    /// Its session.
    pub session_id: SessionId,
    /// The run that it was started for.
    pub run_id: RunId,
    /// How it stands.
    pub status: GenerationStatus,
    /// When it was decided to start it.
    pub started_at: Timestamp,
    /// Agent's id of the conversation.
    pub agent_session_id: Option<String>,
    /// What was said to it.
    pub inputs: Vec<InputEntry>,
    /// How it ended.
    pub end: Option<GenerationEnd>,
    /// Whether anything of it is left; `None` while it is not ended.
    pub cleaned: Option<Cleaned>,
    /// Agent requests that were already taken in, by their raw id.
    pub seen_requests: BTreeSet<String>,
    /// What it said about itself, without the raw answer.
    #[serde(default)]
    pub capabilities: AgentCapabilities,
    /// What was set in its conversation, each once.
    #[serde(default)]
    pub set: Vec<SetValue>,
    /// Its tool server, since it said hello.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsConnected>,
    /// Calls of our tools, in the order they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Lines that were no frames.
    pub junk_lines: u64,
    /// Tail of its error output. Operational.
    #[serde(skip)]
    pub stderr_tail: String,
    /// First byte of its spool that is not understood. Operational, stored apart.
    #[serde(skip)]
    pub cursor: SpoolCursor,
    /// When its spool last brought something. Operational.
    #[serde(skip)]
    pub last_report_at: Timestamp,
}

/// Something that was set in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetValue {
    /// Key of the [`crate::settings::Setting`].
    pub setting_id: String,
    /// Its value.
    pub value: String,
}

/// What was left of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cleaned {
    /// Processes that had to be swept.
    pub swept: u32,
    /// Processes that could not be ended.
    pub left: u32,
}

impl Generation {
    /// Number of the next input.
    pub fn next_seq(&self) -> u64 {
        self.inputs.last().map_or(1, |entry| entry.seq.saturating_add(1))
    }

    /// The input of this number.
    pub fn input(&self, seq: u64) -> Option<&InputEntry> {
        self.inputs.iter().find(|entry| entry.seq == seq)
    }

    /// The tool call of this name.
    pub fn tool_call(&self, process: &str, request_id: &str) -> Option<&ToolCall> {
        self.tool_calls.iter().find(|call| call.process == process && call.request_id == request_id)
    }

    /// Whether it has not ended.
    pub fn is_live(&self) -> bool {
        self.status != GenerationStatus::Ended
    }
}

/// A question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Its id.
    pub id: QuestionId,
    /// What is asked.
    pub question: QuestionKind,
    /// Where it stands.
    pub status: QuestionStatus,
    /// The task that waits.
    pub task_id: TaskId,
    /// The run that waits.
    pub run_id: Option<RunId>,
    /// The session that waits.
    pub session_id: Option<SessionId>,
    /// The agent's JSON-RPC id, for an approval.
    pub request_id: Option<String>,
    /// The process whose id that is: another one counts from the same number again.
    #[serde(default)]
    pub generation_id: Option<GenerationId>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it expires.
    pub deadline_at: Timestamp,
    /// The answer.
    pub answer: Option<Answer>,
    /// Who or what closed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_by: Option<String>,
    /// When it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
}

impl Run {
    /// Whether it has no outcome yet.
    pub fn is_open(&self) -> bool {
        self.status != RunStatus::Terminal
    }
}

impl State {
    /// Runs of sub-agents that hold a slot of their lane.
    pub fn running_slots(&self) -> usize {
        self.busy_sessions()
            .filter(|session| session.kind == SessionKind::SubAgent)
            .filter_map(|session| session.open_run.and_then(|run| self.runs.get(&run)))
            .filter(|run| {
                !matches!(run.status, RunStatus::Queued | RunStatus::WaitingChildren | RunStatus::Terminal)
            })
            .count()
    }
}
