//! The server itself: a thread with a small runtime, so that tests of any kind can use it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::cache::{PrefixCache, output_tokens};
use super::conversation::Conversation;
use super::plan::{Plan, plan};
use super::record::Request;
use super::reply::Usage;
use super::routes::router;
use super::tools::Arguments;

/// How a mock model is set up.
#[derive(Clone, Debug)]
pub struct MockOptions {
    /// Port on loopback; 0 takes a free one.
    pub port: u16,
    /// The model that `GET /v1/models` names.
    pub model: String,
    /// Time between two pieces of a slow answer.
    pub tick: Duration,
    /// File to which each request is appended as one line of JSON.
    pub record: Option<PathBuf>,
}

impl Default for MockOptions {
    fn default() -> Self {
        Self { port: 0, model: "mock-model".to_owned(), tick: Duration::from_millis(200), record: None }
    }
}

/// What the handlers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) model: String,
    pub(super) tick: Duration,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: Vec<Request>,
    cache: PrefixCache,
    used_up: BTreeSet<String>,
    record: Option<File>,
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.seen().requests.clone()
    }

    /// Decides on a request and keeps it. Gives its number, what to do, and its tokens.
    pub(super) fn take(&self, conversation: &Conversation, has_key: bool, body: Value) -> (u64, Plan, Usage) {
        let mut seen = self.seen();
        let plan = plan(conversation, |key| !seen.used_up.insert(key.to_owned()));
        let output = match &plan {
            Plan::Text { pieces, .. } => output_tokens(&pieces.concat()),
            Plan::Call(call) => match &call.arguments {
                Arguments::Object(value) => output_tokens(&value.to_string()),
                Arguments::Text(text) => output_tokens(text),
            },
            Plan::Hang | Plan::Error(_) => 0,
        };
        let usage = Usage { output, ..seen.cache.input_usage(conversation) };
        let number = seen.requests.len() as u64 + 1;
        let request = Request {
            number,
            api: conversation.api,
            model: conversation.model.clone(),
            stream: conversation.stream,
            has_key,
            tools: conversation.tools.iter().map(|tool| tool.name.clone()).collect(),
            last_turn: conversation.last_turn().0.into_iter().map(str::to_owned).collect(),
            done: plan.word(),
            usage,
            body,
        };
        if let Some(file) = &mut seen.record
            && let Ok(mut line) = serde_json::to_vec(&request)
        {
            line.push(b'\n');
            // A record that can't be written is missed by whoever reads it; the answer is worth more.
            drop(file.write_all(&line));
        }
        seen.requests.push(request);
        (number, plan, usage)
    }
}

/// A running mock model. Dropping it closes every connection, those of hanging answers too.
#[derive(Debug)]
pub struct MockModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MockModel {
    /// Starts one on loopback. Fails when the port is taken or the record can't be opened.
    pub fn start(options: MockOptions) -> io::Result<Self> {
        let record = match &options.record {
            Some(path) => Some(File::options().create(true).append(true).open(path)?),
            None => None,
        };
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            model: options.model,
            tick: options.tick,
            seen: Mutex::new(Seen { record, ..Seen::default() }),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("mock-model".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    // It ends only with an error of the listener, after which nobody gets an answer.
                    _ = axum::serve(listener, router(serving)) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its base address, without a path: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests()
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It fails only when the thread has ended already.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // A panic in it was told by its own thread.
            drop(thread.join());
        }
    }
}
