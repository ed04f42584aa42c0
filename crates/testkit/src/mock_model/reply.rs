//! An answer in the words of no provider in particular.

use serde::Serialize;
use serde_json::Value;

use super::tools::Call;

/// Tokens of one request. The four numbers do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Read, and neither taken from the cache nor written to it.
    pub input: u64,
    /// Answered.
    pub output: u64,
    /// Taken from the cache.
    pub cache_read: u64,
    /// Written to the cache.
    pub cache_write: u64,
}

impl Usage {
    /// Everything that was read.
    pub fn whole_input(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// Text in pieces.
    Text(Vec<String>),
    /// A call of a tool.
    Call(Call),
}

/// One answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    /// Number of the request; ids are made of it.
    pub(super) number: u64,
    pub(super) model: String,
    pub(super) content: Content,
    pub(super) usage: Usage,
}

/// The events of a streamed answer. Between two of `pieces` lies a tick when the model is slow.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub(super) head: Vec<String>,
    pub(super) pieces: Vec<String>,
    pub(super) tail: Vec<String>,
}

/// A server-sent event with its name, as Anthropic and Responses write it.
pub(super) fn named_event(value: &Value) -> String {
    let name = value.get("type").and_then(Value::as_str).unwrap_or("message");
    format!("event: {name}\ndata: {value}\n\n")
}

/// A server-sent event without a name, as Chat Completions and Gemini write it.
pub(super) fn data_event(value: &Value) -> String {
    format!("data: {value}\n\n")
}
