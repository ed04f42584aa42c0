//! Input and output types of the operations on rooms and on deliveries to their conversations. Wire form: camelCase.

use rallypoint_model::channel::Conversation;
use rallypoint_model::delivery::DeliveryStatus;
use rallypoint_model::ids::{DeliveryId, EntityId, MessageId, RoomId, RunId, SessionId, TaskId};
use rallypoint_model::message::{Message, RoomKind, Speaker};
use rallypoint_model::progress::ProgressMode;
use rallypoint_model::session::SessionStatus;
use rallypoint_model::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Make a room.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateRoomInput {
    /// Its kind: `task`, `worktree` or `direct`; `channel` when it is bound to a conversation, else `direct` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RoomKind>,
    /// Its title; made of its conversation when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The platform conversation that it is bound to, for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// How its conversation hears of work that goes on; `compact` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressMode>,
    /// Same key, same room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Which rooms.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListRoomsInput {
    /// Rows at most, 500 at most; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Somebody in a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoomMember {
    /// Under which its messages stand.
    pub entity_id: EntityId,
    /// What it is.
    pub kind: Speaker,
    /// Its name in the room.
    pub name: String,
    /// The session of a sub-agent, which is listed while it works.
    pub session_id: Option<SessionId>,
    /// Whether it may read what is said there.
    pub may_read: bool,
    /// Whether it may say something there.
    pub may_write: bool,
}

/// Names a room.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoomRef {
    /// Its id; `main` names the world's own.
    pub room_id: String,
}

/// Begin a room's conversation anew.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResetRoomInput {
    /// Its id; `main` names the world's own.
    pub room_id: String,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Let a room's conversation hear of work that goes on in another way.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoomProgressInput {
    /// Its id; `main` names the world's own.
    pub room_id: String,
    /// How. Tasks that were asked for with a way of their own keep it.
    pub mode: ProgressMode,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Say something in a room, or hand in what was said on its platform.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SayInput {
    /// Its id; `main` names the world's own.
    pub room_id: String,
    /// The words.
    pub text: String,
    /// Name of the person; `user` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The platform's id of the message; the same id is the same message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform_message_id: Option<String>,
    /// Same key, same message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Where it came in; `api` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// What was said.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SaidView {
    /// Its id.
    pub message_id: MessageId,
    /// Whether it was there already.
    pub repeated: bool,
}

/// Look for words in messages.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchRoomsInput {
    /// Words that the messages hold, all of them; see [`crate::search::SearchInput`].
    pub text: String,
    /// Only in this room; `main` names the world's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<String>,
    /// Rows at most; 100 when absent, 500 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Which deliveries.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListDeliveriesInput {
    /// Only of this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<DeliveryStatus>,
    /// Only of this room; `main` names the world's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<String>,
    /// Those that have arrived too, and those that were given up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Rows at most; 100 when absent, 500 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A message on its way to a platform conversation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView {
    /// Its id.
    pub delivery_id: DeliveryId,
    /// The key that the channel gets.
    pub sink_key: DeliveryId,
    /// Its room.
    pub room_id: RoomId,
    /// The room's incarnation that it belongs to.
    pub incarnation: u32,
    /// Where it goes.
    pub conversation: Conversation,
    /// The message.
    pub message_id: MessageId,
    /// The platform's id of the message that it answers.
    pub reply_to: Option<String>,
    /// The task that it is about.
    pub task_id: Option<TaskId>,
    /// The run whose result it tells.
    pub run_id: Option<RunId>,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// Why it stands there.
    pub reason: Option<String>,
    /// Real attempts so far; a channel that was busy or not there is none.
    pub attempts: u32,
    /// Times in a row that the channel was busy or not there.
    pub waits: u32,
    /// Whether the channel takes our key; known from the first offer on.
    pub takes_key: bool,
    /// The channel's id of it.
    pub receipt: Option<String>,
    /// What went wrong after the channel had taken it.
    pub warning: Option<String>,
    /// When it is offered again at the earliest, while it waits.
    pub next_at: Option<Timestamp>,
    /// When it is given up, while it waits.
    pub deadline_at: Option<Timestamp>,
    /// The delivery that sends it again, where one does.
    pub again_as: Option<DeliveryId>,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// When it last moved.
    pub moved_at: Timestamp,
}

/// Deliveries, latest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryList {
    /// The rows.
    pub items: Vec<DeliveryView>,
}

/// Names a delivery.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeliveryRef {
    /// Its id.
    pub delivery_id: DeliveryId,
}

/// Send a message again.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryDeliveryInput {
    /// Its id.
    pub delivery_id: DeliveryId,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Give a delivery up.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiscardDeliveryInput {
    /// Its id.
    pub delivery_id: DeliveryId,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Messages that were found, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundPage {
    /// The rows.
    pub items: Vec<Message>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
}

/// One active sub-agent of a room.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveView {
    /// Its session.
    pub session_id: SessionId,
    /// Its name.
    pub label: String,
    /// Its profile.
    pub agent_type: String,
    /// Its status now; the text knows only `active` and `blocked`.
    pub status: SessionStatus,
    /// The last two segments of its work folder.
    pub workdir_tail: String,
    /// Its task.
    pub task_id: Option<TaskId>,
    /// The room that asked.
    pub origin_room_id: Option<RoomId>,
}

/// The active sub-agents of a room.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveList {
    /// The text as the room's main agent gets it; empty when nobody is active.
    pub text: String,
    /// The same as rows, in the same order.
    pub sessions: Vec<ActiveView>,
    /// Lines of this text that were made since the daemon started. It grows with changes, not with sessions.
    pub rendered_lines: u64,
}
