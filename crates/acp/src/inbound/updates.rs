//! `session/update` notifications.
//!
//! Kinds: Agent Client Protocol v1, "Prompt turn" and schema 1.20. A kind that
//! is not named here is kept whole under its own name.

use serde_json::{Map, Value};

use rallypoint_model::agent_io::AgentOutput;
use rallypoint_model::agent_offer::OfferChange;

use super::{lenient, native, offers, tools};

/// One update: where it belongs, what it is and what it said beside it.
pub(super) struct Update {
    /// Agent's id of the conversation, when it said one.
    pub(super) agent_session_id: Option<String>,
    /// What it put out.
    pub(super) output: AgentOutput,
    /// The update's `_meta`, which may carry token numbers.
    pub(super) meta: Option<Value>,
    /// What it changes in what the agent offers.
    pub(super) offer: Option<OfferChange>,
}

/// Reads the parameters of a `session/update`.
pub(super) fn read(params: Value) -> Update {
    let Value::Object(mut params) = params else {
        return plain(None, other("session/update", params));
    };
    let agent_session_id = lenient::take_string(&mut params, "sessionId");
    let outer_meta = params.get("_meta").cloned();
    match params.shift_remove("update") {
        Some(Value::Object(update)) => {
            let meta = update.get("_meta").cloned().or(outer_meta);
            let offer = offers::of_update(&update);
            Update { agent_session_id, output: output(update), meta, offer }
        }
        Some(update) => {
            params.insert("update".to_owned(), update);
            plain(agent_session_id, other("session/update", Value::Object(params)))
        }
        None => plain(agent_session_id, other("session/update", Value::Object(params))),
    }
}

fn plain(agent_session_id: Option<String>, output: AgentOutput) -> Update {
    Update { agent_session_id, output, meta: None, offer: None }
}

fn output(update: Map<String, Value>) -> AgentOutput {
    let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or("session/update").to_owned();
    match kind.as_str() {
        "agent_message_chunk" => match text_of(update.get("content")) {
            Some(text) => AgentOutput::Message { text },
            None => other(&kind, Value::Object(update)),
        },
        "agent_thought_chunk" => match text_of(update.get("content")) {
            Some(text) => AgentOutput::Thought { text },
            None => other(&kind, Value::Object(update)),
        },
        "tool_call" => match tools::view(update.clone()) {
            Some(call) => AgentOutput::ToolCall { call },
            None => other(&kind, Value::Object(update)),
        },
        "tool_call_update" => match tools::view(update.clone()) {
            Some(call) => AgentOutput::ToolCallUpdate { call },
            None => other(&kind, Value::Object(update)),
        },
        "plan" => match update.get("entries") {
            Some(entries) => AgentOutput::Plan { entries: entries.clone() },
            None => other(&kind, Value::Object(update)),
        },
        // Sent in place of `plan` to a client that advertises it; the form with
        // markdown has no entries and is kept whole.
        "plan_update" => match update.get("plan").and_then(|plan| plan.get("entries")) {
            Some(entries) => AgentOutput::Plan { entries: entries.clone() },
            None => other(&kind, Value::Object(update)),
        },
        "user_message_chunk" => match text_of(update.get("content")) {
            Some(text) => AgentOutput::UserMessage { text },
            None => other(&kind, Value::Object(update)),
        },
        "usage_update" => AgentOutput::Usage { raw: Value::Object(update) },
        _ => native::output(&kind, &update).unwrap_or_else(|| other(&kind, Value::Object(update))),
    }
}

/// The words in a chunk. An empty chunk says nothing and only carries `_meta`:
/// it must not count as something said.
pub(super) fn text_of(content: Option<&Value>) -> Option<String> {
    let text = match content? {
        Value::String(text) => text.clone(),
        Value::Object(block) => block_text(block)?.to_owned(),
        Value::Array(blocks) => {
            let texts: Option<Vec<&str>> =
                blocks.iter().map(|block| block.as_object().and_then(block_text)).collect();
            texts?.concat()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    };
    (!text.is_empty()).then_some(text)
}

fn block_text(block: &Map<String, Value>) -> Option<&str> {
    let is_text = block.get("type").is_none_or(|kind| kind == "text");
    block.get("text").filter(|_| is_text).and_then(Value::as_str)
}

fn other(name: &str, raw: Value) -> AgentOutput {
    AgentOutput::Other { name: name.to_owned(), raw }
}
