//! Fault switches: each takes one safeguard away, so that a test can show that
//! it notices. Read from `RALLY_FAULT` (names separated by commas); never set
//! in use.

use rallypoint_engine::decide::UniqueKeys;
use rallypoint_store::KeyEnforcement;

/// Which safeguards are off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Unique keys are neither looked at nor enforced.
    pub(crate) no_unique_keys: bool,
    /// Nothing is swept and no shim is told to finish.
    pub(crate) no_sweep: bool,
    /// A spool's cursor starts at the beginning after a restart.
    pub(crate) no_cursor: bool,
    /// Answers and followers are told what is not committed yet.
    pub(crate) ack_before_commit: bool,
    /// Cursors are committed after the facts, in a transaction of their own.
    pub(crate) cursor_outside: bool,
    /// A prompt that a shim has taken is sent to it again after a restart, as one more input.
    pub(crate) resend_after_crash: bool,
    /// The same under the number it had.
    pub(crate) resend_repeated: bool,
}

impl Faults {
    /// What the environment asks for. A release build knows no faults: no variable may take a safeguard away there.
    pub(crate) fn of_environment() -> Self {
        if !cfg!(debug_assertions) {
            return Self::default();
        }
        Self::from_text(&std::env::var("RALLY_FAULT").unwrap_or_default())
    }

    fn from_text(text: &str) -> Self {
        let has = |name: &str| text.split(',').any(|part| part.trim() == name);
        Self {
            no_unique_keys: has("no-unique-keys"),
            no_sweep: has("no-sweep"),
            no_cursor: has("no-cursor"),
            ack_before_commit: has("ack-before-commit"),
            cursor_outside: has("cursor-outside"),
            resend_after_crash: has("resend-after-crash"),
            resend_repeated: has("resend-repeated"),
        }
    }

    pub(crate) fn unique_keys(self) -> UniqueKeys {
        if self.no_unique_keys { UniqueKeys::Ignored } else { UniqueKeys::Enforced }
    }

    pub(crate) fn key_enforcement(self) -> KeyEnforcement {
        if self.no_unique_keys { KeyEnforcement::Dropped } else { KeyEnforcement::Unique }
    }
}
