//! `rally task spawn`, `wait` and `stop`: trees of sub-agents.

use rallypoint_client::Client;
use rallypoint_ops::trees::{SpawnInput, SpawnState, SpawnedView, StopSessionInput, StopView, WaitInput};
use rallypoint_ops::types::{Empty, StopTaskInput, TaskView};
use serde_json::json;
use uuid::Uuid;

use super::steered;
use crate::arguments::trees::{SpawnArguments, StopArguments};
use crate::autostart::Connector;
use crate::environment;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::run::request::{named_agent, person, program_at};
use crate::show::words;

/// Longest time that `--wait` waits.
const WAIT_MS: u64 = 60_000;

/// Starts one more sub-agent.
pub(crate) async fn spawn(
    client: &Client,
    connector: &Connector,
    arguments: SpawnArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let request =
        named_agent(arguments.agent.as_deref(), arguments.agent_cmd.as_deref(), &arguments.pass_env)?
            .ok_or_else(|| Failure::usage("no agent is named").with_hint("name one with `--agent`"))?;
    let program = arguments.agent_path.as_deref().map(program_at).transpose()?;
    let task_id = resolve::task(client, &arguments.task).await?;
    let parent_session_id = match &arguments.parent {
        Some(session) => Some(resolve::session(client, session).await?),
        None => None,
    };
    let conversation = arguments.conversation();
    let input = SpawnInput {
        conversation,
        task_id,
        agent: request.agent,
        label: arguments.label,
        task: arguments.text,
        argv: request.argv,
        program,
        config: std::collections::BTreeMap::new(),
        wanted: arguments.wanted.wanted(),
        pass_env: request.pass_env,
        permissions: arguments.permissions,
        parent_session_id,
        // The client repeats a call whose answer was lost; it must not start a second one.
        idempotency_key: Some(arguments.key.unwrap_or_else(|| Uuid::new_v4().to_string())),
        environment: environment::for_agents(connector.data_folder(), &arguments.pass_env),
    };
    let spawned: SpawnedView = client.call("session.spawn", &input).await?;
    if output.is_json() {
        output.json(&spawned)?;
    } else {
        let state = match (spawned.state, spawned.position) {
            (SpawnState::Parked, Some(place)) => format!("waits for a slot, place {place}"),
            (SpawnState::Parked, None) => "waits for a slot".to_owned(),
            (SpawnState::Admitted, _) => "starts".to_owned(),
        };
        output.line(&format!("session {}: {state}", spawned.session_id))?;
    }
    Ok(0)
}

/// Lets a turn wait for its children.
pub(crate) async fn wait(client: &Client, session: &str, output: &mut Output) -> Result<u8, Failure> {
    let session_id = resolve::session(client, session).await?;
    let Empty {} = client.call("session.wait", &WaitInput { session_id }).await?;
    if output.is_json() {
        output.json(&json!({ "sessionId": session_id }))?;
    } else {
        output.line(&format!("session {session_id} waits for its sub-agents"))?;
    }
    Ok(0)
}

/// Ends a task's work, or one session and all below it.
pub(crate) async fn stop(
    client: &Client,
    arguments: StopArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let wait_ms = arguments.wait.then_some(WAIT_MS);
    match (arguments.task, arguments.session) {
        (_, Some(session)) => {
            let session_id = resolve::session(client, &session).await?;
            let input = StopSessionInput { session_id, by: person(), wait_ms };
            let stop: StopView = client.call("session.stop", &input).await?;
            if output.is_json() {
                output.json(&stop)?;
            } else {
                tell(&stop, output)?;
            }
            Ok(0)
        }
        (Some(task), None) => {
            let task_id = resolve::task(client, &task).await?;
            let input = StopTaskInput { task_id, by: person(), wait_ms };
            let view: TaskView = client.call("task.stop", &input).await?;
            let stopped = view.last_stop.as_ref().is_none_or(|stop| stop.ended_at.is_some());
            let code = steered(&view, if stopped { "it is stopped" } else { "it is being stopped" }, output)?;
            if let Some(stop) = view.last_stop.as_ref().filter(|_| !output.is_json()) {
                tell(stop, output)?;
            }
            Ok(code)
        }
        (None, None) => Err(Failure::usage("nothing is named that could be stopped")
            .with_hint("name a task, or a sub-agent with `--session`")),
    }
}

/// How each node stands, parents before their children.
fn tell(stop: &StopView, output: &mut Output) -> Result<(), Failure> {
    for node in &stop.nodes {
        let state = match (node.at_rest, node.outcome) {
            (false, _) => "is being stopped",
            (true, Some(outcome)) => words::outcome(outcome),
            (true, None) => "never ran",
        };
        let left = match node.processes_left {
            0 => String::new(),
            left => format!("; {left} processes could not be ended"),
        };
        let indent = "  ".repeat(node.depth.saturating_sub(1).min(8) as usize);
        output.line(&format!("{indent}{}: {state}{left}", node.label))?;
    }
    let sums: Vec<String> =
        stop.counts.iter().map(|(word, count)| format!("{count} {}", word.replace('_', " "))).collect();
    output.line(&sums.join(", "))?;
    Ok(())
}
