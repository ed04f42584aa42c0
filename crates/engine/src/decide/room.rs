//! Rooms: made, spoken in, reset; and where things go whose conversation was reset.

use rallypoint_model::channel::Conversation;
use rallypoint_model::command::{CreateRoom, CreateTask, Outcome, SayInRoom};
use rallypoint_model::delivery::Hop;
use rallypoint_model::event::{Aggregate, Event, Scope};
use rallypoint_model::ids::{RoomId, RunId, SessionId};
use rallypoint_model::message::RoomKind;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use serde_json::{Value, json};

use super::delivery::REQUESTER_RESET;
use super::{Deciding, Post, UniqueKeys, Voice};
use crate::apply::room_key;
use crate::state::{KeyedFact, Room, Task};

/// Longest title of a room in characters.
const TITLE_CHARS: usize = 120;

/// Who hears of a run's end whose conversation was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rerouted {
    /// A session above it; no room is told.
    ToSession,
    /// The room, or the main room in its place.
    ToRoom,
}

impl Deciding<'_, '_> {
    pub(crate) fn create_room(&mut self, create: &CreateRoom) -> Result<Outcome, Refusal> {
        if let Some(known) = self.known_room(create)? {
            return Ok(Outcome::Room { room_id: known });
        }
        if self.state.rooms.contains_key(&create.room_id) {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("the room `{}` was made before", create.room_id),
            ));
        }
        let conversation = match &create.conversation {
            Some(conversation) => Some(self.checked_conversation(conversation)?),
            None => None,
        };
        let title = match (create.title.trim(), &conversation) {
            ("", Some(conversation)) => conversation.words(),
            ("", None) => {
                return Err(Refusal::new(
                    RefusalCode::Invalid,
                    "a room that is bound to nothing needs a title",
                )
                .with_hint("`rally room create --title NAME`, or `--channel NAME --peer P`"));
            }
            (title, _) => title.to_owned(),
        };
        let room_id = create.room_id;
        let room_kind = kind_of(create, conversation.is_some())?;
        self.emit(
            Aggregate::Room(room_id),
            Scope { room_id: Some(room_id), ..Scope::default() },
            Event::RoomCreated {
                room_id,
                room_kind,
                title: title.chars().take(TITLE_CHARS).collect(),
                conversation,
                idempotency_key: create.idempotency_key.clone(),
            },
        );
        Ok(Outcome::Room { room_id })
    }

    /// The room that this key made before.
    fn known_room(&self, create: &CreateRoom) -> Result<Option<RoomId>, Refusal> {
        let key =
            create.idempotency_key.as_ref().filter(|_| self.context.unique_keys == UniqueKeys::Enforced);
        let Some(key) = key else { return Ok(None) };
        let Some(KeyedFact::Room { id }) = self.state.keys.get(&room_key(key)) else { return Ok(None) };
        let bound = self.state.rooms.get(id).and_then(|room| room.conversation.clone());
        if bound == create.conversation.as_ref().and_then(Conversation::normalised) {
            Ok(Some(*id))
        } else {
            Err(Refusal::new(
                RefusalCode::KeyReused,
                format!("the key `{key}` was used before for another room"),
            )
            .with_hint("use a new key for a new room"))
        }
    }

    fn checked_conversation(&self, conversation: &Conversation) -> Result<Conversation, Refusal> {
        let clean = conversation
            .normalised()
            .ok_or_else(|| Refusal::new(RefusalCode::Invalid, "a conversation needs a channel and a peer"))?;
        if !self.state.channels.contains_key(&clean.channel) {
            let known: Vec<&str> = self.state.channels.keys().map(String::as_str).collect();
            let hint = if known.is_empty() {
                "channels are made in `rally.toml`: `[channels.NAME]`".to_owned()
            } else {
                format!("the channels are: {}", known.join(", "))
            };
            return Err(Refusal::new(
                RefusalCode::Invalid,
                format!("there is no channel `{}`", clean.channel),
            )
            .with_hint(hint));
        }
        let taken = self.state.rooms.values().find(|room| room.conversation.as_ref() == Some(&clean));
        match taken {
            None => Ok(clean),
            Some(room) => Err(Refusal::new(
                RefusalCode::Conflict,
                format!("the room `{}` is bound to {} already", room.id, clean.words()),
            )
            .with_hint(format!("use it, or begin it anew with `rally room reset {}`", room.id))),
        }
    }

    fn known(&self, room_id: RoomId) -> Result<&Room, Refusal> {
        self.state.rooms.get(&room_id).ok_or_else(|| {
            Refusal::not_found("room", room_id).with_hint("`rally room list` shows the rooms there are")
        })
    }

    /// A person's words enter a room; the same platform message or key only once.
    pub(crate) fn say_in_room(&mut self, say: &SayInRoom) -> Result<Outcome, Refusal> {
        let room_id = self.known(say.room_id)?.id;
        if say.text.trim().is_empty() {
            return Err(Refusal::new(RefusalCode::Invalid, "nothing is said"));
        }
        let most = self.context.limits.message_head_bytes;
        if say.text.len() > most {
            return Err(Refusal::new(
                RefusalCode::Limit,
                format!(
                    "the message has {} of {most} bytes; the limit is `messageHeadBytes`",
                    say.text.len()
                ),
            )
            .with_hint("say it in parts, or put it into a file"));
        }
        let key = match (&say.platform_message_id, &say.idempotency_key) {
            (Some(id), _) => Some(format!("said|{room_id}|{id}")),
            (None, Some(key)) => Some(format!("say|{room_id}|{key}")),
            (None, None) => None,
        };
        let known = key.as_ref().and_then(|key| self.state.keys.get(key));
        if let (Some(KeyedFact::Message { id }), UniqueKeys::Enforced) = (known, self.context.unique_keys) {
            return Ok(Outcome::Message { message_id: *id, repeated: true });
        }
        let metadata = match &say.platform_message_id {
            Some(id) => json!({ "platformMessageId": id }),
            None => json!({}),
        };
        let posted = self.post(Post {
            room_id,
            speaker: Voice::User(say.by.clone()),
            text: say.text.clone(),
            source: say.source.clone(),
            in_reply_to: None,
            task_id: None,
            metadata,
            delivery_key: key,
            turn: None,
        });
        let message_id = posted
            .ok_or_else(|| Refusal::new(RefusalCode::KeyReused, "the key was used for something else"))?;
        self.pass_on(room_id, message_id, &say.text, &say.by);
        Ok(Outcome::Message { message_id, repeated: false })
    }

    /// Begins a room's conversation anew. The room keeps its id; what was said stays readable; nothing that was meant
    /// for the conversation before enters the new one.
    pub(crate) fn reset_room(&mut self, room_id: RoomId, by: &str) -> Result<Outcome, Refusal> {
        let room = self.known(room_id)?;
        let event = Event::RoomReset {
            room_id,
            incarnation: room.incarnation.saturating_add(1),
            by: by.to_owned(),
            dropped_turns: u32::try_from(room.mailbox.len()).unwrap_or(u32::MAX),
        };
        self.emit(Aggregate::Room(room_id), Scope { room_id: Some(room_id), ..Scope::default() }, event);
        self.discard_earlier(room_id);
        Ok(Outcome::Room { room_id })
    }

    /// Sends an entry about a task to the main room, where the conversation that asked for it was reset since. The main
    /// room is the last that can be asked, so it takes such entries even of its own earlier incarnation, marked.
    pub(crate) fn land(&self, post: &mut Post) {
        let Some(task) = post.task_id.and_then(|id| self.state.tasks.get(&id)) else { return };
        let Some(main) = self.state.world.as_ref().map(|world| world.main_room_id) else { return };
        if !self.state.is_outlived(task) {
            return;
        }
        let earlier = json!({ "roomId": task.origin_room_id, "incarnation": task.room_incarnation });
        let hops = [reset_hop(task), self.main_hop(main)];
        let Value::Object(map) = &mut post.metadata else { return };
        map.insert("earlierIncarnation".to_owned(), earlier);
        if post.room_id == task.origin_room_id {
            post.room_id = main;
            map.entry("deliveryHops").or_insert_with(|| json!(hops));
        }
    }

    fn main_hop(&self, main: RoomId) -> Hop {
        Hop {
            room_id: Some(main),
            incarnation: self.state.rooms.get(&main).map(|room| room.incarnation),
            session_id: None,
            label: None,
            result: "posted".to_owned(),
            why: None,
        }
    }

    /// The way of a run's end whose conversation was reset, recorded: a session above it hears it, or else the main
    /// room does. `heard` says whether a session above may take it: a question is for a person.
    pub(crate) fn reroute(
        &mut self,
        run_id: RunId,
        session_id: SessionId,
        heard: bool,
    ) -> (Rerouted, Option<Value>) {
        let task = self.state.sessions.get(&session_id).and_then(|session| session.task_id);
        let Some(task) = task.and_then(|id| self.state.tasks.get(&id)) else {
            return (Rerouted::ToRoom, None);
        };
        let Some(main) = self.state.world.as_ref().map(|world| world.main_room_id) else {
            return (Rerouted::ToRoom, None);
        };
        if !self.state.is_outlived(task) {
            return (Rerouted::ToRoom, None);
        }
        let mut hops = vec![reset_hop(task)];
        let above = if heard && !self.is_below_a_stop(session_id) { self.way_up(session_id) } else { None };
        let taken = above.as_ref().is_some_and(|way| way.recipient.is_some());
        let above = above.map(|way| way.hops).unwrap_or_default();
        hops.extend(above.into_iter().filter_map(|hop| serde_json::from_value(hop).ok()));
        if !taken {
            hops.retain(|hop: &Hop| hop.result != "room_only");
            hops.push(self.main_hop(main));
        }
        let told = json!(hops);
        let scope = self.run_scope(run_id);
        self.emit(Aggregate::Session(session_id), scope, Event::ResultRerouted { run_id, hops });
        (if taken { Rerouted::ToSession } else { Rerouted::ToRoom }, Some(told))
    }

    /// Whether the room for the peers of a task is there.
    pub(crate) fn check_worktree_room(&self, create: &CreateTask) -> Result<(), Refusal> {
        match create.worktree_room_id {
            Some(room_id) if !self.state.rooms.contains_key(&room_id) => {
                Err(Refusal::not_found("room", room_id)
                    .with_hint("`rally room list` shows the rooms there are"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The kind of a new room. A bound one is a channel's; the main room is the world's own.
fn kind_of(create: &CreateRoom, bound: bool) -> Result<RoomKind, Refusal> {
    match (create.kind, bound) {
        (None | Some(RoomKind::Channel), true) => Ok(RoomKind::Channel),
        (None | Some(RoomKind::Direct), false) => Ok(RoomKind::Direct),
        (Some(kind @ (RoomKind::Task | RoomKind::Worktree)), false) => Ok(kind),
        (Some(_), _) => {
            Err(Refusal::new(RefusalCode::Invalid, "a room of this kind can't be made like this").with_hint(
                "the kinds are task, worktree and direct; a room that is bound to a conversation needs none",
            ))
        }
    }
}

fn reset_hop(task: &Task) -> Hop {
    Hop {
        room_id: Some(task.origin_room_id),
        incarnation: Some(task.room_incarnation),
        session_id: None,
        label: None,
        result: "passed_over".to_owned(),
        why: Some(REQUESTER_RESET.to_owned()),
    }
}
