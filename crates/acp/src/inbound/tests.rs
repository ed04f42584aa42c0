use serde_json::{Value, json};

use rallypoint_model::agent_io::{AgentInput, AgentItem, AgentOutput};
use rallypoint_model::agent_offer::AgentCapabilities;
use rallypoint_model::usage::UsageKind;

use super::*;
use crate::frames::Line;

mod properties;
mod tokens;
mod updates;

fn prompt() -> AgentInput {
    AgentInput::Prompt { agent_session_id: "s".to_owned(), blocks: Vec::new(), attachments: Vec::new() }
}

/// A peer with initialize 1, session/new 2, prompt 3 and an option 4 open.
fn peer(usage: UsageKind) -> Peer {
    let mut peer = Peer::new(PeerState::default(), usage);
    peer.expect(1, &AgentInput::Initialize);
    peer.expect(2, &AgentInput::NewSession { cwd: "/w".to_owned(), tools: false });
    peer.expect(3, &prompt());
    let (agent_session_id, config_id, value) = ("s".to_owned(), "mode".to_owned(), "auto".to_owned());
    peer.expect(4, &AgentInput::SetConfigOption { agent_session_id, config_id, value, boolean: false });
    peer
}

fn one(line: &Value) -> AgentItem {
    let mut items = peer(UsageKind::PerTurn).items(&line.to_string(), 7);
    assert_eq!(items.len(), 1, "{items:?}");
    items.remove(0)
}

fn output(update: Value) -> AgentOutput {
    let line =
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}});
    match one(&line) {
        AgentItem::Output { first_frame: 7, last_frame: 7, agent_session_id: Some(id), output }
            if id == "s" =>
        {
            output
        }
        item => panic!("{item:?}"),
    }
}

fn answer(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

#[test]
fn the_hello_says_who_the_agent_is_and_is_kept_whole() {
    let result = json!({"protocolVersion": 1, "agentInfo": {"name": "a/b", "title": "B", "version": "1.2"},
        "agentCapabilities": {"loadSession": true, "sessionCapabilities": {"fork": {}}}, "_meta": {"steering": 1}});
    let item = one(&answer(&json!(1), result.clone()));
    let capabilities =
        AgentCapabilities { load: true, fork: true, raw: result, ..AgentCapabilities::default() };
    assert_eq!(item, AgentItem::Initialized { agent: "a/b 1.2".to_owned(), capabilities });
    let item = one(&answer(&json!("1"), json!({})));
    let capabilities = AgentCapabilities { raw: json!({}), ..AgentCapabilities::default() };
    assert_eq!(item, AgentItem::Initialized { agent: String::new(), capabilities });
}

#[test]
fn a_session_is_remembered_and_one_without_an_id_is_an_error() {
    let mut peer = peer(UsageKind::None);
    let items = peer.items(&answer(&json!(2), json!({"sessionId": "s-1", "modes": {}})).to_string(), 2);
    assert!(
        matches!(&*items, [AgentItem::SessionOpened { agent_session_id, .. }] if agent_session_id == "s-1")
    );
    assert_eq!(peer.state().agent_session_id.as_deref(), Some("s-1"));
    assert!(matches!(one(&answer(&json!(2), json!({}))), AgentItem::RequestFailed { seq: 2, .. }));
}

#[test]
fn a_prompts_answer_keeps_its_stop_reason_as_it_came() {
    for (result, expected) in [
        (json!({"stopReason": "end_turn"}), "end_turn"),
        (json!({"stopReason": "banana", "usage": null}), "banana"),
        (json!({"stopReason": 4}), ""),
        (json!(null), ""),
    ] {
        let item = one(&answer(&json!(3), result));
        let AgentItem::PromptAnswered { seq: 3, frame: 7, stop_reason, usage: None } = item else {
            panic!("{item:?}")
        };
        assert_eq!(stop_reason, expected);
    }
    // An undefined result vanishes when an agent in JavaScript serialises it.
    assert!(matches!(one(&json!({"jsonrpc": "2.0", "id": 3})), AgentItem::PromptAnswered { .. }));
}

#[test]
fn a_turn_that_ends_with_a_named_failure_is_no_success() {
    let failure = json!({"severity": "error", "title": "High demand", "actions": ["retry"]});
    let result = |stop: &str| json!({"stopReason": stop, "_meta": {"jetbrains": {"air": {"sessionFailure": failure}}}});
    let AgentItem::RequestFailed { seq: 3, code, message, .. } = one(&answer(&json!(3), result("end_turn")))
    else {
        panic!("a success")
    };
    assert_eq!((code, message.as_str()), (-32603, "High demand"));
    let cancelled = one(&answer(&json!(3), result("cancelled")));
    assert!(matches!(cancelled, AgentItem::PromptAnswered { .. }), "{cancelled:?}");
}

#[test]
fn another_answer_is_told_apart() {
    assert_eq!(one(&answer(&json!(4), json!({}))), AgentItem::RequestAnswered { seq: 4, frame: 7 });
}

#[test]
fn errors_say_code_message_and_details() {
    let failed = |error: Value| match one(&json!({"jsonrpc": "2.0", "id": 3, "error": error})) {
        AgentItem::RequestFailed { seq: 3, frame: 7, code, message } => (code, message),
        item => panic!("{item:?}"),
    };
    let data = json!({"uri": "u", "reason": "gone", "details": "not resolved"});
    assert_eq!(
        failed(json!({"code": -32002, "message": "Not found", "data": data})),
        (-32002, "Not found: not resolved".to_owned())
    );
    assert_eq!(
        failed(json!({"code": -32602, "message": "Invalid params", "data": "Unknown id"})),
        (-32602, "Invalid params: Unknown id".to_owned())
    );
    assert_eq!(
        failed(json!({"code": "-31002", "message": "m", "data": {"sessionId": "x"}})),
        (-31002, "m: {\"sessionId\":\"x\"}".to_owned())
    );
    assert_eq!(failed(json!("broken")), (-32603, "broken".to_owned()));
    assert_eq!(failed(json!({})), (-32603, "no message".to_owned()));
    let (_, message) = failed(json!({"code": 1, "message": "x".repeat(9000), "data": "y".repeat(9000)}));
    assert!(message.len() < 1100);
}

#[test]
fn duplicates_and_unknown_answers_are_counted_and_mean_nothing() {
    let mut peer = peer(UsageKind::None);
    let line = answer(&json!(3), json!({"stopReason": "end_turn"})).to_string();
    assert_eq!(peer.items(&line, 1).len(), 1);
    assert!(peer.items(&line, 2).is_empty());
    assert!(peer.items(&answer(&json!(99), json!({})).to_string(), 3).is_empty());
    assert!(
        peer.items(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}"#, 4).is_empty()
    );
    assert_eq!(peer.state().stray_answers, 3);
    // Noted a second time after a restart: an answered request is not reopened.
    peer.expect(3, &prompt());
    assert!(peer.items(&line, 5).is_empty());
}

#[test]
fn other_requests_are_unknown_and_other_notifications_are_kept() {
    let line = json!({"jsonrpc": "2.0", "id": "x", "method": "terminal/create", "params": {"path": "/a"}});
    let expected = AgentItem::UnknownRequest {
        request_id: "\"x\"".to_owned(),
        frame: 7,
        method: "terminal/create".to_owned(),
    };
    assert_eq!(one(&line), expected);
    let line = json!({"jsonrpc": "2.0", "method": "_auth/status_update", "params": {"authStatus": {"kind": "api_key"}}});
    let AgentItem::Output { output: AgentOutput::Other { name, .. }, .. } = one(&line) else { panic!() };
    assert_eq!(name, "_auth/status_update");
    // An update that wants an answer is both.
    let line = json!({"jsonrpc": "2.0", "id": 9, "method": "session/update", "params": {"sessionId": "s", "update": {}}});
    assert_eq!(peer(UsageKind::None).items(&line.to_string(), 1).len(), 2);
}

#[test]
fn lines_that_are_no_frames_are_junk() {
    for line in [
        "\u{1b}[32mready\u{1b}[0m",
        "{\"jsonrpc\":",
        "[1,2]",
        "null",
        "{}",
        "{\"level\":\"info\",\"id\":3}",
        "{\"level\":\"info\",\"id\":3,\"method\":\"GET\"}",
        "{\"jsonrpc\":\"2.0\"} trailing",
    ] {
        let items = peer(UsageKind::None).items(line, 1);
        assert!(matches!(&*items, [AgentItem::Junk { count: 1, .. }]), "{line}: {items:?}");
    }
    let long = "ä".repeat(5000);
    let items = peer(UsageKind::None).items(&long, 1);
    assert!(
        matches!(&*items, [AgentItem::Junk { bytes: 10_000, sample, .. }] if sample.chars().count() == 201)
    );
}

#[test]
fn envelopes_are_read_leniently() {
    let items = |line: &str| peer(UsageKind::None).items(line, 1);
    // Without `jsonrpc`, with a byte order mark, with a member twice, with an id as a float.
    assert_eq!(items("\u{feff}{\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}").len(), 1);
    assert_eq!(items("{\"jsonrpc\":\"2.0\",\"id\":9,\"id\":3.0,\"result\":{}}").len(), 1);
    assert!(matches!(&*items("{\"method\":\"session/update\",\"params\":{}}"), [AgentItem::Output { .. }]));
    // Half a surrogate pair in a chunk costs one character.
    let line = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\ud83d"}}}}"#;
    assert!(
        matches!(&*items(line), [AgentItem::Output { output: AgentOutput::Message { text }, .. }] if text == "a\u{fffd}")
    );
    // Nesting beyond the reader's limit stays as text.
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"x/y\",\"params\":{}{}}}",
        "[".repeat(5000),
        "]".repeat(5000)
    );
    assert!(matches!(
        &*items(&deep),
        [AgentItem::Output { output: AgentOutput::Other { raw: Value::String(_), .. }, .. }]
    ));
}

#[test]
fn an_oversized_line_is_an_item() {
    let item = peer(UsageKind::None).line_items(&Line::Oversized { bytes: 9, may_be_answer: true }, 1);
    assert_eq!(item, [AgentItem::Oversized { bytes: 9, may_be_answer: true }]);
}
