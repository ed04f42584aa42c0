//! What is committed is what is loaded, and what the journal gives.

use std::collections::BTreeMap;

use rallypoint_model::event::EventRecord;
use serde_json::Value;

use crate::place::Place;
use crate::recorded::{busy, documents, replay};

pub(crate) fn a_loaded_state_is_the_one_that_was_committed<P: Place>() {
    let recorded = busy::<P>();
    let live = documents(&recorded.world.state);
    let versions = recorded.world.state.versions.clone();
    let (_folder, store, _) = recorded.reopen();
    let loaded = store.load().expect("a state");
    assert_eq!(documents(&loaded), live);
    assert_eq!(loaded.versions, versions);
}

pub(crate) fn words_of_an_open_run_are_rebuilt_from_the_journal<P: Place>() {
    let (_folder, store, _) = busy::<P>().reopen();
    let state = store.load().expect("a state");
    let open: Vec<(&str, &str)> = state
        .runs
        .values()
        .filter(|run| run.is_open())
        .map(|run| (run.said.text.as_str(), run.said.last_words()))
        .collect();
    assert_eq!(open, [("Asking", "Asking"), ("Look\nStill here", "Still here")]);
}

pub(crate) fn the_journal_is_stored_as_it_was_decided_and_numbered_without_a_hole<P: Place>() {
    let recorded = busy::<P>();
    let decided: Vec<EventRecord> = recorded.world.journal.clone();
    let (_folder, store, _) = recorded.reopen();
    let stored = store.journal().expect("a journal");
    assert_eq!(stored, decided);
    let numbers: Vec<i64> = stored.iter().map(|record| record.seq).collect();
    let expected: Vec<i64> = (1..=i64::try_from(stored.len()).expect("few")).collect();
    assert_eq!(numbers, expected);
    assert_eq!(store.last_seq().expect("a number"), *expected.last().expect("some"));
}

pub(crate) fn a_rebuild_from_the_journal_gives_the_stored_rows<P: Place>() {
    let (_folder, store, _) = busy::<P>().reopen();
    let state = replay(&store.journal().expect("a journal"));
    let mut rebuilt: BTreeMap<String, Value> = BTreeMap::new();
    let mut put = |table: &str, id: String, doc: Value| {
        rebuilt.insert(format!("{table}/{id}"), doc);
    };
    let doc = |value: Result<Value, serde_json::Error>| value.expect("serialises");
    if let Some(world) = &state.world {
        put("worlds", world.id.to_string(), doc(serde_json::to_value(world)));
    }
    for (id, one) in &state.rooms {
        put("rooms", id.to_string(), doc(serde_json::to_value(one)));
    }
    for (id, one) in &state.tasks {
        put("tasks", id.to_string(), doc(serde_json::to_value(one)));
    }
    for (id, one) in &state.sessions {
        put("sessions", id.to_string(), doc(serde_json::to_value(one)));
    }
    for (id, one) in &state.runs {
        put("runs", id.to_string(), doc(serde_json::to_value(one)));
    }
    for (id, one) in &state.generations {
        put("generations", id.to_string(), doc(serde_json::to_value(one)));
    }
    for (id, one) in &state.questions {
        put("questions", id.to_string(), doc(serde_json::to_value(one)));
    }
    for (id, one) in &state.deliveries {
        put("deliveries", id.to_string(), doc(serde_json::to_value(one)));
    }
    let stored: BTreeMap<String, Value> = store
        .reader()
        .expect("a reader")
        .projections()
        .expect("rows")
        .into_iter()
        .map(|(key, text)| (key, serde_json::from_str(&text).expect("a document")))
        .collect();
    assert_eq!(stored, rebuilt);
}

pub(crate) fn a_full_output_is_kept_under_its_digest_and_an_unknown_digest_is_none<P: Place>() {
    let recorded = busy::<P>();
    let results: Vec<_> = recorded.world.state.runs.values().filter_map(|run| run.result.clone()).collect();
    assert!(results.len() >= 4, "{results:?}");
    let reader = recorded.store.borrow().reader().expect("a reader");
    for result in results {
        let bytes = reader.blob(&result.digest).expect("a look").expect("the bytes");
        assert_eq!(bytes.len() as u64, result.bytes);
    }
    assert_eq!(reader.blob("none").expect("a look"), None);
    let first = recorded
        .world
        .state
        .runs
        .values()
        .find(|run| run.summary == "Two\nlate" || run.summary.starts_with("Two"));
    let digest = &first.expect("a run").result.as_ref().expect("a result").digest;
    assert_eq!(reader.blob(digest).expect("a look"), Some(b"One\nTwolate".to_vec()));
}

pub(crate) fn a_reader_sees_a_commit_as_soon_as_it_is_made<P: Place>() {
    let mut recorded = crate::recorded::Recorded::<P>::new();
    let reader = recorded.store.borrow().reader().expect("a reader");
    let before = reader.last_seq().expect("a number");
    recorded.world.create(crate::world::task(1));
    let seen = reader.last_seq().expect("a number");
    assert_eq!(seen, recorded.store.borrow().last_seq().expect("a number"));
    assert!(seen > before);
}
