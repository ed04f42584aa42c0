//! The two tasks of a connection: one writes requests, one reads replies and doorbells.
//!
//! Requests of one kind are answered in their order, so a reply belongs to the oldest waiter of its kind. A waiter
//! that gave up stays in its place until its reply came, or every later reply would go to the wrong one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};

use crate::client::handle::Doorbell;
use crate::wire::{DOORBELL, FRAME_MAX_BYTES, Reply, RequestKind, decode_doorbell, take_frame};

const READ_BYTES: usize = 8 * 1024;

/// A request on its way to the shim.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) kind: RequestKind,
    pub(super) frame: Vec<u8>,
    pub(super) waiter: oneshot::Sender<Reply>,
}

/// Replaced by `None` once the connection is gone, so that nobody is left waiting.
type Waiters = Arc<Mutex<Option<HashMap<RequestKind, VecDeque<oneshot::Sender<Reply>>>>>>;

/// Starts both tasks. They end when the shim closes the connection or when every sender of `requests` is dropped.
pub(super) fn spawn_tasks(
    (reader, writer): (OwnedReadHalf, OwnedWriteHalf),
    unread: Vec<u8>,
    requests: mpsc::Receiver<Request>,
    doorbell: watch::Sender<Doorbell>,
) {
    let waiters: Waiters = Arc::new(Mutex::new(Some(HashMap::new())));
    let writing = tokio::spawn(write_requests(writer, requests, Arc::clone(&waiters)));
    tokio::spawn(async move {
        read_replies(reader, unread, &waiters, &doorbell).await;
        writing.abort();
        waiters.lock().unwrap_or_else(PoisonError::into_inner).take();
        doorbell.send_modify(|doorbell| doorbell.closed = true);
    });
}

/// Returning drops the write half, which tells the shim and so ends the reading task too.
async fn write_requests(mut writer: OwnedWriteHalf, mut requests: mpsc::Receiver<Request>, waiters: Waiters) {
    while let Some(Request { kind, frame, waiter }) = requests.recv().await {
        if let Some(waiters) = waiters.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            waiters.entry(kind).or_default().push_back(waiter);
        }
        if writer.write_all(&frame).await.is_err() {
            return;
        }
    }
}

async fn read_replies(
    mut reader: OwnedReadHalf,
    mut buffer: Vec<u8>,
    waiters: &Waiters,
    doorbell: &watch::Sender<Doorbell>,
) {
    loop {
        loop {
            match take_frame(&mut buffer, FRAME_MAX_BYTES) {
                Ok(Some((frame_type, payload))) => dispatch(frame_type, &payload, waiters, doorbell),
                Ok(None) => break,
                // The stream cannot be read on from here.
                Err(_) => return,
            }
        }
        if buffer.is_empty() && buffer.capacity() > READ_BYTES {
            buffer = Vec::new();
        }
        buffer.reserve(READ_BYTES);
        match reader.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn dispatch(frame_type: u8, payload: &[u8], waiters: &Waiters, doorbell: &watch::Sender<Doorbell>) {
    if frame_type == DOORBELL {
        if let Some((spool_end, exited)) = decode_doorbell(payload) {
            doorbell.send_if_modified(|current| {
                let next = Doorbell { spool_end, exited, closed: current.closed };
                std::mem::replace(current, next) != next
            });
        }
        return;
    }
    let waiter = RequestKind::from_reply_type(frame_type).and_then(|kind| {
        let mut waiters = waiters.lock().unwrap_or_else(PoisonError::into_inner);
        waiters.as_mut()?.get_mut(&kind)?.pop_front()
    });
    if let (Some(waiter), Ok(reply)) = (waiter, serde_json::from_slice(payload)) {
        // Whoever asked may have given up.
        let _ = waiter.send(reply);
    }
}
