//! One route an operation, made from the registry.

use std::sync::Arc;
use std::time::Instant;

use axum::body::to_bytes;
use axum::extract::{FromRequestParts, Query, RawPathParams, Request};
use axum::http::{HeaderMap, Method as HttpMethod, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use axum::{Json, Router};
use http_body_util::LengthLimitError;
use rallypoint_ops::types::AccessLink;
use rallypoint_ops::{Delivery, Method, OPERATIONS, Operation};
use rallypoint_runtime::Daemon;
use serde_json::Value;

use crate::doors::Doors;
use crate::metrics::Metrics;
use crate::problems::Refused;
use crate::{entrance, events, health, input, openapi, session};

/// Largest body of a call. Long texts belong into files of the work folder.
pub(crate) const BODY_MAX_BYTES: usize = 1024 * 1024;

/// Header under whose value a mutation is carried out once.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Who calls: whoever owns the data folder, by any door. Keys of other callers are apart from theirs.
const OWNER: &str = "owner";

/// What every route needs.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) daemon: Daemon,
    pub(crate) doors: Doors,
    pub(crate) metrics: Arc<Metrics>,
}

/// Everything that can be called.
pub(crate) fn router(served: &Served) -> Router {
    let mut router = Router::new()
        .route("/openapi.json", get(|| async { Json(openapi::document()) }))
        .route("/open", get(entrance::open).with_state(Arc::clone(served.doors.access())))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready).with_state(served.clone()))
        .route("/metrics", get(health::metrics).with_state(served.clone()));
    for operation in OPERATIONS {
        let served = served.clone();
        let filter = match operation.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Patch => MethodFilter::PATCH,
        };
        let handler = move |request: Request| answer(served.clone(), operation, request);
        router = router.route(operation.path, on(filter, handler));
    }
    router.fallback(unknown_path).method_not_allowed_fallback(wrong_method)
}

async fn unknown_path(uri: Uri) -> Refused {
    Refused::unknown_path(uri.path())
}

async fn wrong_method(method: HttpMethod, uri: Uri) -> Refused {
    Refused::wrong_method(method.as_str(), uri.path())
}

async fn answer(served: Served, operation: &'static Operation, request: Request) -> Response {
    let began = Instant::now();
    let metrics = Arc::clone(&served.metrics);
    let response = match called(served, operation, request).await {
        Ok(response) => response,
        Err(refused) => refused.into_response(),
    };
    // A stream has only begun by now.
    let took = (operation.delivery == Delivery::Body).then(|| began.elapsed());
    metrics.called(operation.name, response.status().as_u16(), took);
    response
}

async fn called(served: Served, operation: &Operation, request: Request) -> Result<Response, Refused> {
    let holder = session::permitted(&served, operation, request.headers()).await?;
    let (headers, input) = read(operation, request).await?;
    if let Some(holder) = holder {
        let answered = served.daemon.call_by_session(&holder, operation.name, input).await?;
        return Ok(Json(answered).into_response());
    }
    match (operation.delivery, operation.name) {
        (Delivery::Stream, _) => events::stream(served, &headers, input),
        // Who gets in is this crate's own business.
        (Delivery::Body, "access.link") => {
            Ok(Json(AccessLink { url: served.doors.link().await? }).into_response())
        }
        (Delivery::Body, name) => {
            let key = headers.get(IDEMPOTENCY_KEY).filter(|_| operation.method != Method::Get);
            let answer = match key {
                None => served.daemon.call(name, input).await?,
                Some(key) => {
                    // What is no text is no key either, and refused as such.
                    let key = key.to_str().unwrap_or_default();
                    served.daemon.call_once(OWNER, key, name, input).await?
                }
            };
            Ok(Json(answer).into_response())
        }
    }
}

async fn read(operation: &Operation, request: Request) -> Result<(HeaderMap, Value), Refused> {
    let (mut parts, body) = request.into_parts();
    let path = RawPathParams::from_request_parts(&mut parts, &())
        .await
        .map_err(|error| Refused::invalid(error.body_text()))?
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let Query(query) =
        Query::try_from_uri(&parts.uri).map_err(|error| Refused::invalid(error.body_text()))?;
    let body = to_bytes(body, BODY_MAX_BYTES).await.map_err(unread)?;
    Ok((parts.headers, input::merge(operation, path, query, &body)?))
}

fn unread(error: axum::Error) -> Refused {
    if error.into_inner().is::<LengthLimitError>() {
        Refused::too_large(BODY_MAX_BYTES)
    } else {
        Refused::invalid("the body ended before it was whole")
    }
}
