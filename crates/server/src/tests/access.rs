//! The loopback port: who gets in, and who does not.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::{Served, served};
use crate::TOKEN_FILE;

type Headers<'a> = &'a [(&'a str, &'a str)];

/// A link from the socket, as `rally open` gets it: the address behind it, and its path with the code.
async fn link(served: &Served) -> (SocketAddr, String) {
    let answer = served.send(Method::POST, "/v1/access/links", Vec::new()).await;
    let answer: Value = serde_json::from_slice(answer.body()).unwrap();
    let url = answer["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let (address, path) = url.split_once('/').unwrap();
    (address.parse().unwrap(), format!("/{path}"))
}

async fn get(address: SocketAddr, path: &str, headers: Headers<'_>) -> Response<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::builder().uri(path);
    if headers.iter().all(|(name, _)| *name != "host") {
        request = request.header("host", address.to_string());
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (parts, body) =
        sender.send_request(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap().into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

async fn status(address: SocketAddr, path: &str, headers: Headers<'_>) -> u16 {
    get(address, path, headers).await.status().as_u16()
}

fn token(served: &Served) -> String {
    std::fs::read_to_string(served.folder.path().join(TOKEN_FILE)).unwrap().trim().to_owned()
}

#[tokio::test]
async fn over_the_port_everything_but_health_needs_the_token() {
    let served = served().await;
    let (address, _) = link(&served).await;
    for (path, open) in [
        ("/healthz", true),
        ("/readyz", true),
        ("/metrics", false),
        ("/openapi.json", false),
        ("/v1/daemon", false),
        ("/v1/events/stream", false),
        ("/v1/nothing", false),
    ] {
        assert_eq!(status(address, path, &[]).await, if open { 200 } else { 401 }, "{path}");
    }
    let right = format!("Bearer {}", token(&served));
    assert_eq!(status(address, "/v1/daemon", &[("authorization", &right)]).await, 200);
    assert_eq!(status(address, "/v1/nothing", &[("authorization", &right)]).await, 404);
    let refused = get(address, "/v1/daemon", &[("authorization", "Bearer wrong")]).await;
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    assert!(refused.headers()["www-authenticate"].to_str().unwrap().starts_with("Bearer"));
    let problem: Value = serde_json::from_slice(refused.body()).unwrap();
    assert_eq!((&problem["status"], &problem["code"]), (&401.into(), &"unauthenticated".into()));
    assert!(!problem.to_string().contains(&token(&served)));
    served.stopped().await;
}

#[tokio::test]
async fn a_link_lets_a_browser_in_once_and_its_cookie_holds_over_a_restart() {
    let served = served().await;
    let (address, path) = link(&served).await;
    let page = get(address, &path, &[]).await;
    assert_eq!(page.status(), 200);
    let cookie = page.headers()["set-cookie"].to_str().unwrap().to_owned();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert_eq!(status(address, &path, &[]).await, 410);
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(status(address, "/v1/daemon", &[("cookie", pair)]).await, 200);
    assert_eq!(status(address, "/v1/daemon", &[("cookie", "a=b; rally_access=1.2.3")]).await, 401);
    // A page of another origin that makes this browser call us is refused although the cookie is right.
    let foreign = [("cookie", pair), ("origin", "http://evil.example")];
    assert_eq!(status(address, "/v1/daemon", &foreign).await, 403);
    assert_eq!(status(address, "/v1/daemon", &[("cookie", pair), ("host", "evil.example")]).await, 403);
    // A wrong token is not made good by the cookie.
    let both = [("cookie", pair), ("authorization", "Bearer wrong")];
    assert_eq!(status(address, "/v1/daemon", &both).await, 401);
    served.stopped().await;
}

#[tokio::test]
async fn guessing_is_slowed_down_and_the_right_token_is_not() {
    let served = served().await;
    let (address, _) = link(&served).await;
    let mut answers = Vec::new();
    for number in 0..40 {
        let guess = format!("Bearer guess-{number}");
        answers.push(get(address, "/v1/daemon", &[("authorization", &guess)]).await);
    }
    assert_eq!(answers.first().unwrap().status(), 401);
    let slowed = answers.last().unwrap();
    assert_eq!(slowed.status(), 429);
    assert!(slowed.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    let right = format!("Bearer {}", token(&served));
    assert_eq!(status(address, "/v1/daemon", &[("authorization", &right)]).await, 200);
    served.stopped().await;
}

#[tokio::test]
async fn every_answer_names_its_request_and_the_figures_count_it() {
    let served = served().await;
    let (address, _) = link(&served).await;
    let right = format!("Bearer {}", token(&served));
    let named = get(address, "/v1/daemon", &[("authorization", &right), ("x-request-id", "mine-1")]).await;
    assert_eq!(named.headers()["x-request-id"], "mine-1");
    let odd = get(address, "/v1/nothing", &[("authorization", &right), ("x-request-id", "a b")]).await;
    assert_ne!(odd.headers()["x-request-id"], "a b");
    let figures = get(address, "/metrics", &[("authorization", &right)]).await;
    let text = String::from_utf8_lossy(figures.body()).into_owned();
    assert!(text.contains("rally_calls_total{operation=\"daemon.status\",status=\"200\"} 1"), "{text}");
    assert!(text.contains("rally_events_total 2"), "{text}");
    served.stopped().await;
}
