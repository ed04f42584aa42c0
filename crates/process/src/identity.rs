//! Who a process is.
//!
//! A pid alone names whoever has it now. Pid and start time together name one process for as long as the machine is
//! up, so every signal of this crate is sent to that pair and never to a bare number.

use rustix::process::{Pid, PidfdFlags, kill_process, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::proc_files::read_stat;

/// One process since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessIdentity {
    pub pid: u32,
    /// Clock ticks since boot, as `/proc` has it.
    pub start_time: u64,
}

/// The signals this crate sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Interrupt,
    Terminate,
    Kill,
}

impl Signal {
    pub(crate) fn number(self) -> rustix::process::Signal {
        match self {
            Signal::Interrupt => rustix::process::Signal::INT,
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        }
    }
}

impl ProcessIdentity {
    /// The identity of whoever has this pid now; `None` when nobody has.
    pub fn of(pid: u32) -> Option<Self> {
        read_stat(pid).map(|stat| stat.identity())
    }
}

/// Whether exactly this process still runs; a zombie does not.
pub fn process_alive(identity: ProcessIdentity) -> bool {
    read_stat(identity.pid).is_some_and(|stat| stat.start_time == identity.start_time && stat.is_alive())
}

/// Signals exactly this process; `false` when it is gone or may not be signalled.
///
/// The pidfd is opened before the start time is compared: it holds on to whoever had the pid then, so a pid that
/// is recycled in between cannot be hit. Without pidfds the window is the one between comparison and signal.
pub(crate) fn signal_identity(identity: ProcessIdentity, signal: Signal) -> bool {
    let Some(pid) = raw_pid(identity.pid) else {
        return false;
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => process_alive(identity) && pidfd_send_signal(&handle, signal.number()).is_ok(),
        Err(rustix::io::Errno::SRCH) => false,
        Err(_) => process_alive(identity) && kill_process(pid, signal.number()).is_ok(),
    }
}

/// `None` for zero and for numbers that are no pid, which `kill` would take for groups.
pub(crate) fn raw_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
