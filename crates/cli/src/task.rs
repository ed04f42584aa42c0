//! `rally task`: what was asked for, how it stands, and how to steer it.

mod over;
mod parts;
mod steering;

use rallypoint_client::Client;
use rallypoint_model::event::EventRecord;
use rallypoint_model::ids::TaskId;
use rallypoint_model::retention::DeleteMode;
use rallypoint_ops::types::{
    ConfigureInput, Empty, EventPage, EventsInput, OverrideTaskInput, RetryTaskInput, SendInput, TaskRef,
    TaskView,
};
use serde_json::json;

use crate::arguments::TaskVerb;
use crate::arguments::steering::PlanVerb;
use crate::autostart::Connector;
use crate::environment;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::run::follow::Follower;
use crate::run::request::person;
use crate::show::live::text;
use crate::show::narrator::Narrator;
use crate::show::{task_view, words};

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
        TaskVerb::List(arguments) => parts::list(&client, arguments, output).await,
        TaskVerb::Status => parts::status(&client, output).await,
        TaskVerb::Queue => parts::queue(&client, output).await,
        TaskVerb::Messages(arguments) => parts::messages(&client, arguments, output).await,
        TaskVerb::Timeline(arguments) => parts::timeline(&client, arguments, output).await,
        TaskVerb::Decisions(arguments) => parts::decisions(&client, arguments, output).await,
        TaskVerb::Artifacts(arguments) => parts::artifacts(&client, arguments, output).await,
        TaskVerb::Plan { verb: PlanVerb::List(arguments) } => parts::plans(&client, arguments, output).await,
        TaskVerb::Plan { verb: PlanVerb::Set { task, plan, base, summary } } => {
            steering::set_plan(&client, &task, &plan, base.as_ref(), summary, output).await
        }
        TaskVerb::Edit(arguments) => steering::edit(&client, connector, arguments, output).await,
        TaskVerb::Pause(arguments) => steering::hold(&client, arguments, true, output).await,
        TaskVerb::Resume(arguments) => steering::hold(&client, arguments, false, output).await,
        TaskVerb::Reopen { task } => steering::reopen(&client, &task, output).await,
        TaskVerb::Fork(arguments) => steering::fork(&client, connector, arguments, output).await,
        TaskVerb::Message { task, text } => steering::message(&client, connector, &task, text, output).await,
        TaskVerb::Restart(arguments) => steering::restart(&client, connector, arguments, output).await,
        TaskVerb::Rerun(arguments) => steering::rerun(&client, connector, arguments, output).await,
        TaskVerb::RetryTurn(arguments) => steering::retry_turn(&client, connector, arguments, output).await,
        TaskVerb::Validate(arguments) => steering::validate(&client, arguments, output).await,
        TaskVerb::Check { task, wait } => steering::check(&client, &task, wait, output).await,
        TaskVerb::Archive { task, stop } => over::archive(&client, &task, stop, output).await,
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
