//! The nouns of Rallypoint and what happens to them.
//!
//! Ids, states, commands, events and the items that pass between an agent and
//! the engine. Nothing here performs IO, reads a clock or makes an id: time
//! and ids are handed in by the shell.
//!
//! Wire form: camelCase keys, opaque string ids, integer Unix milliseconds.

pub mod admission;
pub mod agent_io;
pub mod agent_offer;
pub mod attachment;
pub mod channel;
pub mod command;
pub mod completion;
pub mod delivery;
pub mod event;
pub mod found;
pub mod ids;
pub mod length;
pub mod limits;
pub mod mail;
pub mod message;
pub mod mid_turn;
pub mod money;
pub mod permission;
pub mod progress;
pub mod question;
pub mod refusal;
pub mod request;
pub mod retention;
pub mod routing;
pub mod run;
pub mod session;
pub mod steering;
pub mod stop;
pub mod task;
pub mod time;
pub mod tool_call;
pub mod usage;
