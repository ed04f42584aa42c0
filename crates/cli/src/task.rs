//! `rally task`: what was asked for, how it stands, and how to steer it.

mod over;

use rallypoint_client::Client;
use rallypoint_model::event::EventRecord;
use rallypoint_model::ids::TaskId;
use rallypoint_model::retention::DeleteMode;
use rallypoint_ops::types::{
    ConfigureInput, Empty, EventPage, EventsInput, ListTasksInput, OverrideTaskInput, RetryTaskInput,
    SendInput, TaskPage, TaskRef, TaskView,
};
use serde_json::json;

use crate::arguments::TaskVerb;
use crate::autostart::Connector;
use crate::environment;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::run::follow::Follower;
use crate::run::request::person;
use crate::show::live::text;
use crate::show::narrator::Narrator;
use crate::show::table::Table;
use crate::show::{task_view, time, words};

pub(crate) mod trees;

/// Events read at once.
const PAGE: u32 = 500;

pub(crate) async fn carry_out(
    verb: TaskVerb,
    connector: &Connector,
    output: &mut Output,
) -> Result<u8, Failure> {
    let client = connector.ready().await?;
    match verb {
        TaskVerb::List { limit, archived } => list(&client, limit, archived, output).await,
        TaskVerb::Archive { task } => over::archive(&client, &task, output).await,
        TaskVerb::Unarchive { task } => over::unarchive(&client, &task, output).await,
        TaskVerb::Delete { task, purge, yes } => {
            let mode = if purge { DeleteMode::Purge } else { DeleteMode::Preserve };
            over::delete(&client, &task, mode, yes, output).await
        }
        TaskVerb::Transcript { session } => over::transcript(&client, &session, output).await,
        TaskVerb::Show { task } => {
            let input = TaskRef { task_id: resolve::task(&client, &task).await? };
            show(&client.call("task.get", &input).await?, output)
        }
        TaskVerb::Log { task, follow: false } => {
            let task = resolve::task(&client, &task).await?;
            log(&client, task, output).await
        }
        TaskVerb::Log { task, follow: true } => {
            let task = resolve::task(&client, &task).await?;
            Follower::watching(connector.clone(), task).followed_to_the_end(output).await
        }
        TaskVerb::Spawn(arguments) => trees::spawn(&client, connector, arguments, output).await,
        TaskVerb::Wait { session } => trees::wait(&client, &session, output).await,
        TaskVerb::Stop(arguments) => trees::stop(&client, arguments, output).await,
        TaskVerb::Retry { task, text, pass_env } => {
            let task_id = resolve::task(&client, &task).await?;
            let environment = environment::for_agents(connector.data_folder(), &pass_env);
            let view: TaskView = client
                .call("task.retry", &RetryTaskInput { task_id, text, environment, by: person() })
                .await?;
            steered(&view, "it gets another run", output)
        }
        TaskVerb::Override { task, accept, reject: _, by, reason } => {
            let task_id = resolve::task(&client, &task).await?;
            let input = OverrideTaskInput { task_id, passed: accept, by, reason };
            let view: TaskView = client.call("task.override", &input).await?;
            steered(&view, if accept { "its result is accepted" } else { "its result is rejected" }, output)
        }
        TaskVerb::Set { session, wanted, set } => {
            let session_id = resolve::session(&client, &session).await?;
            let config = set.into_iter().collect();
            let input = ConfigureInput { session_id, wanted: wanted.wanted(), config, by: person() };
            let Empty {} = client.call("session.configure", &input).await?;
            if output.is_json() {
                output.json(&json!({ "sessionId": session_id }))?;
            } else {
                output.line(&format!("session {session_id} gets it before its next prompt"))?;
            }
            Ok(0)
        }
        TaskVerb::Send { session, text } => {
            let session_id = resolve::session(&client, &session).await?;
            let input = SendInput { session_id, text, by: person() };
            let Empty {} = client.call("session.send", &input).await?;
            if output.is_json() {
                output.json(&json!({ "sessionId": session_id }))?;
            } else {
                output.line(&format!("sent to session {session_id}"))?;
            }
            Ok(0)
        }
    }
}

async fn list(client: &Client, limit: u32, archived: bool, output: &mut Output) -> Result<u8, Failure> {
    let input = ListTasksInput { limit: Some(limit), include_archived: archived, ..Default::default() };
    let page: TaskPage = client.call("task.list", &input).await?;
    if output.is_json() {
        output.json(&page)?;
        return Ok(0);
    }
    if page.items.is_empty() {
        output.talk(if archived { "no task yet" } else { "no task that is not archived" });
        output
            .talk("hint: `rally run \"…\"` makes one, `rally task list --archived` shows archived ones too");
        return Ok(0);
    }
    let mut table = Table::new(&["TASK", "MADE", "STATUS", "TITLE"]);
    for task in &page.items {
        let made = time::day_and_clock(task.created_at);
        let status = match task.archived_at {
            Some(_) => format!("{}, archived", words::status(task.status)),
            None => words::status(task.status).to_owned(),
        };
        table.row(&[&task.task_id.to_string(), &made, &status, &task.title]);
    }
    table.print(output)?;
    Ok(0)
}

fn show(task: &TaskView, output: &mut Output) -> Result<u8, Failure> {
    if output.is_json() {
        output.json(task)?;
    } else {
        for line in task_view::lines(task) {
            output.line(&line)?;
        }
    }
    Ok(0)
}

/// The task's events that there are, without waiting for more.
async fn log(client: &Client, task: TaskId, output: &mut Output) -> Result<u8, Failure> {
    let mut narrator = Narrator::default();
    let mut after = Some(0);
    while let Some(from) = after {
        let input =
            EventsInput { task_id: Some(task), after: Some(from), limit: Some(PAGE), ..Default::default() };
        let page: EventPage = client.call("event.list", &input).await?;
        after = page.next_after.filter(|next| *next > from && !page.items.is_empty());
        for item in page.items {
            if output.is_json() {
                output.json(&item)?;
                continue;
            }
            let record: EventRecord = serde_json::from_value(item).map_err(|error| {
                Failure::failed(format!("an event has a form that is not known here: {error}"))
            })?;
            for line in narrator.tell(&record) {
                output.line(&text(&line))?;
            }
        }
    }
    Ok(0)
}

fn steered(task: &TaskView, what: &str, output: &mut Output) -> Result<u8, Failure> {
    if output.is_json() {
        output.json(task)?;
    } else {
        output.line(&format!("task {}: {what}, status {}", task.task_id, words::status(task.status)))?;
    }
    Ok(0)
}
