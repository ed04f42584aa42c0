//! Whether the daemon is well, for supervisors; and its figures.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::metrics::MEDIA_TYPE;
use crate::routes::Served;

/// `/healthz`: the process answers.
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// `/readyz`: the decider decides and the store can be read. What is wrong stands in the log, not in the answer, since
/// anybody may ask.
pub(crate) async fn ready(State(served): State<Served>) -> Response {
    if *served.daemon.stop_requested().borrow() {
        return (StatusCode::SERVICE_UNAVAILABLE, "ending\n").into_response();
    }
    match served.daemon.figures().await {
        Ok(_) => "ready\n".into_response(),
        Err(problem) => {
            tracing::error!("not ready: {problem}");
            (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response()
        }
    }
}

/// `/metrics`.
pub(crate) async fn metrics(State(served): State<Served>) -> Response {
    match served.daemon.figures().await {
        Ok(figures) => ([(CONTENT_TYPE, MEDIA_TYPE)], served.metrics.text(&figures)).into_response(),
        Err(problem) => crate::problems::Refused::from(problem).into_response(),
    }
}
