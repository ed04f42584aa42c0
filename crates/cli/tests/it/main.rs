//! The program from outside: real commands, a real daemon, real agents.

mod bad_agents;
mod bad_input;
mod demo;
mod disk;
mod help;
mod outcomes;
mod questions;
mod restoring;
mod secrets;
mod settings;
mod watching;
