//! What an event is about.

use serde::{Deserialize, Serialize};

use crate::ids::{RoomId, RunId, SessionId, TaskId, WorldId};

/// What an event belongs to; versions count within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "aggregate", content = "aggregateId", rename_all = "snake_case")]
pub enum Aggregate {
    /// The world.
    World(WorldId),
    /// A room.
    Room(RoomId),
    /// A task.
    Task(TaskId),
    /// A session with its runs and generations.
    Session(SessionId),
}

/// Ids that an event concerns, for filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// The task.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub task_id: Option<TaskId>,
    /// The room.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub room_id: Option<RoomId>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_id: Option<SessionId>,
    /// The run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub run_id: Option<RunId>,
}
