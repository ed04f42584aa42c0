//! Gathers evidence: does what a criterion asks for hold in the work folder, as seen by us and not as told by a worker.
//!
//! One check makes one [`rallypoint_model::task::Evidence`] with the procedure that was run, so that a person can run
//! it again. Three answers are possible, and "cannot tell" is one of them: a check that could not be carried out is
//! never a pass and never a fault of the worker.
//!
//! This crate does not decide whether a task is done, and never answers for a person.

mod check;
mod command_check;
mod context;
mod excerpt;
mod file_check;

pub use check::{verify_all, verify_criterion};
pub use context::VerifyContext;
pub use excerpt::EXCERPT_MAX_BYTES;
