//! `rally delivery`: messages on their way to platform conversations.

use rallypoint_model::delivery::DeliveryStatus;
use rallypoint_ops::rooms::{
    DeliveryList, DeliveryRef, DeliveryView, DiscardDeliveryInput, ListDeliveriesInput, RetryDeliveryInput,
};

use crate::arguments::rooms::DeliveryVerb;
use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::run::request::person;
use crate::show::table::Table;
use crate::show::text::{Shown, brief, harmless};
use crate::show::time;

/// Rows of a list.
const ROWS: u32 = 500;
/// Columns of a reason in a list.
const REASON_COLUMNS: usize = 60;

pub(crate) async fn carry_out(
    verb: DeliveryVerb,
    connector: &Connector,
    output: &mut Output,
) -> Result<u8, Failure> {
    let client = connector.ready().await?;
    let view: DeliveryView = match verb {
        DeliveryVerb::List { room, all } => {
            let room_id = match &room {
                Some(room) => Some(resolve::room(&client, room).await?),
                None => None,
            };
            let input = ListDeliveriesInput { room_id, all, limit: Some(ROWS), status: None };
            let list: DeliveryList = client.call("delivery.list", &input).await?;
            return list_them(&list, output);
        }
        DeliveryVerb::Show { delivery } => {
            let delivery_id = resolve::delivery(&client, &delivery).await?;
            client.call("delivery.get", &DeliveryRef { delivery_id }).await?
        }
        DeliveryVerb::Retry { delivery } => {
            let delivery_id = resolve::delivery(&client, &delivery).await?;
            client.call("delivery.retry", &RetryDeliveryInput { delivery_id, by: person() }).await?
        }
        DeliveryVerb::Discard { delivery, reason } => {
            let delivery_id = resolve::delivery(&client, &delivery).await?;
            let input = DiscardDeliveryInput { delivery_id, by: person(), reason };
            client.call("delivery.discard", &input).await?
        }
    };
    if output.is_json() {
        output.json(&view)?;
    } else {
        for line in lines(&view) {
            output.line(&line)?;
        }
    }
    Ok(0)
}

fn list_them(list: &DeliveryList, output: &mut Output) -> Result<u8, Failure> {
    if output.is_json() {
        output.json(list)?;
        return Ok(0);
    }
    if list.items.is_empty() {
        output.talk("nothing waits for a channel");
        return Ok(0);
    }
    let mut table = Table::new(&["DELIVERY", "QUEUED", "TO", "ATTEMPTS", "STATUS", "WHY"]);
    for one in &list.items {
        let (id, queued) = (one.delivery_id.to_string(), time::day_and_clock(one.queued_at));
        let why = brief(one.reason.as_deref().unwrap_or_default(), REASON_COLUMNS);
        let to = brief(&one.conversation.words(), REASON_COLUMNS);
        table.row(&[&id, &queued, &to, &one.attempts.to_string(), one.status.as_str(), &why]);
    }
    table.print(output)?;
    Ok(0)
}

fn lines(view: &DeliveryView) -> Vec<String> {
    let plain = |text: &str| harmless(text, Shown::Whole);
    let mut lines = vec![
        format!("delivery {}: {}", view.delivery_id, view.status.as_str()),
        format!("to        {}", plain(&view.conversation.words())),
        format!("message   {} in room {}", view.message_id, view.room_id),
    ];
    if let Some(task_id) = view.task_id {
        lines.push(format!("task      {task_id}"));
    }
    if let Some(run_id) = view.run_id {
        lines.push(format!("result    `rally result get {run_id}`"));
    }
    let key = if view.takes_key { "the channel takes our key" } else { "the channel takes no key" };
    match view.attempts {
        0 if view.status.is_open() => lines.push("attempts  0".to_owned()),
        attempts => lines.push(format!("attempts  {attempts}; {key}")),
    }
    if let Some(reason) = &view.reason {
        lines.push(format!("why       {}", plain(reason)));
    }
    if let Some(receipt) = &view.receipt {
        lines.push(format!("receipt   {}", plain(receipt)));
    }
    if let Some(warning) = &view.warning {
        lines.push(format!("warning   {}", plain(warning)));
    }
    if let (DeliveryStatus::Pending, Some(at)) = (view.status, view.next_at) {
        lines.push(format!("next      {} at the earliest", time::day_and_clock(at)));
    }
    if let Some(at) = view.deadline_at {
        lines.push(format!("given up  {}", time::day_and_clock(at)));
    }
    if let Some(again) = view.again_as {
        lines.push(format!("again as  {again}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_delivery_that_nobody_can_tell_shows_where_why_and_how_often() {
        let id = "0198a000-0000-7000-8000-000000000001";
        let view: DeliveryView = serde_json::from_value(json!({
            "deliveryId": id, "sinkKey": id, "roomId": id, "incarnation": 1, "messageId": id, "replyTo": null,
            "conversation": { "channel": "hook", "peer": "team\u{1b}[2J", "thread": "42" }, "taskId": null,
            "runId": id, "status": "ambiguous", "reason": "the connection was cut", "attempts": 1, "waits": 0,
            "takesKey": false, "receipt": null, "warning": null, "nextAt": null, "deadlineAt": null,
            "againAs": null, "queuedAt": 1, "movedAt": 2,
        }))
        .unwrap();
        assert_eq!(
            lines(&view),
            [
                format!("delivery {id}: ambiguous"),
                "to        hook team #42".to_owned(),
                format!("message   {id} in room {id}"),
                format!("result    `rally result get {id}`"),
                "attempts  1; the channel takes no key".to_owned(),
                "why       the connection was cut".to_owned(),
            ]
        );
    }
}
