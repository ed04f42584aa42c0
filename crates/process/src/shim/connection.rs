//! One daemon's connection, before and after it attached.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use crate::wire::{FRAME_MAX_BYTES, FrameTooLong, take_frame};

/// An `attach` is small; whoever sends more before it is not a daemon of ours.
const UNATTACHED_FRAME_MAX_BYTES: usize = 4096;

/// A daemon sends `attach` with its first write; five seconds allow for a machine that is very busy.
const ATTACH_WAIT: Duration = Duration::from_secs(5);

/// Replies are small and doorbells are merged, so only a peer that stopped reading gets here.
const OUTGOING_MAX_BYTES: usize = 1 << 20;

/// The last reply is a few hundred bytes; a peer that does not read it within a second is gone.
const FLUSH_WAIT: Duration = Duration::from_secs(1);

/// Names a connection for as long as the shim lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ConnectionId(pub(super) u64);

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    pub(super) stream: UnixStream,
    pub(super) stage: Stage,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Must attach before this moment.
    New {
        until: Instant,
    },
    Attached,
}

/// The peer is gone or broke the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionLost;

impl Connection {
    /// `None` for a peer that is another user's process, which the modes of folder and socket should not let in.
    pub(super) fn accept(id: ConnectionId, stream: UnixStream, now: Instant) -> Option<Self> {
        let peer = socket_peercred(&stream).ok()?;
        if peer.uid != geteuid() && !peer.uid.is_root() {
            return None;
        }
        stream.set_nonblocking(true).ok()?;
        Some(Connection {
            id,
            stream,
            stage: Stage::New { until: now + ATTACH_WAIT },
            incoming: Vec::new(),
            outgoing: Vec::new(),
        })
    }

    /// Reads once into this connection's buffer.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<(), ConnectionLost> {
        match self.stream.read(buffer) {
            Ok(0) => Err(ConnectionLost),
            Ok(count) => {
                self.incoming.extend_from_slice(buffer.get(..count).unwrap_or_default());
                Ok(())
            }
            Err(error) if is_transient(&error) => Ok(()),
            Err(_) => Err(ConnectionLost),
        }
    }

    pub(super) fn take_frame(&mut self) -> Result<Option<(u8, Vec<u8>)>, ConnectionLost> {
        let max_bytes = match self.stage {
            Stage::New { .. } => UNATTACHED_FRAME_MAX_BYTES,
            Stage::Attached => FRAME_MAX_BYTES,
        };
        let frame = take_frame(&mut self.incoming, max_bytes).map_err(|FrameTooLong| ConnectionLost)?;
        if self.incoming.is_empty() {
            // A long input must not keep its memory for the hours that follow.
            self.incoming.shrink_to(0);
        }
        Ok(frame)
    }

    pub(super) fn queue(&mut self, frame: &[u8]) {
        self.outgoing.extend_from_slice(frame);
    }

    pub(super) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Writes what the peer takes without blocking.
    pub(super) fn write(&mut self) -> Result<(), ConnectionLost> {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(count) => {
                    self.outgoing.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Err(ConnectionLost),
            }
        }
        if self.outgoing.len() > OUTGOING_MAX_BYTES {
            return Err(ConnectionLost);
        }
        Ok(())
    }

    /// Writes the last replies before the shim ends.
    pub(super) fn flush(mut self) {
        let prepared =
            self.stream.set_nonblocking(false).and_then(|()| self.stream.set_write_timeout(Some(FLUSH_WAIT)));
        if prepared.is_ok() {
            // The peer sees the connection end either way.
            let _ = self.stream.write_all(&self.outgoing);
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}
