//! Taking the content of a task out of the database file.
//!
//! First, in the transaction of the decision, the rows are written anew without their content. Old pages may still
//! hold it then, so the file is rewritten afterwards. A mark in the same transaction says that this is due; a
//! program that dies in between finds it at its next start.

use rallypoint_engine::scrub::{scrubbed, scrubbed_value};
use rallypoint_engine::state::State;
use rallypoint_model::event::Event;
use rallypoint_model::ids::TaskId;
use rallypoint_model::message::Message;
use rusqlite::{Connection, Transaction, params};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{StoreError, requests, words};

/// Rows read before they are written anew.
const PAGE: u32 = 500;

pub(crate) const EVENTS_OF_AGGREGATE: &str = "SELECT seq, kind, data FROM events
    WHERE aggregate_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
pub(crate) const EVENTS_OF_TASK: &str = "SELECT seq, kind, data FROM events
    WHERE task_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
pub(crate) const UPDATE_EVENT: &str = "UPDATE events SET data = ?2 WHERE seq = ?1";
pub(crate) const MESSAGES_OF_TASK: &str = "SELECT position, doc FROM messages
    WHERE task_id = ?1 AND position > ?2 ORDER BY position LIMIT ?3";
pub(crate) const UPDATE_MESSAGE: &str = "UPDATE messages SET doc = ?2 WHERE position = ?1";
pub(crate) const DELETE_BLOB: &str = "DELETE FROM blobs WHERE digest = ?1";
pub(crate) const MARK_DUE: &str = "INSERT OR REPLACE INTO meta (name, value) VALUES ('rewrite_due', 1)";
pub(crate) const READ_MARK: &str = "SELECT COUNT(*) FROM meta WHERE name = 'rewrite_due'";
pub(crate) const CLEAR_MARK: &str = "DELETE FROM meta WHERE name = 'rewrite_due'";

/// Takes content out of every row of a task but the projections, which the state writes.
pub(crate) fn purge_task(
    transaction: &Transaction<'_>,
    task_id: TaskId,
    state: &State,
) -> Result<(), StoreError> {
    let id = task_id.to_string();
    scrub_rows(transaction, EVENTS_OF_TASK, &id, scrub_event, UPDATE_EVENT)?;
    let sessions = state.tasks.get(&task_id).map(|task| task.sessions.clone()).unwrap_or_default();
    for aggregate in sessions.iter().map(ToString::to_string).chain([id.clone()]) {
        scrub_rows(transaction, EVENTS_OF_AGGREGATE, &aggregate, scrub_event, UPDATE_EVENT)?;
    }
    scrub_rows(transaction, MESSAGES_OF_TASK, &id, |_, doc| scrub_message(doc), UPDATE_MESSAGE)?;
    requests::purge_answers(transaction, task_id)?;
    transaction.execute(MARK_DUE, [])?;
    Ok(())
}

/// Reads rows of (number, kind or text, text) page by page and writes each without its content.
fn scrub_rows(
    transaction: &Transaction<'_>,
    select: &str,
    id: &str,
    scrub: impl Fn(&str, &str) -> Result<String, StoreError>,
    update: &str,
) -> Result<(), StoreError> {
    let mut after = 0_i64;
    loop {
        let mut page: Vec<(i64, String, String)> = Vec::new();
        {
            let mut statement = transaction.prepare_cached(select)?;
            let last = statement.column_count().saturating_sub(1);
            let mut rows = statement.query(params![id, after, PAGE])?;
            while let Some(row) = rows.next()? {
                page.push((row.get(0)?, row.get(1)?, row.get(last)?));
            }
        }
        for (number, kind, text) in &page {
            after = *number;
            let clean = scrub(kind, text)?;
            if clean != *text {
                transaction.prepare_cached(update)?.execute(params![number, clean])?;
                if update == UPDATE_EVENT {
                    words::replace(transaction, *number, kind, &clean)?;
                }
            }
        }
        if page.len() < PAGE as usize {
            return Ok(());
        }
    }
}

fn scrub_event(kind: &str, data: &str) -> Result<String, StoreError> {
    let bad = |error: serde_json::Error| StoreError::Row { table: "events", message: error.to_string() };
    let data: Value = serde_json::from_str(data).map_err(bad)?;
    let fits = |data: &Value| Event::deserialize(json!({ "kind": kind, "data": data })).is_ok();
    Ok(scrubbed_value(data, fits).to_string())
}

fn scrub_message(doc: &str) -> Result<String, StoreError> {
    let bad = |error: serde_json::Error| StoreError::Row { table: "messages", message: error.to_string() };
    let message: Message = serde_json::from_str(doc).map_err(bad)?;
    let clean = scrubbed(&message).ok_or_else(|| StoreError::Row {
        table: "messages",
        message: "it has no form without content".to_owned(),
    })?;
    serde_json::to_string(&clean).map_err(bad)
}

/// Whether old pages may still hold what was purged.
pub(crate) fn is_rewrite_due(connection: &Connection) -> Result<bool, StoreError> {
    let marks: i64 = connection.query_row(READ_MARK, [], |row| row.get(0))?;
    Ok(marks > 0)
}

/// Writes the file anew and empties the log beside it.
pub(crate) fn rewrite(connection: &Connection) -> Result<(), StoreError> {
    connection.execute(words::MERGE, [])?;
    connection.execute_batch("VACUUM")?;
    let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy != 0 {
        return Err(StoreError::Busy);
    }
    connection.execute(CLEAR_MARK, [])?;
    Ok(())
}
