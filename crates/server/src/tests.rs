//! Whole requests over the wire, as a foreign program would send them.

mod access;
mod idempotency;

use std::path::Path;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method as HttpMethod, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rallypoint_ops::{Delivery, Method, OPERATIONS};
use rallypoint_runtime::{Daemon, DaemonOptions};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::{SOCKET_NAME, ServeError, ServeOptions, serve};

struct Served {
    folder: tempfile::TempDir,
    daemon: Daemon,
    ended: JoinHandle<Result<(), ServeError>>,
}

async fn daemon_in(folder: &Path) -> Daemon {
    let options = DaemonOptions {
        data_folder: folder.to_owned(),
        program: std::env::current_exe().unwrap(),
        ends_when_idle: false,
    };
    Daemon::open(options).await.unwrap()
}

async fn served() -> Served {
    served_in(tempfile::tempdir().unwrap()).await
}

async fn served_in(folder: tempfile::TempDir) -> Served {
    let daemon = daemon_in(folder.path()).await;
    let options = ServeOptions { data_folder: folder.path().to_owned(), listen: None };
    let ended = tokio::spawn(serve(daemon.clone(), options));
    let served = Served { folder, daemon, ended };
    while UnixStream::connect(served.socket()).await.is_err() {
        assert!(!served.ended.is_finished());
        tokio::task::yield_now().await;
    }
    served
}

impl Served {
    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join(SOCKET_NAME)
    }

    async fn send(&self, method: HttpMethod, path: &str, body: Vec<u8>) -> Response<Bytes> {
        self.send_with(method, path, body, None).await
    }

    async fn send_with(
        &self,
        method: HttpMethod,
        path: &str,
        body: Vec<u8>,
        key: Option<&str>,
    ) -> Response<Bytes> {
        let stream = UnixStream::connect(self.socket()).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
        Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
    }

    async fn refusal(&self, method: HttpMethod, path: &str, body: &[u8]) -> (u16, Value) {
        let response = self.send(method, path, body.to_vec()).await;
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
    }

    async fn stopped(self) -> tempfile::TempDir {
        self.daemon.request_stop();
        self.ended.await.unwrap().unwrap();
        assert!(!self.folder.path().join(SOCKET_NAME).exists());
        self.folder
    }
}

#[tokio::test]
async fn every_operation_has_its_route() {
    let served = served().await;
    for operation in OPERATIONS.iter().filter(|each| each.delivery == Delivery::Body) {
        if operation.name == "daemon.stop" {
            continue;
        }
        let method = match operation.method {
            Method::Get => HttpMethod::GET,
            Method::Post => HttpMethod::POST,
            Method::Patch => HttpMethod::PATCH,
        };
        // No id is valid, so that what is asked for does not happen; a refusal by the route itself says `there is nothing`.
        let path = operation.path.replace(['{', '}'], "");
        let response = served.send(method, &path, Vec::new()).await;
        let text = String::from_utf8_lossy(response.body()).into_owned();
        assert_ne!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{}", operation.name);
        assert!(!text.contains("there is nothing at"), "{}: {text}", operation.name);
    }
    served.stopped().await;
}

#[tokio::test]
async fn what_is_no_operation_is_refused_with_a_problem() {
    let served = served().await;
    let (status, problem) = served.refusal(HttpMethod::GET, "/v1/nothing", b"").await;
    assert_eq!((status, &problem["code"]), (404, &json!("not_found")));
    let response = served.send(HttpMethod::POST, "/v1/daemon", Vec::new()).await;
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()["allow"], "GET,HEAD");
    let problem: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(problem["code"], "invalid");
    served.stopped().await;
}

#[tokio::test]
async fn bad_bodies_are_refused_with_a_problem() {
    let served = served().await;
    let (status, problem) = served.refusal(HttpMethod::POST, "/v1/tasks", b"{\"goal\":").await;
    assert_eq!((status, &problem["code"]), (400, &json!("invalid")));
    let (status, problem) =
        served.refusal(HttpMethod::POST, "/v1/tasks", br#"{"goal":"x","colour":"red"}"#).await;
    assert_eq!((status, &problem["code"]), (400, &json!("invalid")));
    assert!(problem["message"].as_str().unwrap().contains("`colour`"));
    let huge = serde_json::to_vec(&json!({"goal": "x".repeat(1024 * 1024)})).unwrap();
    let (status, problem) = served.refusal(HttpMethod::POST, "/v1/tasks", &huge).await;
    assert_eq!((status, &problem["code"]), (413, &json!("limit")));
    served.stopped().await;
}

#[tokio::test]
async fn the_document_is_served() {
    let served = served().await;
    let response = served.send(HttpMethod::GET, "/openapi.json", Vec::new()).await;
    let document: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    served.stopped().await;
}

#[tokio::test]
async fn a_socket_that_nobody_serves_is_replaced_and_only_ours_may_use_the_new_one() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    drop(std::os::unix::net::UnixListener::bind(folder.path().join(SOCKET_NAME)).unwrap());
    let daemon = daemon_in(folder.path()).await;
    let options = ServeOptions { data_folder: folder.path().to_owned(), listen: None };
    let ended = tokio::spawn(serve(daemon.clone(), options));
    let path = folder.path().join(SOCKET_NAME);
    while UnixStream::connect(&path).await.is_err() {
        assert!(!ended.is_finished());
        tokio::task::yield_now().await;
    }
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    daemon.request_stop();
    ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_address_of_the_network_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = daemon_in(folder.path()).await;
    let options =
        ServeOptions { data_folder: folder.path().to_owned(), listen: Some("0.0.0.0:0".parse().unwrap()) };
    let refused = serve(daemon, options).await.unwrap_err();
    assert!(matches!(refused, ServeError::NotLoopback { .. }));
}

impl Served {
    /// The ids of all events from there on, as they come until the daemon stops.
    async fn stream(
        &self,
        path: &str,
        last_event_id: Option<&str>,
    ) -> (u16, JoinHandle<Vec<String>>, watch::Receiver<String>) {
        let stream = UnixStream::connect(self.socket()).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().uri(path).header("host", "localhost");
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = sender.send_request(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let (seen, last) = watch::channel(String::new());
        let ids = tokio::spawn(async move {
            let mut body = response.into_body();
            let mut text = String::new();
            while let Some(Ok(frame)) = body.frame().await {
                let bytes = frame.into_data().unwrap_or_default();
                text.push_str(&String::from_utf8_lossy(&bytes));
                let newest = text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back();
                seen.send_replace(newest.unwrap_or_default().to_owned());
            }
            text.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect()
        });
        (status, ids, last)
    }
}

#[tokio::test]
async fn a_stream_goes_on_after_the_last_event_and_ends_with_the_daemon() {
    let served = served().await;
    let (_, whole, mut whole_last) = served.stream("/v1/events/stream?after=0", None).await;
    let (_, rest, mut rest_last) = served.stream("/v1/events/stream?after=0", Some("1")).await;
    let (status, ..) = served.stream("/v1/events/stream", Some("soon")).await;
    assert_eq!(status, 400);
    let (status, ..) = served.stream("/v1/events/stream?taskId=none", None).await;
    assert_eq!(status, 400);
    whole_last.wait_for(|id| id == "2").await.unwrap();
    rest_last.wait_for(|id| id == "2").await.unwrap();
    served.stopped().await;
    assert_eq!(
        (whole.await.unwrap(), rest.await.unwrap()),
        (vec!["1".to_owned(), "2".to_owned()], vec!["2".to_owned()])
    );
}
