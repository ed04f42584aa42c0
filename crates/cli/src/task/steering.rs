//! `rally task edit`, `pause`, `resume`, `fork`, `message`, `restart` and the like.

use rallypoint_client::Client;
use rallypoint_ops::steering::{
    CheckTaskInput, ForkTaskInput, MessageTaskInput, MessagedView, PatchTaskInput, RerunTaskInput,
    RestartTaskInput, RestartWithPlanInput, RetryTurnInput, RevisePlanInput, SteerAllInput, SteerInput,
    SteeredView, ValidateTaskInput,
};
use rallypoint_ops::types::TaskView;
use serde_json::Value;

use super::steered;
use crate::arguments::steering::{
    AllArguments, AnewArguments, EditArguments, ForkArguments, RerunArguments, RestartArguments,
    RetryTurnArguments, ValidateArguments, band,
};
use crate::autostart::Connector;
use crate::environment;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::run::request::{named_agent, person};

/// Longest time that `--wait` waits.
const WAIT_MS: u64 = 60_000;

pub(super) async fn edit(
    client: &Client,
    connector: &Connector,
    arguments: EditArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let (checks, accept) = criteria(arguments.check, arguments.accept);
    let agents = named_agent(arguments.agent.as_deref(), None, &[])?.map(|request| vec![request]);
    let input = PatchTaskInput {
        task_id: resolve::task(client, &arguments.task).await?,
        title: arguments.title,
        goal: arguments.goal,
        checks,
        accept,
        priority: band(arguments.priority.as_deref()),
        budget: None,
        agents,
        environment: environment::for_agents(connector.data_folder(), &[]),
        by: person(),
    };
    let view: TaskView = client.call("task.patch", &input).await?;
    steered(&view, "it is changed", output)
}

/// Both lists, where one of them is named: together they are all criteria.
fn criteria(check: Vec<String>, accept: Vec<String>) -> (Option<Vec<String>>, Option<Vec<String>>) {
    if check.is_empty() && accept.is_empty() { (None, None) } else { (Some(check), Some(accept)) }
}

pub(super) async fn hold(
    client: &Client,
    arguments: AllArguments,
    hold: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let Some(task) = arguments.task else {
        let operation = if hold { "task.pauseAll" } else { "task.resumeAll" };
        let view: SteeredView = client.call(operation, &SteerAllInput { by: person() }).await?;
        if output.is_json() {
            output.json(&view)?;
        } else {
            output.line(&format!("{} tasks {}", view.tasks, if hold { "paused" } else { "resumed" }))?;
        }
        return Ok(0);
    };
    let input = SteerInput { task_id: resolve::task(client, &task).await?, by: person() };
    let operation = if hold { "task.pause" } else { "task.resume" };
    let view: TaskView = client.call(operation, &input).await?;
    steered(&view, if hold { "it is paused" } else { "it goes on" }, output)
}

pub(super) async fn reopen(client: &Client, task: &str, output: &mut Output) -> Result<u8, Failure> {
    let input = SteerInput { task_id: resolve::task(client, task).await?, by: person() };
    let view: TaskView = client.call("task.reopen", &input).await?;
    steered(&view, "it is open again", output)
}

pub(super) async fn fork(
    client: &Client,
    connector: &Connector,
    arguments: ForkArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let request =
        named_agent(arguments.agent.as_deref(), arguments.agent_cmd.as_deref(), &arguments.pass_env)?;
    let cwd = match arguments.cwd {
        Some(cwd) => Some(std::path::absolute(cwd)?.display().to_string()),
        None => None,
    };
    let (checks, accept) = criteria(arguments.check, arguments.accept);
    let input = ForkTaskInput {
        task_id: resolve::task(client, &arguments.task).await?,
        title: arguments.title,
        goal: arguments.goal,
        checks,
        accept,
        priority: band(arguments.priority.as_deref()),
        budget: None,
        agents: request.into_iter().collect(),
        cwd,
        room_id: None,
        environment: environment::for_agents(connector.data_folder(), &arguments.pass_env),
        by: person(),
    };
    let view: TaskView = client.call("task.fork", &input).await?;
    steered(&view, "made as a fork", output)
}

pub(super) async fn message(
    client: &Client,
    connector: &Connector,
    task: &str,
    text: String,
    output: &mut Output,
) -> Result<u8, Failure> {
    let input = MessageTaskInput {
        task_id: resolve::task(client, task).await?,
        text,
        source: Some("cli".to_owned()),
        environment: environment::for_agents(connector.data_folder(), &[]),
        by: person(),
    };
    let view: MessagedView = client.call("task.message", &input).await?;
    if output.is_json() {
        output.json(&view)?;
        return Ok(0);
    }
    for session in &view.forwarded_to {
        output.line(&format!("session {session} gets it"))?;
    }
    for missed in &view.failed_to {
        output.line(&format!("session {} does not get it: {}", missed.session_id, missed.error))?;
    }
    match view.started {
        Some(session) => output.line(&format!("session {session} was started for it"))?,
        None if view.forwarded_to.is_empty() => {
            output.line("it is kept in the room; nobody works on the task")?;
        }
        None => {}
    }
    Ok(0)
}

/// A plan as it was typed, or from the file behind `@`.
pub(super) fn plan_of(text: &str) -> Result<Value, Failure> {
    let text = match text.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("the plan `{path}` can't be read: {error}")))?,
        None => text.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("the plan is not JSON: {error}")).with_hint(
            "write it as an object, such as '{\"steps\": [\"look\", \"mend\"]}', or name a file with `@FILE`",
        )
    })
}

fn id<T: std::str::FromStr>(what: &str, text: Option<&String>) -> Result<Option<T>, Failure> {
    let Some(text) = text else { return Ok(None) };
    text.parse().map(Some).map_err(|_| Failure::usage(format!("`{text}` is no id of a {what}")))
}

pub(super) async fn set_plan(
    client: &Client,
    task: &str,
    plan: &str,
    base: Option<&String>,
    summary: Option<String>,
    output: &mut Output,
) -> Result<u8, Failure> {
    let input = RevisePlanInput {
        task_id: resolve::task(client, task).await?,
        plan: plan_of(plan)?,
        base_plan_revision_id: id("plan revision", base)?,
        edit_summary: summary,
        by: person(),
    };
    let revision: rallypoint_model::steering::PlanRevision = client.call("task.revisePlan", &input).await?;
    if output.is_json() {
        output.json(&revision)?;
    } else {
        output.line(&format!("plan revision {}", revision.id))?;
    }
    Ok(0)
}

pub(super) async fn restart(
    client: &Client,
    connector: &Connector,
    arguments: RestartArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let task_id = resolve::task(client, &arguments.task).await?;
    let AnewArguments { instruction, stop, agent, agent_cmd, plan_revision, pass_env } = arguments.anew;
    let agent = named_agent(agent.as_deref(), agent_cmd.as_deref(), &pass_env)?;
    let environment = environment::for_agents(connector.data_folder(), &pass_env);
    let view: TaskView = match &arguments.plan {
        Some(plan) => {
            let input = RestartWithPlanInput {
                task_id,
                plan: plan_of(plan)?,
                base_plan_revision_id: None,
                edit_summary: arguments.summary,
                instruction,
                stop_active: stop,
                agent,
                environment,
                by: person(),
            };
            client.call("task.restartWithPlan", &input).await?
        }
        None => {
            let input = RestartTaskInput {
                task_id,
                instruction,
                plan_revision_id: id("plan revision", plan_revision.as_ref())?,
                stop_active: stop,
                agent,
                environment,
                by: person(),
            };
            client.call("task.restart", &input).await?
        }
    };
    steered(&view, "it is begun again", output)
}

pub(super) async fn rerun(
    client: &Client,
    connector: &Connector,
    arguments: RerunArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let AnewArguments { instruction, stop, agent, agent_cmd, plan_revision, pass_env } = arguments.anew;
    let input = RerunTaskInput {
        task_id: resolve::task(client, &arguments.task).await?,
        event_seq: arguments.event,
        instruction,
        plan_revision_id: id("plan revision", plan_revision.as_ref())?,
        stop_active: stop,
        agent: named_agent(agent.as_deref(), agent_cmd.as_deref(), &pass_env)?,
        environment: environment::for_agents(connector.data_folder(), &pass_env),
        by: person(),
    };
    let view: TaskView = client.call("task.rerun", &input).await?;
    steered(&view, &format!("it is begun again from event {}", arguments.event), output)
}

pub(super) async fn retry_turn(
    client: &Client,
    connector: &Connector,
    arguments: RetryTurnArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let session_id = match &arguments.session {
        Some(session) => Some(resolve::session(client, session).await?),
        None => None,
    };
    let input = RetryTurnInput {
        task_id: resolve::task(client, &arguments.task).await?,
        instruction: arguments.instruction,
        message_id: id("message", arguments.message.as_ref())?,
        session_id,
        new_session: arguments.new_session,
        plan_revision_id: id("plan revision", arguments.plan_revision.as_ref())?,
        environment: environment::for_agents(connector.data_folder(), &arguments.pass_env),
        by: person(),
    };
    let view: TaskView = client.call("task.retryTurn", &input).await?;
    steered(&view, "it gets another turn", output)
}

pub(super) async fn validate(
    client: &Client,
    arguments: ValidateArguments,
    output: &mut Output,
) -> Result<u8, Failure> {
    let input = ValidateTaskInput {
        task_id: resolve::task(client, &arguments.task).await?,
        passed: arguments.pass,
        evidence: arguments.evidence,
        by: arguments.by,
        human_override: arguments.overrides,
    };
    let view: TaskView = client.call("task.validate", &input).await?;
    steered(&view, if input.passed { "its result holds" } else { "its result does not hold" }, output)
}

pub(super) async fn check(
    client: &Client,
    task: &str,
    wait: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let task_id = resolve::task(client, task).await?;
    let input = CheckTaskInput { task_id, wait_ms: wait.then_some(WAIT_MS), by: person() };
    let view: TaskView = client.call("task.check", &input).await?;
    steered(&view, "its checks are run again", output)
}
