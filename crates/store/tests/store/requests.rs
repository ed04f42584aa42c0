//! What is kept of requests that came with a key.

use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::State;
use rallypoint_model::request::{ANSWER, RequestRow};
use rallypoint_model::time::Timestamp;
use rallypoint_store::KeyEnforcement;

use crate::place::Place;

fn row(part: i64, at: i64, doc: &str) -> RequestRow {
    let (key, digest) = ("owner|k".to_owned(), "d".to_owned());
    RequestRow { key, part, digest, at: Timestamp(at), doc: doc.to_owned() }
}

pub(crate) fn a_request_is_kept_over_openings_until_its_time_is_over<P: Place>() {
    let place = P::empty();
    let rows = [row(0, 10, "{}"), row(ANSWER, 20, r#"{"a":1}"#)];
    {
        let mut store = place.open(KeyEnforcement::Unique).expect("a store");
        let mut changes = Changes { requests: rows.to_vec(), ..Changes::default() };
        assert!(!changes.is_empty(), "it is written although nothing else is");
        store.commit(&mut changes, &State::default()).expect("a commit");
    }
    let store = place.open(KeyEnforcement::Unique).expect("a store");
    let reader = store.reader().expect("a reader");
    for row in &rows {
        assert_eq!(store.request("owner|k", row.part).expect("a read").as_ref(), Some(row));
        assert_eq!(reader.request("owner|k", row.part).expect("a read").as_ref(), Some(row));
    }
    assert_eq!(store.request("other|k", 0).expect("a read"), None);
    store.forget_requests(Timestamp(20)).expect("a removal");
    assert_eq!(store.request("owner|k", 0).expect("a read"), None);
    assert_eq!(store.request("owner|k", ANSWER).expect("a read").as_ref(), rows.last());
}
