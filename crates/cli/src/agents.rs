//! `rally agents`: which agents there are.

use rallypoint_ops::types::{AgentList, Empty};

use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;
use crate::show::table::Table;

pub(crate) async fn carry_out(connector: &Connector, output: &mut Output) -> Result<u8, Failure> {
    let list: AgentList = connector.ready().await?.call("agent.list", &Empty {}).await?;
    if output.is_json() {
        output.json(&list)?;
        return Ok(0);
    }
    let mut table = Table::new(&["NAME", "STATE", "WHAT", "NEXT STEP"]);
    for agent in &list.items {
        let (state, next) = match (agent.built_in && agent.installed, agent.installed) {
            (true, _) => ("built in", ""),
            (false, true) => ("installed", agent.login_hint.as_str()),
            (false, false) => ("not found", agent.install_hint.as_str()),
        };
        table.row(&[&agent.name, state, &agent.title, next]);
    }
    table.print(output)?;
    Ok(0)
}
