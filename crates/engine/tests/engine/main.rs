//! What the engine promises, one scenario a promise, and what holds for any input.

mod approvals;
mod host;
mod invariants;
mod losses;
mod prompts;
mod properties;
mod questions;
mod routing;
mod several;
mod silence;
mod source;
mod stopping;
mod tasks;
mod verification;
mod world;
