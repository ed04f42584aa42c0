//! Looking for words in tasks, messages and events.

use rallypoint_engine::search::{Query, searchable, snippet};
use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::found::FoundKind;
use rallypoint_model::message::Message;
use rallypoint_ops::Problem;
use rallypoint_ops::rooms::{FoundPage, SearchRoomsInput};
use rallypoint_ops::search::{Hit, HitPage, SearchInput};
use rallypoint_store::WordsFilter;

use super::{PAGE, PAGE_MAX, room_id};
use crate::daemon::Shared;

pub(crate) async fn everywhere(shared: &Shared, input: SearchInput) -> Result<HitPage, Problem> {
    let filter = WordsFilter { kind: input.kind, room_id: None, task_id: input.task_id };
    let (found, next_cursor) =
        find(shared, &input.text, input.room_id.as_deref(), filter, input.cursor.as_deref(), input.limit)
            .await?;
    let query = query(&input.text)?;
    Ok(HitPage { items: found.iter().map(|record| hit(record, &query)).collect(), next_cursor })
}

pub(crate) async fn messages(shared: &Shared, input: SearchRoomsInput) -> Result<FoundPage, Problem> {
    let filter = WordsFilter { kind: Some(FoundKind::Message), ..WordsFilter::default() };
    let (found, next_cursor) =
        find(shared, &input.text, input.room_id.as_deref(), filter, input.cursor.as_deref(), input.limit)
            .await?;
    Ok(FoundPage { items: found.into_iter().filter_map(message).collect(), next_cursor })
}

fn query(text: &str) -> Result<Query, Problem> {
    Query::parse(text).ok_or_else(|| Problem::invalid(format!("`{text}` holds no word to look for")))
}

async fn find(
    shared: &Shared,
    text: &str,
    room: Option<&str>,
    filter: WordsFilter,
    cursor: Option<&str>,
    limit: Option<u32>,
) -> Result<(Vec<EventRecord>, Option<String>), Problem> {
    let query = query(text)?;
    let room_id = match room {
        Some(room) => Some(room_id(shared, room).await?),
        None => None,
    };
    let before = match cursor {
        None => None,
        Some(text) => Some(
            text.parse::<i64>()
                .map_err(|_| Problem::invalid(format!("`{text}` is no cursor of a search")))?,
        ),
    };
    let limit = limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let filter = WordsFilter { room_id, ..filter };
    let found = shared.readers.read(move |reader| reader.find(filter, &query, before, limit)).await?;
    let full = found.len() >= limit as usize;
    let next_cursor = found.last().filter(|_| full).map(|record| record.seq.to_string());
    Ok((found, next_cursor))
}

fn message(record: EventRecord) -> Option<Message> {
    match record.event {
        Event::MessagePosted { message, .. } => Some(message),
        _ => None,
    }
}

fn hit(record: &EventRecord, query: &Query) -> Hit {
    let message_id = match &record.event {
        Event::MessagePosted { message, .. } => Some(message.id),
        _ => None,
    };
    Hit {
        kind: FoundKind::of_event_kind(record.event.kind()),
        seq: record.seq,
        event_kind: record.event.kind().to_owned(),
        at: record.at,
        task_id: record.scope.task_id,
        room_id: record.scope.room_id,
        session_id: record.scope.session_id,
        run_id: record.scope.run_id,
        message_id,
        snippet: snippet(&searchable(&record.event).unwrap_or_default(), query),
    }
}
