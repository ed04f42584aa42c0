//! The addresses that agents call.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use futures_util::stream;
use serde_json::{Value, json};

use super::conversation::{Api, Conversation};
use super::plan::Plan;
use super::reply::{Content, Reply, Stream};
use super::server::Shared;
use super::{anthropic, chat, gemini, responses};

type Server = State<Arc<Shared>>;

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/models", get(models))
        .route("/v1/messages", post(messages))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .route("/v1/chat/completions", post(completions))
        .route("/v1/responses", post(respond))
        .route("/v1beta/models/{call}", post(generate))
        .route("/mock/requests", get(requests))
        // Agents send histories of megabytes.
        .layer(DefaultBodyLimit::disable())
        .with_state(shared)
}

async fn models(State(shared): Server) -> Json<Value> {
    let model = json!({
        "id": shared.model, "type": "model", "object": "model", "owned_by": "mock",
        "created": 0, "created_at": "2026-01-01T00:00:00Z", "display_name": "Mock model",
    });
    Json(json!({ "object": "list", "data": [model], "has_more": false }))
}

async fn requests(State(shared): Server) -> Json<Value> {
    Json(json!(shared.requests()))
}

async fn count_tokens(body: Bytes) -> Json<Value> {
    Json(json!({ "input_tokens": (body.len() / 4).max(1) }))
}

async fn messages(State(shared): Server, headers: HeaderMap, body: Bytes) -> Response {
    match read(&body) {
        Ok(body) => answer(&shared, &headers, anthropic::read(&body), body),
        Err(response) => response,
    }
}

async fn completions(State(shared): Server, headers: HeaderMap, body: Bytes) -> Response {
    match read(&body) {
        Ok(body) => answer(&shared, &headers, chat::read(&body), body),
        Err(response) => response,
    }
}

async fn respond(State(shared): Server, headers: HeaderMap, body: Bytes) -> Response {
    match read(&body) {
        Ok(body) => answer(&shared, &headers, responses::read(&body), body),
        Err(response) => response,
    }
}

async fn generate(
    State(shared): Server,
    Path(call): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (model, verb) = call.rsplit_once(':').unwrap_or((&call, ""));
    let stream = match verb {
        "generateContent" => false,
        "streamGenerateContent" => true,
        "countTokens" => {
            return Json(json!({ "totalTokens": (body.len() / 4).max(1) })).into_response();
        }
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    match read(&body) {
        Ok(body) => answer(&shared, &headers, gemini::read(&body, model, stream), body),
        Err(response) => response,
    }
}

#[expect(clippy::result_large_err, reason = "the error is the response that is sent")]
fn read(body: &[u8]) -> Result<Value, Response> {
    serde_json::from_slice(body)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("no JSON: {error}\n")).into_response())
}

fn answer(shared: &Shared, headers: &HeaderMap, conversation: Conversation, body: Value) -> Response {
    let has_key =
        ["authorization", "x-api-key", "x-goog-api-key"].iter().any(|name| headers.contains_key(*name));
    let (number, plan, usage) = shared.take(&conversation, has_key, body);
    let api = conversation.api;
    let reply = |content: Content| Reply { number, model: conversation.model.clone(), content, usage };
    let (reply, tick, ends) = match plan {
        Plan::Error(status) => return failed(api, status),
        Plan::Call(call) => (reply(Content::Call(call)), None, true),
        Plan::Text { pieces, slow } => (reply(Content::Text(pieces)), slow.then_some(shared.tick), true),
        Plan::Hang => (reply(Content::Text(vec!["It begins. ".to_owned()])), None, false),
    };
    if conversation.stream {
        streamed(events(api, &reply), tick, ends)
    } else {
        plain(whole(api, &reply), &reply, tick, ends)
    }
}

fn failed(api: Api, status: u16) -> Response {
    let message = format!("the test asked for an error {status}");
    let body = match api {
        Api::AnthropicMessages => anthropic::error(status, &message),
        Api::OpenaiChat | Api::OpenaiResponses => chat::error(status, &message),
        Api::Gemini => gemini::error(status, &message),
    };
    (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), Json(body)).into_response()
}

fn whole(api: Api, reply: &Reply) -> Value {
    match api {
        Api::AnthropicMessages => anthropic::whole(reply),
        Api::OpenaiChat => chat::whole(reply),
        Api::OpenaiResponses => responses::whole(reply),
        Api::Gemini => gemini::whole(reply),
    }
}

fn events(api: Api, reply: &Reply) -> Stream {
    match api {
        Api::AnthropicMessages => anthropic::stream(reply),
        Api::OpenaiChat => chat::stream(reply),
        Api::OpenaiResponses => responses::stream(reply),
        Api::Gemini => gemini::stream(reply),
    }
}

/// One step of a body: bytes to send after a pause, or the place where a hanging answer stays.
enum Step {
    Send(String, Option<Duration>),
    Never,
}

fn streamed(events: Stream, tick: Option<Duration>, ends: bool) -> Response {
    let mut steps: Vec<Step> = vec![Step::Send(events.head.concat(), None)];
    steps.extend(events.pieces.into_iter().map(|piece| Step::Send(piece, tick)));
    steps.push(if ends { Step::Send(events.tail.concat(), tick) } else { Step::Never });
    body_of(steps, "text/event-stream")
}

fn plain(whole: Value, reply: &Reply, tick: Option<Duration>, ends: bool) -> Response {
    let ticks = match &reply.content {
        Content::Text(pieces) => u32::try_from(pieces.len()).unwrap_or(u32::MAX),
        Content::Call(_) => 1,
    };
    let pause = tick.map(|tick| tick.saturating_mul(ticks));
    let steps = if ends { vec![Step::Send(whole.to_string(), pause)] } else { vec![Step::Never] };
    body_of(steps, "application/json")
}

fn body_of(steps: Vec<Step>, content_type: &'static str) -> Response {
    let stream = stream::unfold(steps.into_iter(), |mut steps| async move {
        match steps.next()? {
            Step::Send(text, pause) => {
                if let Some(pause) = pause {
                    tokio::time::sleep(pause).await;
                }
                Some((Ok::<_, Infallible>(Bytes::from(text)), steps))
            }
            Step::Never => std::future::pending().await,
        }
    });
    ([(header::CONTENT_TYPE, content_type)], Body::from_stream(stream)).into_response()
}
