//! Points in time for people, in their own time zone.

use jiff::tz::TimeZone;
use rallypoint_model::time::Timestamp;

/// `14:03:05`.
pub(crate) fn clock(at: Timestamp) -> String {
    formatted(at, "%H:%M:%S")
}

/// `2026-08-04 14:03:05`.
pub(crate) fn day_and_clock(at: Timestamp) -> String {
    formatted(at, "%Y-%m-%d %H:%M:%S")
}

fn formatted(at: Timestamp, form: &str) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(time) => time.to_zoned_datetime(TimeZone::system()).strftime(form).to_string(),
        Err(_) => "unknown".to_owned(),
    }
}
