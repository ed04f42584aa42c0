//! What is decided, free of IO: the state, the tables that move it, and the
//! rules of routing, prompting, planning and verification.
//!
//! [`decide::decide`] takes one command on the state so far and emits events;
//! [`apply::apply`] is the only thing that changes state; [`due::due`] names the
//! effects that committed state asks for. No IO, no clock, no randomness: time
//! and ids are handed in.

pub mod admission;
pub mod apply;
pub mod changes;
pub mod completion;
pub mod consequences;
pub mod decide;
pub mod delivery_machine;
pub mod due;
pub mod form;
pub mod login;
pub mod mailbox;
pub mod mentions;
pub mod permission;
pub mod planner;
pub mod progress;
pub mod prompt;
pub mod question_machine;
pub mod roster;
pub mod router;
pub mod run_machine;
pub mod scrub;
pub mod search;
pub mod settings;
pub mod state;
pub mod task_machine;
pub mod text;
pub mod tree;
pub mod usage;
pub mod view;
pub mod voice;
