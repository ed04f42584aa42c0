//! The built-in agents, driven the way the daemon drives them.

mod child;
mod command;
mod harness;
mod scenario;
mod scripted;
mod shell;
