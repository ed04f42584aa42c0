//! Deliveries to sinks outside: states, triggers, and what a sink answers.

use serde::{Deserialize, Serialize};

use crate::channel::Conversation;
use crate::ids::{DeliveryId, MessageId, RoomId, RunId, SessionId, TaskId};
use crate::time::Timestamp;

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// To be offered.
    Pending,
    /// Given to the sink, not yet known to be taken.
    Offered,
    /// Taken.
    Consumed,
    /// Refused for good.
    Failed,
    /// Its deadline passed.
    Expired,
    /// Held back until a person or setting lets it go.
    Suspended,
    /// May have been taken; never sent again by itself.
    Ambiguous,
    /// Given up for a named reason.
    Discarded,
}

impl DeliveryStatus {
    /// Every status, for tables and their tests.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Offered,
        Self::Consumed,
        Self::Failed,
        Self::Expired,
        Self::Suspended,
        Self::Ambiguous,
        Self::Discarded,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Offered => "offered",
            Self::Consumed => "consumed",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Suspended => "suspended",
            Self::Ambiguous => "ambiguous",
            Self::Discarded => "discarded",
        }
    }

    /// Whether it waits for its sink, or for a person to look at it.
    pub fn needs_somebody_or_waits(self) -> bool {
        self.is_open() || self == Self::Ambiguous
    }

    /// Whether it is still to be brought to its sink by itself.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Offered | Self::Suspended)
    }
}

/// What may move a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryTrigger {
    /// It was given to the sink.
    Offer,
    /// The sink has it.
    Consume,
    /// The sink provably does not have it; it may be offered again.
    Returned,
    /// The sink refused it for good.
    Fail,
    /// Its deadline passed.
    Expire,
    /// Hold it back.
    Suspend,
    /// Let it go on.
    Resume,
    /// Nobody can tell whether the sink has it.
    LoseTrack,
    /// Give it up.
    Discard,
}

impl DeliveryTrigger {
    /// Every trigger, for tables and their tests.
    pub const ALL: [Self; 9] = [
        Self::Offer,
        Self::Consume,
        Self::Returned,
        Self::Fail,
        Self::Expire,
        Self::Suspend,
        Self::Resume,
        Self::LoseTrack,
        Self::Discard,
    ];
}

/// What came of one offer to a sink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SinkAnswer {
    /// The sink has it.
    Receipt {
        /// The sink's id of it, when it gave one.
        id: Option<String>,
        /// What went wrong after the sink had taken it. Never a reason to send it again.
        warning: Option<String>,
    },
    /// The sink takes nothing now, and did not take this: no attempt.
    Busy {
        /// What it said, or why it was not reached.
        why: String,
        /// When it wants to be asked again, in milliseconds from now.
        retry_after_ms: Option<i64>,
    },
    /// The sink will never take it.
    Refused {
        /// What it said.
        why: String,
    },
    /// The sink says that it did not take it; it may another time.
    Failed {
        /// What it said.
        why: String,
    },
    /// It was given to the sink, and nobody can tell whether the sink has it.
    Unknown {
        /// What was seen.
        why: String,
    },
}

/// One step on the way of a result whose room can not take it any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hop {
    /// The room that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<RoomId>,
    /// Its incarnation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<u32>,
    /// The session that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Name of that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `passed_over`, `queued` (the session hears it), `posted` (the room has it) or `room_only`.
    pub result: String,
    /// Why it was passed over: `requester_reset`, or words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A message that is to be brought to a platform conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedDelivery {
    /// Its id.
    pub delivery_id: DeliveryId,
    /// Unique key: this message for this recipient.
    pub delivery_key: String,
    /// The key that the sink gets. A message that is sent again because nobody can tell its fate has the one it
    /// had, so that a sink that takes keys still takes it once.
    pub sink_key: DeliveryId,
    /// The room.
    pub room_id: RoomId,
    /// The room's incarnation that it belongs to.
    pub incarnation: u32,
    /// Number of its message within the room, for the order.
    pub place: u64,
    /// Where it goes, whole.
    pub conversation: Conversation,
    /// The message.
    pub message_id: MessageId,
    /// What is sent.
    pub text: String,
    /// The platform's id of the message that it answers.
    pub reply_to: Option<String>,
    /// The task that it is about.
    pub task_id: Option<TaskId>,
    /// The run whose result it tells.
    pub run_id: Option<RunId>,
    /// The delivery that it sends again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_of: Option<DeliveryId>,
    /// When it is given up.
    pub deadline_at: Timestamp,
}

/// One move of a delivery, through its table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MovedDelivery {
    /// Which.
    pub delivery_id: DeliveryId,
    /// From.
    pub from: DeliveryStatus,
    /// To.
    pub to: DeliveryStatus,
    /// What moved it.
    pub trigger: DeliveryTrigger,
    /// Offers so far, this one included.
    pub offers: u32,
    /// Real attempts so far.
    pub attempts: u32,
    /// Times in a row that the sink was busy or not there.
    pub waits: u32,
    /// Whether the sink takes our key; known from the first offer on.
    pub takes_key: bool,
    /// When it is offered again at the earliest.
    pub next_at: Option<Timestamp>,
    /// The sink's id of it.
    pub receipt: Option<String>,
    /// What went wrong after the sink had taken it.
    pub warning: Option<String>,
    /// Why, in words; `requester_reset` for a room that was reset.
    pub reason: Option<String>,
}
