//! Fault points: named places at which a process kills itself, so that a test can show what comes of a crash there.
//!
//! Nothing happens unless the environment asks for it; in use nothing does, and passing a point costs one load.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

/// Names the point at which a daemon kills itself, as `NAME` or `NAME:N` for the n-th time it is passed.
pub const DAEMON_VARIABLE: &str = "RALLY_FAULT_POINT";
/// The same for a shim.
pub const SHIM_VARIABLE: &str = "RALLY_SHIM_FAULT_POINT";
/// What is put behind the name of a variable for the one that names the note.
pub const NOTE_SUFFIX: &str = "_NOTE";

#[derive(Debug)]
struct Armed {
    name: String,
    at: u64,
    passed: AtomicU64,
    /// Made by whoever kills itself first; the others go on. It also shows that the point was reached.
    note: Option<PathBuf>,
}

static ARMED: OnceLock<Option<Armed>> = OnceLock::new();

/// Reads from this variable, once and for good, which point of this process is armed.
pub fn arm(variable: &str) {
    ARMED.get_or_init(|| {
        // A release build has no such points: no variable may end a process that people rely on.
        if !cfg!(debug_assertions) {
            return None;
        }
        let text = std::env::var(variable).ok()?;
        let (name, at) = match text.rsplit_once(':').and_then(|(name, at)| Some((name, at.parse().ok()?))) {
            Some((name, at)) => (name.to_owned(), at),
            None => (text, 1),
        };
        let note = std::env::var_os(format!("{variable}{NOTE_SUFFIX}")).map(PathBuf::from);
        Some(Armed { name, at, passed: AtomicU64::new(0), note })
    });
}

/// A point is passed; the process dies here when this is the time that was asked for.
pub fn pass(name: &str) {
    let Some(Some(armed)) = ARMED.get() else { return };
    if armed.name != name || armed.passed.fetch_add(1, Ordering::SeqCst) + 1 != armed.at {
        return;
    }
    if let Some(note) = &armed.note {
        let Ok(mut file) = OpenOptions::new().write(true).create_new(true).open(note) else { return };
        // The file itself says enough when nothing can be written into it.
        let _ = writeln!(file, "{name}:{}", armed.at);
    }
    // Fails for no process that may signal itself; it would then go on, which the test notices.
    let _ = kill_process(getpid(), Signal::KILL);
}
