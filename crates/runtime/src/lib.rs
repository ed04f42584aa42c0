//! The shell around the engine: decider thread, effects, recovery, timers, and
//! the handlers of the operations.

pub mod daemon;

pub use daemon::{Daemon, DaemonOptions, Followed, OpenError};
