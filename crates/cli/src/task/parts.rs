//! `rally task list`, `status`, `queue`, `timeline` and the other views on tasks.

use rallypoint_client::Client;
use rallypoint_model::event::EventRecord;
use rallypoint_model::message::Message;
use rallypoint_ops::steering::{
    ArtifactPage, CapacityView, DecisionPage, PlanPage, StatusView, TaskPartInput, TimelinePage,
};
use rallypoint_ops::types::{Empty, ListTasksInput, MessagePage, TaskPage};
use serde_json::Value;

use crate::arguments::steering::{ListArguments, PartArguments, band};
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::show::table::Table;
use crate::show::text::brief;
use crate::show::{time, words};

/// Characters of a message or fact in a line.
const LINE_CHARS: usize = 100;

pub(super) async fn list(
    client: &Client,
    arguments: ListArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let status = match &arguments.status {
        None => None,
        Some(word) => Some(serde_json::from_value(Value::String(word.clone())).map_err(|_| {
            Failure::usage(format!("`{word}` is no status of a task")).with_hint(
                "they are open, active, waiting_on_user, blocked, validating, done, failed and interrupted",
            )
        })?),
    };
    let room_id = match &arguments.room {
        Some(text) => resolve::room(client, text).await?.parse().ok(),
        None => None,
    };
    let parent_task_id = match &arguments.forks_of {
        Some(text) => Some(resolve::task(client, text).await?),
        None => None,
    };
    let input = ListTasksInput {
        status,
        include_archived: arguments.archived,
        search: arguments.search,
        room_id,
        priority: band(arguments.priority.as_deref()),
        paused: arguments.paused.then_some(true),
        parent_task_id,
        limit: Some(arguments.limit),
        cursor: arguments.cursor,
    };
    let page: TaskPage = client.call("task.list", &input).await?;
    if output.is_json() {
        output.json(&page)?;
        return Ok(0);
    }
    if page.items.is_empty() {
        output.talk(if input.include_archived { "no task yet" } else { "no task that is not archived" });
        output
            .talk("hint: `rally run \"…\"` makes one, `rally task list --archived` shows archived ones too");
        return Ok(0);
    }
    let mut table = Table::new(&["TASK", "MADE", "STATUS", "TITLE"]);
    for task in &page.items {
        let made = time::day_and_clock(task.created_at);
        let mut status = words::status(task.status).to_owned();
        if task.paused.is_some() {
            status.push_str(", paused");
        }
        if task.archived_at.is_some() {
            status.push_str(", archived");
        }
        table.row(&[&task.task_id.to_string(), &made, &status, &task.title]);
    }
    table.print(output)?;
    Ok(0)
}

async fn input(client: &Client, arguments: PartArguments) -> Result<TaskPartInput, Failure> {
    let task_id = resolve::task(client, &arguments.task).await?;
    Ok(TaskPartInput { task_id, limit: Some(arguments.limit), cursor: arguments.cursor })
}

fn said(message: &Message) -> String {
    format!("{}: {}", message.name, brief(&message.text, LINE_CHARS))
}

/// A row of the journal in one line: its kind and who did it.
fn happened(row: &Value) -> String {
    let kind = row.get("kind").and_then(Value::as_str).unwrap_or_default();
    let data = row.get("data");
    let by = data.and_then(|data| data.get("by")).and_then(Value::as_str);
    let to = data.and_then(|data| data.get("to")).and_then(Value::as_str);
    match (by, to) {
        (Some(by), _) => format!("{kind} by {by}"),
        (None, Some(to)) => format!("{kind}: {to}"),
        (None, None) => kind.to_owned(),
    }
}

pub(super) async fn messages(
    client: &Client,
    arguments: PartArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let page: MessagePage = client.call("task.messages", &input(client, arguments).await?).await?;
    if output.is_json() {
        output.json(&page)?;
        return Ok(0);
    }
    for message in &page.items {
        output.line(&format!(
            "{} {}  {}",
            time::day_and_clock(message.created_at),
            message.id,
            said(message)
        ))?;
    }
    Ok(0)
}

pub(super) async fn timeline(
    client: &Client,
    arguments: PartArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let page: TimelinePage = client.call("task.timeline", &input(client, arguments).await?).await?;
    if output.is_json() {
        output.json(&page)?;
        return Ok(0);
    }
    for item in &page.items {
        let text = match (&item.message, &item.event) {
            (Some(message), _) => said(message),
            (None, Some(row)) => happened(row),
            (None, None) => String::new(),
        };
        output.line(&format!("{:>6} {}  {text}", item.seq, time::day_and_clock(item.at)))?;
    }
    Ok(0)
}

pub(super) async fn decisions(
    client: &Client,
    arguments: PartArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let page: DecisionPage = client.call("task.decisions", &input(client, arguments).await?).await?;
    if output.is_json() {
        output.json(&page)?;
        return Ok(0);
    }
    for row in &page.items {
        let record: EventRecord = serde_json::from_value(row.clone()).map_err(|error| {
            Failure::failed(format!("an event has a form that is not known here: {error}"))
        })?;
        output.line(&format!("{:>6} {}  {}", record.seq, time::day_and_clock(record.at), happened(row)))?;
    }
    Ok(0)
}

pub(super) async fn artifacts(
    client: &Client,
    arguments: PartArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let page: ArtifactPage = client.call("task.artifacts", &input(client, arguments).await?).await?;
    if output.is_json() {
        output.json(&page)?;
        return Ok(0);
    }
    let mut table = Table::new(&["RUN", "BYTES", "WHAT"]);
    for artifact in &page.items {
        let run = artifact.run_id.map(|id| id.to_string()).unwrap_or_default();
        let removed = if artifact.removed { " (removed)" } else { "" };
        let what = format!("{}{removed}", artifact.title);
        table.row(&[&run, &artifact.bytes.to_string(), &what]);
    }
    table.print(output)?;
    Ok(0)
}

pub(super) async fn plans(
    client: &Client,
    arguments: PartArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let page: PlanPage = client.call("task.plans", &input(client, arguments).await?).await?;
    if output.is_json() {
        output.json(&page)?;
        return Ok(0);
    }
    for plan in &page.items {
        let summary = plan.summary.as_deref().unwrap_or("");
        output.line(&format!("{} {} by {} {summary}", plan.id, time::day_and_clock(plan.at), plan.by))?;
        output.line(&brief(&plan.value.to_string(), LINE_CHARS))?;
    }
    Ok(0)
}

pub(super) async fn status(client: &Client, output: &mut Output) -> Result<u8, Failure> {
    let view: StatusView = client.call("status.get", &Empty {}).await?;
    if output.is_json() {
        output.json(&view)?;
        return Ok(0);
    }
    let counts: Vec<String> = view
        .by_status
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(status, count)| format!("{count} {}", status.replace('_', " ")))
        .collect();
    output.line(&format!("{} tasks: {}", view.tasks, counts.join(", ")))?;
    output.line(&format!(
        "{} paused, {} archived, {} wait for a person",
        view.paused, view.archived, view.waiting
    ))?;
    output.line(&format!("{} sub-agents, {} of them at work", view.sessions, view.active_sessions))?;
    Ok(0)
}

pub(super) async fn queue(client: &Client, output: &mut Output) -> Result<u8, Failure> {
    let view: CapacityView = client.call("capacity.get", &Empty {}).await?;
    if output.is_json() {
        output.json(&view)?;
        return Ok(0);
    }
    output.line(&format!(
        "{}/{} slots in use, {} runs wait (at most {}), {} are held by pauses",
        view.used,
        view.slots,
        view.queue.len(),
        view.queue_depth,
        view.held
    ))?;
    for run in &view.queue {
        output.line(&format!(
            "{:>3} {} task {} ({})",
            run.position,
            time::day_and_clock(run.queued_at),
            run.task_id,
            run.priority.as_str()
        ))?;
    }
    Ok(0)
}
