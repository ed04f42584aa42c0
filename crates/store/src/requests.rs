//! What is kept of requests that came with a key.

use rallypoint_model::ids::TaskId;
use rallypoint_model::request::{ANSWER, RequestRow};
use rallypoint_model::time::Timestamp;
use rusqlite::{Connection, Transaction, params};

use crate::StoreError;

/// A row whose time is over gives its place to the next request under its key.
pub(crate) const UPSERT_REQUEST: &str =
    "INSERT OR REPLACE INTO requests (key, part, digest, at, doc) VALUES (?1, ?2, ?3, ?4, ?5)";
pub(crate) const SELECT_REQUEST: &str = "SELECT digest, at, doc FROM requests WHERE key = ?1 AND part = ?2";
pub(crate) const FORGET_REQUESTS: &str = "DELETE FROM requests WHERE at < ?1";
/// Answers hold what a task is about; without one, a repeat is answered with what is left of the task.
pub(crate) const PURGE_ANSWERS: &str = "DELETE FROM requests WHERE part = ?1 AND instr(doc, ?2) > 0";

pub(crate) fn write(transaction: &Transaction<'_>, row: &RequestRow) -> Result<(), StoreError> {
    transaction
        .prepare_cached(UPSERT_REQUEST)?
        .execute(params![row.key, row.part, row.digest, row.at.0, row.doc])?;
    Ok(())
}

pub(crate) fn read(connection: &Connection, key: &str, part: i64) -> Result<Option<RequestRow>, StoreError> {
    let mut statement = connection.prepare_cached(SELECT_REQUEST)?;
    let mut rows = statement.query(params![key, part])?;
    Ok(match rows.next()? {
        Some(row) => Some(RequestRow {
            key: key.to_owned(),
            part,
            digest: row.get(0)?,
            at: Timestamp(row.get(1)?),
            doc: row.get(2)?,
        }),
        None => None,
    })
}

pub(crate) fn forget(connection: &Connection, before: Timestamp) -> Result<(), StoreError> {
    connection.prepare_cached(FORGET_REQUESTS)?.execute([before.0])?;
    Ok(())
}

pub(crate) fn purge_answers(transaction: &Transaction<'_>, task_id: TaskId) -> Result<(), StoreError> {
    transaction.prepare_cached(PURGE_ANSWERS)?.execute(params![ANSWER, task_id.to_string()])?;
    Ok(())
}
