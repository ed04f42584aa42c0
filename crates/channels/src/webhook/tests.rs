//! The webhook against a server of one answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use uuid::Uuid;

use super::*;

const KEYED: WebhookTraits = WebhookTraits { takes_key: true, edits: false, threads: false };

fn made(url: &str) -> Result<Webhook, WebhookError> {
    Webhook::new(url, KEYED, None, Duration::from_secs(20))
}

fn outgoing() -> Outgoing {
    let id = Uuid::from_u128(7);
    Outgoing {
        key: DeliveryId(id),
        conversation: Conversation {
            channel: "hook".to_owned(),
            account: None,
            peer: "team".to_owned(),
            thread: Some("042".to_owned()),
        },
        text: "Done \u{1f600}".to_owned(),
        reply_to: Some("m1".to_owned()),
        message_id: MessageId(id),
        room_id: RoomId(id),
        task_id: None,
        progress: None,
        at: rallypoint_model::time::Timestamp(1_790_000_000_000),
    }
}

/// Answers one request with these bytes and gives back its head and body.
fn server(answer: &'static str) -> (String, std::thread::JoinHandle<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let begin = head.len();
            reader.read_line(&mut head).unwrap();
            let line = head[begin..].to_lowercase();
            length = line.strip_prefix("content-length:").map_or(length, |text| text.trim().parse().unwrap());
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        (head, String::from_utf8(body).unwrap())
    });
    (url, serving)
}

async fn answered(answer: &'static str, takes_key: bool) -> SinkAnswer {
    let (url, serving) = server(answer);
    let hook = Webhook::new(
        &url,
        WebhookTraits { takes_key, ..WebhookTraits::default() },
        None,
        Duration::from_secs(20),
    )
    .unwrap();
    let said = hook.send(outgoing()).await;
    serving.join().unwrap();
    said
}

fn word(answer: &SinkAnswer) -> &'static str {
    match answer {
        SinkAnswer::Receipt { .. } => "receipt",
        SinkAnswer::Busy { .. } => "busy",
        SinkAnswer::Refused { .. } => "refused",
        SinkAnswer::Failed { .. } => "failed",
        SinkAnswer::Unknown { .. } => "unknown",
    }
}

#[tokio::test]
async fn each_answer_means_one_of_five_things() {
    for (answer, with_key, without_key) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"id\":\"r1\"}", "receipt", "receipt"),
        ("HTTP/1.1 204 No Content\r\n\r\n", "receipt", "receipt"),
        // The promised end of the body never comes; the status was said all the same.
        ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"id\"", "receipt", "receipt"),
        ("HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", "busy", "busy"),
        ("HTTP/1.1 503 Away\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", "busy", "busy"),
        ("HTTP/1.1 409 Still at it\r\nContent-Length: 0\r\n\r\n", "busy", "refused"),
        ("HTTP/1.1 503 Broken\r\nContent-Length: 0\r\n\r\n", "failed", "failed"),
        ("HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n", "failed", "failed"),
        ("HTTP/1.1 408 Slow\r\nContent-Length: 0\r\n\r\n", "failed", "failed"),
        ("HTTP/1.1 404 Nobody\r\nContent-Length: 0\r\n\r\n", "refused", "refused"),
        (
            "HTTP/1.1 302 There\r\nLocation: http://[::1]:9/\r\nContent-Length: 0\r\n\r\n",
            "refused",
            "refused",
        ),
        ("", "unknown", "unknown"),
        ("nonsense\r\n\r\n", "unknown", "unknown"),
    ] {
        assert_eq!(word(&answered(answer, true).await), with_key, "{answer}");
        assert_eq!(word(&answered(answer, false).await), without_key, "{answer}");
    }
    let asked = answered("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\nlater", true).await;
    let why = "it answered 429 Too Many Requests: later".to_owned();
    assert_eq!(asked, SinkAnswer::Busy { why, retry_after_ms: Some(7_000) });
}

#[tokio::test]
async fn a_receiver_that_is_not_there_is_busy_since_nothing_can_have_arrived() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = made(&format!("http://{closed}/")).unwrap().send(outgoing()).await;
    assert!(matches!(said, SinkAnswer::Busy { retry_after_ms: None, .. }), "{said:?}");
}

#[tokio::test]
async fn no_answer_in_time_leaves_a_doubt() {
    // Connections wait in its queue, and nobody takes them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let hook = Webhook::new(&url, KEYED, None, Duration::from_millis(30)).unwrap();
    assert_eq!(word(&hook.send(outgoing()).await), "unknown");
}

#[tokio::test]
async fn a_request_holds_the_whole_conversation_and_its_signature_fits_its_bytes() {
    let (url, serving) = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let hook = Webhook::new(&url, KEYED, Some(SigningKey::new("word")), Duration::from_secs(20)).unwrap();
    assert_eq!(hook.send(outgoing()).await, SinkAnswer::Receipt { id: None, warning: None });
    let (head, body) = serving.join().unwrap();
    let header = |name: &str| {
        let found = head.lines().find_map(|line| line.to_lowercase().strip_prefix(name).map(str::to_owned));
        found.unwrap().trim().to_owned()
    };
    assert!(head.starts_with("POST /in HTTP/1.1\r\n"), "{head}");
    assert_eq!(header("idempotency-key:"), Uuid::from_u128(7).to_string());
    let code = hmac_sha256(b"word", &[format!("1790000000000.{body}").as_bytes()]);
    assert_eq!(header("rallypoint-timestamp:"), "1790000000000");
    assert_eq!(header("rallypoint-signature:"), format!("sha256={code}"));
    let id = "00000000-0000-0000-0000-000000000007";
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&body).unwrap(),
        serde_json::json!({
            "version": 1, "key": id, "conversation": { "channel": "hook", "peer": "team", "thread": "042" },
            "text": "Done \u{1f600}", "replyTo": "m1", "messageId": id, "roomId": id,
        })
    );
}

#[test]
fn an_address_is_split_and_what_can_not_be_used_says_why() {
    let hook = made("http://[::1]:8080/in?x=1").unwrap();
    assert_eq!((hook.host.as_str(), hook.port, hook.target.as_str()), ("::1", 8080, "/in?x=1"));
    let hook = made("http://example.org").unwrap();
    assert_eq!((hook.host.as_str(), hook.port, hook.target.as_str()), ("example.org", 80, "/"));
    assert!(matches!(made("https://example.org"), Err(WebhookError::NeedsTls { .. })));
    for url in ["example.org/in", "ftp://example.org", "http://user:word@example.org", "http://", ""] {
        assert!(matches!(made(url), Err(WebhookError::Unreadable { .. })), "{url}");
    }
}

#[test]
fn what_can_not_be_read_behind_a_success_is_a_warning_and_no_failure() {
    let of = |text: &str| receipt(Ok(Bytes::from(text.to_owned())));
    let plain = |id: Option<&str>| SinkAnswer::Receipt { id: id.map(str::to_owned), warning: None };
    assert_eq!(of(r#"{"id":"m1"}"#), plain(Some("m1")));
    assert_eq!(of(r#"{"id":17,"more":[]}"#), plain(Some("17")));
    assert_eq!(of(r#"{"ok":true}"#), plain(None));
    assert_eq!(of("  "), plain(None));
    for text in ["<html>", r#"{"id":{}}"#] {
        assert!(matches!(of(text), SinkAnswer::Receipt { id: None, warning: Some(_) }), "{text}");
    }
    assert!(matches!(receipt(Err("cut".to_owned())), SinkAnswer::Receipt { warning: Some(_), .. }));
}

#[test]
fn a_signing_key_is_not_shown() {
    assert_eq!(format!("{:?}", SigningKey::new("word")), "SigningKey");
}
