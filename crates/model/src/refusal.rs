//! A refused command: what happened, to what, what to do next.

use serde::{Deserialize, Serialize};

/// Stable code of a refusal; a caller branches on this, never on the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The thing named does not exist.
    NotFound,
    /// The input is not of the form the operation takes.
    Invalid,
    /// The thing is in a state from which this is not possible.
    Conflict,
    /// A limit is reached; the message names it with its numbers.
    Limit,
    /// The question was closed before this answer came.
    AlreadyClosed,
    /// A named agent is not known or not ready.
    AgentUnavailable,
    /// The same key came with another command.
    KeyReused,
    /// Nobody has said who calls, or wrongly.
    Unauthenticated,
    /// This caller may not do this.
    Forbidden,
    /// Something failed on our side; the same call may work later.
    Internal,
}

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// Stable code.
    pub code: RefusalCode,
    /// What happened, to what.
    pub message: String,
    /// What to do next, when something helps.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// Whether the same call may succeed later as it is.
    pub retryable: bool,
}

impl Refusal {
    /// A refusal that another try won't change.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, retryable: false }
    }

    /// The same refusal with a next step.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The thing named does not exist.
    pub fn not_found(what: &str, id: impl std::fmt::Display) -> Self {
        Self::new(RefusalCode::NotFound, format!("{what} `{id}` does not exist"))
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(formatter, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}
