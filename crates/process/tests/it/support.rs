//! A shim in a temporary folder, and waiting.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rallypoint_process::client::{Attached, ShimHandle, launch_shim_with_environment};
use rallypoint_process::spool::{RecordKind, SpoolReader, SpoolRecord};
use rallypoint_process::sweep::{find_marked, kill_identities};
use rallypoint_process::{AgentProcess, ProcessIdentity, Signal, StartSpec, process_alive};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

/// Far more than any of this takes; only a hang reaches it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How long until a state outside of this process is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

pub(crate) struct Shim {
    _root: TempDir,
    pub(crate) folder: PathBuf,
    pub(crate) marker: String,
    pub(crate) process: ProcessIdentity,
    pub(crate) handle: ShimHandle,
    pub(crate) attached: Attached,
}

impl Shim {
    pub(crate) async fn launch() -> Self {
        Self::launch_with("g", &[]).await
    }

    pub(crate) async fn launch_with(folder: &str, switches: &[(&str, &str)]) -> Self {
        let root = TempDir::new().unwrap();
        let folder = root.path().join(folder);
        let pid = launch(&folder, switches);
        let process = ProcessIdentity::of(pid).expect("the shim runs");
        let (handle, attached) = ShimHandle::attach_launched(&folder, 1).await.unwrap();
        let marker = format!("test-{}", root.path().display());
        Shim { _root: root, folder, marker, process, handle, attached }
    }

    /// A shim with a running `sh -c script`.
    pub(crate) async fn with_script(script: &str) -> (Self, AgentProcess) {
        let shim = Self::launch().await;
        let agent = shim.handle.start(shim.script(script)).await.unwrap();
        (shim, agent)
    }

    pub(crate) fn script(&self, script: &str) -> StartSpec {
        self.command(&["/bin/sh", "-c", script])
    }

    pub(crate) fn command(&self, argv: &[&str]) -> StartSpec {
        StartSpec {
            argv: argv.iter().map(|part| (*part).to_owned()).collect(),
            env: vec![("PATH".to_owned(), std::env::var("PATH").unwrap())],
            cwd: PathBuf::from("/"),
            hard_deadline_ms: 0,
            ownerless_max_ms: 0,
            spool_max_bytes: 0,
            marker: self.marker.clone(),
        }
    }

    pub(crate) fn records(&self) -> Vec<SpoolRecord> {
        read_all(&self.folder)
    }

    /// Everything of one kind, joined.
    pub(crate) fn bytes(&self, kind: RecordKind) -> Vec<u8> {
        joined(&self.records(), kind)
    }

    pub(crate) fn text(&self, kind: RecordKind) -> String {
        String::from_utf8(self.bytes(kind)).unwrap()
    }

    pub(crate) async fn until_exited(&self) {
        let mut doorbell = self.handle.doorbell();
        let rung = timeout(PATIENCE, doorbell.wait_for(|doorbell| doorbell.exited)).await;
        rung.expect("the exit is announced").expect("the connection holds");
    }

    pub(crate) async fn until_closed(&self) {
        until_closed(&self.handle).await;
    }

    pub(crate) async fn until_output(&self, wanted: &str) {
        wait_for(&format!("output `{wanted}`"), || self.text(RecordKind::Out).contains(wanted)).await;
    }

    /// Leaves the shim without a daemon: a second one takes over and goes.
    pub(crate) async fn abandon(&self) {
        let (second, _) = ShimHandle::attach(&self.folder, u64::MAX).await.unwrap();
        self.until_closed().await;
        drop(second);
    }

    pub(crate) async fn until_gone(&self) {
        wait_for("the shim's end", || !process_alive(self.process)).await;
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        kill_identities(&[self.process], Signal::Kill);
        for _ in 0..100 {
            let left = find_marked(&self.marker);
            if left.is_empty() {
                return;
            }
            kill_identities(&left, Signal::Kill);
        }
    }
}

pub(crate) fn launch(folder: &Path, switches: &[(&str, &str)]) -> u32 {
    let switches: Vec<_> =
        switches.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    launch_shim_with_environment(Path::new(env!("CARGO_BIN_EXE_rally-test-shim")), folder, &switches).unwrap()
}

pub(crate) async fn until_closed(handle: &ShimHandle) {
    let mut doorbell = handle.doorbell();
    let closed = timeout(PATIENCE, doorbell.wait_for(|doorbell| doorbell.closed)).await;
    // The sender goes with the connection.
    drop(closed.expect("the connection ends"));
}

pub(crate) fn read_all(folder: &Path) -> Vec<SpoolRecord> {
    let mut reader = SpoolReader::open(folder, 0).unwrap();
    std::iter::from_fn(|| reader.next().unwrap()).collect()
}

pub(crate) fn joined(records: &[SpoolRecord], kind: RecordKind) -> Vec<u8> {
    records.iter().filter(|record| record.kind == kind).flat_map(|record| record.bytes.clone()).collect()
}

/// For states that nobody announces: looks until it holds.
pub(crate) async fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up_at = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < give_up_at, "waited in vain for {what}");
        sleep(LOOK_AGAIN).await;
    }
}
