//! Tables, migrations and connections. All SQL of the schema stands here.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rallypoint_model::time::Timestamp;
use rusqlite::{Connection, OpenFlags};

use crate::{StoreError, words};

/// Version of the schema that this build writes.
pub const SCHEMA_VERSION: i64 = 5;

/// Fault switch: takes the unique index of the keys away.
pub const DROP_UNIQUE_KEYS: &str = "DROP INDEX IF EXISTS keys_unique;";

/// Migrations, one after another; the place in the list is the version it leads to.
const MIGRATIONS: [&str; 5] = ["
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    aggregate TEXT NOT NULL,
    aggregate_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    kind TEXT NOT NULL,
    schema INTEGER NOT NULL,
    cause TEXT,
    task_id TEXT,
    room_id TEXT,
    session_id TEXT,
    run_id TEXT,
    data TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_version ON events (aggregate_id, version);
CREATE INDEX events_task ON events (task_id, seq) WHERE task_id IS NOT NULL;
CREATE INDEX events_room ON events (room_id, seq) WHERE room_id IS NOT NULL;
CREATE INDEX events_run ON events (run_id, seq) WHERE run_id IS NOT NULL;
CREATE TABLE worlds (id TEXT PRIMARY KEY, doc TEXT NOT NULL) STRICT;
CREATE TABLE rooms (id TEXT PRIMARY KEY, doc TEXT NOT NULL) STRICT;
CREATE TABLE tasks (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, room_id TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, doc TEXT NOT NULL
) STRICT;
CREATE INDEX tasks_updated ON tasks (updated_at DESC, id);
CREATE TABLE sessions (id TEXT PRIMARY KEY, task_id TEXT, doc TEXT NOT NULL) STRICT;
CREATE TABLE runs (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, status TEXT NOT NULL, doc TEXT NOT NULL) STRICT;
CREATE TABLE generations (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, status TEXT NOT NULL, doc TEXT NOT NULL
) STRICT;
CREATE TABLE questions (id TEXT PRIMARY KEY, task_id TEXT NOT NULL, status TEXT NOT NULL, doc TEXT NOT NULL) STRICT;
CREATE TABLE messages (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE, room_id TEXT NOT NULL, task_id TEXT,
    created_at INTEGER NOT NULL, doc TEXT NOT NULL
) STRICT;
CREATE INDEX messages_room ON messages (room_id, position);
CREATE TABLE keys (key TEXT NOT NULL, doc TEXT NOT NULL) STRICT;
CREATE UNIQUE INDEX keys_unique ON keys (key);
CREATE TABLE versions (aggregate TEXT NOT NULL, aggregate_id TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;
CREATE TABLE cursors (
    generation_id TEXT PRIMARY KEY, record INTEGER NOT NULL, skip INTEGER NOT NULL, frames INTEGER NOT NULL
) STRICT;
CREATE TABLE blobs (digest TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
", "
CREATE INDEX events_session ON events (session_id, seq) WHERE session_id IS NOT NULL;
CREATE TABLE failed_deletes (path TEXT PRIMARY KEY, doc TEXT NOT NULL) STRICT;
", "
CREATE TABLE deliveries (id TEXT PRIMARY KEY, room_id TEXT NOT NULL, status TEXT NOT NULL, doc TEXT NOT NULL) STRICT;
", "
CREATE VIRTUAL TABLE words USING fts5(
    text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
", "
CREATE TABLE requests (
    key TEXT NOT NULL, part INTEGER NOT NULL, digest TEXT NOT NULL, at INTEGER NOT NULL, doc TEXT NOT NULL,
    PRIMARY KEY (key, part)
) STRICT;
CREATE INDEX requests_at ON requests (at);
"];
/// The version whose migration made the index of words, which is then made of the journal.
const WORDS_VERSION: usize = 4;

/// Opens the writer's connection: write-ahead log, full sync, so that what was
/// acknowledged is on disk.
pub fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    // Made with its final mode, which the files beside it take over: what is in it is its owner's alone.
    let made = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    if let Err(source) = made {
        return Err(StoreError::Folder { folder: path.to_owned(), source });
    }
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "wal_autocheckpoint", 1000)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Opens a reader's connection.
pub fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Brings the schema to this build's version.
pub fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::Newer { found, known: SCHEMA_VERSION });
    }
    let done = usize::try_from(found).unwrap_or(0);
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(done) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(migration)?;
        if index + 1 == WORDS_VERSION {
            words::fill(&transaction)?;
        }
        transaction.pragma_update(
            None,
            "user_version",
            i64::try_from(index + 1).unwrap_or(SCHEMA_VERSION),
        )?;
        transaction.commit()?;
    }
    Ok(())
}

/// Begins a new term and gives its number.
pub fn raise_epoch(connection: &mut Connection) -> Result<u64, StoreError> {
    let transaction = connection.transaction()?;
    transaction.execute(
        "INSERT INTO meta (name, value) VALUES ('epoch', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1",
        [],
    )?;
    let epoch: i64 =
        transaction.query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| row.get(0))?;
    transaction.commit()?;
    Ok(u64::try_from(epoch).unwrap_or(0))
}

/// Most pages that SQLite allows a database.
const MOST_PAGES: u32 = 4_294_967_294;

/// Sets the most pages that this connection lets the database have.
pub(crate) fn limit_pages(connection: &Connection, pages: Option<u32>) -> Result<(), StoreError> {
    let pages = pages.unwrap_or(MOST_PAGES);
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    Ok(())
}

/// Pages that the database has.
pub(crate) fn pages(connection: &Connection) -> Result<u32, StoreError> {
    Ok(connection.pragma_query_value(None, "page_count", |row| row.get(0))?)
}

/// Notes when a daemon was up. Operational: no part of the journal.
pub fn note_alive(connection: &Connection, now: Timestamp) -> Result<(), StoreError> {
    connection.execute(
        "INSERT INTO meta (name, value) VALUES ('alive_at', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1",
        [now.0],
    )?;
    Ok(())
}

/// When a daemon was last noted to be up.
pub fn last_alive(connection: &Connection) -> Result<Option<Timestamp>, StoreError> {
    let mut statement = connection.prepare("SELECT value FROM meta WHERE name = 'alive_at'")?;
    let mut rows = statement.query([])?;
    Ok(match rows.next()? {
        Some(row) => Some(Timestamp(row.get(0)?)),
        None => None,
    })
}
