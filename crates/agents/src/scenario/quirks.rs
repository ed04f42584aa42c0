//! What real agents were seen doing beside the protocol's letter.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rallypoint_acp::agent_side::Turn;
use rallypoint_acp::rpc::{INTERNAL_ERROR, RpcError};
use serde_json::json;

/// How often `slow-open` shows that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_millis(50);
/// Longer than late words are waited for.
const LONG_AFTER: Duration = Duration::from_millis(600);
/// A failure of a provider, told as if it were an answer.
pub(super) const APOLOGY: &str = "I'm sorry, something went wrong. API Error: 500 internal server error.";

/// A start that takes its time.
#[derive(Debug)]
pub(super) struct SlowStart {
    pub(super) milliseconds: u64,
}

impl SlowStart {
    pub(super) fn pass(&self) {
        let mut left = Duration::from_millis(self.milliseconds);
        while !left.is_zero() {
            thread::sleep(SIGN_OF_LIFE.min(left));
            left = left.saturating_sub(SIGN_OF_LIFE);
            // A reader that is gone is no reason to stop.
            let _ = std::io::stderr().write_all(b"a tool server is still starting\n");
        }
    }
}

/// The error that the arguments name: its code, then its words.
pub(super) fn error_of(args: &[String]) -> Result<RpcError, String> {
    let (code, words) = args.split_first().ok_or("a code and a message are needed")?;
    let code = code.parse().map_err(|_| format!("`{code}` is no code"))?;
    Ok(RpcError::new(code, words.join(" ")))
}

/// As a tool server that does not notice that its client has gone.
pub(super) fn leave_child(turn: &Turn) -> Result<(), RpcError> {
    let child = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| RpcError::new(INTERNAL_ERROR, format!("cannot run `sleep`: {error}")))?;
    turn.send_message_chunk(&format!("left {} behind", child.id()));
    Ok(())
}

/// Words of a conversation that was never opened, and then of the own one, long after the turn.
pub(super) fn work_on(turn: &Turn) {
    thread::sleep(LONG_AFTER);
    let update = json!({
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a child's words"},
    });
    turn.client.notify("session/update", json!({"sessionId": "a-child", "update": update}));
    turn.send_message_chunk("and one more thing");
}
