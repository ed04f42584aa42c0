//! Progress posts: in which mode which of them are made, what stands in them, and what a platform's answers do to them.

use rallypoint_engine::due::{Effect, due, next_wakeup};
use rallypoint_engine::search::searchable;
use rallypoint_engine::view::is_idle;
use rallypoint_model::channel::ChannelFacts;
use rallypoint_model::command::{Command, CreateTask};
use rallypoint_model::delivery::SinkAnswer;
use rallypoint_model::event::Event;
use rallypoint_model::ids::{RoomId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::progress::{OfferedProgress, ProgressMode, ProgressShape};
use uuid::Uuid;

use crate::deliveries::{asked_in, bound_room, conversation, offered as messages, world_with_hook};
use crate::host::{Host, Verb};
use crate::invariants::{documents, replay};
use crate::world::World;

const FIRST_MS: i64 = 15_000;
const EVERY_MS: i64 = 30_000;

struct Stage {
    world: World,
    host: Host,
    task: TaskId,
    room: RoomId,
}

fn all() -> ChannelFacts {
    ChannelFacts { takes_key: true, edits: true, threads: true, problem: None }
}

/// A task whose agent uses a tool and waits for an answer about the second one.
fn at_work(facts: ChannelFacts, mode: Option<ProgressMode>, thread: Option<&str>) -> Stage {
    let mut world = world_with_hook(true, Limits::default());
    world.state.channels.insert("hook".to_owned(), facts);
    let room = match thread {
        Some(_) => bound_room(&mut world, 1, "team"),
        None => {
            let room_id = RoomId(Uuid::from_u128(0x301));
            world.ok(Command::CreateRoom(rallypoint_model::command::CreateRoom {
                kind: None,
                room_id,
                title: String::new(),
                conversation: Some(conversation("team", None)),
                idempotency_key: None,
            }));
            room_id
        }
    };
    let task = world.create(CreateTask { progress: mode, ..asked_in(room, 1) });
    let turn = vec![
        Verb::Tool("cargo `test` @here", "in_progress"),
        Verb::Ask("rm -rf target"),
        Verb::Say("Fixed."),
        Verb::Stop("end_turn"),
    ];
    let mut host = Host::ada(vec![turn]);
    host.work(&mut world);
    let mut stage = Stage { world, host, task, room };
    stage.take_messages();
    stage
}

impl Stage {
    fn take_messages(&mut self) {
        while let Some(sending) = messages(&self.world).first().cloned() {
            let answer = receipt("m");
            let command =
                Command::DeliveryAnswered { delivery_id: sending.delivery_id, offer: sending.offer, answer };
            self.world.ok(command);
        }
    }

    fn posts(&self) -> Vec<OfferedProgress> {
        let effects = due(&self.world.state, &self.world.limits).into_iter();
        effects.filter_map(|it| if let Effect::Progress(it) = it { Some(it) } else { None }).collect()
    }

    fn post(&self) -> OfferedProgress {
        match self.posts().as_slice() {
            [one] => one.clone(),
            other => panic!("{} posts are with the channel", other.len()),
        }
    }

    fn answer(&mut self, answer: SinkAnswer) {
        let (task_id, edition) = (self.task, self.post().edition);
        self.world.ok(Command::ProgressAnswered { task_id, edition, answer });
    }

    /// Another daemon: what was sent from here is not known any more.
    fn restart(&mut self) {
        self.world.state.offered_here.clear();
        self.world.ok(Command::Tick);
    }

    fn finish(&mut self) {
        let question_id = self.world.question();
        let answer = rallypoint_model::question::Answer::Option { option_id: "yes".to_owned() };
        self.world.ok(Command::AnswerQuestion { question_id, answer, by: "kim".to_owned() });
        let task = self.task;
        self.host.finish(&mut self.world, task);
        self.take_messages();
    }
}

fn receipt(id: &str) -> SinkAnswer {
    SinkAnswer::Receipt { id: Some(id.to_owned()), warning: None }
}

fn unknown() -> SinkAnswer {
    SinkAnswer::Unknown { why: "the connection was cut".to_owned() }
}

#[test]
fn compact_is_one_post_that_is_edited_and_says_at_last_how_it_ended() {
    let mut stage = at_work(all(), None, Some("042"));
    assert_eq!(stage.posts(), [], "nothing is said of what may be over in a moment");
    stage.world.pass(FIRST_MS);
    let first = stage.post();
    assert_eq!((first.shape.clone(), first.reply_to.as_deref()), (ProgressShape::Post, Some("m1")));
    assert_eq!(
        first.text,
        "Fix it: waits for an answer\n- ada (shell) waits for an answer, 1 tool call, now `run cargo 'test' @\u{200b}here`"
    );
    stage.answer(receipt("p1"));
    for _ in 0..9 {
        stage.world.pass(EVERY_MS);
        assert_eq!(stage.posts(), [], "nothing is said where nothing changed");
    }
    stage.finish();
    // What was on its way when it ended is followed at once by how it ended.
    assert!(stage.post().text.starts_with("Fix it: at work\n"));
    stage.answer(receipt("p1"));
    let last = stage.post();
    assert_eq!(last.shape, ProgressShape::Edit { post_id: "p1".to_owned() });
    assert!(last.text.starts_with("Fix it: done\n"), "{}", last.text);
    assert!(!is_idle(&stage.world.state), "a daemon stays until it stands there");
    stage.answer(receipt("p1"));
    assert!(is_idle(&stage.world.state) && stage.posts().is_empty());
    assert_eq!(documents(&replay(&stage.world.journal)), documents(&stage.world.state));
}

#[test]
fn between_two_edits_there_is_a_pause_and_the_newest_state_is_told() {
    let mut stage = at_work(all(), None, Some("042"));
    stage.world.pass(FIRST_MS);
    stage.answer(receipt("p1"));
    let question_id = stage.world.question();
    let answer = rallypoint_model::question::Answer::Decline { reason: "no".to_owned() };
    // While it is asked and goes on again, nothing is told before the pause is over.
    stage.host = Host::ada(vec![]);
    stage.world.ok(Command::AnswerQuestion { question_id, answer, by: "kim".to_owned() });
    assert_eq!(stage.posts(), []);
    let at = next_wakeup(&stage.world.state, &stage.world.limits).expect("a wake-up");
    assert!(at <= stage.world.now.plus(EVERY_MS));
    stage.world.pass(EVERY_MS);
    assert!(stage.post().text.contains("at work\n- ada (shell) works"), "{}", stage.post().text);
}

#[test]
fn threaded_posts_under_the_message_that_asked_or_within_the_thread_and_else_as_compact() {
    let mut stage = at_work(all(), Some(ProgressMode::Threaded), None);
    stage.world.pass(FIRST_MS);
    assert_eq!(stage.post().shape, ProgressShape::InThread { under: Some("m1".to_owned()) });
    stage.answer(receipt("p1"));
    stage.finish();
    assert_eq!(stage.posts(), [], "the main agent tells the end itself");

    let mut stage = at_work(all(), Some(ProgressMode::Threaded), Some("042"));
    stage.world.pass(FIRST_MS);
    assert_eq!(stage.post().shape, ProgressShape::InThread { under: None });

    let no_threads = ChannelFacts { threads: false, ..all() };
    let mut stage = at_work(no_threads, Some(ProgressMode::Threaded), None);
    stage.world.pass(FIRST_MS);
    assert_eq!(stage.post().shape, ProgressShape::Post);
}

#[test]
fn silent_rooms_and_channels_that_can_not_edit_hear_nothing_until_the_end() {
    let plain = ChannelFacts { edits: false, threads: false, ..all() };
    for (facts, mode) in [(all(), Some(ProgressMode::Silent)), (plain, None)] {
        let mut stage = at_work(facts, mode, None);
        stage.world.pass(FIRST_MS + EVERY_MS);
        assert_eq!(stage.posts(), []);
        stage.finish();
        assert_eq!(stage.posts(), []);
        assert!(is_idle(&stage.world.state));
    }
}

#[test]
fn a_room_is_made_silent_for_all_but_the_task_that_was_asked_for_with_a_mode_of_its_own() {
    for (own, posts) in [(None, 0), (Some(ProgressMode::Compact), 1)] {
        let mut stage = at_work(all(), own, Some("042"));
        let (room_id, by) = (stage.room, "kim".to_owned());
        stage.world.ok(Command::SetProgress { room_id, mode: ProgressMode::Silent, by });
        stage.world.pass(FIRST_MS);
        assert_eq!(stage.posts().len(), posts);
    }
}

#[test]
fn a_daemon_that_is_killed_between_edits_makes_no_second_post() {
    // The post is with the channel, which takes keys: it is given again under its key.
    let mut stage = at_work(all(), None, Some("042"));
    stage.world.pass(FIRST_MS);
    let first = stage.post();
    stage.restart();
    assert_eq!(stage.post(), first);
    // Nobody knows whether it is there: the same again, under the same key.
    stage.answer(unknown());
    stage.world.pass(EVERY_MS);
    let again = stage.post();
    assert_eq!((again.key, &again.text, again.edition), (first.key, &first.text, 2));
    stage.answer(receipt("p1"));
    // An edit is given again by the next daemon, and says the same.
    stage.finish();
    let edit = stage.post();
    stage.restart();
    assert_eq!(stage.post(), edit);
}

#[test]
fn without_keys_a_post_whose_fate_nobody_knows_is_the_last_word() {
    let facts = ChannelFacts { takes_key: false, ..all() };
    for restarts in [true, false] {
        let mut stage = at_work(facts.clone(), None, Some("042"));
        stage.world.pass(FIRST_MS);
        if restarts {
            stage.restart();
        } else {
            stage.answer(unknown());
        }
        assert_eq!(stage.posts(), []);
        stage.finish();
        stage.world.pass(EVERY_MS);
        assert_eq!(stage.posts(), [], "a second post beside it would be a double");
        assert!(is_idle(&stage.world.state));
    }
}

#[test]
fn a_channel_that_takes_none_is_left_alone_after_a_while_and_no_room_hears_of_it() {
    let mut stage = at_work(all(), None, Some("042"));
    let before = stage.world.messages().len();
    let mut asked = 0;
    for _ in 0..20 {
        stage.world.pass(EVERY_MS);
        if !stage.posts().is_empty() {
            asked += 1;
            stage.answer(SinkAnswer::Failed { why: "it answered 500".to_owned() });
        }
    }
    assert_eq!(asked, Limits::default().progress_failures);
    assert_eq!(stage.world.messages().len(), before);
    assert!(stage.world.state.deliveries.values().all(|it| it.status.as_str() == "consumed"));
}

#[test]
fn progress_is_no_message_and_no_search_finds_it() {
    let mut stage = at_work(all(), None, Some("042"));
    let (messages, room) = (stage.world.messages().len(), stage.world.state.rooms[&stage.room].messages);
    stage.world.pass(FIRST_MS);
    stage.answer(receipt("p1"));
    assert_eq!(stage.world.messages().len(), messages);
    assert_eq!(stage.world.state.rooms[&stage.room].messages, room);
    let told: Vec<&Event> = stage.world.journal.iter().map(|it| &it.event).collect();
    let told: Vec<&&Event> = told.iter().filter(|it| it.kind().starts_with("progress.")).collect();
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|event| searchable(event).is_none()));
    stage.finish();
    assert!(stage.host.prompts.iter().all(|(_, words)| !words.contains("tool call")));
}
