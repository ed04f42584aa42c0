//! Agents as processes.
//!
//! An agent is started and kept by a shim: a small program with one thread that owns the agent's pipes and its
//! process tree, writes every byte to a spool before anyone acts on it, and lives on when the daemon dies. This crate
//! is both ends of that (the shim's body and the daemon's client), the spool between them, and the means to find and
//! end processes: identity by pid and start time, the run marker in the environment, escalation and sweeping.
//!
//! It does not know what the bytes mean. Linux only: it relies on `/proc`, subreapers and pidfds.

pub mod client;
pub mod command;
pub mod environment;
pub mod fault_point;
pub mod shim;
pub mod spool;
pub mod sweep;

mod agent_process;
mod clock;
mod identity;
mod proc_files;
mod wire;

pub use crate::agent_process::{
    AgentProcess, ExitStatus, OWNERLESS_MAX_MS_DEFAULT, SPOOL_MAX_BYTES_DEFAULT, StartSpec,
};
pub use crate::identity::{ProcessIdentity, Signal, process_alive};
pub use crate::wire::INPUT_MAX_BYTES;
