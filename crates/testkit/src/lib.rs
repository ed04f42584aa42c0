//! Helps tests that run the whole program: a data folder that leaves nothing behind, daemons that are killed, a
//! follower of the journal, and the crash driver that puts them together.
//!
//! Only for tests. What it finds wrong it collects as text instead of stopping at the first surprise, so that a test
//! can also ask for a surprise and see that it is noticed.

mod daemon_process;
mod data_folder;
mod follower;
mod journal;
mod loopback_channel;
mod random;
mod violation;
mod waiting;

pub mod crash;
pub mod mock_model;

pub use daemon_process::DaemonProcess;
pub use data_folder::DataFolder;
pub use follower::{Followed, Follower, Shown};
pub use journal::Journal;
pub use loopback_channel::{Conduct, Keys, LoopbackChannel, Posted, Skills, Standing};
pub use random::Random;
pub use violation::{Rule, Violation};
pub use waiting::{wait_for, wait_until};
