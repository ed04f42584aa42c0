//! The other end of the wire: a small blocking toolkit for programs that are an agent.
//!
//! [`AgentServer`] reads requests from any reader and answers on any writer. A
//! program implements [`Agent`]; each prompt runs on a thread of its own, so
//! that a cancel can arrive while it works. When the input ends, every open
//! turn is cancelled and the server returns once they are done, or after a
//! grace period.
//!
//! Earlier sessions are loaded where the program can; file access and terminals are not served.

mod client;
mod server;
mod turn;

pub use client::{Cancel, Client};
pub use server::{Agent, AgentServer};
pub use turn::{PermissionAnswer, PermissionChoice, PromptEnd, PromptText, Session, ToolUpdate, Turn};

#[cfg(test)]
mod tests;
