//! `rally demo`: three agents side by side on one small task, in a throw-away folder.
//!
//! It goes the way of every other task, over the daemon's API, with real processes, real files and real checks. Only
//! one thing is arranged: the third agent claims to have repaired the program before it has.

mod stage;

use std::path::Path;

use rallypoint_client::Client;
use rallypoint_ops::types::{
    CreateTaskInput, ListTasksInput, RoomMessagesInput, StopTaskInput, TaskPage, TaskRef, TaskView,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Duration, Instant, sleep};

use crate::arguments::{DaemonVerb, DemoArguments};
use crate::autostart::Connector;
use crate::failure::{Failure, INTERRUPTED};
use crate::output::{Form, Output};
use crate::run::follow::Follower;
use crate::show::task_view;
use crate::{daemon, room, run};

/// Time the agents get to end after the task was stopped. They are small; their shims force them after seconds.
const END_DEADLINE: Duration = Duration::from_secs(20);
/// Time between two looks at whether they have.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Messages of the room that are shown.
const MESSAGES: u32 = 200;

pub(crate) async fn carry_out(arguments: DemoArguments, output: &mut Output) -> Result<u8, Failure> {
    // Removed when it is dropped, at the end of this function.
    let folder = tempfile::Builder::new().prefix("rally-demo-").tempdir().map_err(|error| {
        Failure::failed(format!("a throw-away folder can't be made: {error}"))
            .with_hint("`TMPDIR` says where temporary folders go")
    })?;
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|error| Failure::failed(format!("Ctrl-C can't be taken: {error}")))?;
    let connector = Connector::new(folder.path().join("data"))?;
    let started = tokio::select! {
        started = begin(&arguments, folder.path(), &connector, output) => started,
        _ = interrupts.recv() => Ok(None),
    };
    drop(interrupts);
    let played = match started {
        Ok(Some(task)) => play(&connector, task, output).await,
        Ok(None) => Ok(INTERRUPTED),
        Err(failure) => Err(failure),
    };
    let ended = end(&connector).await;
    let code = played?;
    ended.map(|()| code)
}

async fn begin(
    arguments: &DemoArguments,
    folder: &Path,
    connector: &Connector,
    output: &mut Output,
) -> Result<Option<TaskView>, Failure> {
    let stage = stage::set(folder, connector.program(), arguments.without_repair)?;
    for line in stage::introduction() {
        output.talk(line);
    }
    let input: CreateTaskInput = stage.task(connector.data_folder());
    let client = connector.ready().await?;
    run::create(connector, client, &input).await.map(Some)
}

async fn play(connector: &Connector, task: TaskView, output: &mut Output) -> Result<u8, Failure> {
    let code =
        Follower::new(connector.clone(), task.task_id).without_hints().followed_to_the_end(output).await?;
    if output.is_json() {
        return Ok(code);
    }
    let client = connector.ready().await?;
    let task: TaskView = client.call("task.get", &TaskRef { task_id: task.task_id }).await?;
    show_room(&client, &task, output).await?;
    output.line("")?;
    let evidence = task_view::evidence(&task.criteria, &task.evidence);
    output.line(if evidence.is_empty() {
        "Nothing was checked."
    } else {
        "What was checked, in the last round:"
    })?;
    for line in evidence {
        output.line(&format!("  {line}"))?;
    }
    output.line("")?;
    for line in stage::what_next(connector.program()) {
        output.line(&line)?;
    }
    Ok(code)
}

async fn show_room(client: &Client, task: &TaskView, output: &mut Output) -> Result<(), Failure> {
    output.line("")?;
    output.line("What the room holds, read back from the store:")?;
    let input = RoomMessagesInput {
        room_id: task.room_id.to_string(),
        task_id: Some(task.task_id),
        all: false,
        limit: None,
        cursor: None,
    };
    let messages = room::messages(client, input, MESSAGES).await?;
    room::print(&messages, output)
}

/// Leaves nothing behind: no work, no agent process, no daemon.
async fn end(connector: &Connector) -> Result<(), Failure> {
    let Ok(Some(_)) = connector.running().await else {
        return Ok(());
    };
    let client = connector.client();
    let page: TaskPage = client.call("task.list", &ListTasksInput::default()).await?;
    for task in page.items {
        let input = StopTaskInput { task_id: task.task_id, by: Some("demo".to_owned()), wait_ms: None };
        // A task that has ended refuses it, which is as good.
        let _ = client.call::<_, TaskView>("task.stop", &input).await;
    }
    let deadline = Instant::now() + END_DEADLINE;
    while let Ok(Some(status)) = connector.running().await {
        if status.generations == 0 || Instant::now() > deadline {
            break;
        }
        sleep(LOOK_AGAIN).await;
    }
    // What it says of its end belongs to another verb.
    let mut unheard = Output::unheard(Form::Text);
    daemon::carry_out(DaemonVerb::Stop, connector, &mut unheard).await.map(drop)
}
