//! The end of a delivery that did not arrive: its room is told, and a person may send it again or drop it.

use rallypoint_model::command::Outcome;
use rallypoint_model::delivery::{DeliveryStatus, DeliveryTrigger, QueuedDelivery};
use rallypoint_model::ids::{DeliveryId, RoomId, TaskId};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use serde_json::json;

use super::delivery::{Moved, REQUESTER_RESET};
use super::{Deciding, Post, Voice};
use crate::state::{Delivery, TurnCause};

impl Deciding<'_, '_> {
    /// Ends a delivery that will not be offered again by itself, and tells its room, with a turn of its main agent
    /// where it was given up.
    pub(crate) fn give_up(&mut self, id: DeliveryId, trigger: DeliveryTrigger, moved: Moved) {
        if !self.move_delivery(id, trigger, moved) {
            return;
        }
        let Some(delivery) = self.state.deliveries.get(&id).cloned() else { return };
        let ambiguous = delivery.status == DeliveryStatus::Ambiguous;
        let what = match delivery.status {
            DeliveryStatus::Ambiguous => "may or may not have reached it",
            DeliveryStatus::Expired => "did not reach it in time",
            DeliveryStatus::Discarded => "was not sent",
            DeliveryStatus::Failed
            | DeliveryStatus::Pending
            | DeliveryStatus::Offered
            | DeliveryStatus::Consumed
            | DeliveryStatus::Suspended => "did not reach it",
        };
        let reason = delivery.reason.clone().unwrap_or_default();
        let why = if reason == REQUESTER_RESET { "its room was reset".to_owned() } else { reason.clone() };
        let kept = match delivery.run_id {
            Some(run_id) => format!(" The full result: `rally result get {run_id}`."),
            None => String::new(),
        };
        let next = if ambiguous {
            format!(
                "It is not sent again by itself: look there, then `rally delivery retry {id}` or `rally delivery discard {id}`."
            )
        } else {
            format!("`rally delivery retry {id}` sends it again.")
        };
        let text = format!(
            "A message for {} {what}: {why}. It is kept here.{kept} {next}",
            delivery.conversation.words()
        );
        let result =
            delivery.run_id.and_then(|id| self.state.runs.get(&id)).and_then(|run| run.result.clone());
        self.post(Post {
            room_id: self.room_of_end(&delivery),
            speaker: Voice::System,
            text,
            source: "system".to_owned(),
            in_reply_to: Some(delivery.message_id),
            task_id: delivery.task_id,
            metadata: json!({
                "deliveryId": id,
                "deliveryStatus": delivery.status,
                "reason": reason,
                "messageId": delivery.message_id,
                "taskId": delivery.task_id,
                "runId": delivery.run_id,
                "result": result,
            }),
            delivery_key: Some(format!("delivery_end|{id}|{}", delivery.status.as_str())),
            turn: (!ambiguous).then_some(TurnCause::DeliveryGivenUp { delivery_id: id }),
        });
    }

    /// The room that asked, or the main room where that was reset since.
    fn room_of_end(&self, delivery: &Delivery) -> RoomId {
        let over = self
            .state
            .rooms
            .get(&delivery.room_id)
            .is_some_and(|room| room.incarnation > delivery.incarnation);
        let main = self.state.world.as_ref().map(|world| world.main_room_id);
        main.filter(|_| over).unwrap_or(delivery.room_id)
    }

    /// Drops what waits for a room's conversation that is over.
    pub(crate) fn discard_earlier(&mut self, room_id: RoomId) {
        for id in self.waiting(|delivery| delivery.room_id == room_id) {
            self.give_up(id, DeliveryTrigger::Discard, Moved::why(REQUESTER_RESET));
        }
    }

    /// Drops what waits for a task whose content goes; its text goes too, so its room is not told.
    pub(crate) fn discard_purged(&mut self, task_id: TaskId) {
        for id in self.waiting(|delivery| delivery.task_id == Some(task_id)) {
            self.move_delivery(id, DeliveryTrigger::Discard, Moved::why("task_purged"));
        }
    }

    fn waiting(&self, which: impl Fn(&Delivery) -> bool) -> Vec<DeliveryId> {
        self.state
            .open_deliveries()
            .filter(|delivery| delivery.status != DeliveryStatus::Offered && which(delivery))
            .map(|delivery| delivery.id)
            .collect()
    }

    fn known_delivery(&self, id: DeliveryId) -> Result<Delivery, Refusal> {
        self.state.deliveries.get(&id).cloned().ok_or_else(|| {
            Refusal::not_found("delivery", id).with_hint("`rally delivery list` shows those there are")
        })
    }

    /// A person wants a message sent again. That is another delivery. Where nobody can tell what became of the first
    /// one it has the key of the first, so that a sink that takes keys still has it once.
    pub(crate) fn retry_delivery(&mut self, id: DeliveryId, by: &str) -> Result<Outcome, Refusal> {
        let delivery = self.known_delivery(id)?;
        if let Some(later) = delivery.again_as {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("it was sent again before, as `{later}`"),
            )
            .with_hint(format!("`rally delivery show {later}`")));
        }
        let conflict = |message: String| Err(Refusal::new(RefusalCode::Conflict, message));
        match delivery.status {
            DeliveryStatus::Consumed => return conflict("it has arrived".to_owned()),
            DeliveryStatus::Pending | DeliveryStatus::Offered => {
                return conflict("it is on its way already".to_owned());
            }
            DeliveryStatus::Suspended => {
                let why = delivery.reason.unwrap_or_default();
                return Err(Refusal::new(RefusalCode::Conflict, format!("nothing can be sent there: {why}"))
                    .with_hint(
                        "it goes by itself once the channel is configured and the daemon started anew",
                    ));
            }
            DeliveryStatus::Ambiguous
            | DeliveryStatus::Failed
            | DeliveryStatus::Expired
            | DeliveryStatus::Discarded => {}
        }
        let Some(text) = delivery.text.clone().filter(|text| !text.trim().is_empty()) else {
            return conflict("its text is gone".to_owned());
        };
        let ambiguous = delivery.status == DeliveryStatus::Ambiguous;
        if ambiguous {
            let why = Moved::why(format!("{by} sent it again"));
            self.move_delivery(id, DeliveryTrigger::Discard, why);
        }
        let room = self.state.rooms.get(&delivery.room_id);
        let delivery_id = DeliveryId(self.context.ids.next_uuid());
        let queued = QueuedDelivery {
            delivery_id,
            delivery_key: format!(
                "channel|{}|{}|again|{id}",
                delivery.message_id,
                delivery.conversation.words()
            ),
            sink_key: if ambiguous { delivery.sink_key } else { delivery_id },
            room_id: delivery.room_id,
            incarnation: room.map_or(delivery.incarnation, |room| room.incarnation),
            place: room.map_or(delivery.place, |room| room.messages),
            conversation: delivery.conversation,
            message_id: delivery.message_id,
            text,
            reply_to: delivery.reply_to,
            task_id: delivery.task_id,
            run_id: delivery.run_id,
            again_of: Some(id),
            deadline_at: self.delivery_deadline(),
        };
        self.queue_delivery(queued);
        Ok(Outcome::Delivery { delivery_id })
    }

    /// A person gives a delivery up.
    pub(crate) fn discard_delivery(
        &mut self,
        id: DeliveryId,
        by: &str,
        reason: &str,
    ) -> Result<Outcome, Refusal> {
        let delivery = self.known_delivery(id)?;
        match delivery.status {
            DeliveryStatus::Pending | DeliveryStatus::Suspended | DeliveryStatus::Ambiguous => {
                let reason =
                    if reason.trim().is_empty() { String::new() } else { format!(": {}", reason.trim()) };
                self.give_up(id, DeliveryTrigger::Discard, Moved::why(format!("given up by {by}{reason}")));
                Ok(Outcome::Done)
            }
            DeliveryStatus::Discarded => Ok(Outcome::Done),
            DeliveryStatus::Offered => Err(Refusal {
                code: RefusalCode::Conflict,
                message: "it was offered and can't be called back".to_owned(),
                hint: Some("wait for the channel's answer, then try again".to_owned()),
                retryable: true,
            }),
            status @ (DeliveryStatus::Consumed | DeliveryStatus::Failed | DeliveryStatus::Expired) => {
                Err(Refusal::new(RefusalCode::Conflict, format!("it has ended as `{}`", status.as_str())))
            }
        }
    }
}
