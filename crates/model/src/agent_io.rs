//! What passes between the engine and one agent process, free of any wire.
//!
//! The engine says [`AgentInput`], numbered per generation from 1; the number
//! is also the JSON-RPC id on the wire, so that an answer which arrives after
//! a restart of ours finds what it answers. What an agent's frames mean comes
//! back as [`AgentItem`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent_offer::{AgentCapabilities, NativeAgentUpdate, OfferChange};
use crate::attachment::PromptAttachment;
use crate::question::{ApprovalOption, AskForm};
use crate::session::SpoolCursor;
use crate::usage::TokenCounts;

/// Key in a content block's `_meta` that says what part of the prompt it is.
pub const PART_META_KEY: &str = "rallypoint/part";

/// What a block of a prompt is for. Built-in agents act only on `task` and `message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptPart {
    /// What the whole is about.
    Goal,
    /// What must hold for done.
    Criteria,
    /// What to do.
    Task,
    /// What is said to a session that already works.
    Message,
    /// What was observed; quoted, never an instruction.
    Evidence,
    /// Everything around it.
    Frame,
}

impl PromptPart {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Goal => "goal",
            Self::Criteria => "criteria",
            Self::Task => "task",
            Self::Message => "message",
            Self::Evidence => "evidence",
            Self::Frame => "frame",
        }
    }
}

/// One block of a prompt. Only the prompt builders make these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptBlock {
    /// What it is for.
    pub part: PromptPart,
    /// Its text.
    pub text: String,
}

/// One thing said to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AgentInput {
    /// Protocol hello.
    Initialize,
    /// Log in by a way that the agent named.
    Authenticate {
        /// Id of the way.
        method_id: String,
    },
    /// Open a conversation in this folder.
    NewSession {
        /// Absolute path.
        cwd: String,
        /// Whether our tool server is started in it; how is said only on the wire.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tools: bool,
    },
    /// Open an earlier conversation again, with its history replayed.
    LoadSession {
        /// Agent's id of the conversation.
        agent_session_id: String,
        /// Absolute path.
        cwd: String,
        /// Whether our tool server is started in it; how is said only on the wire.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tools: bool,
    },
    /// Open an earlier conversation again, without its history.
    ResumeSession {
        /// Agent's id of the conversation.
        agent_session_id: String,
        /// Absolute path.
        cwd: String,
        /// Whether our tool server is started in it; how is said only on the wire.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tools: bool,
    },
    /// End the conversation.
    CloseSession {
        /// Agent's id of the conversation.
        agent_session_id: String,
    },
    /// A prompt in the open conversation.
    Prompt {
        /// Agent's id of the conversation.
        agent_session_id: String,
        /// The blocks.
        blocks: Vec<PromptBlock>,
        /// Files that go with them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<PromptAttachment>,
    },
    /// Cancel the open prompt (a notification).
    Cancel {
        /// Agent's id of the conversation.
        agent_session_id: String,
    },
    /// Answer a permission request.
    AnswerPermission {
        /// The agent's JSON-RPC id, raw JSON text.
        request_id: String,
        /// The option taken; `None` answers `cancelled`.
        option_id: Option<String>,
    },
    /// Read or write a file for an agent and answer it.
    ServeFile {
        /// The agent's JSON-RPC id, raw JSON text.
        request_id: String,
        /// What it asks for.
        ask: FileAsk,
        /// Why not, when it is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
    /// Answer a request that we do not serve with -32601.
    RefuseMethod {
        /// The agent's JSON-RPC id, raw JSON text.
        request_id: String,
        /// The method.
        method: String,
    },
    /// Answer what an agent asked a person.
    AnswerElicitation {
        /// The agent's JSON-RPC id, raw JSON text.
        request_id: String,
        /// What the person did.
        action: ElicitationAction,
    },
    /// Say more in the turn that is open.
    Steer {
        /// Agent's id of the conversation.
        agent_session_id: String,
        /// What is said.
        blocks: Vec<PromptBlock>,
    },
    /// Set a mode or another option of the conversation.
    SetConfigOption {
        /// Agent's id of the conversation.
        agent_session_id: String,
        /// Option id.
        config_id: String,
        /// Its new value.
        value: String,
        /// Whether the option is on or off, and the value is `true` or `false`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        boolean: bool,
    },
    /// Set a mode that is offered as such.
    SetMode {
        /// Agent's id of the conversation.
        agent_session_id: String,
        /// The mode.
        mode_id: String,
    },
    /// Set a model that is offered as such, as agents do that know no options.
    SetModel {
        /// Agent's id of the conversation.
        agent_session_id: String,
        /// The model.
        model_id: String,
    },
}

/// A file that an agent wants to read or write through us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileAsk {
    /// Read text.
    Read {
        /// Absolute path.
        path: String,
        /// First line, from 1; the first when absent.
        line: Option<u64>,
        /// Lines at most; all when absent.
        limit: Option<u64>,
    },
    /// Write text.
    Write {
        /// Absolute path.
        path: String,
        /// All of it.
        content: String,
    },
}

impl FileAsk {
    /// Its method in the protocol.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Read { .. } => "fs/read_text_file",
            Self::Write { .. } => "fs/write_text_file",
        }
    }

    /// The path.
    pub fn path(&self) -> &str {
        match self {
            Self::Read { path, .. } | Self::Write { path, .. } => path,
        }
    }
}

/// What a person did with a question of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ElicitationAction {
    /// Answered it.
    Accept {
        /// Values by the name of their field; absent where nothing is to be filled in.
        content: Option<serde_json::Map<String, Value>>,
    },
    /// Said no.
    Decline,
    /// Neither: the turn that asked is being ended.
    Cancel,
}

/// A tool call as far as one frame describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallView {
    /// The agent's id of the call; updates are upserts by it.
    pub tool_call_id: String,
    /// What it does, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `read`, `edit`, `execute`, …; as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_kind: Option<String>,
    /// `pending`, `in_progress`, `completed`, `failed`; as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Text of its content so far or newly added, joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Paths that it touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<String>,
    /// Everything else of the update, raw.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub raw: Value,
}

/// What an agent put out, as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AgentOutput {
    /// Words to the reader.
    Message {
        /// The text; consecutive chunks may be joined.
        text: String,
    },
    /// Thinking.
    Thought {
        /// The text; consecutive chunks may be joined.
        text: String,
    },
    /// A tool call begins or is described.
    ToolCall {
        /// The call.
        call: ToolCallView,
    },
    /// A tool call goes on.
    ToolCallUpdate {
        /// The call.
        call: ToolCallView,
    },
    /// The plan as it stands now.
    Plan {
        /// Its entries, raw.
        entries: Value,
    },
    /// A plan is no longer followed.
    PlanRemoved {
        /// Its id.
        plan_id: String,
    },
    /// What a person said, repeated by the agent.
    UserMessage {
        /// The text.
        text: String,
    },
    /// Something for a person that is no part of the answer.
    Notice {
        /// `info`, `warning`, `error` or another word.
        severity: String,
        /// One line.
        title: String,
        /// More of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// The agent shortens its memory of the conversation.
    Compaction {
        /// Its id.
        compaction_id: String,
        /// `in_progress`, `completed`, `failed`, `cancelled` or another word.
        status: String,
        /// The summary that takes the place of what was, when it is said whole.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// More of the summary of a shortened memory.
    CompactionSummary {
        /// Id of the shortening.
        compaction_id: String,
        /// The text.
        text: String,
    },
    /// The agent has a helper of its own, in another conversation over the same connection.
    NativeAgent {
        /// What is said of it.
        update: NativeAgentUpdate,
    },
    /// Something that conversations of an agent and its helpers say to each other.
    SessionMessage {
        /// Its id; several frames may belong to one message.
        message_id: String,
        /// Who says it: the agent's id of a conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sender: Option<String>,
        /// To whom.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recipient: Option<String>,
        /// The text, or more of it.
        text: String,
    },
    /// Another mode holds.
    Mode {
        /// Its id.
        mode_id: String,
    },
    /// The conversation got a title.
    Title {
        /// The title.
        title: String,
    },
    /// Commands that the agent knows.
    Commands {
        /// Their names.
        names: Vec<String>,
    },
    /// Context fill or cost in mid-turn, raw.
    Usage {
        /// As it came.
        raw: Value,
    },
    /// Anything else, kept as it came.
    Other {
        /// `sessionUpdate` kind or method.
        name: String,
        /// As it came.
        raw: Value,
    },
}

/// What one or more frames, or one spool record, mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AgentItem {
    /// The spool holds our input with this number whole.
    InputAccepted {
        /// Its number.
        seq: u64,
    },
    /// The agent answered the hello.
    Initialized {
        /// Name and version, when given.
        agent: String,
        /// What it said about itself.
        capabilities: AgentCapabilities,
    },
    /// The agent said what can be set in a conversation, or that something was.
    Offered {
        /// Frame number.
        frame: u64,
        /// Agent's id of the conversation, when it said one.
        agent_session_id: Option<String>,
        /// What is new.
        change: OfferChange,
    },
    /// The agent opened the conversation.
    SessionOpened {
        /// Its id of it.
        agent_session_id: String,
        /// The answer, raw.
        raw: Value,
    },
    /// The agent opened an earlier conversation again.
    SessionLoaded {
        /// Number of the input.
        seq: u64,
        /// Frame number.
        frame: u64,
    },
    /// Output of the conversation.
    Output {
        /// First frame that it covers.
        first_frame: u64,
        /// Last frame that it covers.
        last_frame: u64,
        /// Agent's id of the conversation that it belongs to, when it said one.
        agent_session_id: Option<String>,
        /// What it is.
        output: AgentOutput,
    },
    /// The agent asks for permission.
    PermissionAsked {
        /// Its JSON-RPC id, raw JSON text.
        request_id: String,
        /// Frame number.
        frame: u64,
        /// The call it is about.
        call: ToolCallView,
        /// The choices.
        options: Vec<ApprovalOption>,
    },
    /// The agent asks a person something.
    ElicitationAsked {
        /// Its JSON-RPC id, raw JSON text.
        request_id: String,
        /// Frame number.
        frame: u64,
        /// What it asks.
        text: String,
        /// What is to be filled in or opened.
        form: AskForm,
    },
    /// The agent wants a file to be read or written.
    FileAsked {
        /// Its JSON-RPC id, raw JSON text.
        request_id: String,
        /// Frame number.
        frame: u64,
        /// What it asks for.
        ask: FileAsk,
    },
    /// The agent answered a prompt.
    PromptAnswered {
        /// Number of the prompt's input.
        seq: u64,
        /// Frame number.
        frame: u64,
        /// Stop reason as it came.
        stop_reason: String,
        /// Tokens as it reported them, when it did.
        usage: Option<TokenCounts>,
    },
    /// The agent said what it used while a prompt was open, or with an answer that ends the turn as a failure.
    TokensUsed {
        /// Frame number.
        frame: u64,
        /// Number of the prompt whose answer said it, for the whole turn; absent for what came before, and then it is
        /// one model call or a running count, as the profile says.
        answers: Option<u64>,
        /// The tokens, as reported.
        tokens: TokenCounts,
    },
    /// The agent answered one of our requests with an error.
    RequestFailed {
        /// Number of the input.
        seq: u64,
        /// Frame number.
        frame: u64,
        /// JSON-RPC code.
        code: i64,
        /// Message.
        message: String,
    },
    /// Another request of ours was answered.
    RequestAnswered {
        /// Number of the input.
        seq: u64,
        /// Frame number.
        frame: u64,
    },
    /// A request that we do not serve.
    UnknownRequest {
        /// Its JSON-RPC id, raw JSON text.
        request_id: String,
        /// Frame number.
        frame: u64,
        /// Method.
        method: String,
    },
    /// Lines that are no frames.
    Junk {
        /// How many.
        count: u64,
        /// Bytes in all.
        bytes: u64,
        /// The beginning of the first one.
        sample: String,
    },
    /// A line over the cap, thrown away.
    Oversized {
        /// Its length so far.
        bytes: u64,
        /// Whether it may have been an answer to a request of ours.
        may_be_answer: bool,
    },
    /// Error output; only the tail is kept.
    Stderr {
        /// New text.
        text: String,
    },
    /// The agent process runs.
    Started {
        /// Process id.
        pid: u32,
    },
    /// The agent process has exited and its output is read to the end.
    Exited {
        /// Exit code.
        code: Option<i32>,
        /// Signal.
        signal: Option<i32>,
    },
}

/// A batch of what was understood, with the place up to which it reaches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentReport {
    /// New cursor.
    pub cursor: SpoolCursor,
    /// In wire order.
    pub items: Vec<AgentItem>,
}
