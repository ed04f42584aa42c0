//! The body of every refused call.

use rallypoint_model::refusal::{Refusal, RefusalCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happened, to what, what to do next. Callers branch on `code`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Stable code.
    pub code: RefusalCode,
    /// What happened, to what.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether the same call may succeed later as it is.
    pub retryable: bool,
}

impl Problem {
    /// HTTP status that goes with the code.
    pub fn status(&self) -> u16 {
        match self.code {
            RefusalCode::NotFound => 404,
            RefusalCode::Invalid => 400,
            RefusalCode::Conflict | RefusalCode::AlreadyClosed | RefusalCode::KeyReused => 409,
            RefusalCode::Limit => 429,
            RefusalCode::AgentUnavailable => 422,
            RefusalCode::Internal => 500,
        }
    }

    /// A body or parameter that could not be read.
    pub fn invalid(message: impl Into<String>) -> Self {
        Refusal::new(RefusalCode::Invalid, message).into()
    }

    /// A failure on our side; trying again may help.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: RefusalCode::Internal, message: message.into(), hint: None, retryable: true }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self {
            code: refusal.code,
            message: refusal.message,
            hint: refusal.hint,
            retryable: refusal.retryable,
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}
