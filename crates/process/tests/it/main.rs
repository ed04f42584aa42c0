//! Tests with real processes: shims in temporary folders, agents that are shell scripts.
//!
//! They wait for events (the doorbell, `/proc`) with a deadline and never for a time to pass. Whatever a failing test
//! leaves running is killed when its [`support::Shim`] is dropped.

#[cfg(test)]
mod attaching;
#[cfg(test)]
mod command;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod launching;
#[cfg(test)]
mod spool;
#[cfg(test)]
mod support;
#[cfg(test)]
mod talking;
