//! The routing contract as data: `fixtures/router/routing-vectors.json`, each row a test by its name.
//!
//! A row plays events of one session through the router, with the memory of
//! keys and counts that the journal keeps, and says every message that is told.

use std::collections::{BTreeMap, BTreeSet};

use rallypoint_engine::consequences::Boundary;
use rallypoint_engine::router::{Happening, Payload, Routing, Rules, Teller, route};
use rallypoint_model::ids::{EntityId, MessageId, RoomId, SessionId};
use rallypoint_model::routing::{RoomRole, SwarmRoom};
use rallypoint_model::session::FrozenOrigin;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub(crate) const FILE: &str = include_str!("../../../../fixtures/router/routing-vectors.json");
const HEAD_BYTES: usize = 4096;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Ids of the known cases that it holds.
    pub(crate) cases: Vec<String>,
    /// Title, for a row that the documentation shows.
    pub(crate) example: Option<String>,
    pub(crate) session: Given,
    pub(crate) events: Vec<Happened>,
    pub(crate) posts: Vec<Post>,
    #[serde(default)]
    stops: u32,
    #[serde(default)]
    pub(crate) kept: BTreeMap<String, u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct Given {
    pub(crate) task_room: Option<String>,
    pub(crate) worktree_room: Option<String>,
    swarm_rooms: Vec<Listed>,
    pub(crate) cap: Option<u32>,
    disabled: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Listed {
    room_id: String,
    roles: Vec<RoomRole>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Happened {
    pub(crate) event: String,
    #[serde(default)]
    pub(crate) payload: Map<String, Value>,
    #[serde(default)]
    status: String,
    #[serde(default)]
    turn: String,
    #[serde(default)]
    record: String,
    #[serde(default)]
    call: bool,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Post {
    pub(crate) room: String,
    pub(crate) roles: Vec<RoomRole>,
    pub(crate) kind: String,
    event: String,
    status: String,
    pub(crate) source: String,
    round_trip: u32,
    pub(crate) text: String,
    #[serde(default)]
    cap_exceeded: bool,
}

pub(crate) fn rows() -> Vec<Row> {
    serde_json::from_str(FILE).expect("the vectors can be read")
}

fn room(name: &str) -> RoomId {
    RoomId(Uuid::from_u128(u128::from(name.bytes().next().expect("a name"))))
}

fn letter(value: &Value) -> String {
    let id: Uuid = value.as_str().expect("a room").parse().expect("an id");
    char::from(u8::try_from(id.as_u128()).expect("a letter")).to_string()
}

fn origin(given: &Given) -> Option<FrozenOrigin> {
    let task_room = room(given.task_room.as_deref()?);
    Some(FrozenOrigin {
        conversation: None,
        platform_message_id: None,
        origin_room_id: task_room,
        task_room_id: task_room,
        worktree_room_id: given.worktree_room.as_deref().map(room),
        room_id: Some(task_room),
        swarm_rooms: given
            .swarm_rooms
            .iter()
            .map(|listed| SwarmRoom { room_id: room(&listed.room_id), roles: listed.roles.clone() })
            .collect(),
        world_id: None,
        label: "ada".to_owned(),
        incarnation: 1,
        message_id: MessageId(Uuid::from_u128(0xe1)),
        user_id: EntityId(Uuid::from_u128(0xe2)),
        source: "cli".to_owned(),
    })
}

/// What the journal would remember of a session.
#[derive(Default)]
struct Memory {
    keys: BTreeSet<String>,
    round_trips: u32,
    capped: bool,
    stops: u32,
    kept: BTreeMap<String, u32>,
    posts: Vec<Post>,
}

impl Memory {
    fn hear(&mut self, given: &Given, origin: Option<&FrozenOrigin>, event: &Happened) {
        let Some(boundary) = Boundary::of_name(&event.event) else { return };
        let payload = Payload(event.payload.clone());
        let routing = route(
            &Teller {
                session_id: SessionId(Uuid::from_u128(0xe3)),
                label: "ada",
                agent_type: "codex",
                status: &event.status,
                origin,
                workdir: "/w",
                round_trips: self.round_trips,
                capped: self.capped,
                finish_reason: None,
            },
            &Happening {
                boundary,
                payload: &payload,
                by_call: event.call,
                source: &format!("{}:{}", event.turn, event.record),
                turn: &event.turn,
                told_as: None,
            },
            Rules { enabled: !given.disabled, cap: given.cap.unwrap_or(32), head_bytes: HEAD_BYTES },
            &|key| self.keys.contains(key),
        );
        match routing {
            Routing::Repeated | Routing::NoRoom => {}
            Routing::Kept(why) => *self.kept.entry(why.as_str().to_owned()).or_default() += 1,
            Routing::Told { posts, stops_session } => {
                self.round_trips += 1;
                self.capped |= stops_session;
                self.stops += u32::from(stops_session);
                for post in posts {
                    assert!(
                        self.keys.insert(post.delivery_key.clone()),
                        "a key twice: {}",
                        post.delivery_key
                    );
                    self.keys.extend(post.text_key.clone());
                    self.posts.push(seen(&post.metadata, &post.text));
                }
            }
        }
    }
}

/// The message as its metadata tells of it.
fn seen(metadata: &Map<String, Value>, text: &str) -> Post {
    let word = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    assert_eq!(metadata["subAgentTargetRoomRole"], metadata["subAgentTargetRoomRoles"][0]);
    assert_eq!((&metadata["subAgent"], &metadata["subAgentLabel"]), (&json!(true), &json!("ada")));
    Post {
        room: letter(&metadata["subAgentTargetRoomId"]),
        roles: serde_json::from_value(metadata["subAgentTargetRoomRoles"].clone()).expect("roles"),
        kind: word("subAgentRoutingKind"),
        event: word("subAgentEvent"),
        status: word("subAgentStatus"),
        source: word("subAgentEventSource"),
        round_trip: metadata["subAgentRoundTrip"]
            .as_u64()
            .and_then(|it| u32::try_from(it).ok())
            .expect("a count"),
        text: text.to_owned(),
        cap_exceeded: metadata.get("subAgentCapExceeded").is_some_and(|it| it == true),
    }
}

fn play(name: &str) {
    let rows = rows();
    let row = rows.iter().find(|row| row.name == name).expect("the vector is in the file");
    assert!(!row.cases.is_empty(), "it names no case");
    let origin = origin(&row.session);
    let mut memory = Memory::default();
    for event in &row.events {
        memory.hear(&row.session, origin.as_ref(), event);
    }
    assert_eq!(memory.posts, row.posts);
    assert_eq!((memory.stops, memory.kept), (row.stops, row.kept.clone()));
}

#[test]
fn every_row_names_known_cases_and_stands_beside_them() {
    let ids = include_str!("../../../../fixtures/case-ids.txt");
    let coverage = include_str!("../../../../fixtures/case-coverage.txt");
    for row in rows() {
        for case in &row.cases {
            assert!(ids.lines().any(|line| line.split(' ').next() == Some(case)), "{case} is unknown");
            let covered = coverage.lines().find(|line| line.starts_with(&format!("{case}: ")));
            let named = covered.is_some_and(|line| line.split([' ', ',']).any(|word| word == row.name));
            assert!(named, "`{}` does not stand beside {case} in the list of covered cases", row.name);
        }
    }
}

macro_rules! vectors {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                play(stringify!($name));
            }
        )*

        #[test]
        fn every_row_of_the_file_is_a_test_and_every_test_a_row() {
            let tests = BTreeSet::from([$(stringify!($name).to_owned()),*]);
            let rows = rows();
            let names: BTreeSet<String> = rows.iter().map(|row| row.name.clone()).collect();
            assert_eq!((tests, names.len()), (names, rows.len()));
        }
    };
}

vectors!(
    a_completed_turn_is_one_message_in_the_room_that_asked,
    task_and_worktree_room_both_hear_of_an_end_the_task_room_first,
    a_task_room_that_is_also_the_worktree_room_gets_one_message_with_both_roles,
    rooms_that_are_listed_are_merged_by_id_and_ordered_by_their_best_role,
    a_question_goes_to_the_task_room_only,
    being_blocked_is_a_question_by_default,
    a_question_in_the_room_of_both_roles_says_that_it_is_there_for_the_task,
    coordination_goes_to_the_worktree_room_only,
    coordination_without_a_worktree_room_goes_to_the_task_room,
    coordination_in_the_room_of_both_roles_says_that_it_is_there_for_peers,
    a_bold_banner_of_a_question_in_an_end_is_taken_off_and_makes_it_a_question,
    a_banner_behind_heading_marks_counts,
    words_in_the_middle_of_a_text_are_no_banner,
    a_longer_word_that_begins_like_a_banner_is_none,
    an_end_whose_words_are_for_peers_still_reaches_the_task_room,
    a_structured_field_beats_a_banner,
    what_streams_is_never_told,
    the_same_record_twice_is_told_once_although_the_status_flipped,
    equal_words_of_two_status_records_of_one_turn_are_told_once,
    other_words_of_the_same_session_are_a_second_message,
    equal_words_of_two_turns_are_two_messages,
    two_questions_with_the_same_words_are_two_questions,
    a_session_that_no_room_asked_for_is_passed_over,
    a_router_that_is_switched_off_keeps_events_and_tells_none_of_them,
    the_narration_of_an_error_holds_its_words,
    an_event_without_words_is_told_in_a_sentence_of_ours,
    words_of_a_child_can_not_speak_as_the_router,
    with_a_cap_of_three_the_fourth_event_is_the_notice_that_ends_the_session,
    with_a_cap_of_one_the_third_event_is_kept_and_counted,
    an_event_in_two_rooms_is_one_round_trip,
    what_was_told_before_uses_up_nothing_of_the_cap,
);
