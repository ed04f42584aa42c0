//! Whatever comes in is taken.

use proptest::prelude::*;
use serde_json::{Value, json};

use rallypoint_model::usage::UsageKind;

use super::peer;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_u64..6).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z]{0,6}".prop_map(Value::from),
        prop_oneof![
            Just("session/update"),
            Just("session/request_permission"),
            Just("text"),
            Just("tool_call"),
            Just("agent_message_chunk"),
            Just("plan_update"),
            Just("diff"),
            Just("content"),
        ]
        .prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("jsonrpc"),
        Just("id"),
        Just("method"),
        Just("params"),
        Just("result"),
        Just("error"),
        Just("update"),
        Just("sessionUpdate"),
        Just("content"),
        Just("text"),
        Just("type"),
        Just("toolCall"),
        Just("toolCallId"),
        Just("options"),
        Just("optionId"),
        Just("locations"),
        Just("path"),
        Just("usage"),
        Just("_meta"),
        Just("sessionId"),
        Just("stopReason"),
        Just("code"),
        Just("message"),
        Just("data"),
        Just("inputTokens"),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..6).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_taken(value in any_json(), cut in 0_usize..400) {
        let line = value.to_string();
        let mut peer = peer(UsageKind::PerTurn);
        peer.items(&line, 1);
        let cut: String = line.chars().take(cut).collect();
        peer.items(&cut, 2);
        for kind in ["session/update", "session/request_permission", "x/y"] {
            let mut frame = json!({"jsonrpc": "2.0", "method": kind, "params": value});
            prop_assert!(!peer.items(&frame.to_string(), 3).is_empty());
            frame["id"] = json!(1);
            prop_assert!(!peer.items(&frame.to_string(), 4).is_empty());
        }
        let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"update": value}});
        prop_assert!(!peer.items(&update.to_string(), 5).is_empty());
        for id in 1..5 {
            peer.items(&json!({"jsonrpc": "2.0", "id": id, "result": value}).to_string(), 6);
            peer.items(&json!({"jsonrpc": "2.0", "id": id, "error": value}).to_string(), 7);
        }
        prop_assert!(peer.state().open.is_empty());
    }

    #[test]
    fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        peer(UsageKind::PerTurn).items(&String::from_utf8_lossy(&bytes), 1);
    }

    #[test]
    fn any_text_with_escapes_is_taken(text in "[\\\\u0-9a-fdD\"{}:, äé]{0,60}") {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"x\":\"{text}\"}}}}");
        peer(UsageKind::PerTurn).items(&line, 1);
    }
}
