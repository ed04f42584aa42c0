//! The crash driver: a daemon, and where the plan says so its shims and agents, are killed again and again at random
//! moments under work, and what is left is checked against what followers were shown, callers were answered and agents
//! were made to do.
//!
//! It behaves like an at-least-once client: a request that may not have arrived is sent again under the same key, and
//! the last one is sent again even when it was answered.

mod check;
mod driver;
mod phases;
mod points;
mod report;
mod targets;
mod weather;
mod work;

use std::path::PathBuf;
use std::time::Duration;

pub use check::{Harm, check_work};
pub use driver::run;
pub use phases::Phase;
pub use points::{Point, crash_at};
pub use report::CrashReport;
pub use targets::{Mix, Target};
pub use weather::Weather;
pub use work::{Request, Work};

/// What to do.
#[derive(Clone, Debug)]
pub struct CrashPlan {
    /// The program.
    pub program: PathBuf,
    /// Number of kills.
    pub rounds: u32,
    /// What is killed.
    pub mix: Mix,
    /// Decides every moment and every request.
    pub seed: u64,
    /// How long everything may take to come to its end once nobody kills any more.
    pub patience: Duration,
    /// The safeguard to be left out, for a test that wants violations.
    pub fault: Option<String>,
    /// Whether disks fill and clocks are set while it goes on.
    pub weather: Weather,
    /// More variables for the daemon.
    pub environment: Vec<(String, String)>,
}
