//! What is kept: journal, projections, unique keys, cursors and full outputs,
//! on SQLite.
//!
//! One writer: whoever holds [`Store`] holds the folder's lock. A batch of
//! changes is one transaction; nothing of it is told before it is committed.
//! Readers open the same file read-only.

pub mod backend;
pub mod error;
pub mod folder;
pub mod leftovers;
mod purge;
pub mod query;
mod requests;
pub mod schema;
pub mod words;
mod write;

use std::path::{Path, PathBuf};

use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::State;
use rallypoint_model::event::EventRecord;
use rallypoint_model::request::RequestRow;
use rallypoint_model::time::Timestamp;
use rusqlite::Connection;

pub use backend::{JournalReader, JournalStore, ReaderSource};
pub use error::StoreError;
pub use folder::FolderLock;
pub use leftovers::Holdings;
pub use query::Reader;
pub use words::WordsFilter;

/// Name of the database file in the data folder.
pub const DATABASE_FILE: &str = "rally.db";

/// Whether unique keys are enforced by the database. Off only in tests that prove their worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEnforcement {
    /// As always.
    Unique,
    /// Fault switch: the unique index is dropped.
    Dropped,
}

/// The writer's side.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    epoch: u64,
    _lock: FolderLock,
}

impl Store {
    /// Opens or makes the store of a data folder and begins a new term.
    ///
    /// Takes the folder's lock first; the term's number is raised in the first
    /// transaction, before anything else is read or written.
    pub fn open(folder: &Path, keys: KeyEnforcement) -> Result<Self, StoreError> {
        let lock = FolderLock::take(folder)?;
        let path = folder.join(DATABASE_FILE);
        let mut connection = schema::open_writer(&path)?;
        schema::migrate(&mut connection)?;
        let epoch = schema::raise_epoch(&mut connection)?;
        if purge::is_rewrite_due(&connection)? {
            tracing::info!("the database is written anew, since a purge was cut off");
            if let Err(error) = purge::rewrite(&connection) {
                tracing::warn!(%error, "the database can't be written anew; old pages may hold what was purged");
            }
        }
        if keys == KeyEnforcement::Dropped {
            connection.execute_batch(schema::DROP_UNIQUE_KEYS)?;
        }
        Ok(Self { connection, path, epoch, _lock: lock })
    }

    /// Number of this term.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The database file, for readers.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one batch as one transaction and numbers its events. After an
    /// error nothing of it is stored.
    pub fn commit(&mut self, changes: &mut Changes, state: &State) -> Result<(), StoreError> {
        write::commit(&mut self.connection, changes, state)
    }

    /// Writes the file anew, so that no old page holds what was purged. Called after a commit that purged something;
    /// where it fails, the next opening tries again.
    pub fn rewrite(&mut self) -> Result<(), StoreError> {
        purge::rewrite(&self.connection)
    }

    /// The live state as it is stored.
    pub fn load(&self) -> Result<State, StoreError> {
        query::load_state(&self.connection)
    }

    /// The whole journal, in order. For rebuilding and for tests.
    pub fn journal(&self) -> Result<Vec<EventRecord>, StoreError> {
        query::journal(&self.connection)
    }

    /// Last number of the journal.
    pub fn last_seq(&self) -> Result<i64, StoreError> {
        query::last_seq(&self.connection)
    }

    /// Lets the database grow to at most this many pages, as a full disk does;
    /// `None` takes the limit away. For tests.
    #[doc(hidden)]
    pub fn limit_pages(&self, pages: Option<u32>) -> Result<(), StoreError> {
        schema::limit_pages(&self.connection, pages)
    }

    /// Pages that the database has now. For tests.
    #[doc(hidden)]
    pub fn pages(&self) -> Result<u32, StoreError> {
        schema::pages(&self.connection)
    }

    /// What is kept under a request's key, whatever its age.
    pub fn request(&self, key: &str, part: i64) -> Result<Option<RequestRow>, StoreError> {
        requests::read(&self.connection, key, part)
    }

    /// Forgets requests that were decided before this time.
    pub fn forget_requests(&self, before: Timestamp) -> Result<(), StoreError> {
        requests::forget(&self.connection, before)
    }

    /// Notes that a daemon is up now.
    pub fn note_alive(&self, now: Timestamp) -> Result<(), StoreError> {
        schema::note_alive(&self.connection, now)
    }

    /// When a daemon was last known to be up; nothing on a new store.
    pub fn last_alive(&self) -> Result<Option<Timestamp>, StoreError> {
        schema::last_alive(&self.connection)
    }
}
