//! A platform that takes messages, in part or not at all, and whose answers may be lost. It keeps its own books of what
//! arrived, and judges each arrival by them.

use std::collections::{BTreeMap, BTreeSet};

use rallypoint_engine::due::Sending;
use rallypoint_engine::state::Delivery;
use rallypoint_model::channel::Conversation;
use rallypoint_model::command::Command;
use rallypoint_model::delivery::{DeliveryStatus, SinkAnswer};
use rallypoint_model::event::Event;
use rallypoint_model::ids::{DeliveryId, RoomId};
use rallypoint_model::limits::Limits;
use rallypoint_model::message::Speaker;

use super::{Counts, Fault, Simulation};
use crate::deliveries::{bound_room, world_with_hook};
use crate::world::World;

/// What a seed's platform is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// There is none: rooms are bound to nothing.
    None,
    /// It knows a message by its key.
    Keyed,
    /// It takes whatever comes.
    Plain,
}

#[derive(Debug)]
pub(super) struct Platform {
    pub(super) kind: Kind,
    /// The room that is bound to it.
    pub(super) room: Option<RoomId>,
    /// What it took, how often, by key.
    copies: BTreeMap<DeliveryId, u32>,
    /// The place of the last message that it took for the first time, by conversation.
    last_place: BTreeMap<Conversation, u64>,
    /// Offers that this daemon sent already.
    sent_here: BTreeSet<(DeliveryId, u32)>,
    /// Answers on their way to this daemon.
    on_their_way: Vec<(DeliveryId, u32, SinkAnswer)>,
    /// Offers that were out when their room was reset.
    out_at_reset: BTreeSet<(DeliveryId, u32)>,
    /// Times that a person sent something again whose fate was unknown, by key.
    sent_again: BTreeMap<DeliveryId, u32>,
}

/// The world of a seed, with its platform.
pub(super) fn world_of(kind: Kind, limits: Limits, fault: Option<Fault>) -> (World, Platform) {
    let mut platform = Platform {
        kind,
        room: None,
        copies: BTreeMap::new(),
        last_place: BTreeMap::new(),
        sent_here: BTreeSet::new(),
        on_their_way: Vec::new(),
        out_at_reset: BTreeSet::new(),
        sent_again: BTreeMap::new(),
    };
    if kind == Kind::None {
        return (World::with_limits(limits), platform);
    }
    let takes_key = kind == Kind::Keyed || fault == Some(Fault::KeysPromised);
    let mut world = world_with_hook(takes_key, limits);
    world.state.channels.values_mut().for_each(|facts| facts.edits = true);
    platform.room = Some(bound_room(&mut world, 1, "team"));
    (world, platform)
}

fn receipt() -> SinkAnswer {
    SinkAnswer::Receipt { id: Some("r".to_owned()), warning: None }
}

fn unknown() -> SinkAnswer {
    SinkAnswer::Unknown { why: "the connection was cut".to_owned() }
}

impl Simulation {
    /// Sends an offer once, as each daemon does; false when there was nothing to do.
    pub(super) fn send_to_platform(&mut self, sending: &Sending, disturbed: bool) -> bool {
        let place = (sending.delivery_id, sending.offer);
        if !self.platform.sent_here.insert(place) {
            return self.hear_platform();
        }
        let fate = if disturbed { self.random.below(100) } else { 0 };
        let arrives = matches!(fate, 0..66 | 92..96);
        if arrives {
            self.arrive(sending);
        }
        let answer = match fate {
            0..58 => receipt(),
            58..72 | 92.. => unknown(),
            72..82 => SinkAnswer::Busy { why: "429".to_owned(), retry_after_ms: None },
            82..90 => SinkAnswer::Failed { why: "500".to_owned() },
            _ => SinkAnswer::Refused { why: "403".to_owned() },
        };
        let answer = match self.fault {
            Some(Fault::LostTakenForRefused) if answer == unknown() => {
                SinkAnswer::Failed { why: "no answer".to_owned() }
            }
            _ => answer,
        };
        let late = matches!(fate, 50..58 | 92..);
        if late {
            self.platform.on_their_way.push((place.0, place.1, answer));
        } else {
            let (delivery_id, offer) = place;
            self.submit(Command::DeliveryAnswered { delivery_id, offer, answer: answer.clone() });
            if disturbed && self.random.chance(10) {
                self.platform.on_their_way.push((delivery_id, offer, answer));
            }
        }
        true
    }

    /// One answer that was on its way arrives.
    pub(super) fn hear_platform(&mut self) -> bool {
        let Some((delivery_id, offer, answer)) = self.platform.on_their_way.pop() else { return false };
        self.submit(Command::DeliveryAnswered { delivery_id, offer, answer });
        true
    }

    /// What a daemon knew of its sendings goes with it.
    pub(super) fn forget_sendings(&mut self) {
        self.platform.sent_here.clear();
        self.platform.on_their_way.clear();
        self.board.forget_sendings();
        self.world.state.offered_here.clear();
    }

    fn arrive(&mut self, sending: &Sending) {
        let delivery = &self.world.state.deliveries[&sending.delivery_id];
        let room = &self.world.state.rooms[&sending.room_id];
        assert!(
            room.incarnation == delivery.incarnation
                || self.platform.out_at_reset.contains(&(sending.delivery_id, sending.offer)),
            "a room that was reset is sent what belongs to its earlier conversation: {delivery:?}"
        );
        let message = self.world.messages().into_iter().find(|message| message.id == sending.message_id);
        assert_eq!(
            message.expect("its message").text,
            sending.text,
            "other words are sent than the room has"
        );
        let copies = self.platform.copies.entry(sending.sink_key).or_default();
        if self.platform.kind == Kind::Keyed && *copies > 0 {
            return;
        }
        *copies += 1;
        let wanted = 1 + self.platform.sent_again.get(&sending.sink_key).copied().unwrap_or(0);
        assert!(*copies <= wanted, "the platform has it {copies} times: {sending:?}");
        if is_first(&self.world, delivery) && *copies == 1 {
            let last = self.platform.last_place.entry(sending.conversation.clone()).or_default();
            assert!(*last <= delivery.place, "a message overtook another: {delivery:?} after {last}");
            *last = delivery.place;
        }
    }

    /// A person looks at what was given up, or begins the room anew.
    pub(super) fn person_at_platform(&mut self) {
        let by = "kim".to_owned();
        if self.random.chance(10) {
            let Some(room_id) = self.platform.room else { return };
            let state = &self.world.state;
            let out = state.deliveries.values().filter(|it| it.status == DeliveryStatus::Offered);
            self.platform.out_at_reset.extend(out.map(|it| (it.id, it.offers)));
            self.submit(Command::ResetRoom { room_id, by });
            return;
        }
        let all: Vec<DeliveryId> = self.world.state.deliveries.keys().copied().collect();
        let Some(delivery_id) = self.random.pick(&all) else { return };
        if self.random.chance(50) {
            let before = self.world.state.deliveries[&delivery_id].clone();
            self.submit(Command::RetryDelivery { delivery_id, by });
            let again = self.world.state.deliveries[&delivery_id].again_as;
            if before.status == DeliveryStatus::Ambiguous && before.again_as != again {
                *self.platform.sent_again.entry(before.sink_key).or_default() += 1;
            }
        } else {
            self.submit(Command::DiscardDelivery { delivery_id, by, reason: String::new() });
        }
    }

    /// Deliveries by how they ended, and resets of rooms.
    pub(super) fn deliveries_by_status(&self) -> Counts {
        let mut counts = Counts::new();
        for delivery in self.world.state.deliveries.values() {
            *counts.entry(delivery.status.as_str()).or_default() += 1;
        }
        let resets = self.world.state.rooms.values().map(|room| room.incarnation as usize - 1).sum();
        counts.insert("resets", resets);
        counts
    }

    /// What the platform has against what the rooms say.
    pub(super) fn conclude_platform(&self) {
        let messages = self.world.messages();
        for delivery in self.world.state.deliveries.values() {
            let copies = self.platform.copies.get(&delivery.sink_key).copied().unwrap_or(0);
            let again = self.platform.sent_again.get(&delivery.sink_key).copied().unwrap_or(0);
            let most = 1 + again;
            let what = format!("{copies} copies of {delivery:?}");
            assert!(!delivery.status.is_open(), "nothing is due and it is open: {what}");
            match delivery.status {
                DeliveryStatus::Consumed => assert!((1..=most).contains(&copies), "{what}"),
                DeliveryStatus::Failed | DeliveryStatus::Expired | DeliveryStatus::Discarded
                    if self.platform.kind == Kind::Plain && again == 0 && !was_ambiguous(self, delivery) =>
                {
                    assert_eq!(copies, 0, "{what}");
                }
                _ => assert!(copies <= most, "{what}"),
            }
            if matches!(delivery.status, DeliveryStatus::Failed | DeliveryStatus::Ambiguous) {
                let id = delivery.id.to_string();
                let told = messages.iter().filter(|message| {
                    message.metadata["deliveryId"] == id.as_str()
                        && message.metadata["deliveryStatus"] == delivery.status.as_str()
                });
                assert_eq!(told.count(), 1, "its room is told once: {what}");
            }
        }
        for message in messages {
            let state = &self.world.state;
            let first = state
                .deliveries
                .values()
                .filter(|it| it.message_id == message.id && is_first(&self.world, it));
            let is_reply =
                message.speaker == Speaker::MainAgent && Some(message.room_id) == self.platform.room;
            let wanted = usize::from(is_reply && !message.text.trim().is_empty());
            assert_eq!(first.count(), wanted, "{message:?}");
        }
    }
}

/// Whether it was made with its message, and not by a person who had it sent again.
fn is_first(world: &World, delivery: &Delivery) -> bool {
    !world.state.deliveries.values().any(|earlier| earlier.again_as == Some(delivery.id))
}

fn was_ambiguous(simulation: &Simulation, delivery: &Delivery) -> bool {
    simulation.world.journal.iter().any(|record| match &record.event {
        Event::DeliveryMoved(moved) => {
            moved.delivery_id == delivery.id && moved.to == DeliveryStatus::Ambiguous
        }
        _ => false,
    })
}
