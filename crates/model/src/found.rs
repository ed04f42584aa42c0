//! What a search finds.

use serde::{Deserialize, Serialize};

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FoundKind {
    /// A task, by its title, goal or criteria.
    Task,
    /// A message of a room.
    Message,
    /// Another event: what an agent said or did, a question, evidence.
    Event,
}

impl FoundKind {
    /// What an event of this kind is found as.
    pub fn of_event_kind(kind: &str) -> Self {
        match kind {
            "task.created" => Self::Task,
            "message.posted" => Self::Message,
            _ => Self::Event,
        }
    }
}
