//! `rally agents`: which agents there are, and what each needs.

use rallypoint_ops::rooms::{ActiveList, RoomRef};
use rallypoint_ops::types::{AgentList, AgentView, LoginState, PreflightInput};

use crate::autostart::Connector;
use crate::environment;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::show::table::Table;
use crate::show::text::{Shown, harmless};

pub(crate) async fn carry_out(
    names: Vec<String>,
    connector: &Connector,
    output: &mut Output,
) -> Result<u8, Failure> {
    let environment = environment::for_agents(connector.data_folder(), &[]);
    let input = PreflightInput { agents: names.clone(), environment };
    let list: AgentList = connector.ready().await?.call("agent.preflight", &input).await?;
    if output.is_json() {
        output.json(&list)?;
        return Ok(0);
    }
    // Who asks for some by name wants to know more about them.
    let closely = !names.is_empty();
    let headings: &[&str] = &["NAME", "STATE", "VERSION", "LOGIN", "WHERE", "NEXT STEP", "DOCUMENTATION"];
    let shown = if closely { headings } else { headings.split_last().map_or(headings, |(_, rest)| rest) };
    let mut table = Table::new(shown);
    for agent in &list.items {
        let place = if agent.installed && !agent.built_in { agent.program.as_str() } else { "-" };
        let version = agent.version.as_deref().unwrap_or("-");
        let (login, next) = (login(agent), next_step(agent));
        let mut row = vec![agent.name.as_str(), state(agent), version, &login, place, &next];
        row.extend(closely.then_some(agent.docs_url.as_str()));
        table.row(&row);
    }
    table.print(output)?;
    Ok(0)
}

/// Who works for a room, as its main agent gets to know it.
pub(crate) async fn active(room: &str, connector: &Connector, output: &mut Output) -> Result<u8, Failure> {
    let client = connector.ready().await?;
    let room_id = resolve::room(&client, room).await?;
    let list: ActiveList = client.call("room.active", &RoomRef { room_id }).await?;
    if output.is_json() {
        output.json(&list)?;
    } else if list.text.is_empty() {
        output.talk("no sub-agent is active there");
    } else {
        output.line(&harmless(&list.text, Shown::Whole))?;
    }
    Ok(0)
}

fn state(agent: &AgentView) -> &'static str {
    match (agent.built_in, agent.installed) {
        (true, _) => "built in",
        (false, true) => "installed",
        (false, false) => "not found",
    }
}

fn login(agent: &AgentView) -> String {
    match (agent.login, &agent.login_shown_by) {
        (LoginState::Present, Some(shown_by)) => format!("by {shown_by}"),
        (LoginState::Present, None) => "shows".to_owned(),
        (LoginState::Absent, _) => "none shows".to_owned(),
        (LoginState::Unknown, _) => "unknown".to_owned(),
        (LoginState::NotNeeded, _) => "-".to_owned(),
    }
}

fn next_step(agent: &AgentView) -> String {
    let step = match (agent.installed, agent.login) {
        (false, _) => &agent.install_hint,
        (true, LoginState::Absent | LoginState::Unknown) => &agent.login_hint,
        (true, LoginState::Present | LoginState::NotNeeded) => return "-".to_owned(),
    };
    match (step.is_empty(), agent.docs_url.is_empty()) {
        (true, true) => "-".to_owned(),
        (true, false) => agent.docs_url.clone(),
        (false, _) => step.clone(),
    }
}
