//! Updates and permission requests, and frames of agents in the field.

use serde_json::{Value, json};

use rallypoint_model::agent_io::{AgentItem, AgentOutput};
use rallypoint_model::usage::UsageKind;

use super::{one, output, peer};

#[test]
fn words_and_thoughts_are_text_and_other_content_is_kept_raw() {
    let text = json!({"type": "text", "text": "Hello "});
    assert_eq!(
        output(json!({"sessionUpdate": "agent_message_chunk", "content": text, "messageId": "m"})),
        AgentOutput::Message { text: "Hello ".to_owned() }
    );
    assert_eq!(
        output(json!({"sessionUpdate": "agent_thought_chunk", "content": text})),
        AgentOutput::Thought { text: "Hello ".to_owned() }
    );
    for update in [
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "x"}}),
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ""}, "_meta": {"x": 1}}),
        json!({"sessionUpdate": "agent_message_chunk"}),
        json!({"sessionUpdate": "user_message_chunk"}),
        json!({"sessionUpdate": "available_commands_update", "availableCommands": 5}),
        json!({"sessionUpdate": "plan_removed", "plan": "p"}),
        json!({"sessionUpdate": "hologram", "depth": 3}),
        json!({"sessionUpdate": "tool_call", "title": "no id"}),
        json!({"sessionUpdate": 5}),
    ] {
        let name = update["sessionUpdate"].as_str().unwrap_or("session/update").to_owned();
        assert_eq!(output(update.clone()), AgentOutput::Other { name, raw: update });
    }
}

#[test]
fn plans_and_usage_have_their_own_kinds() {
    let entries = json!([{"content": "a", "priority": "urgent", "status": "pending"}]);
    let expected = AgentOutput::Plan { entries: entries.clone() };
    assert_eq!(output(json!({"sessionUpdate": "plan", "entries": entries})), expected);
    let plan = json!({"type": "items", "planId": "p", "entries": entries});
    assert_eq!(output(json!({"sessionUpdate": "plan_update", "plan": plan})), expected);
    let raw = json!({"sessionUpdate": "usage_update", "used": 15, "size": 1_000_000});
    assert_eq!(output(raw.clone()), AgentOutput::Usage { raw });
}

#[test]
fn a_permission_request_keeps_id_options_and_a_title() {
    let ask = |id: Value, call: Value| {
        let params = json!({"sessionId": "s", "toolCall": call, "options": [{"optionId": "o", "name": "n", "kind": "k"}]});
        let line =
            json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params});
        match one(&line) {
            AgentItem::PermissionAsked { request_id, frame: 7, call, options } => {
                assert_eq!(options.len(), 1);
                (request_id, call.title.unwrap_or_default())
            }
            item => panic!("{item:?}"),
        }
    };
    assert_eq!(
        ask(json!(0), json!({"toolCallId": "t", "title": "rm x"})),
        ("0".to_owned(), "rm x".to_owned())
    );
    assert_eq!(
        ask(json!("u-1"), json!({"toolCallId": "t", "kind": "execute"})),
        ("\"u-1\"".to_owned(), "execute".to_owned())
    );
    assert_eq!(ask(json!(1), json!({"toolCallId": "t"})), ("1".to_owned(), "t".to_owned()));
    assert_eq!(ask(json!(1), json!({"title": "no id"})), ("1".to_owned(), "no id".to_owned()));
    assert_eq!(ask(json!(1), json!(null)), ("1".to_owned(), String::new()));
    let bare = json!({"jsonrpc": "2.0", "id": 5, "method": "session/request_permission"});
    assert!(matches!(one(&bare), AgentItem::PermissionAsked { options, .. } if options.is_empty()));
}

/// Lines in the dialects of agents in the field, and the kind of item that each becomes.
#[test]
fn frames_of_known_agents_are_understood() {
    let cases = [
        (
            r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":11,"outputTokens":7,"cachedReadTokens":3,"totalTokens":21},"_meta":{"quota":{"token_count":{"inputTokens":11}}}}}"#,
            "prompt_answered",
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":22,"output_tokens":14},"model_usage":[]}}}}"#,
            "prompt_answered",
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"\"Method not found\": session/list","data":{"method":"session/list"}}}"#,
            "request_failed",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"content":{"text":"model.","type":"text"},"sessionUpdate":"agent_message_chunk"}}}"#,
            "message",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"content":{"text":"","type":"text"},"sessionUpdate":"agent_message_chunk"},"_meta":{"field_meta":{"status_line":"11 in, 7 out"}}}}"#,
            "other",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"used":0,"size":200000,"_meta":{"steps":0,"promptTokens":0},"sessionUpdate":"usage_update"}}}"#,
            "usage",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","name":"exec_command","kind":"execute","title":"sleep 654","status":"in_progress","content":[{"type":"terminal","terminalId":"c"}],"rawInput":{"command":"sleep 654"}}}}"#,
            "tool_call",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","title":"t","content":[],"locations":[],"kind":"execute"}}}"#,
            "tool_call_update",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":"active"}}}}}}"#,
            "other",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"subagent_update","sessionId":"child","state":"running"}}}"#,
            "native_agent",
        ),
        (
            r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"proceed_always","name":"Allow for this session","kind":"allow_always"},{"optionId":"cancel","name":"Reject","kind":"reject_once"}],"toolCall":{"toolCallId":"c","status":"pending","title":"echo","kind":"execute"}}}"#,
            "permission_asked",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"7","method":"craft/drainMidTurnQueue","params":{"sessionId":"s"}}"#,
            "unknown_request",
        ),
        (r#"{"jsonrpc":"2.0","method":"qwen/notify/session","params":{"v":1}}"#, "other"),
    ];
    for (line, expected) in cases {
        let items = peer(UsageKind::PerTurn).items(line, 1);
        let item = serde_json::to_value(items.first().unwrap()).unwrap();
        let kind = item.pointer("/output/kind").or(item.get("kind")).and_then(Value::as_str);
        assert_eq!(kind, Some(expected), "{line}");
    }
}

/// The kinds of the schema, each in a form that it reads itself.
#[test]
fn every_update_of_the_schema_has_an_output_of_its_own() {
    let text = json!({"type": "text", "text": "t"});
    let cases = [
        (json!({"sessionUpdate": "user_message_chunk", "content": text}), "user_message"),
        (json!({"sessionUpdate": "agent_message_chunk", "content": text}), "message"),
        (json!({"sessionUpdate": "agent_thought_chunk", "content": text}), "thought"),
        (json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t"}), "tool_call"),
        (json!({"sessionUpdate": "tool_call_update", "toolCallId": "c"}), "tool_call_update"),
        (json!({"sessionUpdate": "plan", "entries": []}), "plan"),
        (
            json!({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": []}}),
            "plan",
        ),
        (json!({"sessionUpdate": "plan_removed", "planId": "p"}), "plan_removed"),
        (json!({"sessionUpdate": "available_commands_update", "availableCommands": []}), "commands"),
        (json!({"sessionUpdate": "current_mode_update", "currentModeId": "m"}), "mode"),
        (json!({"sessionUpdate": "config_option_update", "configOptions": []}), "other"),
        (json!({"sessionUpdate": "session_info_update", "title": "t"}), "title"),
        (json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}), "usage"),
        (json!({"sessionUpdate": "notice", "severity": "warning", "title": "t"}), "notice"),
        (
            json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed"}),
            "compaction",
        ),
        (
            json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": text}),
            "compaction_summary",
        ),
        (
            json!({"sessionUpdate": "subagent_update", "sessionId": "c", "state": {"state": "running"}}),
            "native_agent",
        ),
        (
            json!({"sessionUpdate": "session_message", "messageId": "m", "senderSessionId": "s",
                "recipientSessionId": "c", "content": [text]}),
            "session_message",
        ),
        (
            json!({"sessionUpdate": "session_message_chunk", "messageId": "m", "content": text}),
            "session_message",
        ),
    ];
    for (update, expected) in cases {
        let known: agent_client_protocol_schema::v1::SessionUpdate =
            serde_json::from_value(update.clone()).unwrap();
        assert_eq!(serde_json::to_value(&known).unwrap()["sessionUpdate"], update["sessionUpdate"]);
        let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}});
        let items = peer(UsageKind::None).items(&line.to_string(), 7);
        let output = serde_json::to_value(items.last().unwrap()).unwrap();
        assert_eq!(output.pointer("/output/kind"), Some(&Value::from(expected)), "{update}");
    }
}

#[test]
fn what_changes_an_offer_is_told_before_what_it_answers() {
    let mut peer = peer(UsageKind::None);
    let opened = json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s",
        "modes": {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}]}}});
    let items = peer.items(&opened.to_string(), 1);
    assert!(
        matches!(&*items, [AgentItem::Offered { frame: 1, .. }, AgentItem::SessionOpened { .. }]),
        "{items:?}"
    );
    let set = json!({"jsonrpc": "2.0", "id": 4, "result": {"configOptions": [{"id": "m", "name": "M",
        "type": "select", "currentValue": "x", "options": [{"value": "x", "name": "X"}]}]}});
    let items = peer.items(&set.to_string(), 2);
    assert!(
        matches!(&*items, [AgentItem::Offered { .. }, AgentItem::RequestAnswered { seq: 4, .. }]),
        "{items:?}"
    );
    let mode = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
        "update": {"sessionUpdate": "current_mode_update", "currentModeId": "b"}}});
    let items = peer.items(&mode.to_string(), 3);
    assert!(
        matches!(&*items, [AgentItem::Offered { agent_session_id: Some(id), .. }, AgentItem::Output { .. }] if id == "s"),
        "{items:?}"
    );
}

#[test]
fn a_question_to_a_person_is_one_and_an_unknown_form_of_it_is_refused() {
    let line = |params: Value| json!({"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": params});
    let known = line(json!({"sessionId": "s", "mode": "form", "message": "Which?",
        "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}));
    let AgentItem::ElicitationAsked { request_id, text, form, .. } = one(&known) else { panic!() };
    assert_eq!((request_id.as_str(), text.as_str(), form.fields.len()), ("\"e1\"", "Which?", 1));
    assert!(matches!(one(&line(json!({"mode": "voice"}))), AgentItem::UnknownRequest { .. }));
}
