//! The sources of time and ids that a running daemon uses.

use std::time::{SystemTime, UNIX_EPOCH};

use rallypoint_model::ids::IdSource;
use rallypoint_model::time::Timestamp;
use uuid::Uuid;

/// The clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    /// Now, in Unix milliseconds.
    pub fn now(self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Version 7 ids: ordered by time, random below it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl IdSource for SystemIds {
    fn next_uuid(&mut self) -> Uuid {
        Uuid::now_v7()
    }
}
