//! `rally usage`: what agents used, in tokens and money.

use rallypoint_client::Client;
use rallypoint_model::ids::RoomId;
use rallypoint_model::message::RoomKind;
use rallypoint_model::time::Timestamp;
use rallypoint_ops::types::{Empty, RoomList, UsageInput, UsageTotals};

use crate::arguments::UsageArguments;
use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::show::table::Table;
use crate::show::text::columns;
use crate::show::usage::{money, token_count, tokens};

pub(crate) async fn carry_out(
    arguments: UsageArguments,
    connector: &Connector,
    output: &mut Output,
) -> Result<u8, Failure> {
    let client = connector.ready().await?;
    let task_id = match &arguments.task {
        Some(task) => Some(resolve::task(&client, task).await?),
        None => None,
    };
    let room_id = match &arguments.room {
        Some(room) => Some(room_id(&client, room).await?),
        None => None,
    };
    let (from, until) = arguments.day.map(day).transpose()?.unzip();
    let input = UsageInput { task_id, session_id: None, room_id, from, until };
    let totals: UsageTotals = client.call("usage.get", &input).await?;
    if output.is_json() {
        output.json(&totals)?;
        return Ok(0);
    }
    let mut table = Table::new(&["MODEL", "RUNS", "TOKENS", "COST"]);
    for entry in &totals.by_model {
        let model = entry.model.as_deref().unwrap_or("unknown");
        let tokens = token_count(entry.tokens.total(), entry.estimated_runs > 0);
        let cost = money(&entry.cost, entry.estimated_cost_runs > 0);
        table.row(&[model, &entry.runs.to_string(), &tokens, &cost]);
    }
    for line in table.lines(columns()) {
        output.line(&line)?;
    }
    output.line(&tokens(&totals))?;
    Ok(0)
}

async fn room_id(client: &Client, text: &str) -> Result<RoomId, Failure> {
    let text = resolve::room(client, text).await?;
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let rooms: RoomList = client.call("room.list", &Empty {}).await?;
    let main = rooms.items.iter().find(|room| room.kind == RoomKind::Main);
    main.map(|room| room.room_id).ok_or_else(|| Failure::failed(format!("there is no room `{text}`")))
}

/// The first moment of a day, and of the one after it.
fn day(day: jiff::civil::Date) -> Result<(Timestamp, Timestamp), Failure> {
    let start = |day: jiff::civil::Date| {
        let start = jiff::tz::TimeZone::UTC.to_timestamp(day.at(0, 0, 0, 0));
        start.map(|start| Timestamp(start.as_millisecond()))
    };
    let next = day.tomorrow().and_then(start);
    match (start(day), next) {
        (Ok(from), Ok(until)) => Ok((from, until)),
        _ => Err(Failure::usage(format!("the day {day} is out of reach"))),
    }
}
