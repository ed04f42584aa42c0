//! The shell around the engine: the decider thread, effects, recovery, timers,
//! and the handlers of the operations.
//!
//! Nothing here decides what a task or run does; that is `engine`. What is here
//! obeys: it commits, launches, reads, sends, checks and answers.

mod attendant;
mod channels;
mod checks;
mod cleaning;
mod config;
mod daemon;
mod decider;
mod effects;
mod faults;
mod figures;
mod file_service;
mod folders;
mod follow;
mod funnel;
mod handlers;
mod journal_reader;
mod launches;
mod preflight;
mod prices;
mod requests;
mod resend;
mod retention;
mod session_tokens;
mod sources;
mod spool_items;
mod views;

pub use config::{Config, ConfigError};
pub use daemon::{Daemon, DaemonOptions, Followed, OpenError, TokenHolder};
pub use figures::Figures;
pub use session_tokens::is_session_token;
pub use sources::{SystemClock, SystemIds};
