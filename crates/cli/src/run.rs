//! `rally run`: one task to its end, through the daemon.

pub(crate) mod asking;
pub(crate) mod ending;
pub(crate) mod follow;
pub(crate) mod request;

use rallypoint_client::{Client, ClientError};
use rallypoint_ops::types::{CreateTaskInput, TaskView};
use serde_json::json;

use crate::arguments::RunArguments;
use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::run::follow::Follower;

/// Times that a task is asked for when the daemon goes away in the middle of it. The key makes them one task.
const CREATE_ATTEMPTS: u32 = 5;

pub(crate) async fn carry_out(
    arguments: RunArguments,
    connector: &Connector,
    output: &mut Output,
) -> Result<u8, Failure> {
    let mut input = request::build(&arguments, connector.data_folder())?;
    let client = connector.ready().await?;
    if let Some(room) = &arguments.room {
        input.room_id = resolve::room(&client, room).await?.parse().ok();
    }
    if let Some(room) = &arguments.worktree_room {
        input.worktree_room_id = resolve::room(&client, room).await?.parse().ok();
    }
    let task = create(connector, client, &input).await?;
    if arguments.detach {
        if output.is_json() {
            output.json(&json!({ "taskId": task.task_id }))?;
        } else {
            output.line(&task.task_id.to_string())?;
        }
        return Ok(0);
    }
    Follower::new(connector.clone(), task.task_id).followed_to_the_end(output).await
}

/// Makes the task, once, however often the daemon goes away meanwhile.
pub(crate) async fn create(
    connector: &Connector,
    mut client: Client,
    input: &CreateTaskInput,
) -> Result<TaskView, Failure> {
    let mut attempts = 1;
    loop {
        match client.call("task.create", input).await {
            Err(ClientError::NoDaemon | ClientError::Lost) if attempts < CREATE_ATTEMPTS => {
                attempts += 1;
                client = connector.ready().await?;
            }
            answer => return Ok(answer?),
        }
    }
}
