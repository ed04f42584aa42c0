//! One writer, rising terms, and databases of other programs.

use crate::place::{Place, SqliteFolder};
use rallypoint_model::time::Timestamp;
use rallypoint_store::schema::SCHEMA_VERSION;
use rallypoint_store::{DATABASE_FILE, KeyEnforcement, Reader, Store, StoreError};

fn open(folder: &tempfile::TempDir) -> Result<Store, StoreError> {
    Store::open(folder.path(), KeyEnforcement::Unique)
}

#[test]
fn a_second_writer_is_refused_while_the_first_lives() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = open(&folder).expect("a store");
    let second = open(&folder);
    assert!(
        matches!(&second, Err(StoreError::Locked { folder: locked }) if locked == folder.path()),
        "{second:?}"
    );
    drop(first);
    assert!(open(&folder).is_ok());
}

pub(crate) fn the_term_rises_with_every_opening_and_a_refused_one_does_not_count<P: Place>() {
    let place = P::empty();
    let mut terms = Vec::new();
    for _ in 0..3 {
        let store = place.open(KeyEnforcement::Unique).expect("a store");
        assert!(matches!(place.open(KeyEnforcement::Unique), Err(StoreError::Locked { .. })));
        terms.push(store.epoch());
    }
    assert_eq!(terms, [1, 2, 3]);
}

pub(crate) fn a_new_store_is_empty<P: Place>() {
    let store = P::empty();
    let store = store.open(KeyEnforcement::Unique).expect("a store");
    assert_eq!(store.last_alive().expect("a look"), None);
    assert_eq!(store.load().expect("a state"), rallypoint_engine::state::State::default());
    assert_eq!(store.journal().expect("a journal"), []);
    assert_eq!(store.last_seq().expect("a number"), 0);
}

#[test]
fn a_database_of_a_newer_program_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(open(&folder).expect("a store"));
    let newer = SCHEMA_VERSION + 1;
    let path = folder.path().join(DATABASE_FILE);
    let connection = rusqlite::Connection::open(&path).expect("a database");
    connection.pragma_update(None, "user_version", newer).expect("a version");
    let refused = open(&folder);
    assert!(
        matches!(refused, Err(StoreError::Newer { found, known }) if (found, known) == (newer, SCHEMA_VERSION)),
        "{refused:?}"
    );
    let epoch: i64 = connection
        .query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| row.get(0))
        .expect("a term");
    assert_eq!(epoch, 1);
}

#[test]
fn a_file_that_is_no_database_is_an_error_and_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(DATABASE_FILE);
    let text = "this is no database, and it is long enough to look like a header of one\n".repeat(20);
    std::fs::write(&path, &text).expect("a file");
    assert!(matches!(open(&folder), Err(StoreError::Database(_))));
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), text);
}

#[test]
fn a_reader_makes_no_database_where_there_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(DATABASE_FILE);
    assert!(Reader::open(&path).is_err());
    assert!(!path.exists());
}

#[test]
fn a_row_that_can_not_be_read_is_named_with_its_table() {
    let recorded = crate::recorded::busy::<SqliteFolder>();
    let path = recorded.place.0.path().join(DATABASE_FILE);
    let connection = rusqlite::Connection::open(&path).expect("a database");
    connection.execute("UPDATE tasks SET doc = '{}'", []).expect("a change");
    let loaded = recorded.store.borrow().load();
    assert!(matches!(&loaded, Err(StoreError::Row { table: "tasks", .. })), "{loaded:?}");
}

pub(crate) fn when_a_daemon_was_up_is_kept_over_openings<P: Place>() {
    let place = P::empty();
    let store = place.open(KeyEnforcement::Unique).expect("a store");
    for now in [70, 90] {
        store.note_alive(Timestamp(now)).expect("a note");
    }
    drop(store);
    let store = place.open(KeyEnforcement::Unique).expect("a store");
    assert_eq!(store.last_alive().expect("a look"), Some(Timestamp(90)));
}
