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

/// A problem as it travels over HTTP: the members of RFC 9457 beside our own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemBody {
    /// Kind of problem, as a name that never changes: `urn:rallypoint:problem:CODE`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// What happened, to what; the same as `message`.
    pub detail: String,
    /// The same once more, for programs that look for it under this name.
    pub error: String,
    /// The problem.
    #[serde(flatten)]
    pub problem: Problem,
}

impl ProblemBody {
    /// The body of an answer with this status.
    pub fn new(problem: Problem, status: u16) -> Self {
        let (code, title) = words(problem.code);
        Self {
            kind: format!("urn:rallypoint:problem:{code}"),
            title: title.to_owned(),
            status,
            detail: problem.message.clone(),
            error: problem.message.clone(),
            problem,
        }
    }
}

/// A code on the wire, and in words.
fn words(code: RefusalCode) -> (&'static str, &'static str) {
    match code {
        RefusalCode::NotFound => ("not_found", "It does not exist"),
        RefusalCode::Invalid => ("invalid", "The request is not of the form that this takes"),
        RefusalCode::Conflict => ("conflict", "It is in a state in which this is not possible"),
        RefusalCode::Limit => ("limit", "A limit is reached"),
        RefusalCode::AlreadyClosed => ("already_closed", "It was closed before"),
        RefusalCode::AgentUnavailable => ("agent_unavailable", "The agent is not known or not ready"),
        RefusalCode::KeyReused => ("key_reused", "The key came with another request before"),
        RefusalCode::Unauthenticated => ("unauthenticated", "It is not known who calls"),
        RefusalCode::Forbidden => ("forbidden", "This caller may not do this"),
        RefusalCode::Internal => ("internal", "Something failed on our side"),
    }
}

impl Problem {
    /// HTTP status that goes with the code.
    pub fn status(&self) -> u16 {
        match self.code {
            RefusalCode::NotFound => 404,
            RefusalCode::Invalid => 400,
            RefusalCode::Unauthenticated => 401,
            RefusalCode::Forbidden => 403,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_kind_is_its_code_on_the_wire() {
        for code in [
            RefusalCode::NotFound,
            RefusalCode::Invalid,
            RefusalCode::Conflict,
            RefusalCode::Limit,
            RefusalCode::AlreadyClosed,
            RefusalCode::AgentUnavailable,
            RefusalCode::KeyReused,
            RefusalCode::Unauthenticated,
            RefusalCode::Forbidden,
            RefusalCode::Internal,
        ] {
            assert_eq!(serde_json::to_value(code).unwrap(), words(code).0);
        }
    }
}
