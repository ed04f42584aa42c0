//! What was said, done, decided and brought forth: parts of the journal, newest first.

use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::ids::TaskId;
use rallypoint_ops::Problem;
use rallypoint_ops::steering::{
    ArtifactKind, ArtifactPage, ArtifactView, DecisionPage, PlanPage, TaskPartInput, TimelineItem,
    TimelineKind, TimelinePage,
};
use rallypoint_ops::types::MessagePage;
use serde_json::Value;

use super::{PAGE, PAGE_MAX, task_of};
use crate::daemon::Shared;

const MESSAGES: [&str; 1] = ["message.posted"];
/// What a person wants to see of a task's life. Frames, prompts and moves of runs are in the log.
const TIMELINE: [&str; 24] = [
    "message.posted",
    "task.created",
    "task.status_changed",
    "task.verified",
    "task.stop_requested",
    "task.overridden",
    "task.paused",
    "task.resumed",
    "task.reopened",
    "task.patched",
    "task.plan_revised",
    "task.restarted",
    "task.archived",
    "task.unarchived",
    "task.deleted",
    "tree.stop_requested",
    "tree.stopped",
    "session.created",
    "session.configured",
    "run.queued",
    "run.ended",
    "question.opened",
    "question.closed",
    "permission.decided",
];
/// What somebody decided: the main agent in its turns, the policy, a person.
const DECISIONS: [&str; 14] = [
    "turn.planned",
    "permission.decided",
    "question.closed",
    "task.verified",
    "task.overridden",
    "task.stop_requested",
    "tree.stop_requested",
    "task.paused",
    "task.resumed",
    "task.reopened",
    "task.patched",
    "task.plan_revised",
    "task.restarted",
    "task.deleted",
];

struct Page {
    events: Vec<EventRecord>,
    next_cursor: Option<String>,
}

/// Events of a task of these kinds; the cursor is the number of the last one.
async fn page(
    shared: &Shared,
    input: &TaskPartInput,
    kinds: &'static [&'static str],
) -> Result<Page, Problem> {
    let task_id = input.task_id;
    // A task that is not known is refused as such.
    task_of(shared, task_id).await?;
    let limit = input.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let before = number(input.cursor.as_deref())?;
    let events =
        shared.readers.read(move |reader| reader.task_events_back(task_id, kinds, before, limit)).await?;
    let last = events.last().filter(|_| events.len() >= limit as usize);
    let next_cursor = last.map(|event| event.seq.to_string());
    Ok(Page { events, next_cursor })
}

fn number(cursor: Option<&str>) -> Result<Option<i64>, Problem> {
    let Some(text) = cursor else { return Ok(None) };
    text.parse().map(Some).map_err(|_| Problem::invalid(format!("`{text}` is no cursor of this list")))
}

fn row(event: &EventRecord) -> Result<Value, Problem> {
    serde_json::to_value(event)
        .map_err(|error| Problem::internal(format!("an event can't be written: {error}")))
}

pub(super) async fn messages(shared: &Shared, input: TaskPartInput) -> Result<MessagePage, Problem> {
    let page = page(shared, &input, &MESSAGES).await?;
    let items = page
        .events
        .into_iter()
        .filter_map(|record| match record.event {
            Event::MessagePosted { message, .. } => Some(message),
            _ => None,
        })
        .collect();
    Ok(MessagePage { items, next_cursor: page.next_cursor })
}

pub(super) async fn timeline(shared: &Shared, input: TaskPartInput) -> Result<TimelinePage, Problem> {
    let page = page(shared, &input, &TIMELINE).await?;
    let items: Result<Vec<TimelineItem>, Problem> = page
        .events
        .into_iter()
        .map(|record| match record.event {
            Event::MessagePosted { message, .. } => Ok(TimelineItem {
                id: format!("message:{}", message.id),
                kind: TimelineKind::Message,
                seq: record.seq,
                at: record.at,
                message: Some(message),
                event: None,
            }),
            _ => Ok(TimelineItem {
                id: format!("event:{}", record.seq),
                kind: TimelineKind::Event,
                seq: record.seq,
                at: record.at,
                message: None,
                event: Some(row(&record)?),
            }),
        })
        .collect();
    Ok(TimelinePage { items: items?, next_cursor: page.next_cursor })
}

pub(super) async fn decisions(shared: &Shared, input: TaskPartInput) -> Result<DecisionPage, Problem> {
    let page = page(shared, &input, &DECISIONS).await?;
    let items: Result<Vec<Value>, Problem> = page.events.iter().map(row).collect();
    Ok(DecisionPage { items: items?, next_cursor: page.next_cursor })
}

/// Of what the state holds whole, the cursor is the number of rows before.
fn part_of<T>(mut all: Vec<T>, input: &TaskPartInput) -> Result<(Vec<T>, Option<String>), Problem> {
    let limit = input.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX) as usize;
    let skipped = usize::try_from(number(input.cursor.as_deref())?.unwrap_or(0)).unwrap_or(0);
    let mut rest = all.split_off(skipped.min(all.len()));
    let more = rest.len() > limit;
    rest.truncate(limit);
    let next = more.then(|| skipped.saturating_add(limit).to_string());
    Ok((rest, next))
}

pub(super) async fn plans(shared: &Shared, input: TaskPartInput) -> Result<PlanPage, Problem> {
    let task_id = input.task_id;
    task_of(shared, task_id).await?;
    let plans = shared
        .decider
        .look(move |state| state.tasks.get(&task_id).map(|task| task.plans.clone()).unwrap_or_default())
        .await?;
    let (items, next_cursor) = part_of(plans.into_iter().rev().collect(), &input)?;
    Ok(PlanPage { items, next_cursor })
}

pub(super) async fn artifacts(shared: &Shared, input: TaskPartInput) -> Result<ArtifactPage, Problem> {
    let task_id = input.task_id;
    task_of(shared, task_id).await?;
    let all = shared.decider.look(move |state| artifacts_of(state, task_id)).await?;
    let (items, next_cursor) = part_of(all, &input)?;
    Ok(ArtifactPage { items, next_cursor })
}

fn artifacts_of(state: &rallypoint_engine::state::State, task_id: TaskId) -> Vec<ArtifactView> {
    let Some(task) = state.tasks.get(&task_id) else { return Vec::new() };
    let results = task.runs.iter().rev().filter_map(|id| state.runs.get(id)).filter_map(|run| {
        let result = run.result.as_ref()?;
        let session = state.sessions.get(&run.session_id);
        let label = session
            .and_then(|session| session.launch.as_ref())
            .map(|launch| launch.label.clone())
            .unwrap_or_default();
        Some(ArtifactView {
            kind: ArtifactKind::Result,
            title: format!("what {label} said"),
            run_id: Some(run.id),
            digest: result.digest.clone(),
            bytes: result.bytes,
            removed: run.result_removed,
            at: run.ended_at,
        })
    });
    let attached = task.attachments.iter().map(|attachment| ArtifactView {
        kind: ArtifactKind::Attachment,
        title: attachment.name.clone(),
        run_id: None,
        digest: attachment.digest.clone(),
        bytes: attachment.bytes,
        removed: false,
        at: Some(task.created_at),
    });
    results.chain(attached).collect()
}
