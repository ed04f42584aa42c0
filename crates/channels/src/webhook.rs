//! A sink that is any program with an HTTP address.
//!
//! `POST` of one JSON object; the form is that of `docs/channels.md`. The header `Idempotency-Key` follows the IETF
//! draft of that name (`draft-ietf-httpapi-idempotency-key-header`): the same key is the same message, and `409` says
//! that the first request of it is still being worked on. Redirects are not followed.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, RETRY_AFTER};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rallypoint_model::channel::Conversation;
use rallypoint_model::delivery::SinkAnswer;
use rallypoint_model::ids::{DeliveryId, MessageId, RoomId, TaskId};
use rallypoint_model::progress::ProgressShape;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::hmac::hmac_sha256;
use crate::sink::{Answered, Outgoing, Sink};

/// Longest wait for a connection; later, the sink counts as not there.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Largest answer that is read.
const ANSWER_MAX_BYTES: usize = 64 * 1024;
/// Characters of an answer that an error shows.
const ANSWER_SHOWN: usize = 200;
/// Longest receipt that is kept, in characters.
const RECEIPT_CHARS: usize = 256;

/// Why an address can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// It is no address.
    #[error("`{url}` is no address: {message}")]
    Unreadable {
        /// As given.
        url: String,
        /// What is wrong.
        message: String,
    },
    /// It would need TLS.
    #[error(
        "`{url}` needs TLS, which webhooks of this version don't speak; put a proxy with an `http` address on this machine in front of it"
    )]
    NeedsTls {
        /// As given.
        url: String,
    },
}

/// A secret that signs what is sent. It is never shown.
#[derive(Clone)]
pub struct SigningKey(Vec<u8>);

impl SigningKey {
    /// The key of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SigningKey")
    }
}

/// An HTTP address that takes messages.
#[derive(Clone, Debug)]
pub struct Webhook {
    host: String,
    port: u16,
    authority: String,
    target: String,
    traits: WebhookTraits,
    signing_key: Option<SigningKey>,
    patience: Duration,
}

/// What the program behind an address can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookTraits {
    /// Whether it takes a message of the same key only once.
    pub takes_key: bool,
    /// Whether it edits what it has, by the id of its receipt.
    pub edits: bool,
    /// Whether it puts a post into a thread under another message.
    pub threads: bool,
}

/// What is posted.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    version: u32,
    key: DeliveryId,
    conversation: &'a Conversation,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<&'a str>,
    message_id: MessageId,
    room_id: RoomId,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    transient: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    edits: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    under: Option<&'a str>,
}

/// What is read of the answer.
#[derive(Debug, Deserialize)]
struct Receipt {
    id: Option<serde_json::Value>,
}

impl Webhook {
    /// The sink at this address. `patience` is the time that it has for one answer.
    pub fn new(
        url: &str,
        traits: WebhookTraits,
        signing_key: Option<SigningKey>,
        patience: Duration,
    ) -> Result<Self, WebhookError> {
        let unreadable =
            |message: &str| WebhookError::Unreadable { url: url.to_owned(), message: message.to_owned() };
        let uri: Uri =
            url.parse().map_err(|error: hyper::http::uri::InvalidUri| unreadable(&error.to_string()))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(WebhookError::NeedsTls { url: url.to_owned() }),
            Some(_) | None => return Err(unreadable("it must begin with `http://`")),
        }
        let authority = uri.authority().ok_or_else(|| unreadable("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(unreadable("it holds a name or password; use `secretEnv` to sign what is sent"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(unreadable("it names no host"));
        }
        let target = uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        Ok(Self {
            host,
            port: authority.port_u16().unwrap_or(80),
            authority: authority.as_str().to_owned(),
            target,
            traits,
            signing_key,
            patience,
        })
    }

    async fn offer(&self, outgoing: Outgoing) -> SinkAnswer {
        let request = match self.request(&outgoing) {
            Ok(request) => request,
            Err(why) => return SinkAnswer::Refused { why },
        };
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let stream = match timeout(CONNECT_PATIENCE.min(self.patience), connecting).await {
            Ok(Ok(stream)) => stream,
            // Nothing was sent, so nothing can have arrived.
            Ok(Err(error)) => return busy(format!("it is not there: {error}")),
            Err(_) => return busy("it is not there: no connection in time".to_owned()),
        };
        match timeout(self.patience, exchange(stream, request)).await {
            Ok(Ok(response)) => self.understood(response).await,
            Ok(Err(why)) => SinkAnswer::Unknown { why },
            Err(_) => {
                let seconds = self.patience.as_secs_f64();
                SinkAnswer::Unknown { why: format!("no answer within {seconds} s") }
            }
        }
    }

    fn request(&self, outgoing: &Outgoing) -> Result<Request<Full<Bytes>>, String> {
        let (edits, under) = match &outgoing.progress {
            Some(ProgressShape::Edit { post_id }) => (Some(post_id.as_str()), None),
            Some(ProgressShape::InThread { under }) => (None, under.as_deref()),
            Some(ProgressShape::Post) | None => (None, None),
        };
        let body = Body {
            version: 1,
            key: outgoing.key,
            conversation: &outgoing.conversation,
            text: &outgoing.text,
            reply_to: outgoing.reply_to.as_deref(),
            message_id: outgoing.message_id,
            room_id: outgoing.room_id,
            task_id: outgoing.task_id,
            transient: outgoing.progress.is_some(),
            edits,
            under,
        };
        let body = serde_json::to_vec(&body).map_err(|error| format!("it can't be written: {error}"))?;
        let mut request = Request::builder()
            .method("POST")
            .uri(&self.target)
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json")
            .header("Idempotency-Key", outgoing.key.to_string());
        if let Some(SigningKey(key)) = &self.signing_key {
            let at = outgoing.at.0.to_string();
            let code = hmac_sha256(key, &[at.as_bytes(), b".", &body]);
            request = request
                .header("Rallypoint-Timestamp", at)
                .header("Rallypoint-Signature", format!("sha256={code}"));
        }
        request.body(Full::new(Bytes::from(body))).map_err(|error| format!("it makes no request: {error}"))
    }

    /// What the answer means. The status alone decides; what can't be read behind a success is a warning.
    async fn understood(&self, response: Response<Incoming>) -> SinkAnswer {
        let status = response.status();
        let retry_after_ms = retry_after(&response);
        let body =
            timeout(self.patience, Limited::new(response.into_body(), ANSWER_MAX_BYTES).collect()).await;
        let body = match body {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) => Err(format!("its answer broke off: {error}")),
            Err(_) => Err("its answer did not come to an end".to_owned()),
        };
        if status.is_success() {
            return receipt(body);
        }
        let said = body.map(|body| String::from_utf8_lossy(&body).trim().to_owned()).unwrap_or_default();
        let said: String = said.chars().take(ANSWER_SHOWN).collect();
        let why = if said.is_empty() {
            format!("it answered {status}")
        } else {
            format!("it answered {status}: {said}")
        };
        match status {
            StatusCode::TOO_MANY_REQUESTS => SinkAnswer::Busy { why, retry_after_ms },
            StatusCode::SERVICE_UNAVAILABLE if retry_after_ms.is_some() => {
                SinkAnswer::Busy { why, retry_after_ms }
            }
            // The first request of this key is still being worked on.
            StatusCode::CONFLICT if self.traits.takes_key => SinkAnswer::Busy { why, retry_after_ms },
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY => SinkAnswer::Failed { why },
            _ if status.is_server_error() => SinkAnswer::Failed { why },
            _ if status.is_redirection() => {
                SinkAnswer::Refused { why: format!("{why}; redirects are not followed") }
            }
            _ => SinkAnswer::Refused { why },
        }
    }
}

impl Sink for Webhook {
    fn takes_key(&self) -> bool {
        self.traits.takes_key
    }

    fn edits(&self) -> bool {
        self.traits.edits
    }

    fn threads(&self) -> bool {
        self.traits.threads
    }

    fn send(&self, outgoing: Outgoing) -> Answered<'_> {
        Box::pin(self.offer(outgoing))
    }
}

/// From here on the request may have arrived, so whatever goes wrong leaves a doubt.
async fn exchange(stream: TcpStream, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| format!("the connection was cut: {error}"))?;
    // It ends with the answer; what goes wrong with it shows there.
    tokio::spawn(connection);
    sender
        .send_request(request)
        .await
        .map_err(|error| format!("the connection was cut before an answer: {error}"))
}

fn busy(why: String) -> SinkAnswer {
    SinkAnswer::Busy { why, retry_after_ms: None }
}

/// Seconds of `Retry-After`. Its other form, a date, is not looked at: clocks differ.
fn retry_after(response: &Response<Incoming>) -> Option<i64> {
    let seconds: i64 = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(seconds.max(0).saturating_mul(1000))
}

fn receipt(body: Result<Bytes, String>) -> SinkAnswer {
    let id_of = |body: &Bytes| -> Result<Option<String>, String> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let receipt: Receipt =
            serde_json::from_slice(body).map_err(|error| format!("its receipt can't be read: {error}"))?;
        match receipt.id {
            None | Some(serde_json::Value::Null) => Ok(None),
            Some(serde_json::Value::String(id)) => Ok(Some(id.chars().take(RECEIPT_CHARS).collect())),
            Some(serde_json::Value::Number(id)) => Ok(Some(id.to_string())),
            Some(_) => Err("the `id` of its receipt is neither text nor number".to_owned()),
        }
    };
    match body.and_then(|body| id_of(&body)) {
        Ok(id) => SinkAnswer::Receipt { id, warning: None },
        Err(warning) => SinkAnswer::Receipt { id: None, warning: Some(warning) },
    }
}

#[cfg(test)]
mod tests;
