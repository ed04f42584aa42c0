//! Rooms: made, and spoken in.

use rallypoint_model::command::Command;
use rallypoint_model::ids::RoomId;
use rallypoint_ops::Problem;
use rallypoint_ops::rooms::{CreateRoomInput, RoomRef, SayInput};
use rallypoint_ops::types::Empty;
use uuid::Uuid;

use super::name;
use crate::daemon::Shared;

/// Makes a room.
pub(super) async fn create(shared: &Shared, input: CreateRoomInput) -> Result<RoomRef, Problem> {
    let room_id = RoomId(Uuid::now_v7());
    shared.decider.decide(Command::CreateRoom { room_id, room_kind: input.kind, title: input.title }).await?;
    Ok(RoomRef { room_id })
}

/// Says something in a room.
pub(super) async fn say(shared: &Shared, input: SayInput) -> Result<Empty, Problem> {
    let room_id = super::room_id(shared, &input.room_id).await?;
    let command = Command::SayInRoom {
        room_id,
        text: input.text,
        by: name(input.by),
        idempotency_key: input.idempotency_key,
    };
    shared.decider.decide(command).await?;
    Ok(Empty {})
}
