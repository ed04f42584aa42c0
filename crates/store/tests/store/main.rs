//! What the store promises, on real SQLite in temporary folders.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests: a value that is not there is their finding"
)]

#[path = "../../../engine/tests/engine/answers.rs"]
mod answers;
mod commits;
mod conformance;
mod deliveries;
mod faults;
#[path = "../../../engine/tests/engine/host.rs"]
#[expect(dead_code, reason = "shared with the tests of the engine, which use all of it")]
mod host;
mod opening;
mod pages;
mod place;
mod purge;
mod recorded;
mod requests;
mod sqlite;
mod words;
#[path = "../../../engine/tests/engine/world.rs"]
#[expect(dead_code, reason = "shared with the tests of the engine, which use all of it")]
mod world;
