//! What agents put out, as updates for the client. Pure.

use std::collections::BTreeSet;

use rallypoint_model::agent_io::{AgentOutput, ToolCallView};
use rallypoint_model::agent_offer::NativeAgentUpdate;
use serde_json::{Map, Value, json};

/// Kinds of tools that every client knows.
const TOOL_KINDS: [&str; 10] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];
/// States of a tool call that every client knows.
const TOOL_STATES: [&str; 4] = ["pending", "in_progress", "completed", "failed"];
/// Members of a tool call's update that go through as they came.
const PASSED_ON: [&str; 4] = ["content", "rawInput", "rawOutput", "_meta"];

/// What the client was told so far.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Tool calls that were announced.
    calls: BTreeSet<String>,
}

impl Told {
    /// The update for an output of the run that is named by `run`, if the client is to hear of it.
    pub(super) fn update(&mut self, run: &str, output: &AgentOutput) -> Option<Value> {
        match output {
            AgentOutput::Message { text } => chunk("agent_message_chunk", text),
            AgentOutput::Thought { text } => chunk("agent_thought_chunk", text),
            AgentOutput::ToolCall { call } | AgentOutput::ToolCallUpdate { call } => {
                Some(self.call(run, call))
            }
            AgentOutput::Plan { entries } if entries.is_array() => {
                Some(json!({"sessionUpdate": "plan", "entries": entries}))
            }
            // What is about the agent's own conversation and not about the work stays with us.
            AgentOutput::Plan { .. }
            | AgentOutput::PlanRemoved { .. }
            | AgentOutput::UserMessage { .. }
            | AgentOutput::Notice { .. }
            | AgentOutput::Compaction { .. }
            | AgentOutput::CompactionSummary { .. }
            | AgentOutput::NativeAgent { .. }
            | AgentOutput::SessionMessage { .. }
            | AgentOutput::Mode { .. }
            | AgentOutput::Title { .. }
            | AgentOutput::Commands { .. }
            | AgentOutput::Usage { .. }
            | AgentOutput::Other { .. } => None,
        }
    }

    /// A call is announced by whatever is heard of it first: some agents send updates alone.
    fn call(&mut self, run: &str, call: &ToolCallView) -> Value {
        let id = call_id(run, &call.tool_call_id);
        let is_new = self.calls.insert(id.clone());
        let mut update = Map::new();
        let kind = if is_new { "tool_call" } else { "tool_call_update" };
        update.insert("sessionUpdate".to_owned(), json!(kind));
        update.insert("toolCallId".to_owned(), json!(id));
        if let Some(title) = call.title.as_deref().or(is_new.then_some("tool")) {
            update.insert("title".to_owned(), json!(title));
        }
        if let Some(kind) = &call.tool_kind {
            update.insert("kind".to_owned(), json!(tool_kind(kind)));
        }
        if let Some(status) = call.status.as_deref().and_then(|status| known(status, &TOOL_STATES)) {
            update.insert("status".to_owned(), json!(status));
        }
        if !call.locations.is_empty() {
            let places: Vec<Value> = call.locations.iter().map(|path| json!({"path": path})).collect();
            update.insert("locations".to_owned(), Value::Array(places));
        }
        for name in PASSED_ON {
            let fits = |value: &&Value| !value.is_null() && (name != "content" || value.is_array());
            if let Some(value) = call.raw.get(name).filter(fits) {
                update.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(text) = call.text.as_ref().filter(|_| !update.contains_key("content")) {
            let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
            update.insert("content".to_owned(), content);
        }
        Value::Object(update)
    }
}

/// An id of a call that is unique in the client's session: agents count theirs anew with each process.
pub(super) fn call_id(run: &str, agents_own: &str) -> String {
    format!("{run}/{agents_own}")
}

/// Words; nothing when there are none.
pub(super) fn chunk(kind: &str, text: &str) -> Option<Value> {
    let content = json!({"type": "text", "text": text});
    (!text.is_empty()).then(|| json!({"sessionUpdate": kind, "content": content}))
}

/// A sub-agent as the client shows sub-agents of its agent.
pub(super) fn sub_agent(session_id: &str, title: Option<&str>, stop_reason: Option<&str>) -> Value {
    let mut update = Map::new();
    update.insert("sessionUpdate".to_owned(), json!("subagent_update"));
    update.insert("sessionId".to_owned(), json!(session_id));
    if let Some(title) = title {
        update.insert("title".to_owned(), json!(title));
    }
    let state = match stop_reason {
        Some(reason) => json!({"state": "idle", "stopReason": reason}),
        None => json!({"state": "running"}),
    };
    update.insert("state".to_owned(), state);
    Value::Object(update)
}

/// A helper that an agent has of its own, passed on.
pub(super) fn helper(update: &NativeAgentUpdate) -> Value {
    let mut passed = Map::new();
    passed.insert("sessionUpdate".to_owned(), json!("subagent_update"));
    passed.insert("sessionId".to_owned(), json!(update.agent_session_id));
    for (name, value) in [("title", &update.title), ("description", &update.description)] {
        if let Some(text) = value {
            passed.insert(name.to_owned(), json!(text));
        }
    }
    if let Some(state) = update.state.as_deref().filter(|state| !state.is_empty()) {
        let stop = update.stop_reason.as_deref().unwrap_or("end_turn");
        let state = if state == "idle" {
            json!({"state": "idle", "stopReason": stop})
        } else {
            json!({"state": state})
        };
        passed.insert("state".to_owned(), state);
    }
    Value::Object(passed)
}

/// The kind of a tool in a word that every client knows.
pub(super) fn tool_kind(word: &str) -> &'static str {
    known(word, &TOOL_KINDS).unwrap_or("other")
}

fn known(word: &str, words: &[&'static str]) -> Option<&'static str> {
    words.iter().copied().find(|known| *known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, status: Option<&str>) -> ToolCallView {
        ToolCallView {
            tool_call_id: id.to_owned(),
            title: None,
            tool_kind: Some("hologram".to_owned()),
            status: status.map(str::to_owned),
            text: Some("out".to_owned()),
            locations: vec!["/w/a".to_owned()],
            raw: json!({"rawInput": {"a": 1}, "vendor": true}),
        }
    }

    #[test]
    fn a_call_is_announced_once_and_carries_only_words_that_every_client_knows() {
        let mut told = Told::default();
        let first =
            told.update("r", &AgentOutput::ToolCallUpdate { call: call("1", Some("dancing")) }).unwrap();
        assert_eq!(
            first,
            json!({"sessionUpdate": "tool_call", "toolCallId": "r/1", "title": "tool", "kind": "other",
                "locations": [{"path": "/w/a"}], "rawInput": {"a": 1},
                "content": [{"type": "content", "content": {"type": "text", "text": "out"}}]})
        );
        let next = told.update("r", &AgentOutput::ToolCall { call: call("1", Some("completed")) }).unwrap();
        assert_eq!(
            (&next["sessionUpdate"], &next["status"]),
            (&json!("tool_call_update"), &json!("completed"))
        );
        assert_eq!(next.get("title"), None);
        let other = told.update("s", &AgentOutput::ToolCall { call: call("1", None) }).unwrap();
        assert_eq!(other["sessionUpdate"], "tool_call", "ids of another run begin anew");
    }

    #[test]
    fn words_thoughts_and_plans_go_through_and_an_agents_own_business_does_not() {
        let mut told = Told::default();
        let mut kind =
            |output: AgentOutput| told.update("r", &output).map(|update| update["sessionUpdate"].clone());
        assert_eq!(kind(AgentOutput::Message { text: "x".to_owned() }), Some(json!("agent_message_chunk")));
        assert_eq!(kind(AgentOutput::Thought { text: "x".to_owned() }), Some(json!("agent_thought_chunk")));
        assert_eq!(kind(AgentOutput::Plan { entries: json!([]) }), Some(json!("plan")));
        assert_eq!(kind(AgentOutput::Message { text: String::new() }), None);
        assert_eq!(kind(AgentOutput::UserMessage { text: "x".to_owned() }), None);
        assert_eq!(kind(AgentOutput::Title { title: "x".to_owned() }), None);
    }
}
