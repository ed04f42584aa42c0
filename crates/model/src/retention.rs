//! How long what is over is kept, and what could not be removed.

use serde::{Deserialize, Serialize};

use crate::length::{Days, Minutes};
use crate::time::Timestamp;

/// The `retention` section of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Retention {
    /// Full outputs, counted from the archiving of the last task that refers to them; 0 keeps them for ever.
    pub result_days: Days,
    /// What an agent process put out, after its end; 0 removes it at once.
    pub spool_days: Days,
    /// Transcripts of archived tasks; 0 keeps them for ever.
    pub transcript_days: Days,
    /// Scratch folders of archived tasks; 0 keeps them for ever.
    pub scratch_days: Days,
    /// Time between two rounds of the sweeper.
    pub sweep_minutes: Minutes,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            result_days: Days::whole(30),
            spool_days: Days::whole(0),
            transcript_days: Days::whole(30),
            scratch_days: Days::whole(7),
            sweep_minutes: Minutes::whole(10),
        }
    }
}

/// What deleting a task means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeleteMode {
    /// It is hidden; the journal keeps everything.
    #[default]
    Preserve,
    /// Its content is removed everywhere; numbers, kinds, ids and times stay.
    Purge,
}

impl DeleteMode {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preserve => "preserve",
            Self::Purge => "purge",
        }
    }
}

/// That a task was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// How.
    pub mode: DeleteMode,
    /// By whom.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// Something of the data folder that was to be removed and could not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedDelete {
    /// Path within the data folder.
    pub path: String,
    /// What the system said the last time.
    pub reason: String,
    /// Attempts so far.
    pub attempts: u32,
    /// When it failed for the first time.
    pub first_at: Timestamp,
    /// When it is tried again.
    pub next_at: Timestamp,
}
