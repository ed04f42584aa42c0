//! Finding and ending every process of a run.
//!
//! A shim knows its tree because it is its subreaper. When the shim itself was killed, its tree is scattered under
//! init, and only the run marker in each process's environment still tells whose it is. A process that replaced its
//! environment *and* lost its shim cannot be found this way; that is the limit of these means.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::identity::{ProcessIdentity, Signal, process_alive, signal_identity};
use crate::proc_files::{all_pids, living_descendants, read_environment, read_stat};

/// The variable that carries the run marker in the environment of an agent and all it starts.
pub const RUN_MARKER_VARIABLE: &str = "RALLY_GENERATION";

/// Short, because each look ends the wait; long enough that scanning `/proc` stays cheap.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A killed process is gone within milliseconds unless it hangs in the kernel; five seconds tell the two apart.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// What a sweep did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepReport {
    /// Every process that was seen with the marker.
    pub found: Vec<ProcessIdentity>,
    /// Those that had to be killed because they outlived the grace period.
    pub killed: Vec<ProcessIdentity>,
    /// Those still there at the end: not ours to signal, or stuck in the kernel.
    pub left: Vec<ProcessIdentity>,
}

/// Living processes whose marker is exactly `marker`, without this process.
pub fn find_marked(marker: &str) -> Vec<ProcessIdentity> {
    find(|value| value == marker.as_bytes())
}

/// Living processes whose marker starts with `prefix`, without this process. For a data folder's own prefix; an empty
/// one finds nothing, or it would find the agents of every daemon on the machine.
pub fn find_marked_prefix(prefix: &str) -> Vec<ProcessIdentity> {
    if prefix.is_empty() {
        return Vec::new();
    }
    find(|value| value.starts_with(prefix.as_bytes()))
}

/// Living descendants of a process at any depth, without itself.
pub fn descendants_of(pid: u32) -> Vec<ProcessIdentity> {
    living_descendants(pid)
}

/// Signals each of these that is still the same process; returns those that were signalled.
pub fn kill_identities(identities: &[ProcessIdentity], signal: Signal) -> Vec<ProcessIdentity> {
    identities.iter().copied().filter(|identity| signal_identity(*identity, signal)).collect()
}

/// Ends every process with this marker: SIGTERM, up to `grace`, then SIGKILL until none is left or patience is.
///
/// Processes that a marked one starts meanwhile carry the marker too, so it looks again instead of trusting a list.
pub async fn sweep(marker: &str, grace: Duration) -> SweepReport {
    let mut found = BTreeSet::new();
    let mut asked = BTreeSet::new();
    let mut killed = BTreeSet::new();
    let kill_at = Instant::now() + grace;
    let give_up_at = kill_at + KILL_PATIENCE;
    loop {
        let alive = find_marked(marker);
        found.extend(alive.iter().copied());
        let now = Instant::now();
        if alive.is_empty() || now >= give_up_at {
            return SweepReport {
                found: found.into_iter().collect(),
                killed: killed.into_iter().collect(),
                left: alive,
            };
        }
        if now >= kill_at {
            killed.extend(kill_identities(&alive, Signal::Kill));
        } else {
            let fresh: Vec<_> = alive.into_iter().filter(|identity| asked.insert(*identity)).collect();
            kill_identities(&fresh, Signal::Terminate);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn find(wanted: impl Fn(&[u8]) -> bool) -> Vec<ProcessIdentity> {
    let own = std::process::id();
    all_pids()
        .into_iter()
        .filter(|pid| *pid != own)
        .filter_map(|pid| {
            // The identity is taken before the environment is read and compared after it, or a pid recycled in
            // between would be taken for the marked process.
            let stat = read_stat(pid)?;
            let environment = read_environment(pid)?;
            let marked = marker_of(&environment).is_some_and(&wanted);
            (marked && process_alive(stat.identity())).then(|| stat.identity())
        })
        .collect()
}

fn marker_of(environment: &[u8]) -> Option<&[u8]> {
    environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(RUN_MARKER_VARIABLE.as_bytes())?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_matched_as_a_whole_variable() {
        assert_eq!(marker_of(b"A=1\0RALLY_GENERATION=x/1\0B=2\0"), Some(b"x/1".as_slice()));
        assert_eq!(marker_of(b"XRALLY_GENERATION=x\0RALLY_GENERATIONS=y\0A=RALLY_GENERATION=z\0"), None);
    }

    #[test]
    fn a_recycled_pid_is_not_signalled() {
        let own = ProcessIdentity::of(std::process::id()).unwrap();
        let stranger = ProcessIdentity { start_time: own.start_time + 1, ..own };
        assert!(process_alive(own));
        assert!(!process_alive(stranger));
        assert_eq!(kill_identities(&[stranger], Signal::Kill), Vec::new());
    }
}
