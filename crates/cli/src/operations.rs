//! `rally operations`: what can be done, by every front end.

use rallypoint_ops::overview::OperationList;
use rallypoint_ops::types::Empty;

use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;
use crate::show::table::Table;

pub(crate) async fn carry_out(connector: &Connector, output: &mut Output) -> Result<u8, Failure> {
    let client = connector.ready().await?;
    let list: OperationList = client.call("operation.list", &Empty {}).await?;
    if output.is_json() {
        output.json(&list)?;
        return Ok(0);
    }
    let mut table = Table::new(&["OPERATION", "ROUTE", "RALLY", "WHAT"]);
    for operation in &list.items {
        let route = format!("{} {}", operation.method, operation.path);
        table.row(&[&operation.name, &route, operation.cli.as_deref().unwrap_or("-"), &operation.summary]);
    }
    table.print(output)?;
    Ok(0)
}
