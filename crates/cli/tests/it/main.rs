//! The program from outside: real commands, a real daemon, real agents.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these helpers are tests: a value that is not there is their finding"
)]

mod agents;
mod bad_agents;
mod bad_input;
mod channels;
mod clocks;
mod conversations;
mod demo;
mod disk;
mod folders;
mod help;
mod mid_turn;
mod modern;
mod outcomes;
mod progressing;
mod questions;
mod quirks;
mod resets;
mod restoring;
mod retention;
mod searching;
mod secrets;
mod settings;
mod trees;
mod usage;
mod watching;
