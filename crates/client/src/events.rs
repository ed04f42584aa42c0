//! The journal, followed over lost connections.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use rallypoint_model::event::EventRecord;
use rallypoint_ops::types::{DaemonStatus, Empty, EventsInput};
use tokio::time::{sleep, timeout};

use crate::call::{declared, request, whole};
use crate::sse::{Frame, Reader};
use crate::{Client, ClientError, connect};

/// Silence after which a connection counts as gone: the daemon sends something every 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// Time the daemon may take to begin the stream.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// Connections tried one after another without anything coming over one.
const ATTEMPTS: u32 = 10;
/// First pause between two of them; it doubles.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// Longest pause between two of them.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Brings the daemon back before the next attempt, where the caller can. Its error ends the stream.
pub type ReconnectHook =
    Box<dyn FnMut() -> Pin<Box<dyn Future<Output = Result<(), ClientError>> + Send>> + Send>;

/// One event, understood and as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The event.
    pub record: EventRecord,
    /// Its JSON, byte for byte as the daemon sent it, without a line end.
    pub line: String,
}

/// Events in order, each once, whatever happens to the connection.
pub struct EventStream {
    client: Client,
    input: EventsInput,
    /// Last number that was given out, or the place to begin after.
    last: Option<i64>,
    connection: Option<Connection>,
    ready: VecDeque<Received>,
    hook: Option<ReconnectHook>,
    /// Connections tried since something came.
    attempts: u32,
}

struct Connection {
    body: Incoming,
    reader: Reader,
}

impl fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("EventStream")
            .field("input", &self.input)
            .field("last", &self.last)
            .field("connected", &self.connection.is_some())
            .finish_non_exhaustive()
    }
}

impl EventStream {
    pub(crate) fn new(client: Client, input: EventsInput) -> Self {
        let last = input.after;
        Self { client, input, last, connection: None, ready: VecDeque::new(), hook: None, attempts: 0 }
    }

    /// What to do before each attempt to connect again.
    pub fn on_reconnect(mut self, hook: ReconnectHook) -> Self {
        self.hook = Some(hook);
        self
    }

    /// The next event. Waits as long as nothing happens; it may be dropped while it waits and called again.
    pub async fn next(&mut self) -> Result<EventRecord, ClientError> {
        self.next_received().await.map(|received| received.record)
    }

    /// The next event together with its JSON as it came.
    pub async fn next_received(&mut self) -> Result<Received, ClientError> {
        loop {
            if let Some(received) = self.ready.pop_front() {
                self.last = Some(received.record.seq);
                return Ok(received);
            }
            match &mut self.connection {
                None => self.connect().await?,
                Some(connection) => match timeout(SILENCE_MAX, connection.frames()).await {
                    Ok(Ok(frames)) => {
                        self.attempts = 0;
                        self.take(frames)?;
                    }
                    Ok(Err(ClientError::Lost)) | Err(_) => self.connection = None,
                    Ok(Err(error)) => return Err(error),
                },
            }
        }
    }

    fn take(&mut self, frames: Vec<Frame>) -> Result<(), ClientError> {
        for frame in frames {
            let record: EventRecord = serde_json::from_str(&frame.data).map_err(|error| {
                ClientError::Protocol(format!(
                    "event {} has a form that is not known here: {error}",
                    frame.id
                ))
            })?;
            let newest = self.ready.back().map(|received| received.record.seq).or(self.last);
            if newest.is_none_or(|newest| record.seq > newest) {
                self.ready.push_back(Received { record, line: frame.data });
            }
        }
        Ok(())
    }

    /// One attempt after another, until one succeeds or too many failed.
    async fn connect(&mut self) -> Result<(), ClientError> {
        loop {
            if self.attempts > 0 {
                let doubled = PAUSE_FIRST.saturating_mul(1 << self.attempts.saturating_sub(1).min(8));
                sleep(doubled.min(PAUSE_MAX)).await;
                if let Some(hook) = &mut self.hook {
                    hook().await?;
                }
            }
            self.attempts += 1;
            match self.open().await {
                Ok(connection) => {
                    self.connection = Some(connection);
                    return Ok(());
                }
                Err(ClientError::NoDaemon | ClientError::Lost) if self.attempts < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn open(&mut self) -> Result<Connection, ClientError> {
        let after = match self.last {
            Some(last) => last,
            // "From now on" is fixed to a number, or what happens before the first event comes would be lost
            // together with the connection.
            None => self.client.call::<_, DaemonStatus>("daemon.status", &Empty {}).await?.last_seq,
        };
        self.last = Some(after);
        let input = EventsInput { after: Some(after), ..self.input.clone() };
        let request = request(declared("event.stream")?, &input)?;
        let response = timeout(HEAD_DEADLINE, connect::send(&self.client.address, request))
            .await
            .unwrap_or(Err(ClientError::Lost))?;
        if response.status().is_success() {
            Ok(Connection { body: response.into_body(), reader: Reader::default() })
        } else {
            whole(response).await.and(Err(ClientError::Lost))
        }
    }
}

impl Connection {
    /// The frames that the next piece completes; none for a comment.
    async fn frames(&mut self) -> Result<Vec<Frame>, ClientError> {
        match self.body.frame().await {
            Some(Ok(piece)) => match piece.data_ref() {
                Some(bytes) => self.reader.take(bytes),
                None => Ok(Vec::new()),
            },
            Some(Err(_)) | None => Err(ClientError::Lost),
        }
    }
}
