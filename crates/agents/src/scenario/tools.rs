//! An agent that starts the tool server it is told of, as agents do that honour `mcpServers`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rallypoint_acp::agent_side::{PromptEnd, Turn};
use rallypoint_acp::rpc::{INTERNAL_ERROR, RpcError};
use serde_json::{Value, json};

/// How often a wait for the server looks whether the turn was cancelled.
const CANCEL_CHECK: Duration = Duration::from_millis(20);

/// Makes the calls of the file: `{"tool": …, "arguments": {…}}` in each line. With `"sayNothing": true` its result is
/// not said, and with `"repeat": true` the same frame is sent a second time after the answer. `{token}` stands for the
/// token of its tool server.
pub(super) fn prompt(turn: &Turn, file: &Path) -> Result<PromptEnd, RpcError> {
    let calls = std::fs::read_to_string(turn.session.cwd.join(file))
        .map_err(|error| failed(format!("cannot read its calls: {error}")))?;
    let Some(server) = turn.session.mcp_servers.first() else {
        turn.send_message_chunk("there is no tool server");
        return Ok(PromptEnd::stopped("end_turn"));
    };
    let told = server.get("env").and_then(Value::as_array).cloned().unwrap_or_default();
    let token =
        told.iter().filter(|it| it.get("name").and_then(Value::as_str) == Some("RALLY_SESSION_TOKEN"));
    let token = token.filter_map(|it| it.get("value")?.as_str()).collect::<String>();
    let mut server = Server::start(server)?;
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "scenario", "version": "1"}});
    server.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}))?;
    if server.answer(turn, 0)?.is_none() {
        return Ok(PromptEnd::stopped("cancelled"));
    }
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
    for (id, line) in (1_u64..).zip(calls.lines().filter(|line| !line.trim().is_empty())) {
        let call: Value = serde_json::from_str(&line.replace("{token}", &token))
            .map_err(|error| failed(format!("a call is no JSON: {error}")))?;
        let is_set = |name: &str| call.get(name).and_then(Value::as_bool) == Some(true);
        let params = json!({"name": call.get("tool"), "arguments": call.get("arguments")});
        let frame = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        for _ in 0..if is_set("repeat") { 2 } else { 1 } {
            server.send(&frame)?;
            let Some(answer) = server.answer(turn, id)? else {
                return Ok(PromptEnd::stopped("cancelled"));
            };
            if !is_set("sayNothing") {
                turn.send_message_chunk(&format!("{}\n", words(&answer)));
            }
        }
    }
    Ok(PromptEnd::stopped("end_turn"))
}

/// The text of a result, with a mark before it when the call failed.
fn words(answer: &Value) -> String {
    let text = answer.pointer("/result/content/0/text").and_then(Value::as_str);
    match (text, answer.pointer("/result/isError").and_then(Value::as_bool)) {
        (Some(text), Some(true)) => format!("failed: {text}"),
        (Some(text), _) => text.to_owned(),
        (None, _) => format!("error: {}", answer.pointer("/error/message").unwrap_or(&Value::Null)),
    }
}

struct Server {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Value>,
}

impl Server {
    fn start(described: &Value) -> Result<Self, RpcError> {
        let text = |name: &str| described.get(name).and_then(Value::as_str).unwrap_or_default();
        let items = |name: &str| described.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let mut command = Command::new(text("command"));
        command.args(items("args").iter().filter_map(Value::as_str));
        // As agents do that give such a server nothing but what it is told.
        command.env_clear();
        for variable in items("env") {
            let part = |name: &str| variable.get(name).and_then(Value::as_str).unwrap_or_default();
            command.env(part("name"), part("value"));
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(format!("cannot start its tool server: {error}")))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("its tool server has no pipes"));
        };
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(frame) = serde_json::from_str(&line) else { continue };
                if sender.send(frame).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, input, lines })
    }

    fn send(&mut self, frame: &Value) -> Result<(), RpcError> {
        self.input
            .write_all(format!("{frame}\n").as_bytes())
            .map_err(|error| failed(format!("its tool server does not read: {error}")))
    }

    /// The answer to this request; nothing when the turn is cancelled before it comes.
    fn answer(&self, turn: &Turn, id: u64) -> Result<Option<Value>, RpcError> {
        loop {
            match self.lines.recv_timeout(CANCEL_CHECK) {
                Ok(frame) if frame.get("id").and_then(Value::as_u64) == Some(id) => return Ok(Some(frame)),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if turn.cancel.is_set() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(failed("its tool server has ended")),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that reads the end of its input is gone by itself; a server must not outlive the turn either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(message: impl Into<String>) -> RpcError {
    RpcError::new(INTERNAL_ERROR, message)
}
