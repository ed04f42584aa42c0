//! What was asked, kept for tests and, line by line, in a file.

use serde::Serialize;
use serde_json::Value;

use super::conversation::Api;
use super::reply::Usage;

/// One request with what became of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Order of arrival, from 1.
    pub number: u64,
    /// The interface that it came in by.
    pub api: Api,
    /// The model that it names.
    pub model: String,
    /// Whether the answer was to be streamed.
    pub stream: bool,
    /// Whether a key came along. The key itself is not kept.
    pub has_key: bool,
    /// Names of the tools that the agent offered.
    pub tools: Vec<String>,
    /// Texts of the user's last turn.
    pub last_turn: Vec<String>,
    /// What was done: `text`, `call TOOL`, `hang`, `error STATUS`.
    pub done: String,
    /// Its tokens, as they were reported to the agent.
    pub usage: Usage,
    /// The whole body as it came.
    pub body: Value,
}
