//! Messages for platform conversations: queued with the message, offered in order, settled by what the sink says.
//!
//! An offer is committed before anything is sent. What the sink says of it is taken once, by the number of the offer.

use rallypoint_model::command::Outcome;
use rallypoint_model::delivery::{
    DeliveryStatus, DeliveryTrigger, MovedDelivery, QueuedDelivery, SinkAnswer,
};
use rallypoint_model::event::{Aggregate, Event, Scope};
use rallypoint_model::ids::DeliveryId;
use rallypoint_model::message::Message;
use rallypoint_model::time::Timestamp;

use super::{Deciding, UniqueKeys};
use crate::delivery_machine;
use crate::state::Delivery;

/// What a pause grows by from one failed attempt to the next.
const FAILED_FACTOR: i64 = 5;
/// What a pause grows by while a sink stays busy or away.
const BUSY_FACTOR: i64 = 2;
/// Longest pause before a busy sink is asked again that did not say when it wants to be.
const BUSY_PAUSE_MAX_MS: i64 = 60_000;
/// Longest pause that a sink can ask for.
const ASKED_PAUSE_MAX_MS: i64 = 60 * 60 * 1_000;
const HOUR_MS: i64 = 60 * 60 * 1_000;

/// Why everything of an earlier incarnation is dropped.
pub(crate) const REQUESTER_RESET: &str = "requester_reset";

/// What a move changes beside the status.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moved {
    pub(crate) offers: Option<u32>,
    pub(crate) attempts: Option<u32>,
    pub(crate) waits: Option<u32>,
    pub(crate) takes_key: Option<bool>,
    pub(crate) next_at: Option<Timestamp>,
    pub(crate) receipt: Option<String>,
    pub(crate) warning: Option<String>,
    pub(crate) reason: Option<String>,
}

impl Moved {
    pub(crate) fn why(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }
}

impl Deciding<'_, '_> {
    /// Queues a main agent's words for the conversation that they belong to, where there is one. Blank words are sent
    /// nowhere.
    pub(crate) fn queue_for_conversation(&mut self, message: &Message) {
        let Some(room) = self.state.rooms.get(&message.room_id) else { return };
        let task = message.task_id.and_then(|id| self.state.tasks.get(&id));
        // What belongs to a request goes where the request came from, whatever the room is bound to now.
        let (conversation, reply_to) = match task {
            Some(task) if task.origin_room_id == room.id && !self.state.is_outlived(task) => {
                (task.conversation.clone(), task.platform_message_id.clone())
            }
            Some(_) | None => (room.conversation.clone(), None),
        };
        let Some(conversation) = conversation else { return };
        if message.text.trim().is_empty() {
            return;
        }
        let run_id = task.and_then(|task| {
            let runs = task.runs.iter().rev().filter_map(|id| self.state.runs.get(id));
            runs.filter(|run| run.result.is_some()).map(|run| run.id).next()
        });
        let delivery_id = DeliveryId(self.context.ids.next_uuid());
        let queued = QueuedDelivery {
            delivery_id,
            delivery_key: format!("channel|{}|{}", message.id, conversation.words()),
            sink_key: delivery_id,
            room_id: room.id,
            incarnation: room.incarnation,
            place: room.messages,
            conversation,
            message_id: message.id,
            text: message.text.clone(),
            reply_to,
            task_id: message.task_id,
            run_id,
            again_of: None,
            deadline_at: self.delivery_deadline(),
        };
        self.queue_delivery(queued);
    }

    pub(crate) fn delivery_deadline(&self) -> Timestamp {
        let hours = i64::try_from(self.context.limits.delivery_deadline_hours).unwrap_or(i64::MAX);
        self.now().plus(hours.saturating_mul(HOUR_MS))
    }

    pub(crate) fn queue_delivery(&mut self, queued: QueuedDelivery) {
        let known = self.state.keys.contains_key(&queued.delivery_key);
        if known && self.context.unique_keys == UniqueKeys::Enforced {
            return;
        }
        let scope = Scope { task_id: queued.task_id, room_id: Some(queued.room_id), ..Scope::default() };
        self.emit(Aggregate::Room(queued.room_id), scope, Event::DeliveryQueued(queued));
    }

    /// Moves a delivery through its table; an illegal move is recorded and changes nothing.
    pub(crate) fn move_delivery(&mut self, id: DeliveryId, trigger: DeliveryTrigger, moved: Moved) -> bool {
        let Some(delivery) = self.state.deliveries.get(&id) else { return false };
        let from = delivery.status;
        let scope = Scope { task_id: delivery.task_id, room_id: Some(delivery.room_id), ..Scope::default() };
        let aggregate = Aggregate::Room(delivery.room_id);
        let Some(to) = delivery_machine::next(from, trigger) else {
            let refused = Event::TriggerRefused {
                machine: "delivery".to_owned(),
                state: from.as_str().to_owned(),
                trigger: format!("{trigger:?}"),
            };
            self.emit(aggregate, scope, refused);
            return false;
        };
        let event = Event::DeliveryMoved(MovedDelivery {
            delivery_id: id,
            from,
            to,
            trigger,
            offers: moved.offers.unwrap_or(delivery.offers),
            attempts: moved.attempts.unwrap_or(delivery.attempts),
            waits: moved.waits.unwrap_or(delivery.waits),
            takes_key: moved.takes_key.unwrap_or(delivery.takes_key),
            next_at: moved.next_at,
            receipt: moved.receipt,
            warning: moved.warning,
            reason: moved.reason,
        });
        self.emit(aggregate, scope, event);
        true
    }

    /// Offers what is first in its conversation and due; holds back what no channel can take.
    pub(crate) fn offer(&mut self) -> bool {
        let now = self.now();
        let mut moves: Vec<(DeliveryId, DeliveryTrigger, Moved)> = Vec::new();
        for delivery in self.state.open_deliveries() {
            match (delivery.status, self.state.usable_channel(&delivery.conversation.channel)) {
                (DeliveryStatus::Pending, Err(why)) => {
                    moves.push((delivery.id, DeliveryTrigger::Suspend, Moved::why(why)));
                }
                (DeliveryStatus::Suspended, Ok(_)) => {
                    moves.push((delivery.id, DeliveryTrigger::Resume, Moved::default()));
                }
                _ => {}
            }
        }
        if moves.is_empty() {
            for head in self.state.heads() {
                let facts = self.state.usable_channel(&head.conversation.channel);
                let due = head.next_at <= now && now < head.deadline_at;
                if let (DeliveryStatus::Pending, true, Ok(facts)) = (head.status, due, facts) {
                    let moved = Moved {
                        offers: Some(head.offers.saturating_add(1)),
                        takes_key: Some(facts.takes_key),
                        ..Moved::default()
                    };
                    moves.push((head.id, DeliveryTrigger::Offer, moved));
                }
            }
        }
        let any = !moves.is_empty();
        for (id, trigger, moved) in moves {
            if trigger == DeliveryTrigger::Offer {
                self.state.offered_here.insert(id);
            }
            self.move_delivery(id, trigger, moved);
        }
        any
    }

    /// Takes in what a sink said of an offer, once.
    pub(crate) fn delivery_answered(&mut self, id: DeliveryId, offer: u32, answer: &SinkAnswer) -> Outcome {
        let Some(delivery) = self.state.deliveries.get(&id).cloned() else { return Outcome::Stale };
        let receipt = matches!(answer, SinkAnswer::Receipt { .. });
        let awaited = match delivery.status {
            DeliveryStatus::Offered => true,
            // A late receipt settles what nobody could tell.
            DeliveryStatus::Ambiguous => receipt,
            DeliveryStatus::Pending
            | DeliveryStatus::Consumed
            | DeliveryStatus::Failed
            | DeliveryStatus::Expired
            | DeliveryStatus::Suspended
            | DeliveryStatus::Discarded => false,
        };
        if !awaited || delivery.offers != offer {
            return Outcome::Stale;
        }
        self.state.offered_here.remove(&id);
        let room = self.state.rooms.get(&delivery.room_id);
        let over = room.is_some_and(|room| room.incarnation > delivery.incarnation);
        self.settle_offer(&delivery, answer, over);
        // A sink that did not take it is not asked again for a conversation that is over.
        let returned = self.state.deliveries.get(&id).map(|delivery| delivery.status);
        if returned == Some(DeliveryStatus::Pending) && over {
            self.give_up(id, DeliveryTrigger::Discard, Moved::why(REQUESTER_RESET));
        }
        Outcome::Done
    }

    /// `over` says that the conversation that it belongs to was reset, so that it is not offered again.
    fn settle_offer(&mut self, delivery: &Delivery, answer: &SinkAnswer, over: bool) {
        let limits = self.context.limits;
        let now = self.now();
        let id = delivery.id;
        let attempts = delivery.attempts.saturating_add(1);
        let used_up = attempts >= limits.delivery_attempts;
        let pause =
            growing(limits.delivery_backoff_ms, FAILED_FACTOR, attempts, limits.delivery_backoff_max_ms);
        let counted = |reason: &str| Moved {
            attempts: Some(attempts),
            waits: Some(0),
            next_at: Some(now.plus(pause)),
            reason: Some(reason.to_owned()),
            ..Moved::default()
        };
        let limit = limits.delivery_attempts;
        match answer {
            SinkAnswer::Receipt { id: receipt, warning } => {
                let moved = Moved {
                    attempts: Some(attempts),
                    receipt: receipt.clone(),
                    warning: warning.clone(),
                    ..Moved::default()
                };
                self.move_delivery(id, DeliveryTrigger::Consume, moved);
            }
            SinkAnswer::Busy { why, retry_after_ms } => {
                let waits = delivery.waits.saturating_add(1);
                let own = growing(limits.delivery_backoff_ms, BUSY_FACTOR, waits, BUSY_PAUSE_MAX_MS);
                let pause = retry_after_ms.map_or(own, |asked| asked.clamp(0, ASKED_PAUSE_MAX_MS));
                let moved = Moved {
                    waits: Some(waits),
                    next_at: Some(now.plus(pause)),
                    reason: Some(why.clone()),
                    ..Moved::default()
                };
                self.move_delivery(id, DeliveryTrigger::Returned, moved);
            }
            SinkAnswer::Refused { why } => self.give_up(id, DeliveryTrigger::Fail, counted(why)),
            SinkAnswer::Failed { why } if used_up => {
                let why = format!("{why} ({attempts}/{limit} attempts, the limit is `deliveryAttempts`)");
                self.give_up(id, DeliveryTrigger::Fail, counted(&why));
            }
            SinkAnswer::Failed { why } => {
                self.move_delivery(id, DeliveryTrigger::Returned, counted(why));
            }
            SinkAnswer::Unknown { why } if delivery.takes_key && !used_up && !over => {
                self.move_delivery(id, DeliveryTrigger::Returned, counted(why));
            }
            SinkAnswer::Unknown { why } => {
                self.give_up(id, DeliveryTrigger::LoseTrack, counted(why));
            }
        }
    }

    /// What an earlier daemon offered may have arrived or not, where its sink takes no key.
    pub(crate) fn lose_track(&mut self) -> bool {
        let lost = self
            .state
            .open_deliveries()
            .find(|delivery| delivery.status == DeliveryStatus::Offered && !self.state.may_be_sent(delivery));
        let Some((id, attempts)) = lost.map(|delivery| (delivery.id, delivery.attempts.saturating_add(1)))
        else {
            return false;
        };
        let why = "the daemon ended between the offer and the receipt, and the channel takes no key";
        self.give_up(id, DeliveryTrigger::LoseTrack, Moved { attempts: Some(attempts), ..Moved::why(why) });
        true
    }

    /// Gives up what did not arrive in time.
    pub(crate) fn expire_deliveries(&mut self) {
        let now = self.now();
        let hours = self.context.limits.delivery_deadline_hours;
        let due: Vec<(DeliveryId, Option<String>)> = self
            .state
            .open_deliveries()
            .filter(|delivery| delivery.status != DeliveryStatus::Offered && delivery.deadline_at <= now)
            .map(|delivery| (delivery.id, delivery.reason.clone()))
            .collect();
        for (id, last) in due {
            let last = last.map(|last| format!(": {last}")).unwrap_or_default();
            let why = format!("not delivered within {hours} h (the limit is `deliveryDeadlineHours`){last}");
            self.give_up(id, DeliveryTrigger::Expire, Moved::why(why));
        }
    }

    /// Gives open deliveries back the time in which no daemon was up.
    pub(crate) fn extend_deliveries(&mut self, away_ms: i64) {
        if away_ms <= 0 {
            return;
        }
        let open: Vec<(DeliveryId, Scope, Timestamp)> = self
            .state
            .open_deliveries()
            .map(|delivery| {
                let scope =
                    Scope { task_id: delivery.task_id, room_id: Some(delivery.room_id), ..Scope::default() };
                (delivery.id, scope, delivery.deadline_at.plus(away_ms))
            })
            .collect();
        for (delivery_id, scope, deadline_at) in open {
            let Some(room_id) = scope.room_id else { continue };
            self.emit(Aggregate::Room(room_id), scope, Event::DeliveryExtended { delivery_id, deadline_at });
        }
    }
}

/// The pause before the attempt after this many: `base`, then `factor` times as long each time, at most `most`.
fn growing(base: i64, factor: i64, count: u32, most: i64) -> i64 {
    let grown = factor.saturating_pow(count.saturating_sub(1)).saturating_mul(base.max(0));
    grown.clamp(0, most.max(0))
}

#[cfg(test)]
mod tests {
    use rallypoint_model::ids::IdSource;
    use rallypoint_model::limits::Limits;
    use rallypoint_model::money::PriceTable;
    use serde_json::json;

    use super::*;
    use crate::changes::Changes;
    use crate::decide::{Context, NoSecrets};
    use crate::state::{Room, State};

    struct Ids(u128);

    impl IdSource for Ids {
        fn next_uuid(&mut self) -> uuid::Uuid {
            self.0 += 1;
            uuid::Uuid::from_u128(self.0)
        }
    }

    #[test]
    fn blank_words_are_sent_nowhere() {
        let id = uuid::Uuid::from_u128(1);
        let room: Room = serde_json::from_value(json!({
            "id": id, "kind": "channel", "title": "team", "incarnation": 1, "messages": 1, "createdAt": 1,
            "mailbox": [], "sessionId": null, "conversation": { "channel": "hook", "peer": "team" },
        }))
        .unwrap();
        for (text, sent) in [("", 0), (" \n\t", 0), ("ready", 1)] {
            let mut state = State::default();
            state.rooms.insert(room.id, room.clone());
            let message: Message = serde_json::from_value(json!({
                "id": id, "roomId": id, "entityId": id, "speaker": "main_agent", "name": "main", "text": text,
                "source": "main", "inReplyTo": null, "taskId": null, "metadata": {}, "createdAt": 1,
            }))
            .unwrap();
            let (mut ids, limits, mut changes) = (Ids(1), Limits::default(), Changes::default());
            let mut context = Context {
                now: Timestamp(1),
                ids: &mut ids,
                limits: &limits,
                prices: &PriceTable::default(),
                router: rallypoint_model::routing::RouterSwitch::On,
                funnel: &NoSecrets,
                unique_keys: UniqueKeys::Enforced,
            };
            let mut deciding = Deciding { state: &mut state, context: &mut context, changes: &mut changes };
            deciding.queue_for_conversation(&message);
            // The same message again is the same delivery.
            deciding.queue_for_conversation(&message);
            assert_eq!(state.deliveries.len(), sent, "{text:?}");
        }
    }

    #[test]
    fn pauses_grow_to_their_limit_and_stay_there() {
        let pauses: Vec<i64> = (1..=7).map(|count| growing(5_000, FAILED_FACTOR, count, 600_000)).collect();
        assert_eq!(pauses, [5_000, 25_000, 125_000, 600_000, 600_000, 600_000, 600_000]);
        assert_eq!(growing(5_000, FAILED_FACTOR, u32::MAX, 600_000), 600_000);
        assert_eq!(growing(-1, FAILED_FACTOR, 1, 600_000), 0);
    }
}
