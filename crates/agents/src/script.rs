//! The script of the scripted agent.
//!
//! ```toml
//! [[turns]]
//! steps = [
//!     { say = "Looking at it.\n" },
//!     { run = "make test" },
//!     { write = { path = "notes.md", text = "done\n" } },
//!     { report = { diffSummary = "one note" } },
//! ]
//! ```

use serde::Deserialize;
use serde_json::Value;

/// A script: turn n of a session plays `turns[n]`, and the last one repeats.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    /// The turns.
    pub(crate) turns: Vec<ScriptTurn>,
}

/// What is done for one prompt.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptTurn {
    /// In this order.
    pub(crate) steps: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Says something.
    Say(String),
    /// Thinks aloud.
    Think(String),
    /// Says what is planned.
    Plan(Vec<String>),
    /// Runs a shell command.
    Run(String),
    /// Writes a file in the session's folder.
    Write {
        /// Relative to the folder.
        path: String,
        /// Its whole content.
        text: String,
    },
    /// Waits until a file exists in the session's folder.
    AwaitFile {
        /// Relative to the folder.
        path: String,
        /// At most this many milliseconds.
        deadline_ms: u64,
    },
    /// Waits this many milliseconds.
    PauseMs(u64),
    /// Asks for permission, and ends the turn when it is not given.
    AskPermission {
        /// What for.
        title: String,
        /// Tool kind.
        kind: String,
    },
    /// Sends a completion report.
    Report(Value),
    /// Ends the turn with this stop reason.
    Stop(String),
    /// Ends the process.
    Exit(u8),
}
