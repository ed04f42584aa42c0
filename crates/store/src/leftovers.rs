//! What could not be removed from the data folder, and what the database holds, for those who look after it.

use std::path::Path;

use rallypoint_engine::state::{Generation, State};
use rallypoint_model::event::EventRecord;
use rallypoint_model::ids::{GenerationId, SessionId};
use rallypoint_model::retention::FailedDelete;
use rusqlite::{Connection, Transaction, params};

use crate::query::{EVENT_COLUMNS, Reader, doc, docs, event_of_row};
use crate::{StoreError, purge};

pub(crate) const UPSERT_FAILED: &str = "INSERT OR REPLACE INTO failed_deletes (path, doc) VALUES (?1, ?2)";
pub(crate) const DELETE_FAILED: &str = "DELETE FROM failed_deletes WHERE path = ?1";
pub(crate) const SELECT_FAILED: &str = "SELECT doc FROM failed_deletes";
pub(crate) const RESULTS_SIZE: &str = "SELECT COUNT(*), COALESCE(SUM(LENGTH(bytes)), 0) FROM blobs";

/// What the database says of the data folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Full outputs.
    pub results: u64,
    /// Their bytes, which are part of the database file.
    pub result_bytes: u64,
    /// What could not be removed.
    pub failed_deletes: Vec<FailedDelete>,
    /// Generations whose processes could not all be ended, with how many were left.
    pub unclean: Vec<(GenerationId, u32)>,
    /// Whether old pages may still hold what was purged.
    pub rewrite_due: bool,
}

pub(crate) fn write_failed(
    transaction: &Transaction<'_>,
    path: &str,
    state: &State,
) -> Result<(), StoreError> {
    match state.failed_deletes.get(path) {
        Some(failed) => {
            let doc = serde_json::to_string(failed)
                .map_err(|error| StoreError::Row { table: "failed_deletes", message: error.to_string() })?;
            transaction.prepare_cached(UPSERT_FAILED)?.execute(params![path, doc])?;
        }
        None => {
            transaction.prepare_cached(DELETE_FAILED)?.execute(params![path])?;
        }
    }
    Ok(())
}

pub(crate) fn load_failed(connection: &Connection) -> Result<Vec<FailedDelete>, StoreError> {
    docs(connection, SELECT_FAILED)?.iter().map(|text| doc("failed_deletes", text)).collect()
}

impl Reader {
    /// Events of a session after a number, oldest first.
    pub fn session_events(
        &self,
        session_id: SessionId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<EventRecord>, StoreError> {
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM events WHERE session_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
        );
        let mut statement = self.connection().prepare_cached(&sql)?;
        let mut rows = statement.query(params![session_id.to_string(), after, limit])?;
        let mut events = Vec::new();
        while let Some(row) = rows.next()? {
            events.push(event_of_row(row)?);
        }
        Ok(events)
    }

    /// What the database says of the data folder.
    pub fn holdings(&self) -> Result<Holdings, StoreError> {
        let connection = self.connection();
        let (results, bytes): (i64, i64) =
            connection.query_row(RESULTS_SIZE, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut unclean = Vec::new();
        for text in docs(connection, "SELECT doc FROM generations")? {
            let generation: Generation = doc("generations", &text)?;
            if let Some(cleaned) = generation.cleaned.filter(|cleaned| cleaned.left > 0) {
                unclean.push((generation.id, cleaned.left));
            }
        }
        Ok(Holdings {
            results: u64::try_from(results).unwrap_or(0),
            result_bytes: u64::try_from(bytes).unwrap_or(0),
            failed_deletes: load_failed(connection)?,
            unclean,
            rewrite_due: purge::is_rewrite_due(connection)?,
        })
    }

    /// Opens a reader where there is a database, and none where there is not.
    pub fn open_if_there(path: &Path) -> Result<Option<Self>, StoreError> {
        if path.is_file() { Self::open(path).map(Some) } else { Ok(None) }
    }
}
