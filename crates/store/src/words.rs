//! The index of words: which event holds which word.
//!
//! A row of it has the number of its event and no text of its own, so that a text stands once in the file. What is
//! taken out of an event is taken out of the index in the same transaction, and the file is rewritten afterwards.

use rallypoint_engine::search::{Query, searchable};
use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::found::FoundKind;
use rallypoint_model::ids::{RoomId, TaskId};
use rusqlite::{Connection, params};
use serde::Deserialize;
use serde_json::json;

use crate::StoreError;
use crate::query::{EVENT_COLUMNS, Reader, event_of_row};

/// Bytes of a text that are indexed; what is longer is found by its beginning.
const MOST_BYTES: usize = 256 * 1024;
/// Events read at once while the index is made of a journal that has none.
const PAGE: u32 = 2_000;

pub(crate) const INSERT: &str = "INSERT INTO words (rowid, text) VALUES (?1, ?2)";
pub(crate) const DELETE: &str = "DELETE FROM words WHERE rowid = ?1";
/// Merges all of the index, so that nothing of what was deleted is left in it.
pub(crate) const MERGE: &str = "INSERT INTO words (words) VALUES ('optimize')";
/// The index first and in its own order, so that a page costs no more than itself.
const INDEX: &str = "words CROSS JOIN events AS e ON e.seq = words.rowid
    WHERE words MATCH ?1 AND words.rowid < ?4";
const SCAN: &str = "events AS e WHERE e.seq < ?4 AND e.kind IN ('task.created', 'message.posted')
    AND NOT EXISTS (SELECT 1 FROM json_each(?1) AS word
        WHERE instr(lower(json_extract(e.data, '$.message.text', '$.title', '$.goal')), word.value) = 0)";
const AFTER: &str = "SELECT seq, kind, data FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2";

/// Where to look for words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordsFilter {
    /// Only this.
    pub kind: Option<FoundKind>,
    /// Only of this room.
    pub room_id: Option<RoomId>,
    /// Only of this task.
    pub task_id: Option<TaskId>,
}

/// Notes the words of an event.
pub(crate) fn insert(connection: &Connection, seq: i64, event: &Event) -> Result<(), StoreError> {
    if let Some(text) = searchable(event) {
        connection.prepare_cached(INSERT)?.execute(params![seq, beginning(&text)])?;
    }
    Ok(())
}

/// As much of a text as is indexed, cut at a character.
fn beginning(text: &str) -> &str {
    let end = (0..=MOST_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// Takes the words of an event out, and notes those that it still has.
pub(crate) fn replace(connection: &Connection, seq: i64, kind: &str, data: &str) -> Result<(), StoreError> {
    connection.prepare_cached(DELETE)?.execute(params![seq])?;
    match event_of(kind, data) {
        Some(event) => insert(connection, seq, &event),
        None => Ok(()),
    }
}

/// Makes the index of a journal that has none.
pub(crate) fn fill(connection: &Connection) -> Result<(), StoreError> {
    let mut after = 0_i64;
    loop {
        let mut found = 0_u32;
        let mut statement = connection.prepare_cached(AFTER)?;
        let mut rows = statement.query(params![after, PAGE])?;
        while let Some(row) = rows.next()? {
            after = row.get(0)?;
            found = found.saturating_add(1);
            let (kind, data): (String, String) = (row.get(1)?, row.get(2)?);
            if let Some(event) = event_of(&kind, &data) {
                insert(connection, after, &event)?;
            }
        }
        if found < PAGE {
            return Ok(());
        }
    }
}

/// An event of a kind that this program does not know has no words for it.
fn event_of(kind: &str, data: &str) -> Option<Event> {
    let data: serde_json::Value = serde_json::from_str(data).ok()?;
    Event::deserialize(json!({ "kind": kind, "data": data })).ok()
}

/// The words in the form of the index: every part is a string of its own, so that nothing in it is an operator.
fn expression(query: &Query) -> String {
    let parts = query.parts.iter().map(|part| {
        let go_on = if part.may_go_on { " *" } else { "" };
        format!("\"{}\"{go_on}", part.text.replace('"', "\"\""))
    });
    parts.collect::<Vec<_>>().join(" AND ")
}

impl Reader {
    /// Events that hold all these words, newest first, before a number of the journal.
    ///
    /// A query in a script without spaces is looked for in tasks and messages only, each text read from its end on.
    pub fn find(
        &self,
        filter: WordsFilter,
        query: &Query,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<EventRecord>, StoreError> {
        let kind = match filter.kind {
            None => "1",
            Some(FoundKind::Task) => "e.kind = 'task.created'",
            Some(FoundKind::Message) => "e.kind = 'message.posted'",
            Some(FoundKind::Event) => "e.kind NOT IN ('task.created', 'message.posted')",
        };
        let (source, order, words) = if query.is_unspaced() {
            let words: Vec<String> = query.parts.iter().map(|part| part.text.to_lowercase()).collect();
            (SCAN, "e.seq", json!(words).to_string())
        } else {
            (INDEX, "words.rowid", expression(query))
        };
        let columns =
            EVENT_COLUMNS.split(", ").map(|name| format!("e.{name}")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT {columns} FROM {source} AND {kind}
             AND (?2 IS NULL OR e.room_id = ?2) AND (?3 IS NULL OR e.task_id = ?3)
             ORDER BY {order} DESC LIMIT ?5"
        );
        let mut statement = self.connection().prepare_cached(&sql)?;
        let mut rows = statement.query(params![
            words,
            filter.room_id.map(|id| id.to_string()),
            filter.task_id.map(|id| id.to_string()),
            before.unwrap_or(i64::MAX),
            limit
        ])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(event_of_row(row)?);
        }
        Ok(found)
    }
}
