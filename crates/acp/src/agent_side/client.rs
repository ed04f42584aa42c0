//! Speaking to the client: one writer, whole lines, and requests that wait for their answer.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::rpc::{INTERNAL_ERROR, RpcError};

/// How often a wait for an answer looks whether the turn was cancelled.
const CANCEL_CHECK: Duration = Duration::from_millis(20);

/// What a held lock protects stays valid when its holder panics: every
/// critical section here is a single insert, remove or write.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A flag that ends a turn, and that can be waited for.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    inner: Arc<(Mutex<bool>, Condvar)>,
}

impl Cancel {
    /// Cancels. Again is harmless.
    pub fn set(&self) {
        *lock(&self.inner.0) = true;
        self.inner.1.notify_all();
    }

    /// Whether it was cancelled.
    pub fn is_set(&self) -> bool {
        *lock(&self.inner.0)
    }

    /// Waits until it is cancelled or the time has passed; says whether it is cancelled.
    pub fn wait(&self, at_most: Duration) -> bool {
        let flag = lock(&self.inner.0);
        let waited = self.inner.1.wait_timeout_while(flag, at_most, |set| !*set);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The client on the other end.
///
/// A client that no longer reads cannot be told anything, so sending does not
/// fail; [`Client::is_gone`] says it.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    writer: Mutex<Box<dyn Write + Send>>,
    gone: AtomicBool,
    next_id: AtomicU64,
    /// `None` once the input has ended: nothing will be answered any more.
    waiting: Mutex<Option<BTreeMap<u64, Sender<Outcome>>>>,
}

/// What a request came to.
type Outcome = Result<Value, RpcError>;

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").field("is_gone", &self.is_gone()).finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new(writer: impl Write + Send + 'static) -> Self {
        let shared = Shared {
            writer: Mutex::new(Box::new(writer)),
            gone: AtomicBool::new(false),
            next_id: AtomicU64::new(0),
            waiting: Mutex::new(Some(BTreeMap::new())),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Whether the client has stopped reading.
    pub fn is_gone(&self) -> bool {
        self.shared.gone.load(Ordering::Relaxed)
    }

    /// Writes these bytes as they are, in one piece with nothing in between.
    pub fn send_raw(&self, bytes: &[u8]) {
        let mut writer = lock(&self.shared.writer);
        if writer.write_all(bytes).and_then(|()| writer.flush()).is_err() {
            self.shared.gone.store(true, Ordering::Relaxed);
        }
    }

    /// Writes one frame.
    pub fn send_frame(&self, frame: &Value) {
        self.send_raw(format!("{frame}\n").as_bytes());
    }

    /// Tells the client something.
    pub fn notify(&self, method: &str, params: Value) {
        self.send_frame(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Answers a request of the client.
    pub fn answer(&self, request_id: &Value, outcome: Result<Value, RpcError>) {
        let frame = match outcome {
            Ok(result) => json!({"jsonrpc": "2.0", "id": request_id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": request_id, "error": error.to_value()}),
        };
        self.send_frame(&frame);
    }

    /// Asks the client for something and waits until it answers or its output ends.
    pub fn request(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        match self.ask(method, params) {
            Some((_, answer)) => answer.recv().unwrap_or_else(|_| Err(closed())),
            None => Err(closed()),
        }
    }

    /// The same, but gives up when the turn is cancelled; then `None`.
    pub fn request_until(
        &self,
        method: &str,
        params: Value,
        cancel: &Cancel,
    ) -> Option<Result<Value, RpcError>> {
        let Some((id, answer)) = self.ask(method, params) else {
            return Some(Err(closed()));
        };
        loop {
            match answer.recv_timeout(CANCEL_CHECK) {
                Ok(outcome) => return Some(outcome),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Some(Err(closed())),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) if cancel.is_set() => {
                    if let Some(waiting) = lock(&self.shared.waiting).as_mut() {
                        waiting.remove(&id);
                    }
                    return None;
                }
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Hands an answer of the client to whoever waits for it.
    pub(super) fn take_answer(&self, id: &Value, outcome: Result<Value, RpcError>) {
        let number = id.as_u64().or_else(|| id.as_str().and_then(|digits| digits.parse().ok()));
        let waiter = number.and_then(|number| lock(&self.shared.waiting).as_mut()?.remove(&number));
        if let Some(waiter) = waiter {
            // Fails only when the one who asked has given up.
            let _ = waiter.send(outcome);
        }
    }

    /// Nothing will be answered any more: ends every wait.
    pub(super) fn close(&self) {
        *lock(&self.shared.waiting) = None;
    }

    fn ask(&self, method: &str, params: Value) -> Option<(u64, Receiver<Outcome>)> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = channel();
        lock(&self.shared.waiting).as_mut()?.insert(id, sender);
        self.send_frame(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        Some((id, receiver))
    }
}

fn closed() -> RpcError {
    RpcError::new(INTERNAL_ERROR, "the client has closed the connection")
}
