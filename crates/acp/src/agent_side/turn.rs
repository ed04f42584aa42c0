//! One prompt being worked on, and the words to report about it.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use rallypoint_model::agent_io::{PART_META_KEY, PromptPart};

use super::client::{Cancel, Client};

/// One conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Our id of it.
    pub session_id: String,
    /// Where work happens; absolute.
    pub cwd: PathBuf,
    /// Tool servers that the client wants started in it, raw.
    pub mcp_servers: Vec<Value>,
}

/// One block of a prompt that has text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptText {
    /// What it is for, when the client marks its blocks.
    pub part: Option<PromptPart>,
    /// Its text.
    pub text: String,
}

/// How a prompt ends.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptEnd {
    /// Answered with this stop reason.
    Stopped {
        /// `end_turn`, `cancelled`, …
        stop_reason: String,
        /// Further members of the result.
        extra: Map<String, Value>,
    },
    /// The agent has answered, or will not.
    Answered,
}

impl PromptEnd {
    /// An end without anything further.
    pub fn stopped(stop_reason: impl Into<String>) -> Self {
        Self::Stopped { stop_reason: stop_reason.into(), extra: Map::new() }
    }

    /// The result on the wire, when there is one to send.
    pub(super) fn into_result(self) -> Option<Value> {
        match self {
            Self::Answered => None,
            Self::Stopped { stop_reason, mut extra } => {
                extra.insert("stopReason".to_owned(), Value::String(stop_reason));
                Some(Value::Object(extra))
            }
        }
    }
}

/// One choice that a permission request offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionChoice<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its name for people.
    pub name: &'a str,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`.
    pub kind: &'a str,
}

/// What became of a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// This choice was made.
    Selected(String),
    /// The turn was cancelled, or the client cannot say.
    Cancelled,
}

/// A change of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolUpdate<'a> {
    /// New status.
    pub status: Option<&'a str>,
    /// Further output.
    pub text: Option<&'a str>,
    /// Further content items, raw.
    pub content: Vec<Value>,
    /// What the tool gave.
    pub raw_output: Option<Value>,
}

/// One prompt being worked on.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The conversation that it belongs to.
    pub session: Arc<Session>,
    /// The prompt's JSON-RPC id.
    pub request_id: Value,
    /// Its blocks with text, in order.
    pub prompt: Vec<PromptText>,
    /// The client.
    pub client: Client,
    /// Set when the client cancels the turn or its output ends.
    pub cancel: Cancel,
}

impl Turn {
    /// Sends an update of this conversation.
    pub fn send_update(&self, update: Value) {
        let params = json!({"sessionId": self.session.session_id, "update": update});
        self.client.notify("session/update", params);
    }

    /// Says something to the reader.
    pub fn send_message_chunk(&self, text: &str) {
        self.send_chunk("agent_message_chunk", text);
    }

    /// Thinks aloud.
    pub fn send_thought(&self, text: &str) {
        self.send_chunk("agent_thought_chunk", text);
    }

    /// Begins a tool call, in progress.
    pub fn send_tool_call(&self, id: &str, title: &str, kind: &str, raw_input: Value) {
        self.send_update(json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind,
            "status": "in_progress", "rawInput": raw_input,
        }));
    }

    /// Goes on with a tool call.
    pub fn send_tool_update(&self, id: &str, change: ToolUpdate<'_>) {
        let mut update = Map::new();
        update.insert("sessionUpdate".to_owned(), "tool_call_update".into());
        update.insert("toolCallId".to_owned(), id.into());
        if let Some(status) = change.status {
            update.insert("status".to_owned(), status.into());
        }
        let text =
            change.text.map(|text| json!({"type": "content", "content": {"type": "text", "text": text}}));
        let content: Vec<Value> = text.into_iter().chain(change.content).collect();
        if !content.is_empty() {
            update.insert("content".to_owned(), Value::Array(content));
        }
        if let Some(output) = change.raw_output {
            update.insert("rawOutput".to_owned(), output);
        }
        self.send_update(Value::Object(update));
    }

    /// Says what is planned; entries as the protocol has them.
    pub fn send_plan(&self, entries: Value) {
        self.send_update(json!({"sessionUpdate": "plan", "entries": entries}));
    }

    /// Asks for permission and waits for the answer or the end of the turn.
    pub fn request_permission(
        &self,
        tool_call_id: &str,
        title: &str,
        kind: &str,
        choices: &[PermissionChoice<'_>],
    ) -> PermissionAnswer {
        let params = self.permission_params(tool_call_id, title, kind, choices);
        match self.client.request_until("session/request_permission", params, &self.cancel) {
            Some(Ok(result)) => permission_answer(&result),
            Some(Err(_)) | None => PermissionAnswer::Cancelled,
        }
    }

    /// The same, but a cancelled turn still waits for the client's answer, as some agents do.
    pub fn request_permission_through_cancel(
        &self,
        tool_call_id: &str,
        title: &str,
        kind: &str,
        choices: &[PermissionChoice<'_>],
    ) -> PermissionAnswer {
        let params = self.permission_params(tool_call_id, title, kind, choices);
        match self.client.request("session/request_permission", params) {
            Ok(result) => permission_answer(&result),
            Err(_) => PermissionAnswer::Cancelled,
        }
    }

    fn permission_params(
        &self,
        tool_call_id: &str,
        title: &str,
        kind: &str,
        choices: &[PermissionChoice<'_>],
    ) -> Value {
        let options: Vec<Value> = choices
            .iter()
            .map(|choice| json!({"optionId": choice.id, "name": choice.name, "kind": choice.kind}))
            .collect();
        json!({
            "sessionId": self.session.session_id,
            "toolCall": {"toolCallId": tool_call_id, "title": title, "kind": kind, "status": "pending"},
            "options": options,
        })
    }

    fn send_chunk(&self, kind: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        self.send_update(json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}));
    }
}

fn permission_answer(result: &Value) -> PermissionAnswer {
    let outcome = result.get("outcome");
    let member = |name: &str| outcome.and_then(|outcome| outcome.get(name)).and_then(Value::as_str);
    match (member("outcome"), member("optionId")) {
        (Some("selected"), Some(id)) => PermissionAnswer::Selected(id.to_owned()),
        _ => PermissionAnswer::Cancelled,
    }
}

/// The blocks of a `session/prompt` that have text.
pub(super) fn prompt_texts(prompt: Option<&Value>) -> Vec<PromptText> {
    match prompt {
        Some(Value::String(text)) => vec![PromptText { part: None, text: text.clone() }],
        Some(Value::Array(blocks)) => blocks.iter().filter_map(prompt_text).collect(),
        _ => Vec::new(),
    }
}

fn prompt_text(block: &Value) -> Option<PromptText> {
    let text = match block.get("type").and_then(Value::as_str) {
        Some("text") => block.get("text"),
        Some("resource_link") => block.get("uri"),
        Some("resource") => block.get("resource").and_then(|resource| resource.get("text")),
        _ => None,
    };
    let part = block.get("_meta").and_then(|meta| meta.get(PART_META_KEY)).map(|part| {
        // A part that a newer client marks in a way unknown here is not ours to act on.
        serde_json::from_value(part.clone()).unwrap_or(PromptPart::Frame)
    });
    Some(PromptText { part, text: text?.as_str()?.to_owned() })
}
