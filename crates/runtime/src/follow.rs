//! Following the journal: what is stored, then what is committed next, each
//! event once and in order.

use std::sync::Arc;

use rallypoint_model::event::EventRecord;
use rallypoint_model::ids::{RoomId, TaskId};
use rallypoint_store::query::EventFilter;
use tokio::sync::{broadcast, mpsc};

use crate::daemon::Followed;
use crate::journal_reader::Readers;

/// Events read from the store at once.
const PAGE: u32 = 500;

/// Feeds one follower until it goes away.
pub(crate) async fn follow(
    readers: Readers,
    mut live: broadcast::Receiver<Arc<EventRecord>>,
    after: Option<i64>,
    task_id: Option<TaskId>,
    room_id: Option<RoomId>,
    sender: mpsc::Sender<Followed>,
) {
    let filter = EventFilter { task_id, room_id };
    let mut last = match after {
        Some(after) => after,
        None => readers.read(|reader| reader.last_seq()).await.unwrap_or(0),
    };
    if !catch_up(&readers, filter, &mut last, &sender).await {
        return;
    }
    loop {
        match live.recv().await {
            Ok(event) => {
                if event.seq <= last {
                    continue;
                }
                last = event.seq;
                let wanted = task_id.is_none_or(|id| event.scope.task_id == Some(id))
                    && room_id.is_none_or(|id| event.scope.room_id == Some(id));
                if wanted && sender.send(Followed::Event(event)).await.is_err() {
                    return;
                }
            }
            Err(broadcast::error::RecvError::Lagged(_)) => {
                if !catch_up(&readers, filter, &mut last, &sender).await {
                    return;
                }
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

/// Sends everything stored after `last`. False when the follower is gone.
async fn catch_up(
    readers: &Readers,
    filter: EventFilter,
    last: &mut i64,
    sender: &mpsc::Sender<Followed>,
) -> bool {
    loop {
        let after = *last;
        let page = match readers.read(move |reader| reader.events(filter, after, PAGE)).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "a follower can't read the journal");
                return false;
            }
        };
        let full = page.len() >= PAGE as usize;
        for event in page {
            *last = event.seq;
            if sender.send(Followed::Event(Arc::new(event))).await.is_err() {
                return false;
            }
        }
        if !full {
            return true;
        }
    }
}
