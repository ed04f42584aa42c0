use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    AgentNotification, InitializeResponse, NewSessionResponse, PromptResponse, RequestPermissionRequest,
};
use serde_json::{Value, json};

use rallypoint_model::agent_io::{AgentInput, PromptBlock, PromptPart};

use super::*;
use crate::outbound::encode;
use crate::rpc::RpcError;

struct TestAgent;

impl Agent for TestAgent {
    fn name(&self) -> &'static str {
        "test"
    }

    fn prompt(&self, turn: &Turn) -> Result<PromptEnd, RpcError> {
        match turn.prompt.first().map(|block| block.text.as_str()) {
            Some("wait") => {
                turn.cancel.wait(Duration::from_secs(20));
                Ok(PromptEnd::stopped(if turn.cancel.is_set() { "cancelled" } else { "end_turn" }))
            }
            Some("ask") => {
                let choices = [PermissionChoice { id: "yes", name: "Yes", kind: "allow_once" }];
                let answer = turn.request_permission("call", "title", "execute", &choices);
                turn.send_message_chunk(&format!("{answer:?}"));
                Ok(PromptEnd::stopped("end_turn"))
            }
            Some("panic") => panic!("on purpose"),
            Some("parts") => {
                let parts: Vec<String> =
                    turn.prompt.iter().map(|block| format!("{:?}={}", block.part, block.text)).collect();
                turn.send_message_chunk(&parts.join(";"));
                Ok(PromptEnd::stopped("end_turn"))
            }
            _ => {
                turn.send_message_chunk("hi");
                turn.send_thought("hm");
                turn.send_tool_call("call", "ls", "execute", json!({"command": "ls"}));
                let update = ToolUpdate {
                    text: Some("out"),
                    raw_output: Some(json!({"exitCode": 0})),
                    ..ToolUpdate::default()
                };
                turn.send_tool_update("call", ToolUpdate { status: Some("completed"), ..update });
                turn.send_plan(json!([{"content": "a", "priority": "low", "status": "pending"}]));
                turn.send_message_chunk("");
                Ok(PromptEnd::stopped("end_turn"))
            }
        }
    }
}

struct Wire {
    to: Option<PipeWriter>,
    from: BufReader<PipeReader>,
    server: JoinHandle<std::io::Result<()>>,
    seq: u64,
}

impl Wire {
    fn start() -> Self {
        let (input, to) = pipe().unwrap();
        let (from, output) = pipe().unwrap();
        let server = thread::spawn(move || AgentServer::new(TestAgent).serve(BufReader::new(input), output));
        Self { to: Some(to), from: BufReader::new(from), server, seq: 0 }
    }

    fn open() -> (Self, String) {
        let mut wire = Self::start();
        wire.send(&AgentInput::NewSession { cwd: "/".to_owned(), tools: false });
        let session = wire.read()["result"]["sessionId"].as_str().unwrap().to_owned();
        (wire, session)
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.to.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn send(&mut self, input: &AgentInput) {
        self.seq += 1;
        let bytes = encode(input, self.seq);
        self.raw(&bytes);
    }

    fn prompt(&mut self, session: &str, text: &str) {
        let blocks = vec![PromptBlock { part: PromptPart::Task, text: text.to_owned() }];
        self.send(&AgentInput::Prompt {
            agent_session_id: session.to_owned(),
            blocks,
            attachments: Vec::new(),
        });
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or(Value::Null)
    }

    fn end(mut self) -> Vec<Value> {
        drop(self.to.take());
        let rest = self.from.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        self.server.join().unwrap().unwrap();
        rest
    }
}

fn result<T: serde::de::DeserializeOwned>(frame: &Value) -> T {
    serde_json::from_value(frame["result"].clone()).unwrap()
}

#[test]
fn what_we_say_as_an_agent_is_what_the_schema_knows() {
    let mut wire = Wire::start();
    wire.send(&AgentInput::Initialize);
    let hello: InitializeResponse = result(&wire.read());
    assert_eq!(hello.agent_info.unwrap().name, "test");
    wire.send(&AgentInput::NewSession { cwd: "/".to_owned(), tools: false });
    let session: NewSessionResponse = result(&wire.read());
    wire.prompt(&session.session_id.to_string(), "work");
    for _ in 0..5 {
        let frame = wire.read();
        let update = AgentNotification::from_method_and_params("session/update", &frame["params"]).unwrap();
        let AgentNotification::SessionNotification(update) = update else { panic!("{frame}") };
        // Nothing of it may be lost on the way through the official types.
        assert_eq!(serde_json::to_value(&update).unwrap()["update"], frame["params"]["update"]);
    }
    let end: PromptResponse = result(&wire.read());
    assert_eq!(serde_json::to_value(end.stop_reason).unwrap(), json!("end_turn"));
    assert!(wire.end().is_empty());
}

#[test]
fn blocks_arrive_with_their_parts() {
    let (mut wire, session) = Wire::open();
    let prompt = json!([
        {"type": "text", "text": "parts", "_meta": {"rallypoint/part": "goal"}},
        {"type": "text", "text": "b", "_meta": {"rallypoint/part": "new-part"}},
        {"type": "image", "data": ""},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "c"}},
    ]);
    let frame = json!({"jsonrpc": "2.0", "id": 9, "method": "session/prompt", "params": {"sessionId": session, "prompt": prompt}});
    wire.raw(format!("{frame}\n").as_bytes());
    let text = wire.read()["params"]["update"]["content"]["text"].as_str().unwrap().to_owned();
    assert_eq!(text, "Some(Goal)=parts;Some(Frame)=b;None=file:///a;None=c");
}

#[test]
fn a_cancel_ends_the_open_turn_only() {
    let (mut wire, session) = Wire::open();
    wire.send(&AgentInput::Cancel { agent_session_id: session.clone() });
    wire.prompt(&session, "wait");
    wire.prompt(&session, "work");
    assert_eq!(wire.read()["error"]["code"], -32600);
    wire.send(&AgentInput::Cancel { agent_session_id: "other".to_owned() });
    wire.send(&AgentInput::Cancel { agent_session_id: session.clone() });
    assert_eq!(wire.read()["result"]["stopReason"], "cancelled");
    wire.prompt(&session, "work");
    assert_eq!(wire.read()["params"]["update"]["content"]["text"], "hi");
}

#[test]
fn the_end_of_the_input_cancels_and_ends() {
    let (mut wire, session) = Wire::open();
    wire.prompt(&session, "wait");
    let rest = wire.end();
    assert_eq!(rest[0]["result"]["stopReason"], "cancelled");
}

#[test]
fn a_permission_is_asked_and_its_answer_heard() {
    let (mut wire, session) = Wire::open();
    for (answer, expected) in [
        (json!({"result": {"outcome": {"outcome": "selected", "optionId": "yes"}}}), "Selected(\"yes\")"),
        (json!({"result": {"outcome": {"outcome": "cancelled"}}}), "Cancelled"),
        (json!({"error": {"code": -32601, "message": "no"}}), "Cancelled"),
    ] {
        wire.prompt(&session, "ask");
        let ask = wire.read();
        let _: RequestPermissionRequest = serde_json::from_value(ask["params"].clone()).unwrap();
        let mut frame = answer;
        frame["jsonrpc"] = json!("2.0");
        frame["id"] = ask["id"].clone();
        wire.raw(format!("{frame}\n").as_bytes());
        assert_eq!(wire.read()["params"]["update"]["content"]["text"], expected);
        assert_eq!(wire.read()["result"]["stopReason"], "end_turn");
    }
    wire.prompt(&session, "ask");
    wire.read();
    wire.send(&AgentInput::Cancel { agent_session_id: session });
    assert_eq!(wire.read()["params"]["update"]["content"]["text"], "Cancelled");
}

#[test]
fn mistakes_of_the_client_are_answered_with_their_codes() {
    let (mut wire, session) = Wire::open();
    let mut code = |line: &str| {
        wire.raw(line.as_bytes());
        wire.raw(b"\n");
        wire.read()["error"]["code"].as_i64()
    };
    assert_eq!(code("not json"), Some(-32700));
    assert_eq!(code("\n[1]"), Some(-32600));
    assert_eq!(code("{\"jsonrpc\":\"2.0\"}"), Some(-32600));
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"session/load","params":{}}"#), Some(-32601));
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"a"}}"#), Some(-32602));
    assert_eq!(
        code(r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"x"}}"#),
        Some(-32002)
    );
    // Unknown notifications and answers to nothing are not answered.
    wire.raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"x/y\"}\n{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n");
    wire.prompt(&session, "panic");
    assert_eq!(wire.read()["error"]["code"], -32603);
    wire.prompt(&session, "work");
    assert_eq!(wire.read()["params"]["update"]["content"]["text"], "hi");
}

#[test]
fn a_client_that_stops_reading_does_not_stop_the_agent() {
    let (wire, session) = Wire::open();
    let Wire { mut to, from, server, .. } = wire;
    drop(from);
    let blocks = vec![PromptBlock { part: PromptPart::Task, text: "work".to_owned() }];
    let prompt = AgentInput::Prompt { agent_session_id: session, blocks, attachments: Vec::new() };
    to.as_mut().unwrap().write_all(&encode(&prompt, 9)).unwrap();
    drop(to);
    server.join().unwrap().unwrap();
}
