//! `/open`: where a one-time link becomes a cookie.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, SET_COOKIE};
use axum::response::{Html, IntoResponse, Response};
use rallypoint_ops::Problem;
use serde::Deserialize;

use crate::access::Access;
use crate::problems::Refused;

/// Where the browser goes from here.
const CONSOLE: &str = "/orchestrator";

#[derive(Debug, Deserialize)]
pub(crate) struct Code {
    code: Option<String>,
}

/// Takes the code and lets the browser in.
///
/// The page leads on by itself instead of redirecting: a cookie for this site alone is not sent with a request that
/// another program or page began, and a redirect would still count as that request.
pub(crate) async fn open(State(access): State<Arc<Access>>, Query(query): Query<Code>) -> Response {
    match access.redeem(query.code.as_deref().unwrap_or_default()) {
        Some(Ok(cookie)) => let_in(&cookie),
        Some(Err(error)) => {
            Refused::from(Problem::internal(format!("no cookie can be made: {error}"))).into_response()
        }
        None => match access.pace_of_failures() {
            Ok(()) => Refused::gone(
                "this link was used before, or its time is over",
                "`rally open` makes a new one",
            )
            .into_response(),
            Err(wait) => Refused::too_often("failed logins", wait).into_response(),
        },
    }
}

fn let_in(cookie: &str) -> Response {
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Rallypoint</title>\
         <meta http-equiv=\"refresh\" content=\"0; url={CONSOLE}\"><p><a href=\"{CONSOLE}\">Rallypoint</a></html>"
    );
    let headers = [
        (SET_COOKIE, cookie),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'"),
    ];
    (headers, Html(page)).into_response()
}
