//! Updates about helpers that an agent has of its own, and about its memory.
//!
//! Shapes: Agent Client Protocol v1, "Subagents", "Notices" and "Compaction".

use serde_json::{Map, Value};

use rallypoint_model::agent_io::AgentOutput;
use rallypoint_model::agent_offer::NativeAgentUpdate;

/// The output of a kind that is read here; `None` for other kinds, and where what matters is missing.
pub(super) fn output(kind: &str, update: &Map<String, Value>) -> Option<AgentOutput> {
    let text = |name: &str| update.get(name).and_then(Value::as_str).map(str::to_owned);
    match kind {
        "subagent_update" => Some(AgentOutput::NativeAgent { update: helper(update)? }),
        "session_message" | "session_message_chunk" => Some(AgentOutput::SessionMessage {
            message_id: text("messageId")?,
            sender: text("senderSessionId"),
            recipient: text("recipientSessionId"),
            text: super::updates::text_of(update.get("content")).unwrap_or_default(),
        }),
        "notice" => Some(AgentOutput::Notice {
            severity: text("severity").unwrap_or_default(),
            title: text("title")?,
            description: text("description"),
        }),
        "compaction_update" => Some(AgentOutput::Compaction {
            compaction_id: text("compactionId")?,
            status: text("status").unwrap_or_default(),
            summary: super::updates::text_of(update.get("summary")),
            error: text("error"),
        }),
        "compaction_summary_chunk" => Some(AgentOutput::CompactionSummary {
            compaction_id: text("compactionId")?,
            text: super::updates::text_of(update.get("content"))?,
        }),
        "plan_removed" => Some(AgentOutput::PlanRemoved { plan_id: text("planId")? }),
        "current_mode_update" => {
            let mode_id = text("currentModeId").or_else(|| text("modeId"))?;
            Some(AgentOutput::Mode { mode_id })
        }
        // Vendors put other facts into the same kind, which then has no title.
        "session_info_update" => Some(AgentOutput::Title { title: text("title")? }),
        "available_commands_update" => {
            let items = update.get("availableCommands").and_then(Value::as_array)?;
            let names = items.iter().filter_map(|item| item.get("name")?.as_str().map(str::to_owned));
            Some(AgentOutput::Commands { names: names.collect() })
        }
        _ => None,
    }
}

fn helper(update: &Map<String, Value>) -> Option<NativeAgentUpdate> {
    // Absent means unchanged, null takes the value away.
    let patched = |name: &str| match update.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Null => Some(String::new()),
        _ => None,
    };
    let (state, stop_reason) = match update.get("state") {
        Some(Value::String(word)) => (Some(word.clone()), None),
        Some(Value::Null) => (Some(String::new()), None),
        Some(state) => {
            let word = |name: &str| state.get(name).and_then(Value::as_str).map(str::to_owned);
            (word("state").or_else(|| word("type")), word("stopReason"))
        }
        None => (None, None),
    };
    let can_cancel = match update.get("capabilities") {
        Some(Value::Object(capabilities)) => {
            Some(matches!(capabilities.get("cancel"), Some(Value::Object(_) | Value::Bool(true))))
        }
        Some(Value::Null) => Some(false),
        _ => None,
    };
    Some(NativeAgentUpdate {
        agent_session_id: update.get("sessionId").and_then(Value::as_str)?.to_owned(),
        title: patched("title"),
        description: patched("description"),
        state,
        stop_reason,
        can_cancel,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(update: Value) -> Option<AgentOutput> {
        let Value::Object(update) = update else { unreachable!() };
        output(update["sessionUpdate"].as_str().unwrap(), &update)
    }

    #[test]
    fn a_helper_is_announced_and_later_updates_say_what_changed() {
        let announced = read(json!({"sessionUpdate": "subagent_update", "sessionId": "c", "title": "look",
            "capabilities": {"cancel": {}}, "state": {"state": "running"}, "cwd": "/w"}));
        let expected = NativeAgentUpdate {
            agent_session_id: "c".to_owned(),
            title: Some("look".to_owned()),
            state: Some("running".to_owned()),
            can_cancel: Some(true),
            ..NativeAgentUpdate::default()
        };
        assert_eq!(announced, Some(AgentOutput::NativeAgent { update: expected }));
        let idle = read(json!({"sessionUpdate": "subagent_update", "sessionId": "c", "title": null,
            "capabilities": {}, "state": {"state": "idle", "stopReason": "end_turn"}}));
        let expected = NativeAgentUpdate {
            agent_session_id: "c".to_owned(),
            title: Some(String::new()),
            state: Some("idle".to_owned()),
            stop_reason: Some("end_turn".to_owned()),
            can_cancel: Some(false),
            ..NativeAgentUpdate::default()
        };
        assert_eq!(idle, Some(AgentOutput::NativeAgent { update: expected }));
    }

    #[test]
    fn each_kind_needs_what_makes_it_one() {
        for kind in [
            "subagent_update",
            "session_message",
            "notice",
            "compaction_update",
            "compaction_summary_chunk",
            "plan_removed",
            "current_mode_update",
            "session_info_update",
            "available_commands_update",
            "hologram",
        ] {
            assert_eq!(read(json!({"sessionUpdate": kind, "vendor": 1})), None, "{kind}");
        }
        let message = read(json!({"sessionUpdate": "session_message_chunk", "messageId": "m",
            "content": {"type": "text", "text": "hi"}}));
        let text = "hi".to_owned();
        let (message_id, sender, recipient) = ("m".to_owned(), None, None);
        assert_eq!(message, Some(AgentOutput::SessionMessage { message_id, sender, recipient, text }));
        let compacted =
            read(json!({"sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed",
            "summary": [{"type": "text", "text": "so "}, {"type": "text", "text": "far"}]}));
        assert_eq!(
            compacted,
            Some(AgentOutput::Compaction {
                compaction_id: "k".to_owned(),
                status: "completed".to_owned(),
                summary: Some("so far".to_owned()),
                error: None,
            })
        );
    }
}
