//! Progress: posts on a platform that say how work goes, and that nobody has to keep.
//!
//! They are no messages of a room. No agent sees them, no search finds them, and none holds back a message.

use serde::{Deserialize, Serialize};

use crate::channel::Conversation;
use crate::ids::{DeliveryId, MessageId, RoomId, TaskId};
use crate::task::TaskStatus;
use crate::time::Timestamp;

/// How a platform conversation hears of work that goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgressMode {
    /// One post, edited in place; none where the channel can't edit.
    #[default]
    Compact,
    /// Posts in a thread under the message that asked, where the channel has threads; else as `compact`.
    Threaded,
    /// None.
    Silent,
}

impl ProgressMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Compact, Self::Threaded, Self::Silent];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Threaded => "threaded",
            Self::Silent => "silent",
        }
    }
}

/// What a progress post is on its platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ProgressShape {
    /// A post that is edited later.
    Post,
    /// The new text of that post.
    Edit {
        /// The platform's id of it.
        post_id: String,
    },
    /// A post in a thread.
    InThread {
        /// The platform's id of the message that the thread is under; absent where the conversation is a thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        under: Option<String>,
    },
}

/// A progress post that is given to its channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferedProgress {
    /// The task that it is about.
    pub task_id: TaskId,
    /// The room that asked.
    pub room_id: RoomId,
    /// The message that asked, in that room.
    pub message_id: MessageId,
    /// Number of it within the task, from 1.
    pub edition: u32,
    /// The key that the channel gets.
    pub key: DeliveryId,
    /// What it is there.
    pub shape: ProgressShape,
    /// Where it goes, whole.
    pub conversation: Conversation,
    /// The platform's id of the message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The words.
    pub text: String,
    /// How the task stands.
    pub status: TaskStatus,
    /// Whether it may be given to the channel again without being there twice.
    pub repeatable: bool,
}

/// What became of a progress post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressResult {
    /// It is there.
    Posted,
    /// It is not there.
    Returned,
    /// Nobody can tell.
    Lost,
    /// The channel will not take such posts.
    Refused,
}

/// What became of a progress post, and when the next may follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettledProgress {
    /// The task.
    pub task_id: TaskId,
    /// Which post.
    pub edition: u32,
    /// What became of it.
    pub result: ProgressResult,
    /// The platform's id of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_id: Option<String>,
    /// When the next one may follow.
    pub next_at: Timestamp,
    /// Whether no more follow.
    pub ends: bool,
    /// Why, where it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How a room, or one task, hears of progress from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressModeSet {
    /// The room.
    pub room_id: RoomId,
    /// The task, where it is about one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// How.
    pub mode: ProgressMode,
    /// Who wants it.
    pub by: String,
}
