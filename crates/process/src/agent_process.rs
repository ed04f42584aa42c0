//! What a shim is told to start, and what it says about it.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::identity::ProcessIdentity;

/// The agent's own process; the leader of its process group.
pub type AgentProcess = ProcessIdentity;

/// Six hours: a daemon that is down for longer is not coming back to this work, and an agent costs money.
pub const OWNERLESS_MAX_MS_DEFAULT: u64 = 6 * 60 * 60 * 1000;

/// 1 GiB: far above what a daemon leaves unread for a moment, far below what fills a disk.
pub const SPOOL_MAX_BYTES_DEFAULT: u64 = 1 << 30;

/// How to start an agent. Travels only over the shim's socket; it may hold secrets and is never written to disk.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartSpec {
    /// The program (looked up in the `PATH` of `env` when it has no slash) and its arguments.
    pub argv: Vec<String>,
    /// The whole environment; nothing is inherited.
    pub env: Vec<(String, String)>,
    /// Absolute.
    pub cwd: PathBuf,
    /// Milliseconds from the start after which the shim ends the tree, daemon or not; 0 for none.
    pub hard_deadline_ms: u64,
    /// Milliseconds without an attached daemon after which the shim ends the tree; 0 for the default.
    pub ownerless_max_ms: u64,
    /// Bytes of spool on disk above which the agent's output is left in its pipe; 0 for the default.
    pub spool_max_bytes: u64,
    /// The run marker, unique to this generation; goes into the agent's environment.
    pub marker: String,
}

impl fmt::Debug for StartSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("StartSpec")
            .field("argv", &self.argv)
            .field("env", &names)
            .field("cwd", &self.cwd)
            .field("hard_deadline_ms", &self.hard_deadline_ms)
            .field("ownerless_max_ms", &self.ownerless_max_ms)
            .field("spool_max_bytes", &self.spool_max_bytes)
            .field("marker", &self.marker)
            .finish()
    }
}

/// How a process ended: exactly one of the two is known, or neither when nobody could wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExitStatus {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_names_of_variables_and_never_their_values() {
        let spec = StartSpec {
            argv: vec!["agent".to_owned()],
            env: vec![("API_TOKEN".to_owned(), "hunter2".to_owned())],
            cwd: PathBuf::from("/"),
            hard_deadline_ms: 0,
            ownerless_max_ms: 0,
            spool_max_bytes: 0,
            marker: "m".to_owned(),
        };
        let text = format!("{spec:?}");
        assert!(text.contains("API_TOKEN") && !text.contains("hunter2"), "{text}");
    }
}
