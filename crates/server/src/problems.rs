//! Refusals as HTTP answers.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rallypoint_model::refusal::RefusalCode;
use rallypoint_ops::Problem;

/// A refusal with the status that says its kind to programs that look no further.
#[derive(Debug)]
pub(crate) struct Refused {
    status: StatusCode,
    problem: Problem,
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
        Self { status: StatusCode::PAYLOAD_TOO_LARGE, problem }
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
        Self { status: StatusCode::METHOD_NOT_ALLOWED, problem }
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, problem: Problem::invalid(message) }
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        let status = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, problem }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, Json(self.problem)).into_response()
    }
}
