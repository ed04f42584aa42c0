//! A mutation under a key is carried out once.

use hyper::Method as HttpMethod;
use serde_json::{Value, json};

use super::{Served, served, served_in};

async fn post(served: &Served, path: &str, body: &Value, key: &str) -> (u16, Value) {
    let response = served.send_with(HttpMethod::POST, path, body.to_string().into_bytes(), Some(key)).await;
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
}

async fn rooms(served: &Served) -> usize {
    let (_, list) = served.refusal(HttpMethod::GET, "/v1/rooms", b"").await;
    list["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_and_nothing_is_done_again_over_a_restart_too() {
    let served = served().await;
    let before = rooms(&served).await;
    let body = json!({"title": "ops"});
    let (status, first) = post(&served, "/v1/rooms", &body, "k-1").await;
    assert_eq!(status, 200, "{first}");
    // What happened since does not show in the answer of before.
    let said = format!("/v1/rooms/{}/messages", first["roomId"].as_str().unwrap());
    assert_eq!(post(&served, &said, &json!({"text": "hello"}), "k-2").await.0, 200);
    assert_eq!(post(&served, "/v1/rooms", &body, "k-1").await, (200, first.clone()));

    let served = served_in(served.stopped().await).await;
    assert_eq!(post(&served, "/v1/rooms", &body, "k-1").await, (200, first.clone()));
    assert_eq!(rooms(&served).await, before + 1);
    let (_, other) = post(&served, "/v1/rooms", &body, "k-3").await;
    assert_ne!(other["roomId"], first["roomId"], "another key is another request");
    served.stopped().await;
}

#[tokio::test]
async fn a_key_that_came_with_another_request_is_refused() {
    let served = served().await;
    let (_, first) = post(&served, "/v1/rooms", &json!({"title": "ops"}), "k-1").await;
    let (status, problem) = post(&served, "/v1/rooms", &json!({"title": "dev"}), "k-1").await;
    assert_eq!((status, &problem["code"]), (409, &json!("key_reused")), "{problem}");
    let reset = format!("/v1/rooms/{}/reset", first["roomId"].as_str().unwrap());
    let (status, problem) = post(&served, &reset, &json!({}), "k-1").await;
    assert_eq!((status, &problem["code"]), (409, &json!("key_reused")), "another operation: {problem}");
    let (status, problem) = post(&served, "/v1/rooms", &json!({"title": "dev"}), "with space").await;
    assert_eq!((status, &problem["code"]), (400, &json!("invalid")), "{problem}");
    served.stopped().await;
}

#[tokio::test]
async fn a_refusal_is_repeated_under_its_key_although_it_would_be_taken_now() {
    let served = served().await;
    let missing = "0198aa01-0000-7000-8000-000000000000";
    let path = format!("/v1/tasks/{missing}/stop");
    let (status, first) = post(&served, &path, &json!({}), "k-1").await;
    assert_eq!(status, 404);
    assert_eq!(post(&served, &path, &json!({}), "k-1").await, (status, first));
    let (status, problem) = post(&served, &path, &json!({"by": "kim"}), "k-1").await;
    assert_eq!((status, &problem["code"]), (409, &json!("key_reused")));
    served.stopped().await;
}

#[tokio::test]
async fn requests_that_come_at_once_under_one_key_are_one() {
    let served = served().await;
    let before = rooms(&served).await;
    let body = json!({"title": "ops"});
    let all = futures_util::future::join_all((0..16).map(|_| post(&served, "/v1/rooms", &body, "k-1"))).await;
    let (_, first) = &all[0];
    for (status, answer) in &all {
        assert_eq!((*status, &answer["roomId"]), (200, &first["roomId"]));
    }
    assert_eq!(rooms(&served).await, before + 1);
    served.stopped().await;
}

#[tokio::test]
async fn a_key_whose_time_is_over_is_a_new_request() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rally.toml"), "[limits]\nidempotencyHours = 0\n").unwrap();
    let served = served_in(folder).await;
    let (_, first) = post(&served, "/v1/rooms", &json!({"title": "ops"}), "k-1").await;
    let later = async || loop {
        let (status, answer) = post(&served, "/v1/rooms", &json!({"title": "dev"}), "k-1").await;
        // In the same millisecond it still counts.
        if status == 200 {
            return answer;
        }
    };
    assert_ne!(later().await["roomId"], first["roomId"]);
    served.stopped().await;
}
