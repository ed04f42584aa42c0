//! Points in time and lengths of time as integer milliseconds.

use serde::{Deserialize, Serialize};

/// Unix time in milliseconds.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This time plus `millis`, saturating.
    pub fn plus(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to this time; negative when `earlier` is later.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// How the clock of the wall stands to one that is never set, within one life of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClockAnchor {
    /// Which life of the machine (the boot id of Linux).
    pub boot: String,
    /// Milliseconds from the clock that is never set to the clock of the wall.
    pub offset_ms: i64,
}
