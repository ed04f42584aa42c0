//! The shim: what keeps an agent when the daemon is gone.
//!
//! It owns the agent's pipes and process tree, writes all that passes through them to the spool, and takes commands
//! over a socket from whichever daemon attached last. One thread and `poll`, no async runtime, fixed buffers: it must
//! cost next to nothing while an agent idles for hours, and there must be little in it that can fail.
//!
//! It starts nothing before it is told to, never starts twice in a folder, and never drops what the agent said: when
//! the spool cannot take more, the agent waits on its own pipe.

mod agent;
mod connection;
mod ending;
mod generation;
mod journal;
mod requests;
mod server;
mod setup;
mod signals;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::fault_point;
use crate::shim::server::Server;
pub(crate) use crate::shim::setup::{LOCK_FILE, REVOKED_FILE, SOCKET_FILE};
use crate::spool::{FORMAT_VERSION, SEGMENT_BYTES_DEFAULT};

/// Milliseconds the shim waits for `start`; for tests.
pub const START_WAIT_VARIABLE: &str = "RALLY_SHIM_START_MS";
/// Milliseconds between SIGTERM and SIGKILL; for tests.
pub const GRACE_VARIABLE: &str = "RALLY_SHIM_GRACE_MS";
/// Bytes of one spool segment; for tests.
pub const SEGMENT_BYTES_VARIABLE: &str = "RALLY_SHIM_SEGMENT_BYTES";
/// Spool format that the shim writes, as a program of another version would; for tests.
pub const SPOOL_VERSION_VARIABLE: &str = "RALLY_SHIM_SPOOL_VERSION";
/// Safeguards of the shim that are left out, by their names with commas between; for tests.
pub const FAULT_VARIABLE: &str = "RALLY_SHIM_FAULT";

/// Waits and sizes of a shim that tests shorten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShimOptions {
    /// A daemon that launched a shim starts its agent at once; one that does not within ten seconds has died.
    pub(crate) start_wait: Duration,
    /// What an agent gets for an orderly end at a limit.
    pub(crate) grace: Duration,
    pub(crate) segment_bytes: u64,
    pub(crate) spool_version: u32,
    /// `no-epoch-check`: a daemon with an older epoch is let in.
    pub(crate) no_epoch_check: bool,
    /// `no-input-seq`: input with a number that was taken before is taken again.
    pub(crate) no_input_seq: bool,
}

impl ShimOptions {
    fn from_environment() -> Self {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        // A release build knows no faults.
        let faults =
            std::env::var(FAULT_VARIABLE).ok().filter(|_| cfg!(debug_assertions)).unwrap_or_default();
        let fault = |name: &str| faults.split(',').any(|part| part.trim() == name);
        ShimOptions {
            start_wait: Duration::from_millis(number(START_WAIT_VARIABLE).unwrap_or(10_000)),
            grace: Duration::from_millis(number(GRACE_VARIABLE).unwrap_or(5_000)),
            segment_bytes: number(SEGMENT_BYTES_VARIABLE).unwrap_or(SEGMENT_BYTES_DEFAULT),
            spool_version: number(SPOOL_VERSION_VARIABLE)
                .filter(|_| cfg!(debug_assertions))
                .and_then(|version| u32::try_from(version).ok())
                .unwrap_or(FORMAT_VERSION),
            no_epoch_check: fault("no-epoch-check"),
            no_input_seq: fault("no-input-seq"),
        }
    }
}

/// The body of `rally shim <folder>`; returns when the shim is done.
///
/// Call it before any thread or async runtime exists in the process: it installs signal handlers, makes the process
/// a session of its own and a subreaper, and reaps every child there is.
pub fn run_shim(folder: &Path) -> ExitCode {
    fault_point::arm(fault_point::SHIM_VARIABLE);
    let outcome = setup::prepare(folder, ShimOptions::from_environment()).map(Server::run);
    match outcome {
        Ok(code) => code,
        Err(error) => {
            // Standard error is the folder's log; where it cannot be written there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "shim: {error}");
            ExitCode::FAILURE
        }
    }
}
