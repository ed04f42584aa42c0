//! The wall clock of this crate's records.
//!
//! Time stamps in a spool are for readers; every deadline is measured with a monotonic clock instead.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix milliseconds; negative before 1970.
pub(crate) fn unix_ms() -> i64 {
    let ms = |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => ms(after),
        Err(before) => -ms(before.duration()),
    }
}
