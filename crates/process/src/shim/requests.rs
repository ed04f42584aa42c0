//! What a daemon may ask of the shim, and the answers.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::agent_process::{OWNERLESS_MAX_MS_DEFAULT, SPOOL_MAX_BYTES_DEFAULT, StartSpec};
use crate::fault_point::pass;
use crate::identity::Signal;
use crate::shim::agent::{Agent, AgentEnd, PENDING_INPUT_MAX_BYTES};
use crate::shim::connection::{ConnectionId, Stage};
use crate::shim::generation::Generation;
use crate::shim::journal::Journal;
use crate::shim::server::Server;
use crate::spool::RecordKind;
use crate::wire::{AttachRequest, PROTOCOL_VERSION, Refusal, Reply, RequestKind, StartFailure, encode_reply};

impl Server {
    pub(super) fn handle_frame(&mut self, id: ConnectionId, frame_type: u8, payload: Vec<u8>) {
        let Some(kind) = RequestKind::from_request_type(frame_type) else {
            self.drop_connection(id);
            return;
        };
        if kind != RequestKind::Attach && self.attached != Some(id) {
            self.drop_connection(id);
            return;
        }
        let reply = match kind {
            RequestKind::Attach => Some(self.attach(id, &payload)),
            RequestKind::Start => Some(self.start(&payload)),
            RequestKind::Send => Some(self.take_input(payload)),
            RequestKind::CloseStdin => Some(self.close_stdin()),
            RequestKind::Terminate => Some(self.terminate()),
            RequestKind::Kill => self.kill_requested(id),
            RequestKind::Finish => self.finish_requested(id),
            RequestKind::Recall => Some(Reply::Recalled {
                spec: self.generation.as_ref().map(|generation| generation.agent.spec.clone()),
            }),
        };
        if let Some(reply) = reply {
            self.reply(id, kind, &reply);
        }
    }

    /// A connection that is gone gets no reply; whoever takes over sees the state in `attach`.
    pub(super) fn reply(&mut self, id: ConnectionId, kind: RequestKind, reply: &Reply) {
        if let Some(connection) = self.connections.iter_mut().find(|connection| connection.id == id) {
            connection.queue(&encode_reply(kind, reply));
        }
    }

    fn attach(&mut self, id: ConnectionId, payload: &[u8]) -> Reply {
        let request: AttachRequest = match serde_json::from_slice(payload) {
            Ok(request) => request,
            Err(error) => return malformed(&error),
        };
        if request.version != PROTOCOL_VERSION {
            return refused(Refusal::Version { supported: PROTOCOL_VERSION });
        }
        if request.epoch < self.highest_epoch && !self.options.no_epoch_check {
            return refused(Refusal::Epoch { highest: self.highest_epoch });
        }
        self.highest_epoch = self.highest_epoch.max(request.epoch);
        // Before the answer: once the new daemon knows the last input, no older one may add to it. Connections that
        // have not attached are newer and may be the next.
        self.connections.retain(|connection| connection.id == id || connection.stage != Stage::Attached);
        if let Some(connection) = self.connections.iter_mut().find(|connection| connection.id == id) {
            connection.stage = Stage::Attached;
        }
        self.attached = Some(id);
        self.rung = None;
        let generation = self.generation.as_ref();
        Reply::Attached {
            last_input_seq: generation.map_or(0, |generation| generation.last_input_seq),
            started: generation.map(|generation| generation.agent.process),
            exited: generation.and_then(Generation::exit_in_spool),
            spool_end: generation.map_or(0, |generation| generation.journal.end()),
        }
    }

    fn start(&mut self, payload: &[u8]) -> Reply {
        if let Some(generation) = &self.generation {
            return refused(Refusal::AlreadyStarted { process: generation.agent.process });
        }
        let spec: StartSpec = match serde_json::from_slice(payload) {
            Ok(spec) => spec,
            Err(error) => return malformed(&error),
        };
        let max_bytes = or_default(spec.spool_max_bytes, SPOOL_MAX_BYTES_DEFAULT);
        let mut journal = match Journal::open(
            Path::new("."),
            self.options.segment_bytes,
            max_bytes,
            self.options.spool_version,
        ) {
            Ok(journal) => journal,
            Err(error) => return self.start_failed(StartFailure::Other, error.to_string()),
        };
        let now = Instant::now();
        let hard_deadline = match spec.hard_deadline_ms {
            0 => None,
            // A moment too far away to be expressed is none.
            ms => now.checked_add(Duration::from_millis(ms)),
        };
        let ownerless_max =
            Duration::from_millis(or_default(spec.ownerless_max_ms, OWNERLESS_MAX_MS_DEFAULT));
        let agent = match Agent::spawn(spec) {
            Ok(agent) => agent,
            Err((kind, message)) => {
                journal.record(RecordKind::Note, message.as_bytes());
                return self.start_failed(kind, message);
            }
        };
        pass("shim:agent-spawned");
        let process = agent.process;
        let record = json!({
            "pid": process.pid,
            "startTime": process.start_time,
            "argv0": agent.spec.argv.first(),
        });
        journal.record(RecordKind::Start, record.to_string().as_bytes());
        pass("shim:start-spooled");
        self.generation =
            Some(Generation { agent, journal, hard_deadline, ownerless_max, last_input_seq: 0 });
        Reply::Started { process }
    }

    /// This folder's one start is spent: whoever wants to try again makes a new generation.
    fn start_failed(&mut self, kind: StartFailure, message: String) -> Reply {
        Self::say(&message);
        self.leave = Some(ExitCode::FAILURE);
        Reply::StartFailed { kind, message }
    }

    fn take_input(&mut self, mut payload: Vec<u8>) -> Reply {
        let Some(generation) = &mut self.generation else {
            return refused(Refusal::NotStarted);
        };
        let Some(seq) = payload.first_chunk::<8>().map(|seq| u64::from_le_bytes(*seq)) else {
            return refused(Refusal::Malformed { message: "input without a sequence number".to_owned() });
        };
        let expected = generation.last_input_seq + 1;
        if seq == 0 || seq > expected {
            return refused(Refusal::Gap { expected });
        }
        if seq < expected && !self.options.no_input_seq {
            return Reply::Taken;
        }
        let agent = &generation.agent;
        if agent.end != AgentEnd::Running {
            return refused(Refusal::Exited);
        }
        if !agent.input.is_open() {
            return refused(Refusal::StdinClosed);
        }
        payload.drain(..8);
        let pending_bytes = agent.input.pending_bytes;
        if pending_bytes > 0 && pending_bytes + payload.len() > PENDING_INPUT_MAX_BYTES {
            return refused(Refusal::Overloaded { pending_bytes: pending_bytes as u64 });
        }
        if let Err(message) = generation.journal.record_input(seq, &payload) {
            return refused(Refusal::SpoolFull { message });
        }
        pass("shim:input-spooled");
        generation.last_input_seq = generation.last_input_seq.max(seq);
        generation.agent.input.push(payload);
        generation.write_input();
        Reply::Taken
    }

    fn close_stdin(&mut self) -> Reply {
        let Some(generation) = &mut self.generation else {
            return refused(Refusal::NotStarted);
        };
        generation.agent.input.close();
        generation.write_input();
        Reply::Done
    }

    fn terminate(&mut self) -> Reply {
        let Some(generation) = &self.generation else {
            return refused(Refusal::NotStarted);
        };
        generation.agent.signal_group(Signal::Terminate);
        Reply::Done
    }
}

fn or_default(value: u64, default: u64) -> u64 {
    if value == 0 { default } else { value }
}

fn refused(reason: Refusal) -> Reply {
    Reply::Refused { reason }
}

fn malformed(error: &serde_json::Error) -> Reply {
    refused(Refusal::Malformed { message: error.to_string() })
}
