//! `rally room`: what was said where.

use rallypoint_client::Client;
use rallypoint_model::message::{Message, RoomKind};
use rallypoint_ops::rooms::{
    CreateRoomInput, FoundPage, ResetRoomInput, RoomProgressInput, RoomRef, SaidView, SayInput,
    SearchRoomsInput,
};
use rallypoint_ops::types::{Empty, MessagePage, RoomList, RoomMessagesInput, RoomView};
use serde_json::json;
use uuid::Uuid;

use crate::arguments::rooms::RoomVerb;
use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::run::request::person;
use crate::show::table::Table;
use crate::show::text::{Shown, columns, harmless};
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
        RoomVerb::Create(create) => {
            let input = CreateRoomInput {
                title: create.title.clone(),
                kind: create.kind.as_deref().map(|kind| match kind {
                    "task" => RoomKind::Task,
                    "worktree" => RoomKind::Worktree,
                    _ => RoomKind::Direct,
                }),
                conversation: create.conversation(),
                progress: create.progress,
                idempotency_key: None,
            };
            let room: RoomView = client.call("room.create", &input).await?;
            if output.is_json() {
                output.json(&room)?;
            } else {
                output.line(&room.room_id.to_string())?;
            }
            Ok(0)
        }
        RoomVerb::Reset { room } => {
            let room_id = resolve::room(&client, &room).await?;
            let room: RoomView = client.call("room.reset", &ResetRoomInput { room_id, by: person() }).await?;
            if output.is_json() {
                output.json(&room)?;
            } else {
                output.line(&format!(
                    "room {} begins anew; `rally room show {} --all` shows what was said before",
                    room.room_id, room.room_id
                ))?;
            }
            Ok(0)
        }
        RoomVerb::Progress { room, mode } => {
            let room_id = resolve::room(&client, &room).await?;
            let input = RoomProgressInput { room_id, mode, by: person() };
            let room: RoomView = client.call("room.progress", &input).await?;
            if output.is_json() {
                output.json(&room)?;
            } else {
                output.line(&format!("room {}: progress is {}", room.room_id, room.progress.as_str()))?;
            }
            Ok(0)
        }
        RoomVerb::Say(say) => {
            let room_id = resolve::room(&client, &say.room).await?;
            let input = SayInput {
                room_id,
                text: say.text,
                sender: say.sender.or_else(person),
                platform_message_id: say.platform_message,
                idempotency_key: Some(Uuid::new_v4().to_string()),
                source: Some("cli".to_owned()),
            };
            let said: SaidView = client.call("room.say", &input).await?;
            if output.is_json() {
                output.json(&said)?;
            } else if said.repeated {
                output.line(&format!("message {} was there already", said.message_id))?;
            } else {
                output.line(&format!("message {}", said.message_id))?;
            }
            Ok(0)
        }
        RoomVerb::Search { text, room, limit } => {
            let room_id = match &room {
                Some(room) => Some(resolve::room(&client, room).await?),
                None => None,
            };
            let input = SearchRoomsInput { text, room_id, limit: Some(limit.clamp(1, PAGE)), cursor: None };
            let mut page: FoundPage = client.call("message.search", &input).await?;
            page.items.reverse();
            if output.is_json() {
                output.json(&page)?;
            } else if page.items.is_empty() {
                output.talk("no message holds that");
            } else {
                print(&page.items, output)?;
            }
            Ok(0)
        }
        RoomVerb::Show { room, task, all, limit } => {
            let task_id = match &task {
                Some(task) => Some(resolve::task(&client, task).await?),
                None => None,
            };
            let room_id = resolve::room(&client, &room).await?;
            let room: RoomView = client.call("room.get", &RoomRef { room_id: room_id.clone() }).await?;
            let input = RoomMessagesInput { room_id, task_id, all, limit: None, cursor: None };
            let messages = messages(&client, input, limit).await?;
            if output.is_json() {
                output.json(&json!({ "room": room, "items": messages }))?;
            } else {
                head(&room, all || task_id.is_some(), output);
                print(&messages, output)?;
            }
            Ok(0)
        }
    }
}

/// What a reader should know of the room before its messages.
fn head(room: &RoomView, whole: bool, output: &mut Output) {
    if let Some(conversation) = &room.conversation {
        output.talk(&format!("bound to {}", harmless(&conversation.words(), Shown::Whole)));
    }
    if room.earlier_messages > 0 && !whole {
        output.talk(&format!(
            "{} messages from before its last reset are not shown; `--all` shows them",
            room.earlier_messages
        ));
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
