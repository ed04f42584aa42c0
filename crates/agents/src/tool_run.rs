//! A shell command as a tool call: begun, streamed, and ended with its exit code.

use std::process::Command;

use serde_json::json;

use rallypoint_acp::agent_side::{ToolUpdate, Turn};

use crate::output::{HeadTail, one_line, split_front};
use crate::run::{Ended, Streams, run};

/// How much output of one command is streamed. What comes after it is counted;
/// beginning and end still reach the message.
const STREAMED_BYTES: usize = 1024 * 1024;
/// Longest title of a tool call, in characters.
const TITLE_CHARS: usize = 120;
/// What a shell answers for a command that cannot be started (POSIX, "Exit Status for Commands").
const CANNOT_START: i32 = 126;

/// A command that ran.
#[derive(Debug)]
pub(crate) struct CommandRun {
    /// The command text.
    pub(crate) command: String,
    /// How it ended.
    pub(crate) ended: Ended,
    /// Its output, bounded.
    pub(crate) output: HeadTail,
}

impl CommandRun {
    /// The command as one short line.
    pub(crate) fn title(&self) -> String {
        one_line(&self.command, TITLE_CHARS)
    }

    /// Whether the command went well.
    pub(crate) fn passed(&self) -> bool {
        self.ended.code == 0 && !self.ended.cancelled
    }
}

/// Runs a command text with `sh -e` in the session's folder and reports it as a tool call.
pub(crate) fn run_command(turn: &Turn, tool_call_id: &str, text: &str) -> CommandRun {
    let cwd = &turn.session.cwd;
    let raw_input = json!({"command": text, "cwd": cwd});
    turn.send_tool_call(tool_call_id, &one_line(text, TITLE_CHARS), "execute", raw_input);
    let mut command = Command::new("sh");
    command.args(["-e", "-c", text]).current_dir(cwd);
    let mut output = HeadTail::default();
    let mut room = STREAMED_BYTES;
    let mut cut_bytes = 0_u64;
    let mut stream = |text: &str| {
        output.push(text);
        let (streamed, cut) = if text.len() <= room { (text, "") } else { split_front(text, room.max(1)) };
        let streamed = if room == 0 { "" } else { streamed };
        cut_bytes += (text.len() - streamed.len()) as u64;
        room = if cut.is_empty() { room - streamed.len() } else { 0 };
        if !streamed.is_empty() {
            turn.send_tool_update(tool_call_id, ToolUpdate { text: Some(streamed), ..ToolUpdate::default() });
        }
    };
    let ended = match run(command, Streams::Joined, None, turn, |_, text| stream(text)) {
        Ok(ended) => ended,
        Err(error) => {
            stream(&format!("cannot run `sh` in `{}`: {error}\n", cwd.display()));
            Ended { code: CANNOT_START, signal: None, cancelled: false }
        }
    };
    let note = (cut_bytes > 0).then(|| format!("\n[{cut_bytes} bytes of output are not shown]\n"));
    let status = if ended.code == 0 && !ended.cancelled { "completed" } else { "failed" };
    turn.send_tool_update(
        tool_call_id,
        ToolUpdate {
            status: Some(status),
            text: note.as_deref(),
            raw_output: Some(
                json!({"exitCode": ended.code, "signal": ended.signal, "outputBytes": output.bytes}),
            ),
            ..ToolUpdate::default()
        },
    );
    CommandRun { command: text.to_owned(), ended, output }
}
