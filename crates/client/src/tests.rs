//! Against a server that loses connections on purpose.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rallypoint_model::event::EventRecord;
use rallypoint_ops::Problem;
use rallypoint_ops::types::{DaemonStatus, Empty, EventsInput};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::*;

const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn event(seq: i64) -> String {
    let id = "0198a000-0000-7000-8000-000000000001";
    let record = json!({
        "seq": seq, "at": 5, "aggregate": "task", "aggregateId": id, "version": seq, "schema": 1, "taskId": id,
        "kind": "task.stop_requested", "data": {"taskId": id, "by": "anna"},
    });
    format!("id: {seq}\nevent: task.stop_requested\ndata: {record}\n\n")
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn answer(status: u16, body: &serde_json::Value) -> String {
    let body = body.to_string();
    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

async fn head_of(stream: &mut UnixStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap().lines().next().unwrap().to_owned()
}

/// Answers each connection with the next of these texts, closes it, and gives the first lines that it was asked.
fn server(answers: Vec<String>) -> (tempfile::TempDir, PathBuf, tokio::task::JoinHandle<Vec<String>>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let asked = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            asked.push(head_of(&mut stream).await);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        asked
    });
    (folder, path, asked)
}

async fn seqs(stream: &mut EventStream, count: usize) -> Vec<i64> {
    let mut seqs = Vec::new();
    while seqs.len() < count {
        seqs.push(stream.next().await.unwrap().seq);
    }
    seqs
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was_cut_without_gap_or_repeat() {
    let cut_in_event = format!("{STREAM_HEAD}{}{}", chunk(&event(4)), chunk(&event(5)[..40]));
    let (_folder, path, asked) = server(vec![
        format!("{STREAM_HEAD}{}", chunk(&(event(2) + &event(3)))),
        String::new(),
        cut_in_event,
        format!("{STREAM_HEAD}{}", chunk(&(event(3) + &event(4) + &event(6)))),
    ]);
    let called = Arc::new(AtomicU32::new(0));
    let counter = called.clone();
    let mut stream = Client::unix(&path)
        .follow(EventsInput { after: Some(1), ..Default::default() })
        .on_reconnect(Box::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(()) })
        }));
    assert_eq!(seqs(&mut stream, 4).await, [2, 3, 4, 6]);
    let asked = asked.await.unwrap();
    let after: Vec<&str> =
        asked.iter().map(|line| line.split("after=").nth(1).unwrap().split(' ').next().unwrap()).collect();
    assert_eq!(after, ["1", "3", "3", "4"]);
    assert!(called.load(Ordering::SeqCst) >= 1);
}

#[tokio::test]
async fn from_now_on_is_fixed_before_anything_can_be_lost() {
    let status = json!({
        "version": "1", "pid": 1, "dataFolder": "/d", "epoch": 1, "endsWhenIdle": true, "startedAt": 0, "openRuns": 0,
        "openQuestions": 0, "generations": 0, "uncleanGenerations": 0, "lastSeq": 41,
    });
    let (_folder, path, asked) =
        server(vec![answer(200, &status), String::new(), format!("{STREAM_HEAD}{}", chunk(&event(42)))]);
    let mut stream = Client::unix(&path).follow(EventsInput::default());
    assert_eq!(seqs(&mut stream, 1).await, [42]);
    assert!(asked.await.unwrap().iter().skip(1).all(|line| line.contains("after=41")));
}

#[tokio::test(start_paused = true)]
async fn attempts_are_bounded_and_a_failing_hook_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::unix(folder.path().join("nobody"));
    let input = EventsInput { after: Some(0), ..Default::default() };
    assert_eq!(client.follow(input.clone()).next().await, Err(ClientError::NoDaemon));
    let hook: ReconnectHook =
        Box::new(|| Box::pin(async { Err(ClientError::Protocol("no program".to_owned())) }));
    let ended = client.follow(input).on_reconnect(hook).next().await;
    assert_eq!(ended, Err(ClientError::Protocol("no program".to_owned())));
}

#[tokio::test]
async fn calls_tell_absent_refusing_cut_and_foreign_daemons_apart() {
    let problem = Problem::invalid("`goal` is empty");
    let (_folder, path, _asked) = server(vec![
        answer(400, &serde_json::to_value(&problem).unwrap()),
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{".to_owned(),
        answer(200, &json!({"unrelated": true})),
        "SSH-2.0-x\r\n\r\n".to_owned(),
        answer(502, &json!("bad gateway")),
    ]);
    let client = Client::unix(&path);
    let status = || client.call::<_, DaemonStatus>("daemon.status", &Empty {});
    assert_eq!(status().await.unwrap_err(), ClientError::Refused(problem));
    assert_eq!(status().await.unwrap_err(), ClientError::Lost);
    for _ in 0..3 {
        assert!(matches!(status().await.unwrap_err(), ClientError::Protocol(_)));
    }
    assert_eq!(status().await.unwrap_err(), ClientError::NoDaemon);
}

#[tokio::test]
async fn a_socket_with_a_long_path_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("x".repeat(120));
    std::fs::create_dir(&long).unwrap();
    let opened = std::fs::File::open(&long).unwrap();
    let relative = format!("/proc/self/fd/{}/socket", std::os::fd::AsRawFd::as_raw_fd(&opened));
    let listener = UnixListener::bind(relative).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        head_of(&mut stream).await;
        stream.write_all(answer(200, &json!({})).as_bytes()).await.unwrap();
    });
    Client::unix(long.join("socket")).call::<_, Empty>("daemon.stop", &Empty {}).await.unwrap();
}

#[test]
fn the_line_is_the_record() {
    let line = event(7);
    let data = line.split("data: ").nth(1).unwrap().trim();
    let record: EventRecord = serde_json::from_str(data).unwrap();
    assert_eq!(record.seq, 7);
}
