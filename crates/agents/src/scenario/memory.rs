//! An agent that keeps its session in a file, and dies in the middle of its first prompts.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use rallypoint_acp::agent_side::{Client, Session, Turn};
use rallypoint_acp::rpc::{INTERNAL_ERROR, RESOURCE_NOT_FOUND, RpcError};
use serde_json::json;

/// What it knows of its sessions.
#[derive(Debug)]
pub(super) struct Memory {
    file: PathBuf,
    /// Prompts in which it dies.
    cuts: u64,
    loads: bool,
}

impl Memory {
    pub(super) fn new(file: PathBuf, cuts: u64, loads: bool) -> Self {
        Self { file, cuts, loads }
    }

    /// Adds a line to the file.
    pub(super) fn note(&self, cwd: &Path, line: &str) -> Result<(), RpcError> {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(cwd.join(&self.file))
            .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
            .map_err(|error| RpcError::new(INTERNAL_ERROR, format!("cannot remember: {error}")))
    }

    fn lines(&self, cwd: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(cwd.join(&self.file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Replays what was said, as loading a session does.
    pub(super) fn load(&self, session: &Session, client: &Client) -> Result<(), RpcError> {
        let known = self.lines(&session.cwd).contains(&format!("session {}", session.session_id));
        if !known || !self.loads {
            let message = format!("Resource not found: session `{}`", session.session_id);
            return Err(RpcError::new(RESOURCE_NOT_FOUND, message));
        }
        for (kind, text) in [("user_message_chunk", "the goal"), ("agent_message_chunk", "I have begun")] {
            let update = json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
            client.notify("session/update", json!({"sessionId": session.session_id, "update": update}));
        }
        self.note(&session.cwd, "loaded")
    }

    /// Prompts that were noted.
    pub(super) fn prompts(&self, cwd: &Path) -> u64 {
        self.lines(cwd).iter().filter(|line| line.starts_with("prompt")).count() as u64
    }

    pub(super) fn prompt(&self, turn: &Turn) -> Result<(), RpcError> {
        let cwd = &turn.session.cwd;
        let before = self.prompts(cwd);
        let first = turn.prompt.first().map(|block| block.text.lines().next().unwrap_or_default().to_owned());
        self.note(cwd, &format!("prompt {}", first.unwrap_or_default()))?;
        if before < self.cuts {
            turn.send_message_chunk("I have begun");
            std::process::exit(9);
        }
        turn.send_message_chunk("continued to the end");
        Ok(())
    }
}
