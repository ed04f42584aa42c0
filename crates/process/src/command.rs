//! Running one command to its end and keeping what it said.
//!
//! For verifiers and tools, not for agents: the command lives only as long as the caller waits. It gets a process
//! group of its own, and the whole group is killed when the command ends, takes too long, or is no longer waited for.
//! A process that moves to another group escapes; whoever must rule that out puts a run marker into the environment
//! and sweeps.

mod capture;

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus as StdExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::AsyncWriteExt;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, timeout, timeout_at};

pub use crate::command::capture::Captured;

use crate::agent_process::ExitStatus;
use crate::clock::unix_ms;
use crate::command::capture::Capture;
use crate::identity::raw_pid;

/// A background process that keeps the output open after the command's end gets this long; it is killed then.
const DRAIN_AFTER_EXIT: Duration = Duration::from_millis(500);

/// After SIGKILL a group is gone within milliseconds; longer means that it hangs in the kernel.
const REAP_WAIT: Duration = Duration::from_secs(5);

/// Whether standard error is kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    Separate,
    /// Both go to `stdout`, in the order in which they were written.
    Merged,
}

/// What to run.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandSpec {
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited.
    pub env: Vec<(String, String)>,
    pub timeout: Duration,
    /// Bytes kept of each stream, half from its start and half from its end.
    pub keep_bytes: usize,
    /// Written to the command, then its input is closed; nothing at all when `None`.
    pub stdin: Option<Vec<u8>>,
    pub output: OutputMode,
}

impl std::fmt::Debug for CommandSpec {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("CommandSpec")
            .field("argv", &self.argv)
            .field("cwd", &self.cwd)
            .field("env", &names)
            .field("timeout", &self.timeout)
            .field("keep_bytes", &self.keep_bytes)
            .field("stdin_bytes", &self.stdin.as_ref().map(Vec::len))
            .field("output", &self.output)
            .finish()
    }
}

/// How a command ended and what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    pub exit: ExitStatus,
    /// The command was killed because its time was up.
    pub timed_out: bool,
    pub stdout: Captured,
    /// Empty when merged.
    pub stderr: Captured,
    /// Unix milliseconds.
    pub started_at_ms: i64,
    pub ended_at_ms: i64,
}

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("the program `{program}` was not found")]
    NotFound { program: String },
    #[error("the program `{program}` cannot be executed: {source}")]
    NotExecutable { program: String, source: io::Error },
    #[error("`{path}` is no folder to work in", path = path.display())]
    BadCwd { path: PathBuf },
    #[error("`{program}` could not be run: {source}")]
    Io { program: String, source: io::Error },
}

/// Runs a command until it ends, at the longest for its time limit. Dropping the future kills the command.
pub async fn run_captured(spec: CommandSpec) -> Result<Finished, CommandError> {
    let program = spec.argv.first().filter(|program| !program.is_empty()).cloned();
    let Some(program) = program else {
        return Err(CommandError::NotFound { program: String::new() });
    };
    if !spec.cwd.is_dir() {
        return Err(CommandError::BadCwd { path: spec.cwd });
    }
    let failed = |source| CommandError::Io { program: program.clone(), source };
    let (stdout_reader, stdout_writer) = io::pipe().map_err(failed)?;
    let (stderr_reader, stderr_writer) = match spec.output {
        OutputMode::Separate => io::pipe().map(|(reader, writer)| (Some(reader), writer)).map_err(failed)?,
        OutputMode::Merged => (None, stdout_writer.try_clone().map_err(failed)?),
    };
    let started_at_ms = unix_ms();
    let deadline = Instant::now() + spec.timeout;
    let mut running = Running::spawn(&spec, &program, stdout_writer.into(), stderr_writer.into())?;
    let mut stdout =
        Capture::new(Receiver::from_owned_fd(stdout_reader.into()).map_err(failed)?, spec.keep_bytes);
    let mut stderr = match stderr_reader {
        Some(reader) => Some(Receiver::from_owned_fd(reader.into()).map_err(failed)?),
        None => None,
    }
    .map(|reader| Capture::new(reader, spec.keep_bytes));
    let input = running.child.stdin.take().zip(spec.stdin);
    let timed_out = {
        let reading = async {
            tokio::join!(stdout.read_to_end(), async {
                if let Some(stderr) = &mut stderr {
                    stderr.read_to_end().await;
                }
            });
        };
        let feeding = feed(input);
        tokio::pin!(reading, feeding);
        let ended = async {
            let exited = running.exited();
            tokio::pin!(exited);
            let mut read_all = false;
            let mut fed_all = false;
            loop {
                tokio::select! {
                    outcome = &mut exited => return outcome,
                    () = &mut reading, if !read_all => read_all = true,
                    () = &mut feeding, if !fed_all => fed_all = true,
                }
            }
        };
        match timeout_at(deadline, ended).await {
            Ok(outcome) => {
                outcome.map_err(failed)?;
                false
            }
            Err(_) => true,
        }
    };
    if timed_out {
        running.kill_group();
    }
    // Reading a stream again that has ended returns at once.
    let drain = async {
        stdout.read_to_end().await;
        if let Some(stderr) = &mut stderr {
            stderr.read_to_end().await;
        }
    };
    // What is not there by then belongs to a process that outlived the command.
    let _ = timeout(DRAIN_AFTER_EXIT, drain).await;
    running.kill_group();
    let status = running.reap().await.map_err(failed)?;
    Ok(Finished {
        exit: ExitStatus { code: status.code(), signal: status.signal() },
        timed_out,
        stdout: stdout.finish(),
        stderr: stderr.map(Capture::finish).unwrap_or_default(),
        started_at_ms,
        ended_at_ms: unix_ms(),
    })
}

/// Writes the input and closes it. A command that does not read it all is no error.
async fn feed(input: Option<(ChildStdin, Vec<u8>)>) {
    if let Some((mut pipe, bytes)) = input {
        let _ = pipe.write_all(&bytes).await;
    }
}

/// A command whose leader is not reaped yet: until then its group's number is its own.
#[derive(Debug)]
struct Running {
    child: Child,
    group: Option<Pid>,
}

impl Running {
    fn spawn(spec: &CommandSpec, program: &str, stdout: Stdio, stderr: Stdio) -> Result<Self, CommandError> {
        let spawned = Command::new(program)
            .args(spec.argv.iter().skip(1))
            .env_clear()
            .envs(spec.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&spec.cwd)
            .process_group(0)
            .stdin(if spec.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(stdout)
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn();
        let program = program.to_owned();
        let child = spawned.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => CommandError::NotFound { program },
            io::ErrorKind::PermissionDenied => CommandError::NotExecutable { program, source },
            _ => CommandError::Io { program, source },
        })?;
        let group = child.id().and_then(raw_pid);
        Ok(Running { child, group })
    }

    /// Waits for the leader's end without reaping it, so that its group can still be killed safely.
    async fn exited(&self) -> io::Result<()> {
        let Some(pid) = self.group else {
            return Ok(());
        };
        let handle = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
        #[expect(unsafe_code, reason = "the safe constructor is deprecated")]
        // SAFETY: the descriptor must stay open for as long as it is registered. It is an `OwnedFd` that only the
        // `AsyncFd` holds, and that drops it after taking it out of the reactor.
        let handle = unsafe { AsyncFd::register(handle) }?;
        handle.readable().await.map(|_| ())
    }

    fn kill_group(&self) {
        if let Some(group) = self.group {
            // Fails only when no process of the group is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    async fn reap(&mut self) -> io::Result<StdExitStatus> {
        let status = timeout(REAP_WAIT, self.child.wait()).await;
        let status = status.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        self.group = None;
        Ok(status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_group();
    }
}
