//! What every sink can do.

use std::fmt::Debug;
use std::pin::Pin;

use rallypoint_model::channel::Conversation;
use rallypoint_model::delivery::SinkAnswer;
use rallypoint_model::ids::{DeliveryId, MessageId, RoomId, TaskId};
use rallypoint_model::progress::ProgressShape;
use rallypoint_model::time::Timestamp;

/// A message that is offered to a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The key of the message. A sink that takes keys has a message of the same key only once.
    pub key: DeliveryId,
    /// Where it goes, whole.
    pub conversation: Conversation,
    /// The words.
    pub text: String,
    /// The platform's id of the message that it answers.
    pub reply_to: Option<String>,
    /// Our id of the message.
    pub message_id: MessageId,
    /// Its room.
    pub room_id: RoomId,
    /// The task that it is about.
    pub task_id: Option<TaskId>,
    /// What it is there, for a progress post; `None` for a message.
    pub progress: Option<ProgressShape>,
    /// The time of this offer.
    pub at: Timestamp,
}

/// The answer in the making.
pub type Answered<'a> = Pin<Box<dyn Future<Output = SinkAnswer> + Send + 'a>>;

/// One way out.
pub trait Sink: Debug + Send + Sync {
    /// Whether a message may be offered again under its key without arriving twice.
    fn takes_key(&self) -> bool;

    /// Whether a post of ours can be edited there, by the id of its receipt.
    fn edits(&self) -> bool {
        false
    }

    /// Whether a message there can have a thread under it.
    fn threads(&self) -> bool {
        false
    }

    /// Offers a message. `Busy` and `Failed` are said only where the sink does not have it, `Refused` only where it
    /// never will; whatever leaves a doubt is `Unknown`.
    fn send(&self, outgoing: Outgoing) -> Answered<'_>;
}
