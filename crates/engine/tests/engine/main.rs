//! What the engine promises, one scenario a promise, and what holds for any input.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests: a value that is not there is their finding"
)]

mod answers;
mod approvals;
mod archive;
mod clocks;
mod conversations;
mod deliveries;
mod host;
mod invariants;
mod losses;
mod mailboxes;
mod mention_corpus;
mod mid_turn;
mod offers;
mod old_journals;
mod permission_page;
mod permits;
mod progress;
mod prompts;
mod properties;
mod questions;
mod queue;
mod resets;
mod rooms;
mod rosters;
mod router_vectors;
mod routing;
mod routing_page;
mod several;
mod silence;
mod simulation;
mod source;
mod steering;
mod stopping;
mod tasks;
mod tools;
mod tree_stops;
mod trees;
mod usage;
mod verification;
mod world;
