//! The journal as server-sent events.
//!
//! A reader that is too slow holds up nobody: the daemon drops it from the live feed and says so, and it reads on from
//! the journal. It sees every event once and in order all the same.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use rallypoint_model::event::EventRecord;
use rallypoint_model::ids::{RoomId, TaskId};
use rallypoint_ops::types::EventsInput;
use rallypoint_runtime::{Daemon, Followed};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::metrics::Metrics;
use crate::problems::Refused;
use crate::routes::Served;

/// Silence after which a comment is sent, so that both ends notice a connection that is gone. Proxies commonly cut at
/// 30 s and more.
const PING: Duration = Duration::from_secs(15);

struct Follower {
    daemon: Daemon,
    metrics: Arc<Metrics>,
    feed: mpsc::Receiver<Followed>,
    task: Option<TaskId>,
    room: Option<RoomId>,
    /// Last number sent, or the place to begin at; nothing when only what comes from now on is wanted.
    last: Option<i64>,
    stop: watch::Receiver<bool>,
}

/// Answers with the events that the input asks for, until the daemon or the reader ends.
pub(crate) fn stream(served: Served, headers: &HeaderMap, input: Value) -> Result<Response, Refused> {
    let Served { daemon, metrics, .. } = served;
    let wanted: EventsInput =
        serde_json::from_value(input).map_err(|error| Refused::invalid(error.to_string()))?;
    let last = match headers.get("last-event-id") {
        None => wanted.after,
        // A reader that comes back repeats its first address; how far it got stands in the header.
        Some(value) => Some(
            value
                .to_str()
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .ok_or_else(|| Refused::invalid("`Last-Event-ID` must be a whole number"))?,
        ),
    };
    let feed = daemon.follow(last, wanted.task_id, wanted.room_id);
    let stop = daemon.stop_requested();
    let follower = Follower { daemon, metrics, feed, task: wanted.task_id, room: wanted.room_id, last, stop };
    let frames = unfold(follower, |mut follower| async move {
        let record = follower.next().await?;
        Some((Ok::<Frame, Infallible>(record), follower))
    });
    Ok(Sse::new(frames).keep_alive(KeepAlive::new().interval(PING).text("ping")).into_response())
}

impl Follower {
    async fn next(&mut self) -> Option<Frame> {
        loop {
            let followed = tokio::select! {
                followed = self.feed.recv() => followed?,
                _ = self.stop.wait_for(|asked| *asked) => return None,
            };
            match followed {
                Followed::Event(record) if self.last.is_some_and(|last| record.seq <= last) => {}
                Followed::Event(record) => {
                    self.last = Some(record.seq);
                    return frame(&record);
                }
                Followed::Lagged { after } => {
                    self.metrics.lagged();
                    let after = self.last.unwrap_or(after);
                    self.last = Some(after);
                    self.feed = self.daemon.follow(self.last, self.task, self.room);
                }
            }
        }
    }
}

/// A record that cannot be written would leave a gap, so the stream ends instead and the reader hears of it.
fn frame(record: &EventRecord) -> Option<Frame> {
    match serde_json::to_string(record) {
        Ok(text) => Some(Frame::default().id(record.seq.to_string()).event(record.event.kind()).data(text)),
        Err(error) => {
            tracing::error!("event {} can't be written as JSON: {error}", record.seq);
            None
        }
    }
}
