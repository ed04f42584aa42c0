//! The agent together with its spool: how bytes get from one to the other, and when its end is final.

use std::time::{Duration, Instant};

use rustix::process::WaitStatus;

use crate::agent_process::ExitStatus;
use crate::fault_point::pass;
use crate::shim::agent::{Agent, AgentEnd, InputState, read_once};
use crate::shim::ending::After;
use crate::shim::journal::Journal;
use crate::spool::RecordKind;

/// A descendant that holds the agent's pipes keeps them from ending; what the agent wrote itself is there by then.
const DRAIN_AFTER_EXIT: Duration = Duration::from_millis(500);

/// The most that is read after that: what a pipe of the largest size holds, so that a writer without end cannot
/// keep the exit from being recorded.
const LAST_READ_MAX_BYTES: usize = 1 << 20;

/// What exists from the start of the agent on.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) agent: Agent,
    pub(super) journal: Journal,
    pub(super) hard_deadline: Option<Instant>,
    pub(super) ownerless_max: Duration,
    pub(super) last_input_seq: u64,
}

impl Generation {
    /// The exit, once whoever reads the spool finds it there.
    pub(super) fn exit_in_spool(&self) -> Option<ExitStatus> {
        self.agent.exit_recorded().filter(|_| !self.journal.has_kept())
    }

    pub(super) fn write_input(&mut self) {
        match self.agent.input.write_pending() {
            InputState::Open => {}
            InputState::Closed => self.journal.record(RecordKind::StdinClosed, b""),
            InputState::Broken { lost_bytes } => {
                let note =
                    format!("the agent stopped reading its input; {lost_bytes} bytes did not reach it");
                self.journal.record(RecordKind::Note, note.as_bytes());
                self.journal.record(RecordKind::StdinClosed, b"");
            }
        }
    }

    /// Reads one buffer of one stream; the bytes read. Nothing is read while earlier bytes wait to be written.
    pub(super) fn read_output(&mut self, kind: RecordKind, buffer: &mut [u8]) -> usize {
        if self.journal.has_kept() {
            return 0;
        }
        let agent = &mut self.agent;
        let read = if kind == RecordKind::Out {
            agent.stdout.as_mut().map(|pipe| read_once(pipe, buffer))
        } else {
            agent.stderr.as_mut().map(|pipe| read_once(pipe, buffer))
        };
        match read {
            Some(Some(count)) => {
                if count > 0 {
                    self.journal.record(kind, buffer.get(..count).unwrap_or_default());
                }
                count
            }
            Some(None) if kind == RecordKind::Out => {
                agent.stdout = None;
                0
            }
            Some(None) => {
                agent.stderr = None;
                0
            }
            None => 0,
        }
    }

    pub(super) fn agent_ended(&mut self, status: WaitStatus) {
        let status = ExitStatus { code: status.exit_status(), signal: status.terminating_signal() };
        self.agent.input.abandon();
        self.agent.end = AgentEnd::Draining { status, until: Instant::now() + DRAIN_AFTER_EXIT };
    }

    /// The exit is the last record of the agent's: it is written once its output has ended or will not end.
    ///
    /// The rest of the output is taken even by a spool that is as long as it may be: there is at most a pipe of it.
    /// A shim that must leave does not wait for a disk that takes nothing.
    pub(super) fn record_exit_when_drained(&mut self, now: Instant, after: After, buffer: &mut [u8]) {
        let AgentEnd::Draining { status, until } = self.agent.end else {
            return;
        };
        let mut ended = self.agent.stdout.is_none() && self.agent.stderr.is_none();
        if !ended && now >= until {
            let mut left = LAST_READ_MAX_BYTES;
            for kind in [RecordKind::Out, RecordKind::Err] {
                loop {
                    let count = self.read_output(kind, buffer);
                    left = left.saturating_sub(count);
                    if count == 0 || left == 0 {
                        break;
                    }
                }
            }
            ended = !self.journal.has_kept() || after == After::Leave;
        }
        if ended {
            self.agent.stdout = None;
            self.agent.stderr = None;
            let text = serde_json::to_vec(&status).unwrap_or_default();
            self.journal.record(RecordKind::Exit, &text);
            pass("shim:exit-spooled");
            self.agent.end = AgentEnd::Recorded { status };
        }
    }

    /// When [`Self::record_exit_when_drained`] has something to do without being woken.
    pub(super) fn drained_at(&self) -> Option<Instant> {
        match self.agent.end {
            AgentEnd::Draining { until, .. } if !self.journal.has_kept() => Some(until),
            AgentEnd::Draining { .. } | AgentEnd::Running | AgentEnd::Recorded { .. } => None,
        }
    }
}
