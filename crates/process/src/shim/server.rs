//! The shim's loop: wait for anything, handle it, see whether a limit is reached, wait again.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, wait};

use crate::shim::ShimOptions;
use crate::shim::agent::AgentEnd;
use crate::shim::connection::{Connection, ConnectionId, Stage};
use crate::shim::ending::Ending;
use crate::shim::generation::Generation;
use crate::shim::signals::Signals;
use crate::spool::{OUTPUT_MAX_BYTES, RecordKind};
use crate::wire::encode_doorbell;

/// Peers that have not attached yet count too; there is one daemon, and at times a second that takes over.
const CONNECTIONS_MAX: usize = 8;

/// Only out of memory makes `poll` fail; the pause keeps that from becoming a busy loop.
const AFTER_FAILED_POLL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Server {
    pub(super) options: ShimOptions,
    /// Held until the process ends, which is what tells others that it lives.
    _lock: File,
    signals: Signals,
    listener: UnixListener,
    pub(super) connections: Vec<Connection>,
    next_connection: u64,
    pub(super) attached: Option<ConnectionId>,
    pub(super) ownerless_since: Instant,
    start_by: Instant,
    pub(super) highest_epoch: u64,
    pub(super) generation: Option<Generation>,
    pub(super) ending: Ending,
    /// What the attached daemon was last told by a doorbell.
    pub(super) rung: Option<(u64, bool)>,
    buffer: Vec<u8>,
    pub(super) leave: Option<ExitCode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Signals,
    Listener,
    Connection(ConnectionId),
    Stdin,
    Stdout,
    Stderr,
}

impl Server {
    pub(super) fn new(options: ShimOptions, lock: File, signals: Signals, listener: UnixListener) -> Self {
        let now = Instant::now();
        Server {
            options,
            _lock: lock,
            signals,
            listener,
            connections: Vec::new(),
            next_connection: 0,
            attached: None,
            ownerless_since: now,
            start_by: now + options.start_wait,
            highest_epoch: 0,
            generation: None,
            ending: Ending::default(),
            rung: None,
            buffer: vec![0; OUTPUT_MAX_BYTES],
            leave: None,
        }
    }

    pub(super) fn run(mut self) -> ExitCode {
        loop {
            self.keep_time(Instant::now());
            // First what is queued: a doorbell is rung only into an empty queue, and nothing else would ring it later.
            self.write_outgoing();
            self.ring();
            if let Some(code) = self.leave {
                self.connections.into_iter().for_each(Connection::flush);
                return code;
            }
            self.write_outgoing();
            for source in self.wait() {
                self.handle(source);
            }
        }
    }

    fn keep_time(&mut self, now: Instant) {
        if self.generation.is_none() && now >= self.start_by {
            Self::say("no start came");
            self.leave = Some(ExitCode::SUCCESS);
        }
        let late = |connection: &Connection| matches!(connection.stage, Stage::New { until } if now >= until);
        self.connections.retain(|connection| !late(connection));
        if let Some(generation) = &mut self.generation {
            generation.journal.retry(now);
            generation.record_exit_when_drained(now, self.ending.after, &mut self.buffer);
        }
        self.watch_limits(now);
        self.progress_ending(now);
    }

    /// A line for the folder's log.
    pub(super) fn say(text: &str) {
        // Standard error is the folder's log; where it cannot be written there is nobody left to tell.
        let _ = writeln!(std::io::stderr(), "shim: {text}");
    }

    /// Tells the attached daemon how far the spool goes, unless an earlier doorbell still waits to be read: that one
    /// will make it look anyway, and the next says the newest state.
    fn ring(&mut self) {
        let Some(generation) = &self.generation else {
            return;
        };
        let state = (generation.journal.end(), generation.exit_in_spool().is_some());
        let attached = self.attached;
        let connection = self.connections.iter_mut().find(|connection| Some(connection.id) == attached);
        if let Some(connection) = connection
            && self.rung != Some(state)
            && !connection.has_outgoing()
        {
            connection.queue(&encode_doorbell(state.0, state.1));
            self.rung = Some(state);
        }
    }

    fn write_outgoing(&mut self) {
        let lost: Vec<ConnectionId> = self
            .connections
            .iter_mut()
            .filter_map(|connection| connection.write().is_err().then_some(connection.id))
            .collect();
        for id in lost {
            self.drop_connection(id);
        }
    }

    pub(super) fn drop_connection(&mut self, id: ConnectionId) {
        self.connections.retain(|connection| connection.id != id);
        if self.attached == Some(id) {
            self.attached = None;
            self.ownerless_since = Instant::now();
        }
    }

    fn wait(&self) -> Vec<Source> {
        let mut sources = vec![Source::Signals, Source::Listener];
        let mut polled = vec![
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN),
        ];
        for connection in &self.connections {
            let mut wanted = PollFlags::IN;
            wanted.set(PollFlags::OUT, connection.has_outgoing());
            sources.push(Source::Connection(connection.id));
            polled.push(PollFd::from_borrowed_fd(connection.stream.as_fd(), wanted));
        }
        if let Some(generation) = &self.generation {
            if let Some(pipe) = generation.agent.input.waiting_pipe() {
                sources.push(Source::Stdin);
                polled.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT));
            }
            // A pipe that may not be read is left out altogether: its end would be reported without being asked for.
            if !generation.journal.is_stalled() {
                if let Some(pipe) = &generation.agent.stdout {
                    sources.push(Source::Stdout);
                    polled.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN));
                }
                if let Some(pipe) = &generation.agent.stderr {
                    sources.push(Source::Stderr);
                    polled.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN));
                }
            }
        }
        let timeout = self.next_deadline().map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return vec![Source::Signals],
            Err(_) => {
                std::thread::sleep(AFTER_FAILED_POLL);
                return Vec::new();
            }
        }
        let ready = sources.into_iter().zip(&polled).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|(source, _)| source).collect()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let mut earliest: Option<Instant> = None;
        let mut consider = |at: Option<Instant>| {
            earliest = match (earliest, at) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        };
        for connection in &self.connections {
            if let Stage::New { until } = connection.stage {
                consider(Some(until));
            }
        }
        match &self.generation {
            None => consider(Some(self.start_by)),
            Some(generation) => {
                consider(generation.journal.retry_at());
                consider(generation.drained_at());
            }
        }
        consider(self.next_limit());
        consider(self.ending.next_step());
        earliest
    }

    fn handle(&mut self, source: Source) {
        match source {
            Source::Signals => {
                let received = self.signals.take();
                if received.child {
                    self.reap();
                }
                if received.terminate {
                    self.terminated();
                }
            }
            Source::Listener => self.accept(),
            Source::Connection(id) => self.read_connection(id),
            Source::Stdin => {
                if let Some(generation) = &mut self.generation {
                    generation.write_input();
                }
            }
            Source::Stdout => {
                if let Some(generation) = &mut self.generation {
                    generation.read_output(RecordKind::Out, &mut self.buffer);
                }
            }
            Source::Stderr => {
                if let Some(generation) = &mut self.generation {
                    generation.read_output(RecordKind::Err, &mut self.buffer);
                }
            }
        }
    }

    /// Waits for every child there is: the agent's orphans became this process's children.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if let Some(generation) = &mut self.generation
                && i64::from(pid.as_raw_nonzero().get()) == i64::from(generation.agent.process.pid)
                && generation.agent.end == AgentEnd::Running
            {
                generation.agent_ended(status);
            }
            self.ending.tree_changed();
        }
    }

    fn accept(&mut self) {
        // Non-blocking: ends with an error once nobody waits.
        while let Ok((stream, _)) = self.listener.accept() {
            if self.connections.len() >= CONNECTIONS_MAX {
                let idle = self.connections.iter().find(|connection| connection.stage != Stage::Attached);
                if let Some(id) = idle.map(|connection| connection.id) {
                    self.drop_connection(id);
                }
            }
            let id = ConnectionId(self.next_connection);
            self.next_connection += 1;
            self.connections.extend(Connection::accept(id, stream, Instant::now()));
        }
    }

    fn read_connection(&mut self, id: ConnectionId) {
        // It may have been dropped by an attach that came before it in this round.
        let Some(connection) = self.connections.iter_mut().find(|connection| connection.id == id) else {
            return;
        };
        if connection.read(&mut self.buffer).is_err() {
            self.drop_connection(id);
            return;
        }
        while let Some(connection) = self.connections.iter_mut().find(|connection| connection.id == id) {
            match connection.take_frame() {
                Ok(Some((frame_type, payload))) => self.handle_frame(id, frame_type, payload),
                Ok(None) => return,
                Err(_) => self.drop_connection(id),
            }
        }
    }
}
