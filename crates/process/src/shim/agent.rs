//! The agent's process and its three pipes, as the shim holds them.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use rustix::fs::{Access, OFlags, access, fcntl_getfl, fcntl_setfl};
use rustix::process::kill_process_group;

use crate::agent_process::{AgentProcess, ExitStatus, StartSpec};
use crate::identity::{ProcessIdentity, Signal, raw_pid};
use crate::sweep::RUN_MARKER_VARIABLE;
use crate::wire::StartFailure;

/// Input the agent has not read yet. Two of the longest inputs; whoever is further ahead is told to wait.
pub(super) const PENDING_INPUT_MAX_BYTES: usize = 64 << 20;

#[derive(Debug)]
pub(super) struct Agent {
    pub(super) spec: StartSpec,
    pub(super) process: AgentProcess,
    pub(super) input: Input,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
    pub(super) end: AgentEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentEnd {
    Running,
    /// Reaped; its pipes may still hold output, or be held open by a descendant until `until`.
    Draining {
        status: ExitStatus,
        until: Instant,
    },
    /// The exit stands in the spool, or will as soon as the spool can be written.
    Recorded {
        status: ExitStatus,
    },
}

/// The agent's standard input and what waits for it.
#[derive(Debug)]
pub(super) struct Input {
    pipe: Option<ChildStdin>,
    pending: VecDeque<Vec<u8>>,
    /// How much of the first pending piece is written.
    written: usize,
    pub(super) pending_bytes: usize,
    closing: bool,
}

/// What writing to the agent's input led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputState {
    Open,
    /// Closed just now, because it was asked for.
    Closed,
    /// Closed just now, because the agent no longer reads; this many bytes did not reach it.
    Broken {
        lost_bytes: usize,
    },
}

impl Agent {
    pub(super) fn spawn(spec: StartSpec) -> Result<Self, (StartFailure, String)> {
        let program = spec.argv.first().filter(|program| !program.is_empty());
        let Some(program) = program else {
            return Err((StartFailure::NotFound, "the command is empty".to_owned()));
        };
        // `exec` reports a missing folder and a missing program alike, so the folder is looked at first.
        if !spec.cwd.is_absolute() || !spec.cwd.is_dir() || access(&spec.cwd, Access::EXEC_OK).is_err() {
            return Err((StartFailure::BadCwd, format!("`{}` is no folder to work in", spec.cwd.display())));
        }
        let mut command = Command::new(program);
        command
            .args(spec.argv.iter().skip(1))
            .env_clear()
            .envs(spec.env.iter().map(|(name, value)| (name, value)))
            .env(RUN_MARKER_VARIABLE, &spec.marker)
            .current_dir(&spec.cwd)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| classify(program, &spec.cwd, &error))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // The handle is dropped without waiting: the loop reaps every child, this one among them. It cannot be
        // reaped before this point, so its start time can be read even if it has already ended.
        let process =
            ProcessIdentity::of(child.id()).unwrap_or(ProcessIdentity { pid: child.id(), start_time: 0 });
        let agent = Agent { spec, process, input: Input::new(stdin), stdout, stderr, end: AgentEnd::Running };
        agent.make_pipes_non_blocking().map_err(|error| {
            agent.signal_group(Signal::Kill);
            (StartFailure::Other, format!("the agent's pipes cannot be used: {error}"))
        })?;
        Ok(agent)
    }

    /// Only while the agent is not reaped: until then nobody else can have its group's number.
    pub(super) fn signal_group(&self, signal: Signal) {
        if self.end == AgentEnd::Running
            && let Some(group) = raw_pid(self.process.pid)
        {
            // Fails only when every process of the group has ended, which is what was wanted.
            let _ = kill_process_group(group, signal.number());
        }
    }

    pub(super) fn exit_recorded(&self) -> Option<ExitStatus> {
        match self.end {
            AgentEnd::Recorded { status } => Some(status),
            AgentEnd::Running | AgentEnd::Draining { .. } => None,
        }
    }

    fn make_pipes_non_blocking(&self) -> io::Result<()> {
        fn apply(pipe: Option<&impl AsFd>) -> io::Result<()> {
            if let Some(pipe) = pipe {
                let flags = fcntl_getfl(pipe)?;
                fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?;
            }
            Ok(())
        }
        apply(self.input.pipe.as_ref())?;
        apply(self.stdout.as_ref())?;
        apply(self.stderr.as_ref())
    }
}

impl Input {
    fn new(pipe: Option<ChildStdin>) -> Self {
        Input { pipe, pending: VecDeque::new(), written: 0, pending_bytes: 0, closing: false }
    }

    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some() && !self.closing
    }

    /// The pipe, while something waits to be written to it.
    pub(super) fn waiting_pipe(&self) -> Option<&ChildStdin> {
        self.pipe.as_ref().filter(|_| !self.pending.is_empty())
    }

    pub(super) fn push(&mut self, bytes: Vec<u8>) {
        self.pending_bytes += bytes.len();
        self.pending.push_back(bytes);
    }

    /// Closes the pipe once all that is pending is written.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// Closes the pipe now; true when it was open.
    pub(super) fn abandon(&mut self) -> bool {
        self.pending.clear();
        self.pending_bytes = 0;
        self.pipe.take().is_some()
    }

    /// Writes as much as the agent takes without blocking.
    pub(super) fn write_pending(&mut self) -> InputState {
        let Some(pipe) = self.pipe.as_mut() else {
            return InputState::Open;
        };
        while let Some(piece) = self.pending.front() {
            let rest = piece.get(self.written..).unwrap_or_default();
            if rest.is_empty() {
                self.pending.pop_front();
                self.written = 0;
                continue;
            }
            match pipe.write(rest) {
                Ok(count) => {
                    self.written += count;
                    self.pending_bytes -= count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return InputState::Open,
                Err(_) => {
                    let lost_bytes = self.pending_bytes;
                    self.abandon();
                    return InputState::Broken { lost_bytes };
                }
            }
        }
        if self.closing {
            self.abandon();
            return InputState::Closed;
        }
        InputState::Open
    }
}

/// Reads once; `None` at the end of the pipe, 0 when there is nothing now.
pub(super) fn read_once(pipe: &mut impl Read, buffer: &mut [u8]) -> Option<usize> {
    loop {
        match pipe.read(buffer) {
            Ok(0) => return None,
            Ok(count) => return Some(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(0),
            Err(_) => return None,
        }
    }
}

fn classify(program: &str, cwd: &Path, error: &io::Error) -> (StartFailure, String) {
    let is_file = program.contains('/') && fs::exists(cwd.join(program)).unwrap_or(false);
    let kind = match error.kind() {
        // The file is there: what is missing is the interpreter that its first line names.
        io::ErrorKind::NotFound if is_file => StartFailure::NotExecutable,
        io::ErrorKind::NotFound => StartFailure::NotFound,
        io::ErrorKind::PermissionDenied => StartFailure::NotExecutable,
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            StartFailure::NotExecutable
        }
        _ => StartFailure::Other,
    };
    (kind, format!("`{program}` cannot be started: {error}"))
}
