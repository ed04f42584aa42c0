//! The gate before every route of the TCP listener.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use super::{Access, COOKIE_NAME};
use crate::problems::Refused;

/// What needs no token: whether the daemon is well, and the way in.
const OPEN_PATHS: [&str; 3] = ["/healthz", "/readyz", "/open"];

/// The same routes, behind the gate.
pub(crate) fn guarded(router: Router, access: Arc<Access>) -> Router {
    router.layer(from_fn_with_state(access, check))
}

async fn check(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    if let Err(wait) = access.pace_of_calls() {
        return Refused::too_often("calls", wait).into_response();
    }
    if OPEN_PATHS.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    match permitted(&access, request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

fn permitted(access: &Access, headers: &HeaderMap) -> Result<(), Refused> {
    let presented = bearer(headers);
    if presented.is_some_and(|token| access.takes_token(token)) {
        return Ok(());
    }
    // A wrong token is never made good by a cookie: who sends one wants it to count.
    if presented.is_none() && cookies(headers).any(|value| access.takes_cookie(value)) {
        return Ok(());
    }
    let nothing_shown = presented.is_none() && cookies(headers).next().is_none();
    if nothing_shown {
        return Err(Refused::unauthenticated("this call needs the access token"));
    }
    match access.pace_of_failures() {
        Ok(()) => {
            Err(Refused::unauthenticated("the access token or cookie is not the one of this data folder"))
        }
        Err(wait) => Err(Refused::too_often("failed logins", wait.max(Duration::from_secs(1)))),
    }
}

pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| *name == COOKIE_NAME)
        .map(|(_, value)| value)
}
