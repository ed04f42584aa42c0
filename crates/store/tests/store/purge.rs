//! After a purge no word of a task is found in any file of the database, and what is left still fits together.

use std::collections::BTreeMap;
use std::path::Path;

use rallypoint_model::command::Command;
use rallypoint_model::ids::TaskId;
use rallypoint_model::retention::DeleteMode;
use rallypoint_model::task::EvidenceResult;
use rallypoint_store::{DATABASE_FILE, JournalStore, KeyEnforcement, Store};
use serde_json::Value;

use crate::host::{Host, Verb};
use crate::place::{Place, SqliteFolder};
use crate::recorded::{Recorded, documents, replay};
use crate::world::{agent, task};

const SECRET: &str = "xyzzy-plugh";
const LONG: &str = concat!(
    "xyzzy-plugh and many more words so that the row does not fit on one page: ",
    include_str!("purge.rs")
);

/// One task whose every text holds the word, and another that does not.
fn worked<P: Place>() -> (Recorded<P>, TaskId) {
    let mut recorded = Recorded::new();
    let world = &mut recorded.world;
    let report = "xyzzy-plugh\n```json\n{\"diffSummary\":\"xyzzy-plugh\",\"filesChanged\":[\"xyzzy-plugh\"],\"testResults\":[],\"acceptanceCriteriaStatus\":[],\"residualRisks\":[]}\n```";
    let turns = vec![
        vec![Verb::Say(LONG), Verb::Tool("t", "pending"), Verb::Stop("end_turn")],
        vec![Verb::Say(report), Verb::Stop("end_turn"), Verb::Say("late xyzzy-plugh")],
    ];
    let mut host =
        Host::new(&[("ada", turns), ("bob", vec![vec![Verb::Say("Kept."), Verb::Stop("end_turn")]])])
            .checks(&[EvidenceResult::Failed]);
    let mut create = task(1);
    create.title = format!("title {SECRET}");
    create.goal = LONG.to_owned();
    create.criteria[0].text = format!("criterion {SECRET}");
    create.agents[0].task = Some(format!("part {SECRET}"));
    let id = world.create(create);
    host.finish(world, id);
    host.work(world);
    let mut other = task(2);
    other.agents = vec![agent("bob")];
    let other = world.create(other);
    host.finish(world, other);
    host.work(world);
    (recorded, id)
}

/// How often the word is in the files of the database.
fn found(folder: &Path) -> usize {
    let mut count = 0;
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let bytes = std::fs::read(folder.join(format!("{DATABASE_FILE}{suffix}"))).unwrap_or_default();
        count += bytes.windows(SECRET.len()).filter(|window| *window == SECRET.as_bytes()).count();
    }
    count
}

/// How many of its parts the index of words holds.
fn indexed(folder: &Path) -> i64 {
    let connection = rusqlite::Connection::open(folder.join(DATABASE_FILE)).expect("a database");
    connection
        .execute_batch("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, words, 'row')")
        .expect("a view");
    connection
        .query_row("SELECT COUNT(*) FROM temp.terms WHERE term IN ('xyzzy', 'plugh')", [], |row| row.get(0))
        .expect("a count")
}

fn purge<P>(recorded: &mut Recorded<P>, id: TaskId) {
    recorded.world.ok(Command::DeleteTask { task_id: id, mode: DeleteMode::Purge, by: "kim".to_owned() });
}

#[test]
fn no_word_of_a_purged_task_is_left_in_the_files() {
    let (mut recorded, id) = worked::<SqliteFolder>();
    let folder = recorded.place.0.path().to_owned();
    assert!(found(&folder) > 20 && indexed(&folder) > 0, "the test looks for nothing");
    let before = recorded.store.borrow().journal().expect("a journal");
    purge(&mut recorded, id);
    recorded.store.borrow_mut().rewrite().expect("a new file");
    assert_eq!(found(&folder), 0);
    assert_eq!(indexed(&folder), 0);
    let after = recorded.store.borrow().journal().expect("a journal");
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(
            (before.seq, before.at, before.aggregate, before.version, before.scope, before.event.kind()),
            (after.seq, after.at, after.aggregate, after.version, after.scope, after.event.kind())
        );
    }
    assert_eq!(after.len(), before.len() + 2, "archived and deleted");
    let messages = recorded.store.borrow().reader().expect("a reader");
    let messages = messages.messages(crate::world::MAIN_ROOM, Some(id), None, 100).expect("messages");
    assert!(messages.len() > 3 && messages.iter().all(|(_, message)| message.text.is_empty()));
}

pub(crate) fn what_is_left_is_loaded_as_it_was_and_the_journal_gives_the_stored_rows<P: Place>() {
    let (mut recorded, id) = worked::<P>();
    purge(&mut recorded, id);
    recorded.store.borrow_mut().rewrite().expect("a new file");
    let live = documents(&recorded.world.state);
    let (_folder, store, _) = recorded.reopen();
    assert_eq!(documents(&store.load().expect("a state")), live);
    let (mut replayed, mut stored) = (documents(&replay(&store.journal().expect("a journal"))), live.clone());
    for side in [&mut replayed, &mut stored] {
        // Operational: how far spools were understood is no fact of the journal.
        side["cursors"] = Value::Null;
    }
    assert_eq!(replayed, stored);
    assert!(live.to_string().contains("Fix the test"), "the other task keeps its words");
}

pub(crate) fn outputs_of_a_purged_task_are_gone_and_those_of_another_stay<P: Place>() {
    let (mut recorded, id) = worked::<P>();
    let digests: BTreeMap<String, bool> = recorded
        .world
        .state
        .runs
        .values()
        .filter_map(|run| Some((run.result.as_ref()?.digest.clone(), run.task_id == Some(id))))
        .collect();
    assert_eq!(digests.len(), 3);
    purge(&mut recorded, id);
    let reader = recorded.store.borrow().reader().expect("a reader");
    for (digest, purged) in digests {
        assert_eq!(reader.blob(&digest).expect("a look").is_none(), purged);
    }
}

#[test]
fn a_program_that_dies_before_the_file_is_new_makes_it_new_at_its_next_start() {
    let (mut recorded, id) = worked::<SqliteFolder>();
    purge(&mut recorded, id);
    let folder = recorded.place.0.path().to_owned();
    assert!(found(&folder) > 0, "old pages are expected to hold it still");
    assert!(recorded.store.borrow().reader().expect("a reader").holdings().expect("a look").rewrite_due);
    let (_folder, store, _) = recorded.reopen();
    assert_eq!(found(&folder), 0);
    assert!(!store.reader().expect("a reader").holdings().expect("a look").rewrite_due);
}

pub(crate) fn a_preserved_task_keeps_every_row<P: Place>() {
    let (mut recorded, id) = worked::<P>();
    let rows = |recorded: &Recorded<P>| {
        let text =
            serde_json::to_string(&recorded.store.borrow().journal().expect("a journal")).expect("text");
        text.matches(SECRET).count()
    };
    let before = rows(&recorded);
    recorded.world.ok(Command::DeleteTask { task_id: id, mode: DeleteMode::Preserve, by: "kim".to_owned() });
    assert_eq!(rows(&recorded), before);
}

pub(crate) fn events_of_a_session_are_its_own_in_order<P: Place>() {
    let (recorded, id) = worked::<P>();
    let session = recorded.world.session(id);
    let reader = recorded.store.borrow().reader().expect("a reader");
    let mut all = Vec::new();
    loop {
        let after = all.last().map_or(0, |record: &rallypoint_model::event::EventRecord| record.seq);
        let page = reader.session_events(session, after, 7).expect("events");
        if page.is_empty() {
            break;
        }
        all.extend(page);
    }
    let expected: Vec<_> = recorded
        .store
        .borrow()
        .journal()
        .expect("a journal")
        .into_iter()
        .filter(|record| record.scope.session_id == Some(session))
        .collect();
    assert!(expected.len() > 20);
    assert_eq!(all, expected);
}

pub(crate) fn failed_removals_are_kept_over_a_restart_until_they_are_settled<P: Place>() {
    let mut recorded = Recorded::<P>::new();
    let failed = |path: &str| Command::DeleteFailed {
        path: path.to_owned(),
        reason: "is a folder".to_owned(),
        pause_ms: 1000,
    };
    recorded.world.ok(failed("sessions/a"));
    recorded.world.ok(failed("sessions/a"));
    recorded.world.ok(failed("sessions/b"));
    recorded.world.ok(Command::DeleteSettled { path: "sessions/b".to_owned() });
    let live = recorded.world.state.failed_deletes.clone();
    let (_folder, store, _) = recorded.reopen();
    assert_eq!(store.load().expect("a state").failed_deletes, live);
    let holdings = store.reader().expect("a reader").holdings().expect("a look");
    assert_eq!(holdings.failed_deletes.len(), 1);
    assert_eq!((holdings.failed_deletes[0].attempts, holdings.results), (2, 0));
}

#[test]
fn a_database_of_the_version_before_is_brought_forward() {
    let (recorded, id) = worked::<SqliteFolder>();
    let live = documents(&recorded.world.state);
    let folder = recorded.place.0.path().to_owned();
    {
        let connection = rusqlite::Connection::open(folder.join(DATABASE_FILE)).expect("a database");
        connection
            .execute_batch("DROP TABLE requests; DROP TABLE words; DROP TABLE deliveries; DROP TABLE failed_deletes; DROP INDEX events_session; PRAGMA user_version = 1;")
            .expect("an old database");
    }
    let Recorded { place, store, mut world } = recorded;
    world.on_commit = None;
    drop(store);
    let store = Store::open(place.0.path(), KeyEnforcement::Unique).expect("a store");
    assert_eq!(documents(&store.load().expect("a state")), live);
    let holdings = store.reader().expect("a reader").holdings().expect("a look");
    assert_eq!(holdings.failed_deletes, []);
    let query = rallypoint_engine::search::Query::parse("fixed").expect("a word");
    let reader = store.reader().expect("a reader");
    let found = reader.find(rallypoint_store::WordsFilter::default(), &query, None, 9).expect("rows");
    assert!(!found.is_empty(), "the index of words is made of the journal");
    assert!(live["tasks"].get(id.to_string()).is_some_and(Value::is_object));
}
