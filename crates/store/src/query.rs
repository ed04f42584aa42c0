//! Reading: the live state at start, and pages for front ends.

use std::collections::BTreeMap;
use std::path::Path;

use rallypoint_engine::apply::hear;
use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::State;
use rallypoint_model::event::{Aggregate, Event, EventRecord, Scope};
use rallypoint_model::ids::{RoomId, RunId, TaskId};
use rallypoint_model::message::Message;
use rallypoint_model::session::SpoolCursor;
use rallypoint_model::time::Timestamp;
use rusqlite::{Connection, Row, params};
use serde::de::DeserializeOwned;

use crate::StoreError;
use crate::leftovers::load_failed;
use crate::schema::open_reader;

pub(crate) const EVENT_COLUMNS: &str = "seq, at, aggregate, aggregate_id, version, kind, schema, cause, task_id, room_id, session_id, run_id, data";

/// Events of a task of these kinds, newest first.
const TASK_EVENTS_BACK: &str =
    "SELECT seq, at, aggregate, aggregate_id, version, kind, schema, cause, task_id, room_id,
    session_id, run_id, data FROM events
    WHERE task_id = ?1 AND seq < ?2 AND kind IN (SELECT value FROM json_each(?3)) ORDER BY seq DESC LIMIT ?4";

/// Reads beside the writer; sees whole transactions only.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
}

/// Which events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only of this task.
    pub task_id: Option<TaskId>,
    /// Only of this room.
    pub room_id: Option<RoomId>,
}

impl Reader {
    /// Opens a reader on a database file.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { connection: open_reader(path)? })
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Events after a number, oldest first.
    pub fn events(
        &self,
        filter: EventFilter,
        after: i64,
        limit: u32,
    ) -> Result<Vec<EventRecord>, StoreError> {
        let (condition, id) = match (filter.task_id, filter.room_id) {
            (Some(task_id), _) => ("task_id = ?1", task_id.to_string()),
            (None, Some(room_id)) => ("room_id = ?1", room_id.to_string()),
            (None, None) => ("?1 = ''", String::new()),
        };
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM events WHERE {condition} AND seq > ?2 ORDER BY seq LIMIT ?3"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![id, after, limit])?;
        let mut events = Vec::new();
        while let Some(row) = rows.next()? {
            let event = event_of_row(row)?;
            let in_room = filter.room_id.is_none_or(|room_id| event.scope.room_id == Some(room_id));
            if in_room {
                events.push(event);
            }
        }
        Ok(events)
    }

    /// Events of a task of these kinds before a number, newest first.
    pub fn task_events_back(
        &self,
        task_id: TaskId,
        kinds: &[&str],
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<EventRecord>, StoreError> {
        let mut statement = self.connection.prepare_cached(TASK_EVENTS_BACK)?;
        let kinds = serde_json::json!(kinds).to_string();
        let mut rows =
            statement.query(params![task_id.to_string(), before.unwrap_or(i64::MAX), kinds, limit])?;
        let mut events = Vec::new();
        while let Some(row) = rows.next()? {
            events.push(event_of_row(row)?);
        }
        Ok(events)
    }

    /// Last number of the journal.
    pub fn last_seq(&self) -> Result<i64, StoreError> {
        last_seq(&self.connection)
    }

    /// Messages of a room before a position, newest first, each with its position.
    pub fn messages(
        &self,
        room_id: RoomId,
        task_id: Option<TaskId>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, Message)>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT position, doc FROM messages
             WHERE room_id = ?1 AND (?2 IS NULL OR task_id = ?2) AND position < ?3
             ORDER BY position DESC LIMIT ?4",
        )?;
        let mut rows = statement.query(params![
            room_id.to_string(),
            task_id.map(|id| id.to_string()),
            before.unwrap_or(i64::MAX),
            limit
        ])?;
        let mut messages = Vec::new();
        while let Some(row) = rows.next()? {
            messages.push((row.get(0)?, doc("messages", &row.get::<_, String>(1)?)?));
        }
        Ok(messages)
    }

    /// The bytes of a full output.
    pub fn blob(&self, digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT bytes FROM blobs WHERE digest = ?1")?;
        let mut rows = statement.query(params![digest])?;
        Ok(match rows.next()? {
            Some(row) => Some(row.get(0)?),
            None => None,
        })
    }

    /// The stored projections, as text, for comparing them with a rebuild.
    pub fn projections(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let mut all = BTreeMap::new();
        for table in
            ["worlds", "rooms", "tasks", "sessions", "runs", "generations", "questions", "deliveries"]
        {
            let mut statement = self.connection.prepare(&format!("SELECT id, doc FROM {table}"))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (id, doc): (String, String) = (row.get(0)?, row.get(1)?);
                all.insert(format!("{table}/{id}"), doc);
            }
        }
        Ok(all)
    }
}

pub(crate) fn last_seq(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("SELECT COALESCE(MAX(seq), 0) FROM events", [], |row| row.get(0))?)
}

pub(crate) fn journal(connection: &Connection) -> Result<Vec<EventRecord>, StoreError> {
    let mut statement = connection.prepare(&format!("SELECT {EVENT_COLUMNS} FROM events ORDER BY seq"))?;
    let mut rows = statement.query([])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(event_of_row(row)?);
    }
    Ok(events)
}

pub(crate) fn load_state(connection: &Connection) -> Result<State, StoreError> {
    let mut state = State::default();
    for text in docs(connection, "SELECT doc FROM worlds")? {
        state.world = Some(doc("worlds", &text)?);
    }
    for text in docs(connection, "SELECT doc FROM rooms")? {
        let room: rallypoint_engine::state::Room = doc("rooms", &text)?;
        state.rooms.insert(room.id, room);
    }
    for text in docs(connection, "SELECT doc FROM tasks")? {
        let task: rallypoint_engine::state::Task = doc("tasks", &text)?;
        state.tasks.insert(task.id, task);
    }
    for text in docs(connection, "SELECT doc FROM sessions")? {
        let session: rallypoint_engine::state::Session = doc("sessions", &text)?;
        state.sessions.insert(session.id, session);
    }
    for text in docs(connection, "SELECT doc FROM runs")? {
        let run: rallypoint_engine::state::Run = doc("runs", &text)?;
        state.runs.insert(run.id, run);
    }
    for text in docs(connection, "SELECT doc FROM generations")? {
        let generation: rallypoint_engine::state::Generation = doc("generations", &text)?;
        state.generations.insert(generation.id, generation);
    }
    for text in docs(connection, "SELECT doc FROM questions")? {
        let question: rallypoint_engine::state::Question = doc("questions", &text)?;
        state.questions.insert(question.id, question);
    }
    for text in docs(connection, "SELECT doc FROM deliveries")? {
        let delivery: rallypoint_engine::state::Delivery = doc("deliveries", &text)?;
        state.deliveries.insert(delivery.id, delivery);
    }
    load_keys(connection, &mut state)?;
    load_versions(connection, &mut state)?;
    load_cursors(connection, &mut state)?;
    for failed in load_failed(connection)? {
        state.failed_deletes.insert(failed.path.clone(), failed);
    }
    state.reindex();
    hear_open_runs(connection, &mut state)?;
    Ok(state)
}

fn load_keys(connection: &Connection, state: &mut State) -> Result<(), StoreError> {
    let mut statement = connection.prepare("SELECT key, doc FROM keys")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (key, text): (String, String) = (row.get(0)?, row.get(1)?);
        if let Some(fact) = doc::<Option<rallypoint_engine::state::KeyedFact>>("keys", &text)? {
            state.keys.insert(key, fact);
        }
    }
    Ok(())
}

fn load_versions(connection: &Connection, state: &mut State) -> Result<(), StoreError> {
    let mut statement = connection.prepare("SELECT aggregate, aggregate_id, version FROM versions")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (name, id, version): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        state.versions.insert(aggregate_of("versions", &name, &id)?, unsigned(version));
    }
    Ok(())
}

fn load_cursors(connection: &Connection, state: &mut State) -> Result<(), StoreError> {
    let mut statement = connection.prepare("SELECT generation_id, record, skip, frames FROM cursors")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, record, skip, frames): (String, i64, u32, i64) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let cursor = SpoolCursor { record: unsigned(record), skip, frames: unsigned(frames) };
        if let Ok(id) = id.parse()
            && let Some(generation) = state.generations.get_mut(&id)
        {
            generation.cursor = cursor;
        }
    }
    Ok(())
}

/// What open runs have said so far stands in the journal alone.
fn hear_open_runs(connection: &Connection, state: &mut State) -> Result<(), StoreError> {
    let open: Vec<RunId> = state.open_runs().map(|run| run.id).collect();
    let sql = format!(
        "SELECT {EVENT_COLUMNS} FROM events WHERE run_id = ?1 AND kind = 'agent.output' ORDER BY seq"
    );
    let mut unused = Changes::default();
    for run_id in open {
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![run_id.to_string()])?;
        while let Some(row) = rows.next()? {
            let record = event_of_row(row)?;
            if let Event::AgentOutput { last_frame, late: false, foreign_session: None, output, .. } =
                &record.event
                && let Some(run) = state.runs.get_mut(&run_id)
            {
                hear(run, *last_frame, output, &mut unused);
            }
        }
    }
    Ok(())
}

pub(crate) fn docs(connection: &Connection, sql: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    let mut all = Vec::new();
    for row in rows {
        all.push(row?);
    }
    Ok(all)
}

pub(crate) fn doc<T: DeserializeOwned>(table: &'static str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Row { table, message: error.to_string() })
}

pub(crate) fn event_of_row(row: &Row<'_>) -> Result<EventRecord, StoreError> {
    let kind: String = row.get(5)?;
    let data: String = row.get(12)?;
    let text = format!("{{\"kind\":{},\"data\":{data}}}", serde_json::Value::String(kind));
    let event: Event = doc("events", &text)?;
    let aggregate = aggregate_of("events", &row.get::<_, String>(2)?, &row.get::<_, String>(3)?)?;
    Ok(EventRecord {
        seq: row.get(0)?,
        at: Timestamp(row.get(1)?),
        aggregate,
        version: unsigned(row.get(4)?),
        schema: row.get(6)?,
        cause: row.get(7)?,
        scope: Scope {
            task_id: id_of(row, 8)?,
            room_id: id_of(row, 9)?,
            session_id: id_of(row, 10)?,
            run_id: id_of(row, 11)?,
        },
        event,
    })
}

fn id_of<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> Result<Option<T>, StoreError> {
    let text: Option<String> = row.get(column)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

fn aggregate_of(table: &'static str, name: &str, id: &str) -> Result<Aggregate, StoreError> {
    let bad = || StoreError::Row { table, message: format!("`{name}` `{id}` is no aggregate") };
    match name {
        "world" => Ok(Aggregate::World(id.parse().map_err(|_| bad())?)),
        "room" => Ok(Aggregate::Room(id.parse().map_err(|_| bad())?)),
        "task" => Ok(Aggregate::Task(id.parse().map_err(|_| bad())?)),
        "session" => Ok(Aggregate::Session(id.parse().map_err(|_| bad())?)),
        _ => Err(bad()),
    }
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
