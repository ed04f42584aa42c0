//! What a store is to the rest of the program, whatever database keeps it.
//!
//! One suite of tests holds every implementation to the same promises; it
//! takes a place where a store can be made and opened again.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use rallypoint_engine::changes::Changes;
use rallypoint_engine::search::Query;
use rallypoint_engine::state::State;
use rallypoint_model::event::EventRecord;
use rallypoint_model::ids::{RoomId, SessionId, TaskId};
use rallypoint_model::message::Message;
use rallypoint_model::request::RequestRow;
use rallypoint_model::time::Timestamp;

use crate::query::EventFilter;
use crate::{Holdings, Reader, Store, StoreError, WordsFilter};

/// Opens one more reader; readers live beside the writer and beside each other.
pub type ReaderSource = Arc<dyn Fn() -> Result<Box<dyn JournalReader>, StoreError> + Send + Sync>;

/// The writer's side. There is one at a time, and it holds the term.
pub trait JournalStore: Debug + Send {
    /// Number of this term: higher than that of every opening before.
    fn epoch(&self) -> u64;

    /// Writes one batch as one transaction and numbers its events without a hole. After an error nothing of it is
    /// stored, and its events have no numbers.
    fn commit(&mut self, changes: &mut Changes, state: &State) -> Result<(), StoreError>;

    /// Makes that nothing purged can be found in what the store keeps. Called after a commit that purged something;
    /// where it fails, the next opening tries again.
    fn rewrite(&mut self) -> Result<(), StoreError>;

    /// The live state as it was last committed.
    fn load(&self) -> Result<State, StoreError>;

    /// The whole journal, in order. For rebuilding and for tests.
    fn journal(&self) -> Result<Vec<EventRecord>, StoreError>;

    /// Last number of the journal; 0 when it is empty.
    fn last_seq(&self) -> Result<i64, StoreError>;

    /// Notes that a daemon is up now.
    fn note_alive(&self, now: Timestamp) -> Result<(), StoreError>;

    /// When a daemon was last known to be up; nothing on a new store.
    fn last_alive(&self) -> Result<Option<Timestamp>, StoreError>;

    /// What is kept under a request's key, whatever its age.
    fn request(&self, key: &str, part: i64) -> Result<Option<RequestRow>, StoreError>;

    /// Forgets requests that were decided before this time.
    fn forget_requests(&self, before: Timestamp) -> Result<(), StoreError>;

    /// Takes nothing that needs more room, as on a full disk, or takes it again. For tests.
    #[doc(hidden)]
    fn make_full(&self, full: bool) -> Result<(), StoreError>;

    /// Where readers come from.
    fn readers(&self) -> ReaderSource;

    /// A reader.
    fn reader(&self) -> Result<Box<dyn JournalReader>, StoreError> {
        self.readers()()
    }
}

/// A reader's side. It sees whole transactions only, and each of them from its commit on.
pub trait JournalReader: Debug + Send {
    /// Events after a number, oldest first, at most this many.
    fn events(&self, filter: EventFilter, after: i64, limit: u32) -> Result<Vec<EventRecord>, StoreError>;

    /// Events of a task of these kinds before a number, newest first, at most this many.
    fn task_events_back(
        &self,
        task_id: TaskId,
        kinds: &[&str],
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<EventRecord>, StoreError>;

    /// Events of a session after a number, oldest first, at most this many.
    fn session_events(
        &self,
        session_id: SessionId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<EventRecord>, StoreError>;

    /// Last number of the journal; 0 when it is empty.
    fn last_seq(&self) -> Result<i64, StoreError>;

    /// Messages of a room before a position, newest first, each with its position.
    fn messages(
        &self,
        room_id: RoomId,
        task_id: Option<TaskId>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, Message)>, StoreError>;

    /// Events that hold all these words, newest first, before a number of the journal, at most this many.
    fn find(
        &self,
        filter: WordsFilter,
        query: &Query,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<EventRecord>, StoreError>;

    /// The bytes of a full output.
    fn blob(&self, digest: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// The stored projections by table and id, as text, for comparing them with a rebuild.
    fn projections(&self) -> Result<BTreeMap<String, String>, StoreError>;

    /// What is kept under a request's key, whatever its age.
    fn request(&self, key: &str, part: i64) -> Result<Option<RequestRow>, StoreError>;

    /// What the store says of the data folder.
    fn holdings(&self) -> Result<Holdings, StoreError>;
}

impl JournalStore for Store {
    fn epoch(&self) -> u64 {
        Self::epoch(self)
    }

    fn commit(&mut self, changes: &mut Changes, state: &State) -> Result<(), StoreError> {
        Self::commit(self, changes, state)
    }

    fn rewrite(&mut self) -> Result<(), StoreError> {
        Self::rewrite(self)
    }

    fn load(&self) -> Result<State, StoreError> {
        Self::load(self)
    }

    fn journal(&self) -> Result<Vec<EventRecord>, StoreError> {
        Self::journal(self)
    }

    fn last_seq(&self) -> Result<i64, StoreError> {
        Self::last_seq(self)
    }

    fn note_alive(&self, now: Timestamp) -> Result<(), StoreError> {
        Self::note_alive(self, now)
    }

    fn last_alive(&self) -> Result<Option<Timestamp>, StoreError> {
        Self::last_alive(self)
    }

    fn request(&self, key: &str, part: i64) -> Result<Option<RequestRow>, StoreError> {
        Self::request(self, key, part)
    }

    fn forget_requests(&self, before: Timestamp) -> Result<(), StoreError> {
        Self::forget_requests(self, before)
    }

    fn make_full(&self, full: bool) -> Result<(), StoreError> {
        let pages = if full { Some(self.pages()?) } else { None };
        self.limit_pages(pages)
    }

    fn readers(&self) -> ReaderSource {
        let path = self.path().to_owned();
        Arc::new(move || Ok(Box::new(Reader::open(&path)?)))
    }
}

impl JournalReader for Reader {
    fn events(&self, filter: EventFilter, after: i64, limit: u32) -> Result<Vec<EventRecord>, StoreError> {
        Self::events(self, filter, after, limit)
    }

    fn task_events_back(
        &self,
        task_id: TaskId,
        kinds: &[&str],
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<EventRecord>, StoreError> {
        Self::task_events_back(self, task_id, kinds, before, limit)
    }

    fn session_events(
        &self,
        session_id: SessionId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<EventRecord>, StoreError> {
        Self::session_events(self, session_id, after, limit)
    }

    fn last_seq(&self) -> Result<i64, StoreError> {
        Self::last_seq(self)
    }

    fn messages(
        &self,
        room_id: RoomId,
        task_id: Option<TaskId>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, Message)>, StoreError> {
        Self::messages(self, room_id, task_id, before, limit)
    }

    fn find(
        &self,
        filter: WordsFilter,
        query: &Query,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<EventRecord>, StoreError> {
        Self::find(self, filter, query, before, limit)
    }

    fn blob(&self, digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Self::blob(self, digest)
    }

    fn projections(&self) -> Result<BTreeMap<String, String>, StoreError> {
        Self::projections(self)
    }

    fn request(&self, key: &str, part: i64) -> Result<Option<RequestRow>, StoreError> {
        crate::requests::read(self.connection(), key, part)
    }

    fn holdings(&self) -> Result<Holdings, StoreError> {
        Self::holdings(self)
    }
}
