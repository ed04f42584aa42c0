//! Real agents, each with a home of its own, a key that is none, and a mock model on loopback; driven by the real
//! program and a real daemon.
//!
//! Beside them acpx, a client of the protocol that somebody else wrote, which drives `rally acp`: `make test-acpx`.
//!
//! They are installed by `make test-agents`, which says where with `RALLY_TEST_AGENTS`. Without that variable every test
//! of this target is listed as skipped. What each agent was seen to do is written to `outcomes` in that folder; the table
//! in `docs/agents.md` is made of it.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these helpers are tests: a value that is not there is their finding"
)]

mod acpx;
mod agent;
mod harness;
mod leftovers;
mod outcome;
mod scenarios;
mod stage;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut tests = scenarios::tests();
    tests.extend(leftovers::tests());
    tests.extend(acpx::tests());
    harness::run(tests)
}
