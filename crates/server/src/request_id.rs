//! A name for each request, so that a line of the log and an answer can be put together.

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use tracing::Instrument;
use uuid::Uuid;

/// Header that carries it, in both directions.
const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Longest name that is taken from a caller.
const LENGTH_MAX: usize = 64;

/// The same routes, each answer with the name of its request.
pub(crate) fn naming(router: Router) -> Router {
    router.layer(from_fn(named))
}

/// Takes the caller's name for the request where it is one, else makes one.
async fn named(request: Request, next: Next) -> Response {
    let given = request.headers().get(&HEADER).filter(|value| is_plain(value)).cloned();
    let id = given.or_else(|| HeaderValue::try_from(Uuid::now_v7().to_string()).ok());
    let Some(id) = id else { return next.run(request).await };
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default(), %method, path);
    let mut response = async {
        let response = next.run(request).await;
        if response.status().is_server_error() {
            tracing::error!("answered {}", response.status());
        } else {
            tracing::debug!("answered {}", response.status());
        }
        response
    }
    .instrument(span)
    .await;
    response.headers_mut().insert(HEADER, id);
    response
}

/// Letters, digits and a few marks: what comes from outside goes into the log as it is.
fn is_plain(value: &HeaderValue) -> bool {
    let bytes = value.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= LENGTH_MAX
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_taken_from_callers() {
        for good in ["a", "0190-ab:cd_ef.1"] {
            assert!(is_plain(&HeaderValue::from_static(good)), "{good}");
        }
        for bad in ["", "a b", "a\"b", "ü", &"x".repeat(65)] {
            assert!(!is_plain(&HeaderValue::from_bytes(bad.as_bytes()).unwrap()), "{bad}");
        }
    }
}
