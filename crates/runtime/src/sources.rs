//! The sources of time and ids that a running daemon uses.

use std::time::{SystemTime, UNIX_EPOCH};

use rallypoint_model::ids::IdSource;
use rallypoint_model::time::{ClockAnchor, Timestamp};
use uuid::Uuid;

/// The clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    /// Now, in Unix milliseconds.
    pub fn now(self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).plus(fault_offset())
    }
}

/// Names a file whose text is added to the clock, in milliseconds, whenever it is read. For tests of clocks that are
/// set under a running daemon; a release build knows no faults.
const CLOCK_VARIABLE: &str = "RALLY_FAULT_CLOCK";

fn fault_offset() -> i64 {
    if !cfg!(debug_assertions) {
        return 0;
    }
    let text = std::env::var_os(CLOCK_VARIABLE).and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// How the clock of the wall stands to the one of this machine that is never set and that does not go while it sleeps.
pub(crate) fn clock_anchor() -> ClockAnchor {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let steady = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let steady_ms = steady.tv_sec.saturating_mul(1000).saturating_add(steady.tv_nsec / 1_000_000);
    ClockAnchor { boot: boot.trim().to_owned(), offset_ms: SystemClock.now().since(Timestamp(steady_ms)) }
}

/// Version 7 ids: ordered by time, random below it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl IdSource for SystemIds {
    fn next_uuid(&mut self) -> Uuid {
        Uuid::now_v7()
    }
}
