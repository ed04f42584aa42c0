//! What only SQLite can show: a file that may not grow.

use rallypoint_engine::state::State;
use rallypoint_model::command::Command;
use rallypoint_model::limits::Limits;
use rallypoint_store::{KeyEnforcement, Store, StoreError};
use tempfile::TempDir;

use crate::recorded::documents;
use crate::world::{World, task};

struct Bench {
    _folder: TempDir,
    store: Store,
    world: World,
}

/// A world in a store with one task.
fn bench() -> Bench {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Store::open(folder.path(), KeyEnforcement::Unique).expect("a store");
    let mut world = World::unopened(Limits::default());
    world.open();
    store.commit(&mut world.last, &world.state).expect("a commit");
    world.create(task(1));
    store.commit(&mut world.last, &world.state).expect("a commit");
    Bench { _folder: folder, store, world }
}

fn stored(store: &Store) -> (State, usize, i64) {
    let state = store.load().expect("a state");
    (state, store.journal().expect("a journal").len(), store.last_seq().expect("a number"))
}

#[test]
fn a_full_disk_is_told_as_such_leaves_nothing_and_the_next_commit_passes_when_there_is_room() {
    let mut bench = bench();
    let before = stored(&bench.store);
    let committed = bench.world.state.clone();
    bench.store.limit_pages(Some(bench.store.pages().expect("pages"))).expect("a limit");
    let mut big = task(4);
    big.goal = "x".repeat(100_000);
    bench.world.ok(Command::CreateTask(big.clone()));
    let full = bench.store.commit(&mut bench.world.last, &bench.world.state);
    assert!(matches!(full, Err(StoreError::Full)), "{full:?}");
    assert_eq!(stored(&bench.store), before);
    bench.store.limit_pages(None).expect("no limit");
    bench.world.state = committed;
    bench.world.ok(Command::CreateTask(big));
    bench.store.commit(&mut bench.world.last, &bench.world.state).expect("a commit");
    let after = bench.store.load().expect("a state");
    assert_eq!(documents(&after), documents(&bench.world.state));
    assert_eq!(after.tasks.len(), 2);
}
