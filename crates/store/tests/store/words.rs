//! Tasks, messages and events are found by their words.

use rallypoint_engine::search::{Query, searchable};
use rallypoint_model::command::{Command, CreateTask};
use rallypoint_model::found::FoundKind;
use rallypoint_model::retention::DeleteMode;
use rallypoint_store::{JournalStore, WordsFilter};

use crate::deliveries::{ROOM, bound, say};
use crate::place::Place;
use crate::world::{MAIN_ROOM, task};

/// What is found, newest first: number and text.
fn found(
    store: &dyn JournalStore,
    filter: WordsFilter,
    words: &str,
    before: Option<i64>,
    limit: u32,
) -> Vec<(i64, String)> {
    let query = Query::parse(words).expect("a word");
    let rows = store.reader().expect("a reader").find(filter, &query, before, limit).expect("rows");
    rows.into_iter().map(|record| (record.seq, searchable(&record.event).unwrap_or_default())).collect()
}

fn texts(store: &dyn JournalStore, filter: WordsFilter, words: &str) -> Vec<String> {
    found(store, filter, words, None, 100).into_iter().map(|(_, text)| text).collect()
}

const MESSAGES: WordsFilter = WordsFilter { kind: Some(FoundKind::Message), room_id: None, task_id: None };

pub(crate) fn messages_are_found_by_their_words_newest_first<P: Place>() {
    let mut recorded = bound::<P>();
    for text in ["The Plan", "100% of the plan", "a_b planning", "nothing", "Überplan"] {
        say(&mut recorded.world, MAIN_ROOM, text);
    }
    say(&mut recorded.world, ROOM, "plan of the room");
    let (_folder, store, _world) = recorded.reopen();
    assert_eq!(
        texts(&*store, MESSAGES, "plan"),
        ["plan of the room", "a_b planning", "100% of the plan", "The Plan"]
    );
    let here = WordsFilter { room_id: Some(MAIN_ROOM), ..MESSAGES };
    assert_eq!(texts(&*store, here, "PLAN the"), ["100% of the plan", "The Plan"]);
    assert_eq!(texts(&*store, MESSAGES, "uberplan"), ["Überplan"]);
    assert_eq!(texts(&*store, MESSAGES, "\"of the\" plan"), ["plan of the room", "100% of the plan"]);
    assert!(texts(&*store, MESSAGES, "\"plan the\"").is_empty());
    let first = found(&*store, MESSAGES, "plan", None, 1);
    assert_eq!(found(&*store, MESSAGES, "plan", Some(first[0].0), 1)[0].1, "a_b planning");
}

pub(crate) fn signs_of_a_query_language_are_plain_text<P: Place>() {
    let mut recorded = bound::<P>();
    for text in ["NOT this AND that", "text:column", "near(x)", "c++ and \"quotes\"", "x' OR '1'='1"] {
        say(&mut recorded.world, MAIN_ROOM, text);
    }
    let (_folder, store, _world) = recorded.reopen();
    for words in
        ["NOT", "AND that", "text:column", "near(x)", "-this", "^not", "c++", "this*", "{text}:not", "' OR"]
    {
        texts(&*store, MESSAGES, words);
    }
    assert_eq!(texts(&*store, MESSAGES, "NOT this"), ["NOT this AND that"]);
    assert_eq!(texts(&*store, MESSAGES, "text:column"), ["text:column"]);
    assert_eq!(texts(&*store, MESSAGES, "OR '1'='1"), ["x' OR '1'='1"]);
}

pub(crate) fn words_of_a_script_without_spaces_are_found_in_the_middle<P: Place>() {
    let mut recorded = bound::<P>();
    for text in ["今日は計画を立てる", "その他", "ทำแผนงาน"] {
        say(&mut recorded.world, MAIN_ROOM, text);
    }
    let (_folder, store, _world) = recorded.reopen();
    assert_eq!(texts(&*store, MESSAGES, "計画"), ["今日は計画を立てる"]);
    assert_eq!(texts(&*store, MESSAGES, "แผน"), ["ทำแผนงาน"]);
    assert_eq!(texts(&*store, MESSAGES, "計画 立て"), ["今日は計画を立てる"]);
}

pub(crate) fn tasks_and_messages_are_told_apart_and_a_purged_task_is_found_no_more<P: Place>() {
    let mut recorded = bound::<P>();
    let create = CreateTask { goal: "Mend the zebrafish".to_owned(), ..task(1) };
    let task_id = create.task_id;
    let world = &mut recorded.world;
    world.ok(Command::CreateTask(create));
    say(world, MAIN_ROOM, "a zebrafish passed by");
    let of_task = WordsFilter { task_id: Some(task_id), ..WordsFilter::default() };
    let tasks = WordsFilter { kind: Some(FoundKind::Task), ..WordsFilter::default() };
    world.ok(Command::StopTask { task_id, by: "kim".to_owned() });
    let mut host = crate::host::Host::ada(Vec::new());
    host.work(world);
    world.ok(Command::DeleteTask { task_id, mode: DeleteMode::Preserve, by: "kim".to_owned() });
    assert_eq!(texts(&**recorded.store.borrow(), tasks, "zebrafish").len(), 1);
    assert!(!texts(&**recorded.store.borrow(), of_task, "zebrafish").is_empty());
    recorded.world.ok(Command::DeleteTask { task_id, mode: DeleteMode::Purge, by: "kim".to_owned() });
    let (_folder, store, _world) = recorded.reopen();
    assert!(texts(&*store, tasks, "zebrafish").is_empty());
    assert!(texts(&*store, of_task, "zebrafish").is_empty());
    assert_eq!(texts(&*store, MESSAGES, "zebrafish"), ["a zebrafish passed by"]);
}
