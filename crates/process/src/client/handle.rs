//! A connection to one shim.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::agent_process::{AgentProcess, ExitStatus, StartSpec};
use crate::client::connection::{Request, spawn_tasks};
use crate::client::errors::{AttachError, ControlError, RequestError, SendError, StartError, describe};
use crate::shim::SOCKET_FILE;
use crate::wire::{
    AttachRequest, FRAME_MAX_BYTES, INPUT_MAX_BYTES, PROTOCOL_VERSION, Refusal, Reply, RequestKind,
    StartFailure, encode_frame, take_frame,
};

/// A shim answers within a millisecond; five seconds allow for a machine that swaps.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Starting waits for `fork` and `exec` of a program that may lie on a slow disk.
const START_WAIT: Duration = Duration::from_secs(15);

/// The shim itself gives up after five seconds of killing, and records the exit up to half a second later.
const KILL_WAIT: Duration = Duration::from_secs(10);

/// The ladder that may be under way (five seconds), then killing what is left (five), then the answer.
const FINISH_WAIT: Duration = Duration::from_secs(15);

/// From launching a shim to its socket: one `exec` and a lock it may have to wait a second for.
const LAUNCH_WAIT: Duration = Duration::from_secs(5);
const LAUNCH_RETRY_FIRST: Duration = Duration::from_millis(1);
const LAUNCH_RETRY_MAX: Duration = Duration::from_millis(20);

/// Requests that wait to be written; a caller beyond them waits within its own deadline.
const REQUESTS_MAX: usize = 64;

/// What a shim says to whoever attaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attached {
    /// The last input that is in the spool; 0 before the first.
    pub last_input_seq: u64,
    pub started: Option<AgentProcess>,
    /// Set once the exit is in the spool.
    pub exited: Option<ExitStatus>,
}

/// The last that was heard of a shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doorbell {
    /// How far the spool can be read at least.
    pub spool_end: u64,
    /// The agent's exit is in the spool.
    pub exited: bool,
    /// The connection is gone: the shim ended, or another daemon attached. Nothing more will be heard.
    pub closed: bool,
}

/// What killing a tree came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KillReport {
    pub killed: u32,
    /// Processes that were still there when the shim gave up.
    pub left: u32,
}

/// An attached connection. Dropping the last clone closes it; the shim and its agent stay.
#[derive(Debug, Clone)]
pub struct ShimHandle {
    requests: mpsc::Sender<Request>,
    doorbell: watch::Receiver<Doorbell>,
}

impl ShimHandle {
    /// Attaches to the shim of a folder and takes it over from any older daemon. Waits up to five seconds.
    pub async fn attach(folder: &Path, epoch: u64) -> Result<(ShimHandle, Attached), AttachError> {
        timeout(ANSWER_WAIT, connect_and_attach(folder, epoch)).await.unwrap_or(Err(AttachError::Timeout))
    }

    /// Attaches to a shim that was just launched: waits up to five seconds for it to listen.
    pub async fn attach_launched(folder: &Path, epoch: u64) -> Result<(ShimHandle, Attached), AttachError> {
        let give_up_at = Instant::now() + LAUNCH_WAIT;
        let mut pause = LAUNCH_RETRY_FIRST;
        loop {
            match Self::attach(folder, epoch).await {
                Err(AttachError::NoShim) if Instant::now() < give_up_at => sleep(pause).await,
                outcome => return outcome,
            }
            pause = (pause * 2).min(LAUNCH_RETRY_MAX);
        }
    }

    /// Starts the agent; only once in the life of a shim. Waits up to 15 seconds.
    pub async fn start(&self, spec: StartSpec) -> Result<AgentProcess, StartError> {
        let payload =
            serde_json::to_vec(&spec).map_err(|error| StartError::Other { message: error.to_string() })?;
        if payload.len() > FRAME_MAX_BYTES {
            let message = format!("the command and its environment exceed {FRAME_MAX_BYTES} bytes");
            return Err(StartError::Refused { message });
        }
        match self.request(RequestKind::Start, &[&payload], START_WAIT).await? {
            Reply::Started { process } => Ok(process),
            Reply::StartFailed { kind, message } => Err(match kind {
                StartFailure::NotFound => StartError::NotFound { message },
                StartFailure::NotExecutable => StartError::NotExecutable { message },
                StartFailure::BadCwd => StartError::BadCwd { message },
                StartFailure::Other => StartError::Other { message },
            }),
            other => Err(unexpected(&other).into()),
        }
    }

    /// Hands over input; `Ok` once it is in the spool. The first number is 1, and repeating one does no harm.
    pub async fn send(&self, seq: u64, bytes: Vec<u8>) -> Result<(), SendError> {
        if bytes.len() > INPUT_MAX_BYTES {
            return Err(SendError::TooLong { bytes: bytes.len(), limit: INPUT_MAX_BYTES });
        }
        match self.request(RequestKind::Send, &[&seq.to_le_bytes(), &bytes], ANSWER_WAIT).await? {
            Reply::Taken => Ok(()),
            other => Err(unexpected(&other).into()),
        }
    }

    /// Closes the agent's input once all input before is written to it.
    pub async fn close_stdin(&self) -> Result<(), ControlError> {
        self.control(RequestKind::CloseStdin, ANSWER_WAIT).await
    }

    /// Sends SIGTERM to the agent's process group; nothing more follows by itself.
    pub async fn terminate(&self) -> Result<(), ControlError> {
        self.control(RequestKind::Terminate, ANSWER_WAIT).await
    }

    /// Kills every process that came from the agent; answers when none is left or killing did not help.
    pub async fn kill(&self) -> Result<KillReport, ControlError> {
        match self.request(RequestKind::Kill, &[], KILL_WAIT).await? {
            Reply::Killed { killed, left } => Ok(KillReport { killed, left }),
            other => Err(unexpected(&other).into()),
        }
    }

    /// Ends the shim after the agent's exit, and whatever the agent left running with it.
    pub async fn finish(&self) -> Result<(), ControlError> {
        self.control(RequestKind::Finish, FINISH_WAIT).await
    }

    /// What the agent was started with, environment included, for a daemon that no longer knows; `None` before
    /// `start`.
    pub async fn recall_start(&self) -> Result<Option<StartSpec>, ControlError> {
        match self.request(RequestKind::Recall, &[], ANSWER_WAIT).await? {
            Reply::Recalled { spec } => Ok(spec),
            other => Err(unexpected(&other).into()),
        }
    }

    pub fn doorbell(&self) -> watch::Receiver<Doorbell> {
        self.doorbell.clone()
    }

    async fn control(&self, kind: RequestKind, wait: Duration) -> Result<(), ControlError> {
        match self.request(kind, &[], wait).await? {
            Reply::Done => Ok(()),
            other => Err(unexpected(&other).into()),
        }
    }

    async fn request(
        &self,
        kind: RequestKind,
        parts: &[&[u8]],
        wait: Duration,
    ) -> Result<Reply, RequestError> {
        let (waiter, answer) = oneshot::channel();
        let frame = encode_frame(kind.request_type(), parts);
        let exchange = async {
            let request = Request { kind, frame, waiter };
            self.requests.send(request).await.map_err(|_| RequestError::Closed)?;
            answer.await.map_err(|_| RequestError::Closed)
        };
        match timeout(wait, exchange).await {
            Ok(Ok(Reply::Refused { reason })) => Err(RequestError::Refused(reason)),
            Ok(outcome) => outcome,
            Err(_) => Err(RequestError::Timeout),
        }
    }
}

async fn connect_and_attach(folder: &Path, epoch: u64) -> Result<(ShimHandle, Attached), AttachError> {
    let mut stream = connect(folder).await?;
    let request = AttachRequest { version: PROTOCOL_VERSION, epoch };
    let payload = serde_json::to_vec(&request).map_err(|error| AttachError::Protocol(error.to_string()))?;
    stream.write_all(&encode_frame(RequestKind::Attach.request_type(), &[&payload])).await.map_err(lost)?;
    let mut buffer = Vec::new();
    let (frame_type, payload) = loop {
        match take_frame(&mut buffer, FRAME_MAX_BYTES) {
            Ok(Some(frame)) => break frame,
            Ok(None) => {}
            Err(_) => return Err(AttachError::Protocol("a frame above the limit".to_owned())),
        }
        if stream.read_buf(&mut buffer).await.map_err(lost)? == 0 {
            // It ended between accepting and answering.
            return Err(AttachError::NoShim);
        }
    };
    if frame_type != RequestKind::Attach.reply_type() {
        return Err(AttachError::Protocol(format!("a frame of type {frame_type} instead of the answer")));
    }
    let reply = serde_json::from_slice(&payload).map_err(|error| AttachError::Protocol(error.to_string()))?;
    let (attached, spool_end) = match reply {
        Reply::Attached { last_input_seq, started, exited, spool_end } => {
            (Attached { last_input_seq, started, exited }, spool_end)
        }
        Reply::Refused { reason: Refusal::Epoch { highest } } => {
            return Err(AttachError::Refused { epoch: highest });
        }
        Reply::Refused { reason } => return Err(AttachError::Protocol(describe(&reason))),
        other => return Err(AttachError::Protocol(format!("{other:?} instead of the answer"))),
    };
    let (requests, incoming) = mpsc::channel(REQUESTS_MAX);
    let first = Doorbell { spool_end, exited: attached.exited.is_some(), closed: false };
    let (ring, doorbell) = watch::channel(first);
    spawn_tasks(stream.into_split(), buffer, incoming, ring);
    Ok((ShimHandle { requests, doorbell }, attached))
}

/// Connects through the opened folder: its own path may be longer than a socket's may be.
async fn connect(folder: &Path) -> Result<UnixStream, AttachError> {
    let opened = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let opened = opened.map_err(|error| lost(error.into()))?;
    let path = format!("/proc/self/fd/{}/{SOCKET_FILE}", opened.as_raw_fd());
    let stream = UnixStream::connect(path).await.map_err(lost)?;
    drop(opened);
    Ok(stream)
}

fn lost(error: io::Error) -> AttachError {
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => AttachError::NoShim,
        _ => AttachError::Io(error),
    }
}

fn unexpected(reply: &Reply) -> RequestError {
    RequestError::Unexpected(format!("unexpected answer {reply:?}"))
}
