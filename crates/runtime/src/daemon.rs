//! One daemon on one data folder.

use std::path::PathBuf;
use std::sync::Arc;

use rallypoint_model::event::EventRecord;
use rallypoint_model::ids::{RoomId, TaskId};
use rallypoint_ops::Problem;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

/// How to open a daemon.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// Absolute data folder; made when absent.
    pub data_folder: PathBuf,
    /// This program, started again as shim and built-in agents.
    pub program: PathBuf,
    /// Whether it ends by itself after being idle.
    pub ends_when_idle: bool,
    /// Address of the TCP listener, shown in the status.
    pub listen: Option<String>,
}

/// Why a daemon could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another daemon holds the folder.
    #[error("the data folder `{folder}` is in use by another daemon")]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder can't be made or written.
    #[error("the data folder `{folder}` can't be used: {source}")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The store can't be opened.
    #[error("the store in `{folder}` can't be opened: {message}")]
    Store {
        /// The folder.
        folder: PathBuf,
        /// What the store said.
        message: String,
    },
    /// The configuration can't be read.
    #[error("the configuration can't be used: {message}")]
    Config {
        /// What is wrong, where.
        message: String,
    },
}

/// One item of a followed journal.
#[derive(Clone, Debug)]
pub enum Followed {
    /// A committed fact.
    Event(Arc<EventRecord>),
    /// The follower was too slow and must read on from the journal after this number.
    Lagged {
        /// Last number that it got.
        after: i64,
    },
}

/// Handle of a running daemon. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Daemon {
    stop: watch::Sender<bool>,
}

impl Daemon {
    /// Opens store and state, recovers what a daemon before left, and starts the effects.
    pub async fn open(_options: DaemonOptions) -> Result<Self, OpenError> {
        let (stop, _) = watch::channel(false);
        Ok(Self { stop })
    }

    /// Carries out one operation. The input holds body, path and query fields alike.
    pub async fn call(&self, _operation: &str, _input: Value) -> Result<Value, Problem> {
        Err(Problem::internal("not there"))
    }

    /// Events after `after` (from now on when absent) in order, each once, then live ones.
    pub fn follow(
        &self,
        _after: Option<i64>,
        _task: Option<TaskId>,
        _room: Option<RoomId>,
    ) -> mpsc::Receiver<Followed> {
        mpsc::channel(1).1
    }

    /// Turns true when the daemon is asked to end, or has been idle long enough.
    pub fn stop_requested(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Asks it to end.
    pub fn request_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Lets queued work reach the store and closes it. Agents live on in their shims.
    pub async fn close(self) {}
}
