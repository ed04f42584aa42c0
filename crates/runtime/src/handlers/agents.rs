//! Which agents there are, and which one a task gets that names none.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use rallypoint_model::command::AgentChoice;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::task::AgentRequest;
use rallypoint_ops::Problem;
use rallypoint_ops::types::{AgentList, AgentView, CreateTaskInput, PreflightInput};

use super::create_task::{environment, unknown_agent};
use crate::daemon::Shared;
use crate::preflight::{Caller, look};

/// The listed agents as the daemon's own environment shows them. Starts nothing.
pub(super) fn list(shared: &Shared) -> AgentList {
    AgentList { items: looked_at(shared, &environment(&BTreeMap::new())) }
}

fn looked_at(shared: &Shared, environment: &BTreeMap<String, String>) -> Vec<AgentView> {
    let profiles = shared.config.profiles.list().filter(|profile| !profile.hidden);
    profiles.map(|profile| look(profile, &shared.program, Caller(environment))).collect()
}

/// Agents as the caller's environment shows them, with their versions.
pub(super) async fn preflight(shared: &Shared, input: PreflightInput) -> Result<AgentList, Problem> {
    let caller = environment(&input.environment);
    for name in &input.agents {
        if shared.config.profiles.get(name).is_none() {
            return Err(unknown_agent(shared, name));
        }
    }
    let wanted = shared.config.profiles.list().filter(|profile| match input.agents.as_slice() {
        [] => !profile.hidden,
        names => names.contains(&profile.name),
    });
    let looks = wanted.map(|profile| {
        let caller = &caller;
        async move {
            let mut view = look(profile, &shared.program, Caller(caller));
            view.version = if view.built_in {
                Some(env!("CARGO_PKG_VERSION").to_owned())
            } else if view.installed {
                shared.versions.of(profile, view.program.as_ref(), caller).await
            } else {
                None
            };
            view
        }
    });
    Ok(AgentList { items: join_all(looks).await })
}

/// The agents that are named, or the one that may be taken without being named, with the reason.
pub(super) fn chosen(
    shared: &Shared,
    input: &CreateTaskInput,
    caller: &BTreeMap<String, String>,
) -> Result<(Vec<AgentRequest>, AgentChoice), Problem> {
    if !input.agents.is_empty() {
        return Ok((input.agents.clone(), AgentChoice::Named));
    }
    let one = |agent: &str| vec![AgentRequest { agent: agent.to_owned(), ..AgentRequest::default() }];
    if let Some(agent) = &shared.config.default_agent {
        return Ok((one(agent), AgentChoice::Configured));
    }
    if holds_commands(&input.goal) {
        return Ok((one("shell"), AgentChoice::Commands));
    }
    let found: Vec<AgentView> =
        looked_at(shared, caller).into_iter().filter(|agent| agent.installed && !agent.built_in).collect();
    let ready: Vec<&AgentView> = found.iter().filter(|agent| agent.ready).collect();
    match (ready.as_slice(), found.as_slice()) {
        ([only], _) => Ok((one(&only.name), AgentChoice::OnlyReady)),
        ([], [only]) => Ok((one(&only.name), AgentChoice::OnlyInstalled)),
        ([], []) => Err(Refusal::new(RefusalCode::Invalid, "no agent is named, and none is installed")
            .with_hint("name one with `--agent`; `rally agents` shows what is there and how to install it")
            .into()),
        ([], many) => Err(several("more than one is installed, none of which shows a login", many.iter())),
        (many, _) => Err(several("more than one is ready", many.iter().copied())),
    }
}

fn several<'a>(what: &str, agents: impl Iterator<Item = &'a AgentView>) -> Problem {
    let names: Vec<&str> = agents.map(|agent| agent.name.as_str()).collect();
    Refusal::new(RefusalCode::Invalid, format!("no agent is named, and {what}"))
        .with_hint(format!("name one with `--agent`: {}", names.join(", ")))
        .into()
}

/// Whether the `shell` agent would find commands in a goal.
fn holds_commands(goal: &str) -> bool {
    goal.lines().any(|line| {
        let line = line.trim_start();
        let info = line.strip_prefix("```").map(str::trim);
        line.starts_with("$ ") || matches!(info, Some("sh" | "bash" | "shell"))
    })
}
