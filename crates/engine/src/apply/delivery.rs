//! Facts of deliveries to platform conversations.

use rallypoint_model::delivery::{DeliveryStatus, MovedDelivery};
use rallypoint_model::event::{Event, EventRecord};

use crate::changes::{Changes, RowRef};
use crate::state::{Delivery, KeyedFact, State};

pub(super) fn delivery_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    match &record.event {
        Event::DeliveryQueued(queued) => {
            let id = queued.delivery_id;
            state.keys.insert(queued.delivery_key.clone(), KeyedFact::Delivery { id });
            changes.keys.push(queued.delivery_key.clone());
            if let Some(earlier) = queued.again_of.and_then(|id| state.deliveries.get_mut(&id)) {
                earlier.again_as = Some(id);
                changes.touch(RowRef::Delivery(earlier.id));
            }
            state.deliveries.insert(id, Delivery::new(queued, record.at));
            changes.touch(RowRef::Delivery(id));
        }
        Event::DeliveryMoved(moved) => {
            if let Some(delivery) = state.deliveries.get_mut(&moved.delivery_id) {
                move_delivery(delivery, moved);
                delivery.moved_at = record.at;
                changes.touch(RowRef::Delivery(delivery.id));
            }
        }
        Event::DeliveryExtended { delivery_id, deadline_at } => {
            if let Some(delivery) = state.deliveries.get_mut(delivery_id) {
                delivery.deadline_at = *deadline_at;
                changes.touch(RowRef::Delivery(*delivery_id));
            }
        }
        _ => {}
    }
}

fn move_delivery(delivery: &mut Delivery, moved: &MovedDelivery) {
    delivery.status = moved.to;
    delivery.offers = moved.offers;
    delivery.attempts = moved.attempts;
    delivery.waits = moved.waits;
    delivery.takes_key = moved.takes_key;
    if let Some(at) = moved.next_at {
        delivery.next_at = at;
    }
    delivery.receipt = moved.receipt.clone().or_else(|| delivery.receipt.take());
    delivery.warning = moved.warning.clone().or_else(|| delivery.warning.take());
    delivery.reason.clone_from(&moved.reason);
    if moved.to == DeliveryStatus::Consumed {
        // The message row has it; here it would only be kept twice.
        delivery.text = None;
    }
}
