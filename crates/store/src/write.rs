//! One batch, one transaction.

use rallypoint_engine::changes::{Changes, RowRef};
use rallypoint_engine::state::State;
use rallypoint_model::event::{Aggregate, EventRecord};
use rusqlite::{Connection, Transaction, params};
use serde::Serialize;
use serde_json::Value;

use crate::{StoreError, leftovers, purge, requests, words};

const INSERT_EVENT: &str = "INSERT INTO events
    (at, aggregate, aggregate_id, version, kind, schema, cause, task_id, room_id, session_id, run_id, data)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const UPSERT_WORLD: &str = "INSERT OR REPLACE INTO worlds (id, doc) VALUES (?1, ?2)";
const UPSERT_ROOM: &str = "INSERT OR REPLACE INTO rooms (id, doc) VALUES (?1, ?2)";
const UPSERT_TASK: &str = "INSERT OR REPLACE INTO tasks (id, status, room_id, created_at, updated_at, doc)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const UPSERT_SESSION: &str = "INSERT OR REPLACE INTO sessions (id, task_id, doc) VALUES (?1, ?2, ?3)";
const UPSERT_RUN: &str = "INSERT OR REPLACE INTO runs (id, session_id, status, doc) VALUES (?1, ?2, ?3, ?4)";
const UPSERT_GENERATION: &str =
    "INSERT OR REPLACE INTO generations (id, session_id, status, doc) VALUES (?1, ?2, ?3, ?4)";
const UPSERT_QUESTION: &str =
    "INSERT OR REPLACE INTO questions (id, task_id, status, doc) VALUES (?1, ?2, ?3, ?4)";
const UPSERT_DELIVERY: &str =
    "INSERT OR REPLACE INTO deliveries (id, room_id, status, doc) VALUES (?1, ?2, ?3, ?4)";
const INSERT_MESSAGE: &str =
    "INSERT INTO messages (id, room_id, task_id, created_at, doc) VALUES (?1, ?2, ?3, ?4, ?5)";
const INSERT_KEY: &str = "INSERT INTO keys (key, doc) VALUES (?1, ?2)";
const UPSERT_VERSION: &str =
    "INSERT OR REPLACE INTO versions (aggregate, aggregate_id, version) VALUES (?1, ?2, ?3)";
const UPSERT_CURSOR: &str =
    "INSERT OR REPLACE INTO cursors (generation_id, record, skip, frames) VALUES (?1, ?2, ?3, ?4)";
const INSERT_BLOB: &str = "INSERT OR IGNORE INTO blobs (digest, bytes) VALUES (?1, ?2)";

pub(crate) fn commit(
    connection: &mut Connection,
    changes: &mut Changes,
    state: &State,
) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let mut numbers = Vec::with_capacity(changes.events.len());
    for event in &changes.events {
        insert_event(&transaction, event)?;
        let seq = transaction.last_insert_rowid();
        words::insert(&transaction, seq, &event.event)?;
        numbers.push(seq);
    }
    for row in &changes.touched {
        upsert(&transaction, *row, state)?;
    }
    for aggregate in &changes.versions {
        let (name, id) = aggregate_columns(aggregate);
        let version = state.versions.get(aggregate).copied().unwrap_or(0);
        transaction.prepare_cached(UPSERT_VERSION)?.execute(params![name, id, signed(version)])?;
    }
    for message in &changes.messages {
        transaction.prepare_cached(INSERT_MESSAGE)?.execute(params![
            message.id.to_string(),
            message.room_id.to_string(),
            message.task_id.map(|id| id.to_string()),
            message.created_at.0,
            json("messages", message)?,
        ])?;
    }
    for key in &changes.keys {
        let fact = state.keys.get(key);
        transaction.prepare_cached(INSERT_KEY)?.execute(params![key, json("keys", &fact)?])?;
    }
    for generation_id in &changes.cursors {
        if let Some(generation) = state.generations.get(generation_id) {
            let cursor = generation.cursor;
            transaction.prepare_cached(UPSERT_CURSOR)?.execute(params![
                generation_id.to_string(),
                signed(cursor.record),
                cursor.skip,
                signed(cursor.frames),
            ])?;
        }
    }
    // First, so that an output which a later command of the batch brings again stays.
    for digest in &changes.removed_blobs {
        transaction.prepare_cached(purge::DELETE_BLOB)?.execute(params![digest])?;
    }
    for blob in &changes.blobs {
        transaction.prepare_cached(INSERT_BLOB)?.execute(params![blob.digest, blob.bytes])?;
    }
    for task_id in &changes.purged {
        purge::purge_task(&transaction, *task_id, state)?;
    }
    for path in &changes.failed_deletes {
        leftovers::write_failed(&transaction, path, state)?;
    }
    for row in &changes.requests {
        requests::write(&transaction, row)?;
    }
    transaction.commit()?;
    for (event, seq) in changes.events.iter_mut().zip(numbers) {
        event.seq = seq;
    }
    Ok(())
}

fn insert_event(transaction: &Transaction<'_>, event: &EventRecord) -> Result<(), StoreError> {
    let (aggregate, aggregate_id) = aggregate_columns(&event.aggregate);
    let mut value = serde_json::to_value(&event.event)
        .map_err(|error| StoreError::Row { table: "events", message: error.to_string() })?;
    let data = value.get_mut("data").map_or(Value::Null, Value::take);
    transaction.prepare_cached(INSERT_EVENT)?.execute(params![
        event.at.0,
        aggregate,
        aggregate_id,
        signed(event.version),
        event.event.kind(),
        event.schema,
        event.cause,
        event.scope.task_id.map(|id| id.to_string()),
        event.scope.room_id.map(|id| id.to_string()),
        event.scope.session_id.map(|id| id.to_string()),
        event.scope.run_id.map(|id| id.to_string()),
        data.to_string(),
    ])?;
    Ok(())
}

fn upsert(transaction: &Transaction<'_>, row: RowRef, state: &State) -> Result<(), StoreError> {
    match row {
        RowRef::World => {
            if let Some(world) = &state.world {
                transaction
                    .prepare_cached(UPSERT_WORLD)?
                    .execute(params![world.id.to_string(), json("worlds", world)?])?;
            }
        }
        RowRef::Room(id) => {
            if let Some(room) = state.rooms.get(&id) {
                transaction
                    .prepare_cached(UPSERT_ROOM)?
                    .execute(params![id.to_string(), json("rooms", room)?])?;
            }
        }
        RowRef::Task(id) => {
            if let Some(task) = state.tasks.get(&id) {
                transaction.prepare_cached(UPSERT_TASK)?.execute(params![
                    id.to_string(),
                    task.status.as_str(),
                    task.origin_room_id.to_string(),
                    task.created_at.0,
                    task.updated_at.0,
                    json("tasks", task)?,
                ])?;
            }
        }
        RowRef::Session(id) => {
            if let Some(session) = state.sessions.get(&id) {
                transaction.prepare_cached(UPSERT_SESSION)?.execute(params![
                    id.to_string(),
                    session.task_id.map(|id| id.to_string()),
                    json("sessions", session)?,
                ])?;
            }
        }
        RowRef::Run(id) => {
            if let Some(run) = state.runs.get(&id) {
                transaction.prepare_cached(UPSERT_RUN)?.execute(params![
                    id.to_string(),
                    run.session_id.to_string(),
                    word("runs", &run.status)?,
                    json("runs", run)?,
                ])?;
            }
        }
        RowRef::Generation(id) => {
            if let Some(generation) = state.generations.get(&id) {
                transaction.prepare_cached(UPSERT_GENERATION)?.execute(params![
                    id.to_string(),
                    generation.session_id.to_string(),
                    word("generations", &generation.status)?,
                    json("generations", generation)?,
                ])?;
            }
        }
        RowRef::Delivery(id) => {
            if let Some(delivery) = state.deliveries.get(&id) {
                transaction.prepare_cached(UPSERT_DELIVERY)?.execute(params![
                    id.to_string(),
                    delivery.room_id.to_string(),
                    delivery.status.as_str(),
                    json("deliveries", delivery)?,
                ])?;
            }
        }
        RowRef::Question(id) => {
            if let Some(question) = state.questions.get(&id) {
                transaction.prepare_cached(UPSERT_QUESTION)?.execute(params![
                    id.to_string(),
                    question.task_id.to_string(),
                    word("questions", &question.status)?,
                    json("questions", question)?,
                ])?;
            }
        }
    }
    Ok(())
}

fn json<T: Serialize>(table: &'static str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Row { table, message: error.to_string() })
}

/// The word that a state has on the wire.
fn word<T: Serialize>(table: &'static str, value: &T) -> Result<String, StoreError> {
    let value =
        serde_json::to_value(value).map_err(|error| StoreError::Row { table, message: error.to_string() })?;
    Ok(value.as_str().unwrap_or_default().to_owned())
}

pub(crate) fn aggregate_columns(aggregate: &Aggregate) -> (&'static str, String) {
    match aggregate {
        Aggregate::World(id) => ("world", id.to_string()),
        Aggregate::Room(id) => ("room", id.to_string()),
        Aggregate::Task(id) => ("task", id.to_string()),
        Aggregate::Session(id) => ("session", id.to_string()),
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_of_the_writer_fits_the_schema() {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::schema::migrate(&mut connection).unwrap();
        for sql in [
            INSERT_EVENT,
            UPSERT_WORLD,
            UPSERT_ROOM,
            UPSERT_TASK,
            UPSERT_SESSION,
            UPSERT_RUN,
            UPSERT_GENERATION,
            UPSERT_QUESTION,
            UPSERT_DELIVERY,
            INSERT_MESSAGE,
            INSERT_KEY,
            UPSERT_VERSION,
            UPSERT_CURSOR,
            INSERT_BLOB,
            crate::schema::DROP_UNIQUE_KEYS,
            purge::EVENTS_OF_AGGREGATE,
            purge::EVENTS_OF_TASK,
            purge::UPDATE_EVENT,
            purge::MESSAGES_OF_TASK,
            purge::UPDATE_MESSAGE,
            purge::DELETE_BLOB,
            purge::MARK_DUE,
            purge::READ_MARK,
            purge::CLEAR_MARK,
            words::INSERT,
            words::DELETE,
            words::MERGE,
            leftovers::UPSERT_FAILED,
            leftovers::DELETE_FAILED,
            leftovers::SELECT_FAILED,
            leftovers::RESULTS_SIZE,
            requests::UPSERT_REQUEST,
            requests::SELECT_REQUEST,
            requests::FORGET_REQUESTS,
            requests::PURGE_ANSWERS,
        ] {
            assert!(connection.prepare(sql).is_ok(), "{sql}");
        }
    }
}
