//! A transaction that fails leaves nothing, whatever made it fail.

use rallypoint_engine::decide::UniqueKeys;
use rallypoint_engine::state::State;
use rallypoint_model::command::{Command, CreateTask};
use rallypoint_model::ids::TaskId;
use rallypoint_model::limits::Limits;
use rallypoint_store::{JournalStore, KeyEnforcement, StoreError};
use uuid::Uuid;

use crate::place::Place;
use crate::world::{World, task};

struct Bench<P> {
    _place: P,
    store: Box<dyn JournalStore>,
    world: World,
}

/// A world in a store with one task under the key `k`.
fn bench<P: Place>(keys: KeyEnforcement) -> Bench<P> {
    let place = P::empty();
    let mut store = place.open(keys).expect("a store");
    let mut world = World::unopened(Limits::default());
    world.open();
    store.commit(&mut world.last, &world.state).expect("a commit");
    world.create(keyed(1));
    store.commit(&mut world.last, &world.state).expect("a commit");
    Bench { _place: place, store, world }
}

fn keyed(number: u128) -> CreateTask {
    let mut create = task(number);
    create.idempotency_key = Some("k".to_owned());
    create
}

/// Decides the same request again as if its key were not known.
fn again<P>(bench: &mut Bench<P>) -> Result<(), StoreError> {
    bench.world.unique_keys = UniqueKeys::Ignored;
    bench.world.ok(Command::CreateTask(keyed(2)));
    bench.store.commit(&mut bench.world.last, &bench.world.state)
}

fn stored(store: &dyn JournalStore) -> (State, usize, i64) {
    let state = store.load().expect("a state");
    (state, store.journal().expect("a journal").len(), store.last_seq().expect("a number"))
}

pub(crate) fn a_key_is_unique_in_the_database_even_when_the_engine_does_not_look<P: Place>() {
    let mut bench = bench::<P>(KeyEnforcement::Unique);
    let before = stored(&*bench.store);
    let refused = again(&mut bench);
    assert!(matches!(refused, Err(StoreError::Database(_))), "{refused:?}");
    assert_eq!(stored(&*bench.store), before, "something of the failed transaction is there");
    let unnumbered = bench.world.last.events.iter().all(|record| record.seq == 0);
    assert!(unnumbered, "facts that are not stored got numbers");
}

pub(crate) fn without_the_unique_index_the_same_request_is_stored_twice<P: Place>() {
    let mut bench = bench::<P>(KeyEnforcement::Dropped);
    again(&mut bench).expect("a commit");
    assert_eq!(bench.store.load().expect("a state").tasks.len(), 2);
}

pub(crate) fn numbers_of_a_failed_transaction_are_given_to_the_next_one<P: Place>() {
    let mut bench = bench::<P>(KeyEnforcement::Unique);
    let last = bench.store.last_seq().expect("a number");
    again(&mut bench).expect_err("the key is there");
    let mut world = World::unopened(Limits::default());
    world.state = bench.store.load().expect("a state");
    world.ids.next = 0x9000;
    world.create(task(3));
    bench.store.commit(&mut world.last, &world.state).expect("a commit");
    let numbers: Vec<i64> = world.last.events.iter().map(|record| record.seq).collect();
    let expected: Vec<i64> = (last + 1..).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
    let task_id = TaskId(Uuid::from_u128(0x102));
    assert!(!bench.store.load().expect("a state").tasks.contains_key(&task_id));
}

pub(crate) fn a_version_that_is_taken_is_refused_by_the_database<P: Place>() {
    let mut bench = bench::<P>(KeyEnforcement::Unique);
    let before = stored(&*bench.store);
    let mut behind = World::unopened(Limits::default());
    behind.open();
    behind.create(task(5));
    let refused = bench.store.commit(&mut behind.last, &behind.state);
    assert!(matches!(refused, Err(StoreError::Database(_))), "{refused:?}");
    assert_eq!(stored(&*bench.store), before);
}
