//! Ending trees: all of it, each node on its own, told once.

use rallypoint_engine::view::is_idle;
use rallypoint_model::command::Command;
use rallypoint_model::event::Event;
use rallypoint_model::ids::{SessionId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::refusal::RefusalCode;

use crate::host::{Host, OnCancel, Verb};
use crate::tasks::done;
use crate::trees::{deep, spawn};
use crate::world::{World, task};

/// A task of `ada`, its child `bob`, that one's child `cyd`, and a second child `dan`.
struct Family {
    world: World,
    host: Host,
    id: TaskId,
    ada: SessionId,
    bob: SessionId,
}

fn family(limits: Limits) -> Family {
    let mut world = World::with_limits(limits);
    let mut host = Host::new(&[("cyd", vec![vec![Verb::Say("Half")]])]);
    let id = world.create(task(1));
    host.work(&mut world);
    let ada = world.session(id);
    let bob = spawn(&mut world, id, Some(ada), "bob");
    host.work(&mut world);
    spawn(&mut world, id, Some(bob), "cyd");
    spawn(&mut world, id, Some(ada), "dan");
    host.work(&mut world);
    Family { world, host, id, ada, bob }
}

fn stop_session(world: &mut World, session_id: SessionId) {
    world.ok(Command::StopSession { session_id, by: "kim".to_owned() });
}

/// Does what is due until what has answered is settled.
fn settle(world: &mut World, host: &mut Host) {
    host.work(world);
    world.pass(world.limits.settle_ms);
    host.work(world);
}

fn counts(world: &World) -> Vec<Vec<(String, u32)>> {
    world
        .facts("tree.stopped")
        .into_iter()
        .map(|event| match event {
            Event::TreeStopped { counts, .. } => {
                counts.iter().map(|(word, count)| (word.clone(), *count)).collect()
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

fn tree_entries(world: &World) -> Vec<String> {
    let entries = world.messages().into_iter().filter(|message| message.metadata.get("treeStop").is_some());
    entries.map(|message| message.text.clone()).collect()
}

#[test]
fn a_stop_of_a_session_ends_all_below_it_and_nothing_beside_it() {
    let Family { mut world, mut host, id, bob, .. } = family(deep());
    stop_session(&mut world, bob);
    settle(&mut world, &mut host);
    assert_eq!(
        world.story(id),
        "active, not settled: goal [running], goal cancelled, goal cancelled, goal [running], follow_up [queued]"
    );
    assert_eq!(counts(&world), [[("cancelled".to_owned(), 2)]]);
    let told = tree_entries(&world);
    assert_eq!(told.len(), 1);
    let lines: Vec<&str> = told[0].lines().collect();
    assert_eq!(lines[..2], ["kim stopped the work: 2 cancelled", "  - bob: cancelled"]);
    assert!(
        lines[2].starts_with("    - cyd: cancelled; what it said is kept: `rally result get "),
        "{told:?}"
    );
    let single = world.room().into_iter().filter(|line| line.contains("was cancelled")).count();
    assert_eq!(single, 0, "the same end is not told twice");
}

#[test]
fn a_stuck_sibling_delays_nobody_and_the_tree_is_told_when_it_is_gone_too() {
    let Family { mut world, mut host, id, ada, .. } = family(deep());
    let stuck = world.state.sessions[&ada].generation_id.expect("a process");
    world.ok(Command::StopTask { task_id: id, by: "kim".to_owned() });
    for effect in rallypoint_engine::due::due(&world.state, &world.limits) {
        // Ada's process takes the cancel and does not answer.
        if let rallypoint_engine::due::Effect::Attend(attendance) = &effect
            && attendance.generation_id == stuck
        {
            continue;
        }
        host.effect(&mut world, effect);
    }
    host.on_cancel = OnCancel::Ignores;
    settle(&mut world, &mut host);
    assert_eq!(
        world.story(id),
        "active, not settled: goal [running], goal cancelled, goal cancelled, goal cancelled"
    );
    let live: Vec<_> = world.state.generations.values().filter(|generation| generation.is_live()).collect();
    assert_eq!(live.len(), 1, "the others' processes are gone already");
    assert_eq!(tree_entries(&world).len(), 0);
    world.pass(world.limits.cancel_grace_ms);
    host.work(&mut world);
    assert_eq!(counts(&world), [[("cancelled".to_owned(), 3), ("killed".to_owned(), 1)]]);
    assert_eq!(tree_entries(&world).len(), 1);
    assert_eq!(world.replies(id, "terminal").len(), 1);
    assert!(is_idle(&world.state));
}

#[test]
fn the_last_worker_that_is_stopped_interrupts_the_task_and_a_retry_takes_another_session() {
    let mut world = World::with_limits(deep());
    let mut host = Host::new(&[("ada", vec![vec![], done("Fixed.")])]);
    let id = world.create(task(1));
    host.work(&mut world);
    let ada = world.session(id);
    stop_session(&mut world, ada);
    stop_session(&mut world, ada);
    settle(&mut world, &mut host);
    assert_eq!(world.story(id), "interrupted(stopped), exit 130: goal cancelled");
    assert_eq!(tree_entries(&world).len(), 0, "one run tells its own end");
    let (code, words) = world.refused(Command::StopSession { session_id: ada, by: "kim".to_owned() });
    assert_eq!(code, RefusalCode::Conflict);
    assert!(words.contains("nothing is left to stop"), "{words}");
    world.ok(Command::RetryTask { task_id: id, by: "kim".to_owned(), text: None });
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal cancelled, goal completed");
    assert_eq!(world.task(id).sessions.len(), 2);
}

#[test]
fn a_child_that_is_stopped_alone_is_told_to_its_parent() {
    let Family { mut world, mut host, id, ada, bob } = family(deep());
    world.ok(Command::AwaitChildren { session_id: ada });
    stop_session(&mut world, bob);
    settle(&mut world, &mut host);
    let told = world.runs(id).into_iter().filter(|run| run.session_id == ada).count();
    assert_eq!(told, 2, "its goal, and one word of bob's end; cyd ended with its parent");
}

#[test]
fn what_is_parked_in_a_tree_is_never_started_once_the_stop_is_asked() {
    let Family { mut world, mut host, id, .. } = family(Limits { lane_subagent: 2, ..deep() });
    assert_eq!(world.state.running_slots(), 2);
    world.ok(Command::StopTask { task_id: id, by: "kim".to_owned() });
    settle(&mut world, &mut host);
    assert_eq!(
        world.story(id),
        "interrupted(stopped), exit 130: goal cancelled, goal cancelled, goal cancelled, goal cancelled"
    );
    let started = world.facts("generation.started").len();
    assert_eq!(started, 2);
    let (code, _) = world.refused(Command::SpawnSession(rallypoint_model::command::SpawnSession {
        task_id: id,
        parent_session_id: None,
        launch: crate::world::agent("eve"),
        idempotency_key: None,
    }));
    assert_eq!(code, RefusalCode::Conflict);
}

#[test]
fn processes_that_could_not_be_ended_are_counted_with_their_node() {
    let Family { mut world, mut host, bob, .. } = family(deep());
    stop_session(&mut world, bob);
    let generation_id = world.state.sessions[&bob].generation_id.expect("a process");
    for _ in 0..50 {
        world.pass(10);
        let effects = rallypoint_engine::due::due(&world.state, &world.limits);
        for effect in effects {
            if effect == rallypoint_engine::due::Effect::Clean(generation_id) {
                world.ok(Command::GenerationCleaned { generation_id, swept: 3, left: 1 });
            } else {
                host.effect(&mut world, effect);
            }
        }
    }
    let told = tree_entries(&world);
    assert!(told[0].contains("- bob: cancelled; 1 of its processes could not be ended"), "{told:?}");
}
