//! An agent that takes words while it is in a turn, or refuses them.
//!
//! Its turn lasts until it is told to finish, by words in the turn or, where it refuses those, by a file.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use rallypoint_acp::rpc::{INVALID_REQUEST, METHOD_NOT_FOUND};

/// Longest wait for the file; far above what a test takes.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const SESSION: &str = "steerable";

/// Plays it until the input ends. With a file it refuses words in its turn, and the turn ends when the file is there.
pub(super) fn serve(
    refuses_until: Option<&str>,
    mut input: impl BufRead,
    mut output: impl Write,
) -> ExitCode {
    let mut turn: Option<Value> = None;
    let mut line = String::new();
    while input.read_line(&mut line).is_ok_and(|length| length > 0) {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        line.clear();
        let id = message.get("id").cloned().unwrap_or_default();
        let mut frames = Vec::new();
        match message.get("method").and_then(Value::as_str).unwrap_or_default() {
            "initialize" => frames.push(answer(&id, &json!({"protocolVersion": 1, "agentCapabilities": {}}))),
            "session/new" => frames.push(answer(&id, &json!({"sessionId": SESSION}))),
            "session/prompt" if turn.is_none() => {
                frames.push(say("I have begun.\n"));
                turn = Some(id);
            }
            "session/prompt" if refuses_until.is_some() => {
                let error = json!({"code": INVALID_REQUEST, "message": "a prompt is open"});
                frames.push(json!({"jsonrpc": "2.0", "id": id, "error": error}));
                if let (Some(path), Some(open)) = (refuses_until, turn.take()) {
                    send(&mut output, &std::mem::take(&mut frames));
                    wait_for(Path::new(path));
                    frames.extend([say("I go on.\n"), answer(&open, &json!({"stopReason": "end_turn"}))]);
                }
            }
            "session/prompt" => {
                let words = message.pointer("/params/prompt").map(Value::to_string).unwrap_or_default();
                frames.extend([say("I have heard it.\n"), answer(&id, &json!({"stopReason": "end_turn"}))]);
                if words.contains("finish")
                    && let Some(open) = turn.take()
                {
                    frames.extend([say("I am done."), answer(&open, &json!({"stopReason": "end_turn"}))]);
                }
            }
            "session/cancel" => {
                frames.extend(turn.take().map(|open| answer(&open, &json!({"stopReason": "cancelled"}))));
            }
            "" => {}
            _ => {
                let error = json!({"code": METHOD_NOT_FOUND, "message": "not served"});
                frames.push(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        }
        send(&mut output, &frames);
    }
    ExitCode::SUCCESS
}

/// A client that is gone is noticed at the end of the input.
fn send(output: &mut impl Write, frames: &[Value]) {
    for frame in frames {
        let _ = writeln!(output, "{frame}").and_then(|()| output.flush());
    }
}

fn answer(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn say(text: &str) -> Value {
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": SESSION, "update": update}})
}

fn wait_for(path: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !path.exists() && Instant::now() < deadline {
        std::thread::sleep(LOOK_AGAIN);
    }
}
