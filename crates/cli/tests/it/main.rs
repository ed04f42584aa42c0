//! The program from outside: real commands, a real daemon, real agents.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these helpers are tests: a value that is not there is their finding"
)]

mod bad_agents;
mod bad_input;
mod conversations;
mod demo;
mod disk;
mod help;
mod outcomes;
mod questions;
mod restoring;
mod retention;
mod secrets;
mod settings;
mod trees;
mod watching;
