//! Refusals as HTTP answers.

use std::time::Duration;

use axum::Json;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use rallypoint_model::refusal::RefusalCode;
use rallypoint_ops::{Problem, ProblemBody};

/// Media type of the bodies (RFC 9457).
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// A refusal with the status that says its kind to programs that look no further.
#[derive(Debug)]
pub(crate) struct Refused {
    status: StatusCode,
    problem: Problem,
    /// Seconds after which another try makes sense.
    wait: Option<u64>,
}

impl Refused {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Problem::invalid(message).into()
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let problem = Problem {
            code: RefusalCode::Limit,
            message: format!("the body is larger than the limit of {limit} bytes"),
            hint: Some("put large texts into a file of the work folder and name the file".to_owned()),
            retryable: false,
        };
        Self { status: StatusCode::PAYLOAD_TOO_LARGE, ..problem.into() }
    }

    pub(crate) fn unknown_path(path: &str) -> Self {
        let problem = Problem {
            code: RefusalCode::NotFound,
            message: format!("there is nothing at `{path}`"),
            hint: Some("`GET /openapi.json` lists what there is".to_owned()),
            retryable: false,
        };
        problem.into()
    }

    pub(crate) fn wrong_method(method: &str, path: &str) -> Self {
        let problem = Problem {
            code: RefusalCode::Invalid,
            message: format!("`{path}` does not take `{method}`"),
            hint: Some("the `Allow` header of this answer names what it takes".to_owned()),
            retryable: false,
        };
        Self { status: StatusCode::METHOD_NOT_ALLOWED, ..problem.into() }
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Problem { code: RefusalCode::Forbidden, ..Problem::invalid(message) }.into()
    }

    pub(crate) fn unauthenticated(message: impl Into<String>) -> Self {
        let hint = "send `Authorization: Bearer TOKEN` with the text of the file `access-token` in the data folder, \
                    or open the link that `rally open` prints";
        Problem {
            code: RefusalCode::Unauthenticated,
            hint: Some(hint.to_owned()),
            ..Problem::invalid(message)
        }
        .into()
    }

    pub(crate) fn too_often(what: &str, wait: Duration) -> Self {
        let wait = wait.as_secs_f64().ceil().max(1.0) as u64;
        let problem = Problem {
            code: RefusalCode::Limit,
            message: format!("too many {what} in too short a time"),
            hint: Some(format!("wait {wait} s and try again")),
            retryable: true,
        };
        Self { wait: Some(wait), ..problem.into() }
    }

    pub(crate) fn gone(message: impl Into<String>, hint: &str) -> Self {
        let problem = Problem { hint: Some(hint.to_owned()), ..Problem::invalid(message) };
        Self { status: StatusCode::GONE, ..problem.into() }
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        let status = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, problem, wait: None }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = ProblemBody::new(self.problem, self.status.as_u16());
        let mut response = (self.status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"rallypoint\""));
        }
        if let Some(wait) = self.wait {
            headers.insert(RETRY_AFTER, HeaderValue::from(wait));
        }
        response
    }
}
