//! Who may call over TCP: programs of this machine, never a web page of somebody else.
//!
//! A browser lets any page send requests to loopback, and a name of the page's owner may be made to resolve there. The
//! `Host` header then names the page's server and `Origin` the page, so both must be ours.

use axum::Router;
use axum::extract::Request;
use axum::http::header::{HOST, HeaderName, ORIGIN};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};

use crate::problems::Refused;

/// The same routes, closed to callers that are not of this machine.
pub(crate) fn loopback_only(router: Router) -> Router {
    router.layer(from_fn(check))
}

async fn check(request: Request, next: Next) -> Response {
    let verdict = permitted(header(&request, HOST), header(&request, ORIGIN));
    match verdict {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

fn header(request: &Request, name: HeaderName) -> Option<&str> {
    request.headers().get(name).map(|value| value.to_str().unwrap_or("unreadable"))
}

fn permitted(host: Option<&str>, origin: Option<&str>) -> Result<(), Refused> {
    let Some(host) = host else {
        return Err(Refused::forbidden("the request has no `Host` header"));
    };
    if !is_loopback(host) {
        return Err(Refused::forbidden(format!(
            "the `Host` header names `{host}`, which is not this machine"
        )));
    }
    match origin {
        Some(origin) if origin.strip_prefix("http://") != Some(host) => {
            Err(Refused::forbidden(format!("a page of `{origin}` may not call this daemon")))
        }
        _ => Ok(()),
    }
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_pass_as_host() {
        for host in ["localhost", "LOCALHOST:4747", "127.0.0.1:4747", "127.3.2.1", "[::1]:4747", "[::1]"] {
            assert!(permitted(Some(host), None).is_ok(), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "192.168.1.2:4747",
            "0.0.0.0",
            "",
            "[::2]",
            "localhost.",
        ] {
            assert!(permitted(Some(host), None).is_err(), "{host}");
        }
        assert!(permitted(None, None).is_err());
    }

    #[test]
    fn a_page_passes_only_when_it_is_our_own() {
        let host = Some("127.0.0.1:4747");
        assert!(permitted(host, Some("http://127.0.0.1:4747")).is_ok());
        for origin in ["http://127.0.0.1:8080", "https://127.0.0.1:4747", "null", "http://evil.example"] {
            assert!(permitted(host, Some(origin)).is_err(), "{origin}");
        }
    }
}
