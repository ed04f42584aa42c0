//! A data folder of its own for each test, with everything that lives in it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rallypoint_process::sweep::{find_marked_prefix, kill_identities};
use rallypoint_process::{ProcessIdentity, Signal, process_alive};
use rallypoint_server::SOCKET_NAME;
use rallypoint_store::DATABASE_FILE;
use tempfile::TempDir;

/// Longest wait for killed processes to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two looks at whether they are.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A process that belongs to a data folder, with how that shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnProcess {
    /// Which.
    pub identity: ProcessIdentity,
    /// How it shows that it is ours.
    pub how: String,
}

/// A temporary data folder. When it is dropped, every process that provably belongs to it is killed, so that a test
/// leaks nothing even when it panics.
///
/// Proof is one of: we started it as a daemon; its arguments name a shim or daemon of this folder; it works in this
/// folder; its environment carries a run marker of this folder.
#[derive(Debug)]
pub struct DataFolder {
    folder: TempDir,
    marker_prefix: String,
    daemons: Arc<Mutex<Vec<ProcessIdentity>>>,
}

impl DataFolder {
    /// Makes one.
    pub fn new() -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("rally-test-").tempdir()?;
        let metadata = std::fs::metadata(folder.path())?;
        // As the daemon names a folder in run markers: device and inode, then boot and generation.
        let marker_prefix = format!("{:x}-{:x}:", metadata.dev(), metadata.ino());
        Ok(Self { folder, marker_prefix, daemons: Arc::default() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The socket of its daemon.
    pub fn socket(&self) -> PathBuf {
        self.path().join(SOCKET_NAME)
    }

    /// Its database.
    pub fn database(&self) -> PathBuf {
        self.path().join(DATABASE_FILE)
    }

    pub(crate) fn own_daemon(&self, identity: ProcessIdentity) {
        self.daemons.lock().unwrap_or_else(PoisonError::into_inner).push(identity);
    }

    /// Living daemons of this folder.
    pub fn daemons(&self) -> Vec<OwnProcess> {
        let started = self.daemons.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut found: Vec<OwnProcess> = started
            .into_iter()
            .filter(|identity| process_alive(*identity))
            .map(|identity| OwnProcess { identity, how: "daemon".to_owned() })
            .collect();
        found.extend(self.named_in_arguments("serve"));
        found
    }

    /// Living processes of this folder's agents: shims, marked ones, and those that work in it.
    pub fn agent_processes(&self) -> Vec<OwnProcess> {
        let mut found = self.named_in_arguments("shim");
        found.extend(find_marked_prefix(&self.marker_prefix).into_iter().map(|identity| OwnProcess {
            identity,
            how: format!("run marker: {}", arguments(identity.pid).join(" ")),
        }));
        found.extend(self.working_here());
        found.sort_by_key(|process| process.identity);
        found.dedup_by_key(|process| process.identity);
        let daemons = self.daemons();
        found.retain(|process| !daemons.iter().any(|daemon| daemon.identity == process.identity));
        found
    }

    /// Living shims of this folder.
    pub fn shims(&self) -> Vec<ProcessIdentity> {
        self.named_in_arguments("shim").into_iter().map(|process| process.identity).collect()
    }

    /// Living agents of this folder: the children of its shims.
    pub fn agents(&self) -> Vec<ProcessIdentity> {
        let shims: Vec<u32> = self.shims().iter().map(|shim| shim.pid).collect();
        living().filter(|identity| parent(identity.pid).is_some_and(|pid| shims.contains(&pid))).collect()
    }

    fn named_in_arguments(&self, role: &str) -> Vec<OwnProcess> {
        living()
            .filter_map(|identity| {
                let arguments = arguments(identity.pid);
                let plays_role = arguments.iter().any(|argument| argument == role);
                let names_us = arguments.iter().any(|argument| Path::new(argument).starts_with(self.path()));
                (plays_role && names_us).then(|| OwnProcess { identity, how: arguments.join(" ") })
            })
            .collect()
    }

    fn working_here(&self) -> Vec<OwnProcess> {
        living()
            .filter(|identity| {
                std::fs::read_link(format!("/proc/{}/cwd", identity.pid))
                    .is_ok_and(|folder| folder.starts_with(self.path()))
            })
            .map(|identity| OwnProcess {
                identity,
                how: format!("work folder: {}", arguments(identity.pid).join(" ")),
            })
            .collect()
    }

    /// Kills daemons first, so that nothing new is started, then all else, until nothing is found.
    fn kill_everything(&self) {
        let give_up = Instant::now() + KILL_PATIENCE;
        while Instant::now() < give_up {
            let mut found = self.daemons();
            if found.is_empty() {
                found = self.agent_processes();
            }
            if found.is_empty() {
                return;
            }
            let identities: Vec<ProcessIdentity> = found.iter().map(|process| process.identity).collect();
            kill_identities(&identities, Signal::Kill);
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        self.kill_everything();
    }
}

/// Every living process but this one.
fn living() -> impl Iterator<Item = ProcessIdentity> {
    let own = std::process::id();
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(move |pid| *pid != own)
        .filter_map(ProcessIdentity::of)
        .filter(|identity| process_alive(*identity))
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn arguments(pid: u32) -> Vec<String> {
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .unwrap_or_default()
        .split(|byte| *byte == 0)
        .filter(|part| !part.is_empty())
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_works_in_the_folder_ends_with_it_and_others_stay() {
        let folder = DataFolder::new().unwrap();
        let sleeper = |place: &Path| {
            Command::new("sleep").arg("600").current_dir(place).stdin(Stdio::null()).spawn().unwrap()
        };
        let mut ours = sleeper(folder.path());
        let mut other = sleeper(Path::new("/"));
        assert_eq!(
            folder.agent_processes().iter().map(|process| process.identity.pid).collect::<Vec<_>>(),
            [ours.id()]
        );
        drop(folder);
        assert!(!ours.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
