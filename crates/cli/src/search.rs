//! `rally search`: words in tasks, messages and events.

use rallypoint_ops::search::{HitPage, SearchInput};

use crate::arguments::search::SearchArguments;
use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::show::table::Table;
use crate::show::text::{Shown, columns, harmless};
use crate::show::time::day_and_clock;

/// Rows that the daemon gives at most.
const PAGE: u32 = 500;

pub(crate) async fn carry_out(
    arguments: SearchArguments,
    connector: &Connector,
    output: &mut Output,
) -> Result<u8, Failure> {
    let client = connector.ready().await?;
    let task_id = match &arguments.task {
        Some(task) => Some(resolve::task(&client, task).await?),
        None => None,
    };
    let room_id = match &arguments.room {
        Some(room) => Some(resolve::room(&client, room).await?),
        None => None,
    };
    let input = SearchInput {
        text: arguments.text,
        kind: arguments.kind.map(Into::into),
        room_id,
        task_id,
        limit: Some(arguments.limit.clamp(1, PAGE)),
        cursor: None,
    };
    let page: HitPage = client.call("search.find", &input).await?;
    if output.is_json() {
        output.json(&page)?;
        return Ok(0);
    }
    if page.items.is_empty() {
        output.talk("nothing holds that");
        return Ok(0);
    }
    let mut table = Table::new(&["AT", "KIND", "TASK", "TEXT"]);
    for hit in &page.items {
        let task = hit.task_id.map(|id| id.to_string()).unwrap_or_default();
        let text = harmless(&hit.snippet, Shown::OneLine);
        table.row(&[&day_and_clock(hit.at), &hit.event_kind, &task, &text]);
    }
    for line in table.lines(columns()) {
        output.line(&line)?;
    }
    if page.next_cursor.is_some() {
        output.talk("there is more; `--limit` shows it");
    }
    Ok(0)
}
