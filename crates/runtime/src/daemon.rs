//! One daemon on one data folder.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rallypoint_engine::view::is_idle;
use rallypoint_model::command::Command;
use rallypoint_model::delivery::DeliveryStatus;
use rallypoint_model::event::EventRecord;
use rallypoint_model::ids::{EntityId, GenerationId, RoomId, SessionId, TaskId, WorldId};
use rallypoint_model::limits::Limits;
use rallypoint_model::session::GenerationStatus;
use rallypoint_model::time::Timestamp;
use rallypoint_ops::Problem;
use rallypoint_process::fault_point;
use rallypoint_store::{JournalStore, Store, StoreError};
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, watch};
use uuid::Uuid;

use crate::attendant::Attending;
use crate::config::{Config, ConfigError};
use crate::decider::{Decider, DeciderParts};
use crate::faults::Faults;
use crate::folders::Folders;
use crate::funnel::SharedRedactor;
use crate::journal_reader::Readers;
use crate::launches::Environments;
use crate::preflight::Versions;
use crate::requests::KeyedRequest;
use crate::retention::exporter::Exporting;
use crate::retention::sweeper::{Sweeping, sweep_on};
use crate::session_tokens::SessionTokens;
use crate::sources::{SystemClock, clock_anchor};

/// Events kept for followers that are a little behind; a slower one reads the journal.
const FOLLOW_BUFFER: usize = 4096;
/// Events on their way to one follower.
const FOLLOW_QUEUE: usize = 256;
/// How long a lock that is held is asked for again. A program that a killed daemon was about to start holds copies of
/// that daemon's open files, the lock among them, until it is executed; no daemon is there then.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
/// Pause between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// How often idleness and the data folder are looked at.
const LOOK_AROUND: Duration = Duration::from_secs(2);

/// Time for processes whose end was decided to be gone before the daemon ends.
const ENDINGS_GRACE: Duration = Duration::from_secs(3);
/// How often that is looked at.
const ENDINGS_LOOK: Duration = Duration::from_millis(20);

/// How to open a daemon.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// Absolute data folder; made when absent.
    pub data_folder: PathBuf,
    /// This program, started again as shim and built-in agents.
    pub program: PathBuf,
    /// Whether it ends by itself after being idle.
    pub ends_when_idle: bool,
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

/// What handlers need: the decider, as the request has it that is carried out, and what all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) decider: Decider,
    common: Arc<Common>,
}

impl Shared {
    /// The same for one request that came with a key.
    pub(crate) fn under(&self, request: Arc<KeyedRequest>) -> Self {
        Self { decider: self.decider.under(request), common: Arc::clone(&self.common) }
    }
}

impl std::ops::Deref for Shared {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) readers: Readers,
    pub(crate) config: Arc<Config>,
    pub(crate) folders: Folders,
    pub(crate) program: PathBuf,
    pub(crate) redactor: SharedRedactor,
    pub(crate) environments: Environments,
    pub(crate) tokens: SessionTokens,
    pub(crate) versions: Versions,
    pub(crate) epoch: u64,
    pub(crate) started_at: Timestamp,
    pub(crate) ends_when_idle: bool,
    /// Address of the TCP listener, when there is one.
    pub(crate) listen: Mutex<Option<String>>,
    pub(crate) stop: watch::Sender<bool>,
    last_call: Mutex<Instant>,
    pub(crate) followers: broadcast::Sender<Arc<EventRecord>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// An agent process whose token was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenHolder {
    /// Its generation.
    pub generation_id: GenerationId,
    /// Its session.
    pub session_id: SessionId,
}

/// Handle of a running daemon. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Daemon {
    shared: Arc<Shared>,
}

impl Daemon {
    /// Opens store and state, recovers what a daemon before left, and starts the effects.
    pub async fn open(options: DaemonOptions) -> Result<Self, OpenError> {
        fault_point::arm(fault_point::DAEMON_VARIABLE);
        let faults = Faults::of_environment();
        let folder = options.data_folder.clone();
        let store = open_store(&folder, faults).await.map_err(|error| open_error(&folder, error))?;
        let config = Arc::new(Config::load(&folder).map_err(|error| config_error(&error))?);
        let folders =
            Folders::open(&folder).map_err(|source| OpenError::Folder { folder: folder.clone(), source })?;
        let epoch = store.epoch();
        let readers = Readers::new(store.readers());
        let redactor = SharedRedactor::new(config.secrets.clone());
        redactor.add(config.channels.secrets());
        let environments = Environments::default();
        let tokens = SessionTokens::open(&folder)
            .map_err(|source| OpenError::Folder { folder: folder.clone(), source })?;
        let limits = Arc::new(config.limits.clone());
        let (followers, _) = broadcast::channel(FOLLOW_BUFFER);
        let (effects, due) = mpsc::unbounded_channel();
        let parts = DeciderParts {
            store,
            limits: Arc::clone(&limits),
            prices: Arc::new(config.prices.clone()),
            router: config.router,
            redactor: redactor.clone(),
            channels: config.channels.facts(),
            faults,
            followers: followers.clone(),
            effects,
        };
        let (decider, thread) = Decider::start(parts).map_err(|error| open_error(&folder, error))?;
        let (stop, _) = watch::channel(false);
        let common = Arc::new(Common {
            readers,
            config,
            folders: folders.clone(),
            program: options.program.clone(),
            redactor: redactor.clone(),
            environments: environments.clone(),
            tokens: tokens.clone(),
            versions: Versions::default(),
            epoch,
            started_at: SystemClock.now(),
            ends_when_idle: options.ends_when_idle,
            listen: Mutex::default(),
            stop,
            last_call: Mutex::new(Instant::now()),
            followers,
            thread: Mutex::new(Some(thread)),
        });
        let shared = Arc::new(Shared { decider: decider.clone(), common });
        let daemon = Self { shared };
        daemon.open_world().await?;
        let retention = Arc::new(daemon.shared.config.retention.clone());
        let exporting = Exporting {
            decider: decider.clone(),
            readers: daemon.shared.readers.clone(),
            folders: folders.clone(),
            retention: Arc::clone(&retention),
        };
        let exports = crate::retention::exporter::start(exporting);
        let sweeping = Sweeping {
            decider: decider.clone(),
            folders: folders.clone(),
            retention: Arc::clone(&retention),
        };
        let attending = Attending {
            readers: daemon.shared.readers.clone(),
            decider,
            folders,
            program: options.program,
            epoch,
            limits,
            redactor,
            environments,
            tokens,
            faults,
            shim_environment: shim_environment(),
            retention,
            exports,
            channels: daemon.shared.config.channels.clone(),
        };
        tokio::spawn(crate::effects::execute(attending, due));
        tokio::spawn(sweep_on(sweeping, daemon.shared.stop.subscribe()));
        tokio::spawn(look_around(Arc::clone(&daemon.shared)));
        Ok(daemon)
    }

    async fn open_world(&self) -> Result<(), OpenError> {
        let command = Command::OpenWorld {
            world_id: WorldId(Uuid::now_v7()),
            main_room_id: RoomId(Uuid::now_v7()),
            user_id: EntityId(Uuid::now_v7()),
            main_agent_id: EntityId(Uuid::now_v7()),
            system_id: EntityId(Uuid::now_v7()),
            clock: Some(clock_anchor()),
        };
        self.shared.decider.decide(command).await.map(|_| ()).map_err(|refusal| OpenError::Store {
            folder: self.shared.folders.root().to_owned(),
            message: refusal.to_string(),
        })
    }

    /// Carries out one operation. The input holds body, path and query fields alike.
    pub async fn call(&self, operation: &str, input: Value) -> Result<Value, Problem> {
        *self.shared.last_call.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        crate::handlers::call(&self.shared, operation, input).await
    }

    /// Whose session token this is; an error when it is nobody's, or its process has ended.
    pub async fn holder_of_token(&self, token: &str) -> Result<TokenHolder, Problem> {
        crate::handlers::tools::holder_of(&self.shared, token).await
    }

    /// Carries out an operation of the role `session` for the holder of a token.
    pub async fn call_by_session(
        &self,
        holder: &TokenHolder,
        operation: &str,
        input: Value,
    ) -> Result<Value, Problem> {
        *self.shared.last_call.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        crate::handlers::tools::call(&self.shared, holder, operation, input).await
    }

    /// The same under a key of this caller: the same key and input are carried out once and answered alike, over any
    /// crash; the same key with another input is refused with `key_reused`.
    pub async fn call_once(
        &self,
        caller: &str,
        key: &str,
        operation: &str,
        input: Value,
    ) -> Result<Value, Problem> {
        *self.shared.last_call.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        crate::requests::call_once(&self.shared, caller, key, operation, input).await
    }

    /// Events after `after` (from now on when absent) in order, each once, then live ones.
    pub fn follow(
        &self,
        after: Option<i64>,
        task: Option<TaskId>,
        room: Option<RoomId>,
    ) -> mpsc::Receiver<Followed> {
        let (sender, receiver) = mpsc::channel(FOLLOW_QUEUE);
        // Subscribed before the journal is read, so that nothing falls between the two.
        let live = self.shared.followers.subscribe();
        tokio::spawn(crate::follow::follow(self.shared.readers.clone(), live, after, task, room, sender));
        receiver
    }

    /// The limits of its configuration.
    pub fn limits(&self) -> &Limits {
        &self.shared.config.limits
    }

    /// Says where it listens besides its socket, for its status.
    pub fn listens_on(&self, address: String) {
        *self.shared.listen.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Turns true when the daemon is asked to end, or has been idle long enough.
    pub fn stop_requested(&self) -> watch::Receiver<bool> {
        self.shared.stop.subscribe()
    }

    /// Asks it to end.
    pub fn request_stop(&self) {
        self.shared.stop.send_replace(true);
    }

    /// Lets queued work reach the store and closes it. Agents live on in their shims.
    pub async fn close(self) {
        self.shared.stop.send_replace(true);
        self.let_endings_finish().await;
        self.shared.decider.close();
        let thread = self.shared.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the decider ended badly");
            }
        }
    }
}

impl Daemon {
    /// Gives processes whose end was decided a moment to be gone, so that none is left for the next daemon.
    async fn let_endings_finish(&self) {
        let until = Instant::now() + ENDINGS_GRACE;
        while Instant::now() < until {
            let ending = self.shared.decider.look(|state| {
                // An answer that comes in time spares a doubt, or a message sent twice to a sink that sees to it.
                let offered =
                    state.open_deliveries().any(|delivery| delivery.status == DeliveryStatus::Offered);
                offered
                    || state.open_generations().any(|generation| match generation.status {
                        GenerationStatus::Stopping => true,
                        GenerationStatus::Ended => generation.cleaned.is_none(),
                        GenerationStatus::Launching | GenerationStatus::Opening | GenerationStatus::Ready => {
                            false
                        }
                    })
            });
            if !ending.await.unwrap_or(false) {
                return;
            }
            tokio::time::sleep(ENDINGS_LOOK).await;
        }
    }
}

async fn open_store(folder: &std::path::Path, faults: Faults) -> Result<Box<dyn JournalStore>, StoreError> {
    let give_up = Instant::now() + LOCK_PATIENCE;
    loop {
        match Store::open(folder, faults.key_enforcement()) {
            Err(StoreError::Locked { .. }) if Instant::now() < give_up => {
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            opened => return Ok(Box::new(opened?)),
        }
    }
}

/// Test switches of a shim that are handed on to it.
fn shim_environment() -> Vec<(String, String)> {
    std::env::vars().filter(|(name, _)| name.starts_with("RALLY_SHIM_")).collect()
}

/// Ends a daemon that is idle, and one whose data folder is gone.
async fn look_around(shared: Arc<Shared>) {
    let mut stop = shared.stop.subscribe();
    let idle_limit = Duration::from_millis(u64::try_from(shared.config.limits.daemon_idle_ms).unwrap_or(0));
    let mut idle_since: Option<Instant> = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_AROUND) => {}
            changed = stop.changed() => {
                if changed.is_err() || *stop.borrow() {
                    return;
                }
            }
        }
        if !shared.folders.is_there() {
            tracing::error!(folder = %shared.folders.root().display(), "the data folder is gone; the daemon ends");
            shared.stop.send_replace(true);
            return;
        }
        if !shared.ends_when_idle {
            continue;
        }
        let idle =
            shared.followers.receiver_count() == 0 && shared.decider.look(is_idle).await.unwrap_or(false);
        let last_call = *shared.last_call.lock().unwrap_or_else(PoisonError::into_inner);
        let since = if idle { *idle_since.get_or_insert_with(Instant::now) } else { Instant::now() };
        if !idle {
            idle_since = None;
        }
        if idle && since.max(last_call).elapsed() >= idle_limit {
            tracing::info!("nothing to do; the daemon ends");
            shared.stop.send_replace(true);
            return;
        }
    }
}

fn open_error(folder: &std::path::Path, error: StoreError) -> OpenError {
    match error {
        StoreError::Locked { folder } => OpenError::Locked { folder },
        StoreError::Folder { folder, source } => OpenError::Folder { folder, source },
        other => OpenError::Store { folder: folder.to_owned(), message: other.to_string() },
    }
}

fn config_error(error: &ConfigError) -> OpenError {
    OpenError::Config { message: error.to_string() }
}
