//! Calls of our own tools by an agent, over the tool server that is started in its session.
//!
//! A call is named by its process (one hello of one tool server) and its JSON-RPC id there, within one generation. What
//! comes again under the same name is the same call: it is carried out once, and answered alike each time.

use serde::{Deserialize, Serialize};

use crate::completion::CompletionReport;
use crate::ids::QuestionId;
use crate::time::Timestamp;

/// What an agent asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "tool", rename_all = "snake_case")]
pub enum ToolRequest {
    /// Say how the work ended. It counts instead of a report in the words of the turn.
    ReportCompletion {
        /// The report.
        report: CompletionReport,
    },
    /// Ask whoever made the task, and wait.
    AskUser {
        /// The question.
        question: String,
        /// What may be answered; anything when empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
    },
    /// Tell the peers of the task something.
    Coordinate {
        /// The words.
        text: String,
    },
    /// Say something to one of them.
    Send {
        /// `parent`, `room`, or the name of a sibling or of a sub-agent of its own.
        recipient: String,
        /// The words.
        text: String,
    },
    /// A call that names no tool, or whose arguments don't fit.
    Unfit {
        /// The name that was called.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

impl ToolRequest {
    /// Name of the tool as agents call it.
    pub fn tool(&self) -> &str {
        match self {
            Self::ReportCompletion { .. } => "report_completion",
            Self::AskUser { .. } => "ask_user",
            Self::Coordinate { .. } => "coordinate",
            Self::Send { .. } => "send",
            Self::Unfit { name, .. } => name,
        }
    }
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnswer {
    /// Words for the agent.
    pub text: String,
    /// Whether nothing was done.
    pub failed: bool,
}

/// A call that was taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Names the hello of the tool server that brought it.
    pub process: String,
    /// Its JSON-RPC id, raw JSON text.
    pub request_id: String,
    /// What it asks for.
    pub request: ToolRequest,
    /// The question that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question_id: Option<QuestionId>,
    /// What it came to, once that is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ToolAnswer>,
}

/// The tool server of an agent process, since it said hello with the process's token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsConnected {
    /// Names its hello.
    pub process: String,
    /// Name and version of the client that speaks to it, as it says.
    pub client: String,
    /// When.
    pub at: Timestamp,
}

/// Whether an agent has our tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolsStatus {
    /// It is not given any.
    #[default]
    Off,
    /// It was told of them, and nobody called. Some agents start no tool servers; nothing depends on it.
    NotConnected,
    /// Its tool server said hello with its token.
    Connected,
}
