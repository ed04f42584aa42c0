//! A daemon as a child process, to be killed.

use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rallypoint_client::Client;
use rallypoint_ops::types::{DaemonStatus, Empty};
use rallypoint_process::ProcessIdentity;

use crate::data_folder::DataFolder;

/// Time a daemon may take to listen. It takes tens of milliseconds; a loaded machine may need a hundred times that.
const READY_DEADLINE: Duration = Duration::from_secs(30);
/// Time it may take to end when asked.
const STOP_DEADLINE: Duration = Duration::from_secs(30);
/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(4);
/// Where it writes its log, in the data folder.
const LOG_FILE: &str = "daemon.log";
/// Lines of the log that an error shows.
const LOG_LINES: usize = 20;

/// A running `rally serve`. Dropping it kills it; its agents live on in their shims.
#[derive(Debug)]
pub struct DaemonProcess {
    child: Child,
    client: Client,
    log: PathBuf,
}

impl DaemonProcess {
    /// Starts one and waits until it answers.
    pub async fn start(program: &Path, folder: &DataFolder, fault: Option<&str>) -> anyhow::Result<Self> {
        let mut daemon = Self::spawn(program, folder, fault)?;
        daemon.ready().await?;
        Ok(daemon)
    }

    /// Starts one, whatever becomes of it. `fault` names the safeguard to be left out.
    pub fn spawn(program: &Path, folder: &DataFolder, fault: Option<&str>) -> anyhow::Result<Self> {
        let fault: Vec<(String, String)> =
            fault.map(|fault| ("RALLY_FAULT".to_owned(), fault.to_owned())).into_iter().collect();
        Self::spawn_with(program, folder, &fault)
    }

    /// Starts one with more variables in its environment.
    pub fn spawn_with(
        program: &Path,
        folder: &DataFolder,
        environment: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let path = folder.path().join(LOG_FILE);
        let log = OpenOptions::new().create(true).append(true).open(&path)?;
        let kept = ["PATH", "HOME", "TMPDIR", "LANG"];
        let child = Command::new(program)
            .arg("--data")
            .arg(folder.path())
            .args(["serve", "--no-listen"])
            // What the machine's own environment holds must not decide about a test.
            .env_clear()
            .envs(kept.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("`{}` can't be run", program.display()))?;
        if let Some(identity) = ProcessIdentity::of(child.id()) {
            folder.own_daemon(identity);
        }
        Ok(Self { child, client: Client::unix(folder.socket()), log: path })
    }

    /// Waits until it answers.
    pub async fn ready(&mut self) -> anyhow::Result<DaemonStatus> {
        let give_up = Instant::now() + READY_DEADLINE;
        loop {
            // The socket file of one before it may still be there, so the answer must name this one.
            if let Ok(status) = self.status().await
                && status.pid == self.pid()
            {
                return Ok(status);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the daemon ended with {status}:\n{}", self.log_tail());
            }
            if Instant::now() >= give_up {
                bail!("the daemon does not answer:\n{}", self.log_tail());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// What it says of itself.
    pub async fn status(&self) -> anyhow::Result<DaemonStatus> {
        Ok(self.client.call("daemon.status", &Empty {}).await?)
    }

    /// The way to it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The signal that ended it, if it has ended so by itself.
    pub fn ended_by_signal(&mut self) -> anyhow::Result<Option<i32>> {
        Ok(self.child.try_wait()?.and_then(|status| status.signal()))
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill9(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to end and waits until it has.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let _answer: Empty = self.client.call("daemon.stop", &Empty {}).await?;
        let give_up = Instant::now() + STOP_DEADLINE;
        while self.child.try_wait()?.is_none() {
            if Instant::now() >= give_up {
                bail!("the daemon does not end:\n{}", self.log_tail());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(LOG_LINES).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        // It may be gone already, which is what is wanted.
        drop(self.kill9());
    }
}
