//! Deliveries to platform conversations, and where rooms stand to them.

use std::collections::BTreeMap;

use rallypoint_model::channel::{ChannelFacts, Conversation};
use rallypoint_model::delivery::{DeliveryStatus, QueuedDelivery};
use rallypoint_model::ids::{DeliveryId, MessageId, RoomId, RunId, TaskId};
use rallypoint_model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{State, Task};

/// One message for one platform conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// The key that the sink gets.
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
    /// What is sent; gone once the sink has it.
    pub text: Option<String>,
    /// The platform's id of the message that it answers.
    pub reply_to: Option<String>,
    /// The task that it is about.
    pub task_id: Option<TaskId>,
    /// The run whose result it tells.
    pub run_id: Option<RunId>,
    /// The delivery that sends it again, where one does.
    pub again_as: Option<DeliveryId>,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// Offers so far; an answer names the one that it is for.
    pub offers: u32,
    /// Real attempts so far.
    pub attempts: u32,
    /// Times in a row that the sink was busy or not there.
    pub waits: u32,
    /// Whether the sink takes our key, as it was when it was last offered.
    pub takes_key: bool,
    /// When it is offered again at the earliest.
    pub next_at: Timestamp,
    /// When it is given up.
    pub deadline_at: Timestamp,
    /// The sink's id of it.
    pub receipt: Option<String>,
    /// What went wrong after the sink had taken it.
    pub warning: Option<String>,
    /// Why it stands there, in words.
    pub reason: Option<String>,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// When it last moved.
    pub moved_at: Timestamp,
}

impl Delivery {
    /// As it is queued.
    pub(crate) fn new(queued: &QueuedDelivery, at: Timestamp) -> Self {
        Self {
            id: queued.delivery_id,
            sink_key: queued.sink_key,
            room_id: queued.room_id,
            incarnation: queued.incarnation,
            place: queued.place,
            conversation: queued.conversation.clone(),
            message_id: queued.message_id,
            text: Some(queued.text.clone()),
            reply_to: queued.reply_to.clone(),
            task_id: queued.task_id,
            run_id: queued.run_id,
            again_as: None,
            status: DeliveryStatus::Pending,
            offers: 0,
            attempts: 0,
            waits: 0,
            takes_key: false,
            next_at: at,
            deadline_at: queued.deadline_at,
            receipt: None,
            warning: None,
            reason: None,
            queued_at: at,
            moved_at: at,
        }
    }
}

impl State {
    /// The first open delivery of each conversation. Only it may be offered, so that no message overtakes another
    /// and no conversation waits for another one.
    pub fn heads(&self) -> impl Iterator<Item = &Delivery> {
        let mut heads: BTreeMap<&Conversation, &Delivery> = BTreeMap::new();
        for delivery in self.open_deliveries() {
            let head = heads.entry(&delivery.conversation).or_insert(delivery);
            if (delivery.place, delivery.id) < (head.place, head.id) {
                *head = delivery;
            }
        }
        heads.into_values()
    }

    /// A channel that can be sent to, or else why not.
    pub fn usable_channel(&self, name: &str) -> Result<&ChannelFacts, String> {
        let facts = self
            .channels
            .get(name)
            .ok_or_else(|| format!("the channel `{name}` is not in the configuration"))?;
        facts.problem.as_ref().map_or(Ok(facts), |problem| Err(problem.clone()))
    }

    /// Whether an offered message may be given to its sink: it was offered here, or the sink took its key then and
    /// takes it still.
    pub fn may_be_sent(&self, delivery: &Delivery) -> bool {
        let takes_key =
            || self.usable_channel(&delivery.conversation.channel).is_ok_and(|facts| facts.takes_key);
        self.offered_here.contains(&delivery.id) || (delivery.takes_key && takes_key())
    }

    /// Whether the conversation that asked for a task was reset since.
    pub fn is_outlived(&self, task: &Task) -> bool {
        self.rooms.get(&task.origin_room_id).is_some_and(|room| room.incarnation > task.room_incarnation)
    }
}
