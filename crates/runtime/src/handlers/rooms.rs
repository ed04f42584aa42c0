//! Rooms and the deliveries to their conversations.

use std::ops::Bound;

use rallypoint_engine::state::Delivery;
use rallypoint_model::command::{Command, CreateRoom, Outcome, SayInRoom};
use rallypoint_model::ids::{DeliveryId, RoomId};
use rallypoint_model::message::Message;
use rallypoint_model::refusal::Refusal;
use rallypoint_ops::Problem;
use rallypoint_ops::rooms::{
    ActiveList, CreateRoomInput, DeliveryList, DeliveryView, DiscardDeliveryInput, ListDeliveriesInput,
    ListRoomsInput, ResetRoomInput, RetryDeliveryInput, RoomProgressInput, SaidView, SayInput,
};
use rallypoint_ops::types::{MessagePage, RoomList, RoomMessagesInput, RoomView};
use uuid::Uuid;

use super::{PAGE, PAGE_MAX, name, room_id};
use crate::daemon::Shared;
use crate::views;

pub(crate) async fn create(shared: &Shared, input: CreateRoomInput) -> Result<RoomView, Problem> {
    let command = Command::CreateRoom(CreateRoom {
        room_id: RoomId(Uuid::now_v7()),
        title: input.title.unwrap_or_default(),
        kind: input.kind,
        conversation: input.conversation,
        idempotency_key: input.idempotency_key,
    });
    match shared.decider.decide(command).await? {
        Outcome::Room { room_id } => {
            if let Some(mode) = input.progress {
                shared.decider.decide(Command::SetProgress { room_id, mode, by: name(None) }).await?;
            }
            view(shared, room_id).await
        }
        other => Err(unexpected(&other)),
    }
}

/// The active sub-agents of a room.
pub(crate) async fn active(shared: &Shared, text: &str) -> Result<ActiveList, Problem> {
    let room_id = room_id(shared, text).await?;
    shared.decider.look(move |state| views::active(state, room_id)).await.map_err(Problem::from)
}

pub(crate) async fn progress(shared: &Shared, input: RoomProgressInput) -> Result<RoomView, Problem> {
    let room_id = room_id(shared, &input.room_id).await?;
    let by = name(input.by);
    shared.decider.decide(Command::SetProgress { room_id, mode: input.mode, by }).await?;
    view(shared, room_id).await
}

pub(crate) async fn get(shared: &Shared, text: &str) -> Result<RoomView, Problem> {
    let room_id = room_id(shared, text).await?;
    view(shared, room_id).await
}

pub(crate) async fn reset(shared: &Shared, input: ResetRoomInput) -> Result<RoomView, Problem> {
    let room_id = room_id(shared, &input.room_id).await?;
    shared.decider.decide(Command::ResetRoom { room_id, by: name(input.by) }).await?;
    view(shared, room_id).await
}

pub(crate) async fn say(shared: &Shared, input: SayInput) -> Result<SaidView, Problem> {
    let room_id = room_id(shared, &input.room_id).await?;
    let command = Command::SayInRoom(SayInRoom {
        room_id,
        text: input.text,
        by: name(input.sender),
        source: input.source.unwrap_or_else(|| "api".to_owned()),
        platform_message_id: input.platform_message_id,
        idempotency_key: input.idempotency_key,
    });
    match shared.decider.decide(command).await? {
        Outcome::Message { message_id, repeated } => Ok(SaidView { message_id, repeated }),
        other => Err(unexpected(&other)),
    }
}

async fn view(shared: &Shared, room_id: RoomId) -> Result<RoomView, Problem> {
    let view = shared
        .decider
        .look(move |state| state.rooms.get(&room_id).map(|room| views::room(state, room)))
        .await?;
    view.ok_or_else(|| Refusal::not_found("room", room_id).into())
}

/// Messages of a room, newest first: those since its last reset, unless all are asked for, or those of one task.
pub(crate) async fn messages(shared: &Shared, input: RoomMessagesInput) -> Result<MessagePage, Problem> {
    let room_id = room_id(shared, &input.room_id).await?;
    let limit = input.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let before = position(input.cursor.as_deref())?;
    let task_id = input.task_id;
    let rows = shared.readers.read(move |reader| reader.messages(room_id, task_id, before, limit)).await?;
    let whole = input.all || task_id.is_some();
    let since = shared
        .decider
        .look(move |state| state.rooms.get(&room_id).map_or(1, |room| room.incarnation))
        .await?;
    // Newest first, so the first message from before the reset ends the list.
    let full = rows.len() >= limit as usize;
    let found = rows.len();
    let rows: Vec<(i64, Message)> =
        rows.into_iter().take_while(|(_, message)| whole || message.incarnation >= since).collect();
    let next_cursor =
        rows.last().filter(|_| full && rows.len() == found).map(|(position, _)| position.to_string());
    Ok(MessagePage { items: rows.into_iter().map(|(_, message)| message).collect(), next_cursor })
}

fn position(cursor: Option<&str>) -> Result<Option<i64>, Problem> {
    match cursor {
        None => Ok(None),
        Some(text) => text
            .parse()
            .map(Some)
            .map_err(|_| Problem::invalid(format!("`{text}` is no cursor of a list of messages"))),
    }
}

/// Rooms by their ids, which grow with the time at which they were made.
pub(crate) async fn list(shared: &Shared, input: ListRoomsInput) -> Result<RoomList, Problem> {
    let after: Option<RoomId> = match input.cursor.as_deref() {
        None => None,
        Some(text) => Some(
            text.parse()
                .map_err(|_| Problem::invalid(format!("`{text}` is no cursor of a list of rooms")))?,
        ),
    };
    let limit = input.limit.map_or(usize::MAX, |limit| limit.clamp(1, PAGE_MAX) as usize);
    let list = shared.decider.look(move |state| {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rows = state.rooms.range((start, Bound::Unbounded)).map(|(_, room)| views::room(state, room));
        let items: Vec<_> = rows.by_ref().take(limit).collect();
        let more = rows.next().is_some();
        let next_cursor = items.last().filter(|_| more).map(|room| room.room_id.to_string());
        RoomList { items, next_cursor }
    });
    Ok(list.await?)
}

pub(crate) async fn deliveries(shared: &Shared, input: ListDeliveriesInput) -> Result<DeliveryList, Problem> {
    let room_id = match &input.room_id {
        Some(text) => Some(room_id(shared, text).await?),
        None => None,
    };
    let limit = input.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX) as usize;
    let list = shared
        .decider
        .look(move |state| {
            let mut found: Vec<&Delivery> = state
                .deliveries
                .values()
                .filter(|delivery| room_id.is_none_or(|id| delivery.room_id == id))
                .filter(|delivery| match input.status {
                    Some(status) => delivery.status == status,
                    None => input.all || delivery.status.needs_somebody_or_waits(),
                })
                .collect();
            found.sort_by_key(|delivery| std::cmp::Reverse((delivery.queued_at, delivery.id)));
            DeliveryList { items: found.into_iter().take(limit).map(delivery_view).collect() }
        })
        .await?;
    Ok(list)
}

pub(crate) async fn delivery(shared: &Shared, id: DeliveryId) -> Result<DeliveryView, Problem> {
    let view = shared.decider.look(move |state| state.deliveries.get(&id).map(delivery_view)).await?;
    view.ok_or_else(|| {
        Refusal::not_found("delivery", id).with_hint("`rally delivery list` shows those there are").into()
    })
}

pub(crate) async fn retry(shared: &Shared, input: RetryDeliveryInput) -> Result<DeliveryView, Problem> {
    let command = Command::RetryDelivery { delivery_id: input.delivery_id, by: name(input.by) };
    match shared.decider.decide(command).await? {
        Outcome::Delivery { delivery_id } => delivery(shared, delivery_id).await,
        other => Err(unexpected(&other)),
    }
}

pub(crate) async fn discard(shared: &Shared, input: DiscardDeliveryInput) -> Result<DeliveryView, Problem> {
    let delivery_id = input.delivery_id;
    let reason = input.reason.unwrap_or_default();
    shared.decider.decide(Command::DiscardDelivery { delivery_id, by: name(input.by), reason }).await?;
    delivery(shared, delivery_id).await
}

fn unexpected(outcome: &Outcome) -> Problem {
    Problem::internal(format!("the decider answered with something else: {outcome:?}"))
}

fn delivery_view(delivery: &Delivery) -> DeliveryView {
    let waits = delivery.status.is_open();
    DeliveryView {
        delivery_id: delivery.id,
        sink_key: delivery.sink_key,
        room_id: delivery.room_id,
        incarnation: delivery.incarnation,
        conversation: delivery.conversation.clone(),
        message_id: delivery.message_id,
        reply_to: delivery.reply_to.clone(),
        task_id: delivery.task_id,
        run_id: delivery.run_id,
        status: delivery.status,
        reason: delivery.reason.clone(),
        attempts: delivery.attempts,
        waits: delivery.waits,
        takes_key: delivery.takes_key,
        receipt: delivery.receipt.clone(),
        warning: delivery.warning.clone(),
        next_at: waits.then_some(delivery.next_at),
        deadline_at: waits.then_some(delivery.deadline_at),
        again_as: delivery.again_as,
        queued_at: delivery.queued_at,
        moved_at: delivery.moved_at,
    }
}
