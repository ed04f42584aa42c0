//! Signals as bytes in a pipe, so that one `poll` waits for them too.
//!
//! Handlers rather than ignored or blocked signals: `exec` resets handlers to the default, while an agent would
//! inherit both ignored and blocked ones and could then not be ended by them.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::process::Signal;

const CHILD: u8 = b'c';
const TERMINATE: u8 = b't';

#[derive(Debug)]
pub(super) struct Signals {
    reader: UnixStream,
}

/// What came in since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Received {
    pub(super) child: bool,
    pub(super) terminate: bool,
}

impl Signals {
    pub(super) fn install() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        let writer = Arc::new(writer);
        for (signal, byte) in [
            (Signal::CHILD, Some(CHILD)),
            (Signal::TERM, Some(TERMINATE)),
            (Signal::INT, Some(TERMINATE)),
            // Neither a vanished terminal nor a closed pipe may end the shim.
            (Signal::HUP, None),
            (Signal::PIPE, None),
        ] {
            install_one(signal, byte, Arc::clone(&writer))?;
        }
        Ok(Signals { reader })
    }

    pub(super) fn take(&self) -> Received {
        let mut received = Received::default();
        let mut bytes = [0; 64];
        // Non-blocking: ends with an error once the pipe is empty.
        while let Ok(count) = (&self.reader).read(&mut bytes) {
            if count == 0 {
                break;
            }
            let seen = bytes.get(..count).unwrap_or_default();
            received.child |= seen.contains(&CHILD);
            received.terminate |= seen.contains(&TERMINATE);
        }
        received
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

#[expect(unsafe_code, reason = "a signal handler cannot be installed without it")]
fn install_one(signal: Signal, byte: Option<u8>, writer: Arc<UnixStream>) -> io::Result<()> {
    let action = move || {
        if let Some(byte) = byte {
            // A full pipe means that the loop is about to wake up anyway.
            let _ = rustix::io::write(&*writer, &[byte]);
        }
    };
    // SAFETY: the action runs in a signal handler, so it may only do what is async-signal-safe. It makes one
    // `write` system call on a descriptor that is never closed (the closure holds it and is never unregistered); it
    // takes no lock, allocates nothing, cannot panic, and does not touch `errno`, which rustix's call does not use.
    unsafe { signal_hook_registry::register(signal.as_raw(), action) }.map(|_| ())
}
