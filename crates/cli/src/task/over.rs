//! Tasks that are over: archived, brought back, deleted; transcripts.

use std::io::{BufRead, IsTerminal};

use rallypoint_client::Client;
use rallypoint_model::retention::DeleteMode;
use rallypoint_ops::types::{
    ArchiveTaskInput, DeleteTaskInput, SessionRef, TaskRef, TaskView, TranscriptView,
};

use super::steered;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::run::request::person;
use crate::show::text::brief;

pub(super) async fn archive(
    client: &Client,
    task: &str,
    stop: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let task_id = resolve::task(client, task).await?;
    let input = ArchiveTaskInput { task_id, by: person(), stop_active: stop };
    let view: TaskView = client.call("task.archive", &input).await?;
    steered(&view, "it is archived", output)
}

pub(super) async fn unarchive(client: &Client, task: &str, output: &mut Output) -> Result<u8, Failure> {
    let task_id = resolve::task(client, task).await?;
    let input = ArchiveTaskInput { task_id, by: person(), stop_active: false };
    let view: TaskView = client.call("task.unarchive", &input).await?;
    steered(&view, "it is back", output)
}

/// Deletes a task, after asking unless that was answered beforehand.
pub(super) async fn delete(
    client: &Client,
    task: &str,
    mode: DeleteMode,
    confirmed: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let task_id = resolve::task(client, task).await?;
    if !confirmed {
        let view: TaskView = client.call("task.get", &TaskRef { task_id }).await?;
        confirm(&view, mode, output)?;
    }
    let view: TaskView = client.call("task.delete", &DeleteTaskInput { task_id, mode, by: person() }).await?;
    let what = match mode {
        DeleteMode::Preserve => "it is hidden, its journal is kept",
        DeleteMode::Purge => "its content is removed",
    };
    steered(&view, what, output)
}

fn confirm(task: &TaskView, mode: DeleteMode, output: &mut Output) -> Result<(), Failure> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(Failure::usage(
            "deleting a task has to be confirmed, and there is no terminal to ask on",
        )
        .with_hint("`--yes` confirms it beforehand"));
    }
    let what = match mode {
        DeleteMode::Preserve => "is hidden for good; its journal, messages and outputs are kept",
        DeleteMode::Purge => {
            "loses its goal, messages, outputs, transcripts and scratch folder for good; only ids and times are kept"
        }
    };
    output.talk(&format!("task {} ({}) {what}", task.task_id, brief(&task.title, 60)));
    output.ask("delete it? [y/N]");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::failed("not confirmed; nothing was deleted")),
    }
}

/// Prints where a session's transcript is.
pub(super) async fn transcript(client: &Client, session: &str, output: &mut Output) -> Result<u8, Failure> {
    let input = SessionRef { session_id: resolve::session(client, session).await? };
    let view: TranscriptView = client.call("session.transcript", &input).await?;
    if output.is_json() {
        output.json(&view)?;
    } else {
        output.line(&view.path)?;
    }
    Ok(0)
}
