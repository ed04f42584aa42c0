//! The daemon of the data folder: found, or started when there is none.
//!
//! Several commands may start one at the same time. The folder's lock decides which lives; the others end at once with
//! an exit code of their own, and their commands wait for the winner's socket like everybody else.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rallypoint_client::{Client, ClientError, ReconnectHook};
use rallypoint_ops::types::{DaemonStatus, Empty};
use rallypoint_process::sweep::RUN_MARKER_VARIABLE;
use rallypoint_server::SOCKET_NAME;
use tokio::time::{Instant, sleep};

use crate::failure::Failure;

/// Exit code of a daemon that found the data folder in use.
pub(crate) const LOCKED: u8 = 75;

/// File in the data folder that a started daemon writes its talk to.
pub(crate) const LOG_NAME: &str = "daemon.log";

/// Time a daemon has to answer. It is ready in a fraction of a second, unless it has a long journal to take up.
const START_DEADLINE: Duration = Duration::from_secs(10);
/// Time between two looks for it.
const LOOK_AGAIN: Duration = Duration::from_millis(25);
/// Time a daemon that lost the race leaves to the winner before another one is tried.
const AFTER_LOST_RACE: Duration = Duration::from_millis(250);
/// Size above which the log is put aside when a daemon starts.
const LOG_MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Lines of the log that a failed start shows.
const LOG_LINES_SHOWN: usize = 12;

const OUR_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Finds the daemon of one data folder.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    data_folder: PathBuf,
    program: PathBuf,
}

impl Connector {
    pub(crate) fn new(data_folder: PathBuf) -> Result<Self, Failure> {
        Ok(Self { data_folder, program: own_program()? })
    }

    pub(crate) fn data_folder(&self) -> &Path {
        &self.data_folder
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The way to the daemon, whether it runs or not.
    pub(crate) fn client(&self) -> Client {
        Client::unix(self.data_folder.join(SOCKET_NAME))
    }

    /// The daemon that runs, when one does.
    pub(crate) async fn running(&self) -> Result<Option<DaemonStatus>, ClientError> {
        match self.client().call("daemon.status", &Empty {}).await {
            Ok(status) => Ok(Some(status)),
            Err(ClientError::NoDaemon) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The way to a daemon that runs and has our version; starts one when there is none.
    pub(crate) async fn ready(&self) -> Result<Client, Failure> {
        let deadline = Instant::now() + START_DEADLINE;
        let mut started: Option<Started> = None;
        loop {
            match self.running().await {
                Ok(Some(status)) if status.version == OUR_VERSION => {
                    if let Some(daemon) = started {
                        daemon.reap_at_its_end();
                    }
                    return Ok(self.client());
                }
                Ok(Some(status)) => self.replace(&status).await?,
                Ok(None) | Err(ClientError::Lost) => {
                    if let Some(daemon) = &mut started {
                        if daemon.has_lost_the_race()? {
                            sleep(AFTER_LOST_RACE).await;
                            started = None;
                        }
                    } else {
                        started = Some(self.start()?);
                    }
                }
                Err(error) => return Err(error.into()),
            }
            if Instant::now() > deadline {
                return Err(self.too_slow(started.as_ref()));
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Brings the daemon back while its events are followed.
    pub(crate) fn reconnect_hook(&self) -> ReconnectHook {
        let connector = self.clone();
        Box::new(move || {
            let connector = connector.clone();
            Box::pin(async move {
                let ready = connector.ready().await;
                ready.map(drop).map_err(|failure| ClientError::Protocol(failure.message().to_owned()))
            })
        })
    }

    /// Asks an older daemon to end. Its agents live on and are found again by ours.
    async fn replace(&self, status: &DaemonStatus) -> Result<(), Failure> {
        if numbers(&status.version) > numbers(OUR_VERSION) {
            let message = format!(
                "the daemon of `{}` has version {}, this program {OUR_VERSION}",
                self.data_folder.display(),
                status.version
            );
            return Err(Failure::failed(message)
                .with_hint("use the newer program, or end it with `rally daemon stop`"));
        }
        match self.client().call::<_, Empty>("daemon.stop", &Empty {}).await {
            Ok(_) | Err(ClientError::NoDaemon | ClientError::Lost) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn start(&self) -> Result<Started, Failure> {
        let (log, log_begin) = self.open_log().map_err(|error| {
            Failure::failed(format!(
                "the data folder `{}` can't be used: {error}",
                self.data_folder.display()
            ))
            .with_hint("name one that can be written with `--data DIR` or `RALLY_HOME`")
        })?;
        let cannot_start = |error: io::Error| {
            Failure::failed(format!("the daemon can't be started with `{}`: {error}", self.program.display()))
        };
        let child = Command::new(&self.program)
            .arg("--data")
            .arg(&self.data_folder)
            .args(["serve", "--idle-exit", "--detached"])
            .current_dir("/")
            // Started from within an agent, it is not a part of that agent's tree that ends with it.
            .env_remove(RUN_MARKER_VARIABLE)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(cannot_start)?)
            .stderr(log)
            .spawn()
            .map_err(cannot_start)?;
        Ok(Started { child, log: self.log_path(), log_begin })
    }

    fn log_path(&self) -> PathBuf {
        self.data_folder.join(LOG_NAME)
    }

    /// The log and its present size, so that a failed start shows its own words only.
    fn open_log(&self) -> io::Result<(File, u64)> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.data_folder)?;
        let path = self.log_path();
        let size = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        if size > LOG_MAX_BYTES {
            fs::rename(&path, path.with_extension("log.old"))?;
        }
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        let size = log.metadata()?.len();
        Ok((log, size))
    }

    fn too_slow(&self, started: Option<&Started>) -> Failure {
        let message = format!(
            "the daemon of `{}` did not answer within {} s",
            self.data_folder.display(),
            START_DEADLINE.as_secs()
        );
        let words = started.map(Started::words).filter(|words| !words.is_empty());
        let message = words.map_or(message.clone(), |words| format!("{message}; its last words:\n{words}"));
        Failure::failed(message).with_hint(format!("its log is `{}`", self.log_path().display()))
    }
}

/// A daemon that was started here.
#[derive(Debug)]
struct Started {
    child: Child,
    log: PathBuf,
    log_begin: u64,
}

impl Started {
    /// A command may outlive the daemon that it started, and an end that nobody takes note of leaves a dead entry in
    /// the process table. The thread ends with the program.
    fn reap_at_its_end(mut self) {
        std::thread::spawn(move || self.child.wait());
    }

    /// Whether it ended because another one has the folder. Any other end is an error.
    fn has_lost_the_race(&mut self) -> Result<bool, Failure> {
        let status = self
            .child
            .try_wait()
            .map_err(|error| Failure::failed(format!("the daemon can't be looked after: {error}")))?;
        match status {
            None => Ok(false),
            Some(status) if status.code() == Some(i32::from(LOCKED)) => Ok(true),
            Some(status) => {
                let words = self.words();
                let log = format!("its log is `{}`", self.log.display());
                let Some((_, error)) = words.rsplit_once("error: ") else {
                    let message = format!("the daemon ended at once with {status}; its last words:\n{words}");
                    return Err(Failure::failed(message).with_hint(log));
                };
                let (message, hint) = error.split_once("\nhint: ").unwrap_or((error, &log));
                Err(Failure::failed(format!("the daemon can't run: {message}")).with_hint(hint))
            }
        }
    }

    fn words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let own = text.get(usize::try_from(self.log_begin).unwrap_or_default()..).unwrap_or_default();
        let own = String::from_utf8_lossy(own);
        let lines: Vec<&str> = own.lines().collect();
        let first = lines.len().saturating_sub(LOG_LINES_SHOWN);
        lines.get(first..).unwrap_or_default().join("\n")
    }
}

/// This program's file. A file that was replaced while it runs has a mark behind its name.
pub(crate) fn own_program() -> Result<PathBuf, Failure> {
    let path = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("the file of this program can't be found: {error}")))?;
    let text = path.to_string_lossy();
    Ok(text.strip_suffix(" (deleted)").map_or_else(|| path.clone(), PathBuf::from))
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        assert!(numbers("0.10.0") > numbers("0.9.3"));
        assert!(numbers("1.0.0") > numbers("0.9.9"));
        assert_eq!(numbers("1.2.3-beta"), [1, 2, 3]);
    }

    #[test]
    fn a_large_log_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let connector = Connector { data_folder: folder.path().to_owned(), program: PathBuf::from("rally") };
        let log = File::create(connector.log_path()).unwrap();
        log.set_len(LOG_MAX_BYTES + 1).unwrap();
        let (_, begin) = connector.open_log().unwrap();
        assert_eq!(begin, 0);
        assert_eq!(fs::metadata(folder.path().join("daemon.log.old")).unwrap().len(), LOG_MAX_BYTES + 1);
    }

    #[tokio::test]
    async fn a_data_folder_that_cannot_be_made_is_one_clear_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        File::create(&file).unwrap();
        let connector = Connector { data_folder: file.join("data"), program: PathBuf::from("rally") };
        let failure = connector.ready().await.unwrap_err();
        assert!(failure.message().contains("can't be used"), "{failure:?}");
    }
}
