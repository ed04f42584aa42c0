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
}

impl Faults {
    pub(crate) fn from_text(text: &str) -> Self {
        let has = |name: &str| text.split(',').any(|part| part.trim() == name);
        Self { no_unique_keys: has("no-unique-keys"), no_sweep: has("no-sweep"), no_cursor: has("no-cursor") }
    }

    pub(crate) fn unique_keys(self) -> UniqueKeys {
        if self.no_unique_keys { UniqueKeys::Ignored } else { UniqueKeys::Enforced }
    }

    pub(crate) fn key_enforcement(self) -> KeyEnforcement {
        if self.no_unique_keys { KeyEnforcement::Dropped } else { KeyEnforcement::Unique }
    }
}
