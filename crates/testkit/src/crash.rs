//! The crash driver: a daemon is killed again and again at random moments under work, and what is left is checked
//! against what followers were shown, callers were answered and agents were made to do.
//!
//! It behaves like an at-least-once client: a request that may not have arrived is sent again under the same key, and
//! the last one is sent again even when it was answered.

mod check;
mod driver;
mod phases;
mod report;
mod work;

use std::path::PathBuf;

pub use check::check_work;
pub use driver::run;
pub use phases::Phase;
pub use report::CrashReport;
pub use work::{Request, Work};

/// What to do.
#[derive(Clone, Debug)]
pub struct CrashPlan {
    /// The program.
    pub program: PathBuf,
    /// Number of kills.
    pub rounds: u32,
    /// Decides every moment and every request.
    pub seed: u64,
    /// The safeguard to be left out, for a test that wants violations.
    pub fault: Option<String>,
}
