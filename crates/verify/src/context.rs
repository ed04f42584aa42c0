//! What a check needs from outside.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use rallypoint_model::ids::EvidenceId;
use rallypoint_model::time::Timestamp;

/// The place, the limits and the sources of time and ids of a round of checks.
#[derive(Clone, Copy)]
pub struct VerifyContext<'round> {
    /// The work folder, absolute.
    pub cwd: &'round Path,
    /// The whole environment of a check command. Nothing is added from our own.
    pub env: &'round [(String, String)],
    /// Longest time for one check command.
    pub timeout: Duration,
    /// The clock.
    pub now: &'round (dyn Fn() -> Timestamp + Send + Sync),
    /// Makes the id of each piece of evidence.
    pub new_id: &'round (dyn Fn() -> EvidenceId + Send + Sync),
    /// Hides secrets. Output passes it before it is shortened: of a secret that is cut in two, neither half would be
    /// recognised afterwards.
    pub redact: &'round (dyn Fn(&str) -> String + Send + Sync),
}

impl fmt::Debug for VerifyContext<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may hold secrets.
        out.debug_struct("VerifyContext")
            .field("cwd", &self.cwd)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
