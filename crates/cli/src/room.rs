//! `rally room`: what was said where.

use rallypoint_client::Client;
use rallypoint_model::message::{Message, RoomKind};
use rallypoint_ops::rooms::{CreateRoomInput, RoomRef, SayInput};
use rallypoint_ops::types::{Empty, MessagePage, RoomList, RoomMessagesInput};
use serde_json::json;
use uuid::Uuid;

use crate::arguments::rooms::RoomVerb;
use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::run::request::person;
use crate::show::table::Table;
use crate::show::text::columns;
use crate::show::{time, timeline};

/// Messages read at once.
const PAGE: u32 = 500;

pub(crate) async fn carry_out(
    verb: RoomVerb,
    connector: &Connector,
    output: &mut Output,
) -> Result<u8, Failure> {
    let client = connector.ready().await?;
    match verb {
        RoomVerb::List => list(&client, output).await,
        RoomVerb::Show { room, task, limit } => {
            let task_id = match &task {
                Some(task) => Some(resolve::task(&client, task).await?),
                None => None,
            };
            let room_id = resolve::room(&client, &room).await?;
            let input = RoomMessagesInput { room_id, task_id, limit: None, cursor: None };
            let messages = messages(&client, input, limit).await?;
            if output.is_json() {
                output.json(&json!({ "items": messages }))?;
            } else {
                print(&messages, output)?;
            }
            Ok(0)
        }
        RoomVerb::New { title, kind } => {
            let kind = match kind.as_str() {
                "worktree" => RoomKind::Worktree,
                "direct" => RoomKind::Direct,
                _ => RoomKind::Task,
            };
            let made: RoomRef = client.call("room.create", &CreateRoomInput { kind, title }).await?;
            if output.is_json() {
                output.json(&made)?;
            } else {
                output.line(&format!("room {}", made.room_id))?;
            }
            Ok(0)
        }
        RoomVerb::Say { room, text } => {
            let room_id = resolve::room(&client, &room).await?;
            // The client repeats a call whose answer was lost; the words must not stand there twice.
            let idempotency_key = Some(Uuid::new_v4().to_string());
            let input = SayInput { room_id: room_id.clone(), text, by: person(), idempotency_key };
            let Empty {} = client.call("room.say", &input).await?;
            if output.is_json() {
                output.json(&json!({ "roomId": room_id }))?;
            } else {
                output.line(&format!("said in room {room_id}"))?;
            }
            Ok(0)
        }
    }
}

/// The latest messages, oldest first.
pub(crate) async fn messages(
    client: &Client,
    input: RoomMessagesInput,
    limit: u32,
) -> Result<Vec<Message>, Failure> {
    let mut messages: Vec<Message> = Vec::new();
    let mut cursor = None;
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    while messages.len() < wanted {
        let missing = u32::try_from(wanted.saturating_sub(messages.len())).unwrap_or(PAGE);
        let input = RoomMessagesInput { limit: Some(missing.min(PAGE)), cursor, ..input.clone() };
        let page: MessagePage = client.call("room.messages", &input).await?;
        messages.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    messages.reverse();
    Ok(messages)
}

/// The messages as a timeline.
pub(crate) fn print(messages: &[Message], output: &mut Output) -> Result<(), Failure> {
    if messages.is_empty() {
        output.talk("nothing was said there yet");
    }
    for line in timeline::lines(messages, columns()) {
        output.line(&line)?;
    }
    Ok(())
}

async fn list(client: &Client, output: &mut Output) -> Result<u8, Failure> {
    let list: RoomList = client.call("room.list", &Empty {}).await?;
    if output.is_json() {
        output.json(&list)?;
        return Ok(0);
    }
    let mut table = Table::new(&["ROOM", "KIND", "MESSAGES", "MADE", "TITLE"]);
    for room in &list.items {
        let kind = match room.kind {
            RoomKind::Main => "main",
            RoomKind::Task => "task",
            RoomKind::Worktree => "worktree",
            RoomKind::Direct => "direct",
            RoomKind::Channel => "channel",
        };
        let (id, made) = (room.room_id.to_string(), time::day_and_clock(room.created_at));
        table.row(&[&id, kind, &room.messages.to_string(), &made, &room.title]);
    }
    table.print(output)?;
    Ok(0)
}
