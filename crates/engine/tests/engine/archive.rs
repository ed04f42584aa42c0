//! Tasks that are over: the archive's clock, deleting, old outputs, failed removals.

use rallypoint_engine::apply::apply;
use rallypoint_engine::changes::Changes;
use rallypoint_engine::decide::archive::is_tried_again;
use rallypoint_engine::due::{Effect, due, next_wakeup};
use rallypoint_engine::state::State;
use rallypoint_model::command::{Acceptance, Command};
use rallypoint_model::event::Event;
use rallypoint_model::ids::TaskId;
use rallypoint_model::length::Minutes;
use rallypoint_model::limits::Limits;
use rallypoint_model::question::QuestionStatus;
use rallypoint_model::refusal::RefusalCode;
use rallypoint_model::retention::DeleteMode;
use rallypoint_model::task::EvidenceResult;
use rallypoint_model::time::Timestamp;

use crate::host::{Host, Verb};
use crate::invariants::{documents, replay};
use crate::tasks::done;
use crate::world::{World, task};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn by() -> String {
    "kim".to_owned()
}

/// A task that ended as done, with nothing left of its process.
fn finished(world: &mut World, number: u128, words: &'static str) -> TaskId {
    let mut host = Host::ada(vec![done(words)]);
    let id = world.create(task(number));
    host.finish(world, id);
    host.work(world);
    id
}

fn archived_at(world: &World, id: TaskId) -> Option<Timestamp> {
    let at = world.task(id).archived_at;
    for session in &world.task(id).sessions {
        assert_eq!(world.state.sessions[session].archived_at, at, "the sessions go with their task");
    }
    at
}

/// Loses everything that is not in the journal.
fn restart(world: &mut World) {
    let mut state = State::default();
    let mut unused = Changes::default();
    for record in &world.journal {
        apply(&mut state, record, &mut unused);
    }
    world.state = state;
}

#[test]
fn a_task_is_archived_an_hour_after_its_end_and_not_before() {
    let mut world = World::new();
    let id = finished(&mut world, 1, "Fixed.");
    let ended = world.task(id).ended_at.expect("ended");
    assert_eq!(next_wakeup(&world.state, &world.limits), Some(ended.plus(HOUR)));
    world.now = ended.plus(HOUR - 1);
    world.ok(Command::Tick);
    assert_eq!(archived_at(&world, id), None);
    world.pass(1);
    assert_eq!(archived_at(&world, id), Some(ended.plus(HOUR)));
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    assert_eq!(next_wakeup(&world.state, &world.limits), None);
    world.pass(DAY);
    assert_eq!(world.facts("task.archived").len(), 1);
}

#[test]
fn the_clock_starts_at_the_end_and_not_at_the_beginning() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    host.checking = false;
    let id = world.create(task(1));
    host.finish(&mut world, id);
    world.pass(5 * HOUR);
    assert_eq!(archived_at(&world, id), None, "a task that is being checked has not ended");
    host.checking = true;
    host.finish(&mut world, id);
    world.pass(59 * MINUTE);
    assert_eq!(archived_at(&world, id), None);
    world.pass(2 * MINUTE);
    assert!(archived_at(&world, id).is_some());
}

#[test]
fn a_restart_does_not_start_the_clock_anew() {
    let mut world = World::new();
    let id = finished(&mut world, 1, "Fixed.");
    let ended = world.task(id).ended_at.expect("ended");
    world.now = ended.plus(40 * MINUTE);
    restart(&mut world);
    assert_eq!(next_wakeup(&world.state, &world.limits), Some(ended.plus(HOUR)));
    world.now = ended.plus(30 * HOUR);
    restart(&mut world);
    world.ok(Command::Tick);
    assert_eq!(
        archived_at(&world, id),
        Some(ended.plus(30 * HOUR)),
        "what came due while nobody ran is done"
    );
}

#[test]
fn a_clock_that_is_set_back_only_makes_it_wait_longer() {
    let mut world = World::new();
    let id = finished(&mut world, 1, "Fixed.");
    let ended = world.task(id).ended_at.expect("ended");
    world.now = ended.plus(-5 * HOUR);
    world.ok(Command::Tick);
    world.pass(HOUR);
    assert_eq!(archived_at(&world, id), None);
    world.now = ended.plus(HOUR);
    world.ok(Command::Tick);
    assert!(archived_at(&world, id).is_some());

    // Archived, then set back: it stays archived, and nothing of it is old.
    world.now = ended.plus(-5 * HOUR);
    world.ok(Command::Tick);
    world.ok(Command::RemoveResults { keep_ms: HOUR, at_most: 10 });
    assert!(archived_at(&world, id).is_some());
    assert!(world.last.removed_blobs.is_empty());
}

#[test]
fn a_clock_that_is_set_forward_archives_early_and_loses_nothing() {
    let mut world = World::new();
    let id = finished(&mut world, 1, "Fixed.");
    let before = world.now;
    world.pass(6 * HOUR);
    assert!(archived_at(&world, id).is_some());
    world.now = before;
    world.ok(Command::UnarchiveTask { task_id: id, by: by() });
    world.ok(Command::Tick);
    assert_eq!(archived_at(&world, id), None);
    world.pass(59 * MINUTE);
    assert_eq!(archived_at(&world, id), None, "its clock starts anew when it is brought back");
    world.pass(2 * MINUTE);
    assert!(archived_at(&world, id).is_some());
}

#[test]
fn zero_minutes_mean_never_and_parts_of_a_minute_count() {
    let mut world =
        World::with_limits(Limits { archive_after_minutes: Minutes::whole(0), ..Limits::default() });
    let id = finished(&mut world, 1, "Fixed.");
    assert_eq!(next_wakeup(&world.state, &world.limits), None);
    world.pass(1000 * DAY);
    assert_eq!(archived_at(&world, id), None);
    world.limits.archive_after_minutes = Minutes::from_millis(300);
    world.ok(Command::Tick);
    assert!(archived_at(&world, id).is_some());
}

#[test]
fn many_that_are_due_are_archived_over_several_ticks() {
    let mut world = World::new();
    for number in 0..300 {
        finished(&mut world, number, "Fixed.");
    }
    world.pass(DAY);
    let archived =
        |world: &World| world.state.tasks.values().filter(|task| task.archived_at.is_some()).count();
    assert_eq!(archived(&world), 256);
    assert!(next_wakeup(&world.state, &world.limits).is_some_and(|at| at <= world.now));
    world.pass(1);
    assert_eq!(archived(&world), 300);
}

#[test]
fn what_waits_for_a_person_is_archived_by_hand_alone_and_its_question_is_taken_back() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Look.")]);
    let mut create = task(1);
    create.criteria = Vec::new();
    create.acceptance = Acceptance::Checked;
    let id = world.create(create);
    host.finish(&mut world, id);
    host.work(&mut world);
    assert_eq!(world.story(id), "waiting_on_user(acceptance_asked), exit 3: goal completed");
    let question = world.question();
    world.pass(2 * HOUR);
    assert_eq!(archived_at(&world, id), None);
    world.ok(Command::ArchiveTask { task_id: id, by: by() });
    assert!(archived_at(&world, id).is_some());
    assert_eq!(world.state.questions[&question].status, QuestionStatus::Withdrawn);
    world.ok(Command::UnarchiveTask { task_id: id, by: by() });
    assert_eq!(archived_at(&world, id), None);
}

#[test]
fn what_is_worked_on_is_neither_archived_nor_deleted() {
    let mut world = World::new();
    let id = world.create(task(1));
    for command in [
        Command::ArchiveTask { task_id: id, by: by() },
        Command::DeleteTask { task_id: id, mode: DeleteMode::Preserve, by: by() },
        Command::DeleteTask { task_id: id, mode: DeleteMode::Purge, by: by() },
    ] {
        assert_eq!(world.refused(command).0, RefusalCode::Conflict);
    }
    let unknown = Command::ArchiveTask { task_id: TaskId(uuid::Uuid::from_u128(9)), by: by() };
    assert_eq!(world.refused(unknown).0, RefusalCode::NotFound);
}

#[test]
fn another_run_brings_an_archived_task_back() {
    let mut world = World::new();
    let id = finished(&mut world, 1, "Fixed.");
    world.pass(2 * HOUR);
    assert!(archived_at(&world, id).is_some());
    world.ok(Command::RetryTask { task_id: id, by: by(), text: None });
    assert_eq!(archived_at(&world, id), None);
    assert_eq!(world.facts("task.unarchived").len(), 1);
}

#[test]
fn a_task_whose_end_or_archiving_is_known_has_its_files_looked_after() {
    let mut world = World::new();
    let open = world.create(task(1));
    assert!(!due(&world.state, &world.limits).contains(&Effect::Export(open)));
    let mut world = World::new();
    let id = finished(&mut world, 1, "Fixed.");
    assert!(due(&world.state, &world.limits).contains(&Effect::Export(id)));
}

#[test]
fn a_preserved_task_is_hidden_and_keeps_its_words_and_can_not_go_on() {
    let mut world = World::new();
    let id = finished(&mut world, 1, "Fixed.");
    let goal = world.task(id).goal.clone();
    world.ok(Command::DeleteTask { task_id: id, mode: DeleteMode::Preserve, by: by() });
    assert!(archived_at(&world, id).is_some());
    assert_eq!(world.task(id).deleted.as_ref().map(|deletion| deletion.mode), Some(DeleteMode::Preserve));
    assert_eq!(world.task(id).goal, goal);
    assert!(world.last.purged.is_empty());
    for command in [
        Command::RetryTask { task_id: id, by: by(), text: None },
        Command::UnarchiveTask { task_id: id, by: by() },
        Command::ArchiveTask { task_id: id, by: by() },
    ] {
        assert_eq!(world.refused(command).0, RefusalCode::Conflict);
    }
    let events = world.journal.len();
    world.ok(Command::DeleteTask { task_id: id, mode: DeleteMode::Preserve, by: by() });
    assert_eq!(world.journal.len(), events, "deleting it again changes nothing");
}

#[test]
fn a_purge_waits_for_the_processes_of_the_task() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    let id = world.create(task(1));
    host.checking = false;
    host.finish(&mut world, id);
    host.checking = true;
    let check = due(&world.state, &world.limits).into_iter().find(|each| matches!(each, Effect::Verify(_)));
    host.effect(&mut world, check.expect("a check is due"));
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    let purge = Command::DeleteTask { task_id: id, mode: DeleteMode::Purge, by: by() };
    let refused = world.refused(purge.clone());
    assert_eq!(refused.0, RefusalCode::Conflict);
    host.work(&mut world);
    world.ok(purge);
}

#[test]
fn a_purged_task_keeps_its_skeleton_and_no_word() {
    let mut world = World::new();
    let turns = vec![
        vec![Verb::Say("SECRET one"), Verb::Tool("t", "pending"), Verb::Stop("end_turn")],
        vec![Verb::Say("SECRET two"), Verb::Stop("end_turn")],
    ];
    let mut host = Host::ada(turns).checks(&[EvidenceResult::Failed]);
    let mut create = task(1);
    create.goal = "SECRET goal".to_owned();
    create.title = "SECRET title".to_owned();
    create.criteria[0].text = "SECRET criterion".to_owned();
    let id = world.create(create);
    host.finish(&mut world, id);
    host.work(&mut world);
    let other = finished(&mut world, 2, "Other words.");
    let story = world.story(id);
    let counts = (world.state.runs.len(), world.state.sessions.len(), world.state.generations.len());
    assert!(documents(&world.state).to_string().contains("SECRET"));
    world.ok(Command::DeleteTask { task_id: id, mode: DeleteMode::Purge, by: by() });
    let after = documents(&world.state).to_string();
    assert!(!after.contains("SECRET"), "{after}");
    assert!(after.contains("Fix the test"), "another task keeps its words");
    assert_eq!(world.story(id), story);
    assert_eq!(world.state.tasks[&other].goal, "Fix the test");
    assert_eq!((world.state.runs.len(), world.state.sessions.len(), world.state.generations.len()), counts);
    assert_eq!(world.last.purged, [id]);
    assert_eq!(world.last.removed_blobs.len(), 2);
    assert_eq!(documents(&replay(&world.journal)), documents(&world.state));
    let retry = Command::RetryTask { task_id: id, by: by(), text: None };
    assert_eq!(world.refused(retry).0, RefusalCode::Conflict);
}

#[test]
fn an_output_that_another_task_has_too_outlives_a_purge() {
    let mut world = World::new();
    let id = finished(&mut world, 1, "Same words.");
    finished(&mut world, 2, "Same words.");
    world.ok(Command::DeleteTask { task_id: id, mode: DeleteMode::Purge, by: by() });
    assert!(world.last.removed_blobs.is_empty());
}

#[test]
fn an_output_is_removed_when_every_task_that_has_it_was_archived_long_enough_ago() {
    let mut world = World::new();
    let first = finished(&mut world, 1, "Same words.");
    world.pass(2 * HOUR);
    let second = finished(&mut world, 2, "Same words.");
    let third = finished(&mut world, 3, "Own words.");
    let remove = |world: &mut World| {
        world.ok(Command::RemoveResults { keep_ms: 2 * DAY, at_most: 10 });
        world.last.removed_blobs.len()
    };
    world.pass(3 * DAY);
    assert_eq!(remove(&mut world), 0, "the others were archived just now");
    world.ok(Command::UnarchiveTask { task_id: third, by: by() });
    world.now = archived_at(&world, second).expect("archived").plus(2 * DAY);
    assert_eq!(remove(&mut world), 1);
    let removed: Vec<TaskId> = world
        .last
        .events
        .iter()
        .filter_map(|record| match &record.event {
            Event::TaskResultsRemoved { task_id, digests } if digests.len() == 1 => Some(*task_id),
            _ => None,
        })
        .collect();
    assert_eq!(removed, [first, second]);
    assert!(world.last_run(first).result_removed && world.last_run(second).result_removed);
    assert!(!world.last_run(third).result_removed);
    assert_eq!(remove(&mut world), 0, "once is enough");
}

#[test]
fn no_output_is_removed_on_its_first_day() {
    let mut world = World::new();
    let id = finished(&mut world, 1, "Fixed.");
    world.ok(Command::ArchiveTask { task_id: id, by: by() });
    world.pass(HOUR);
    world.ok(Command::RemoveResults { keep_ms: 1, at_most: 10 });
    assert!(world.last.removed_blobs.is_empty());
    world.pass(DAY);
    world.ok(Command::RemoveResults { keep_ms: 1, at_most: 10 });
    assert_eq!(world.last.removed_blobs.len(), 1);
}

#[test]
fn a_failed_removal_is_tried_again_later_and_later_and_forgotten_when_it_is_done() {
    let mut world = World::new();
    let path = "sessions/shell/x".to_owned();
    let mut pauses = Vec::new();
    for _ in 0..12 {
        let reason = "is a folder".to_owned();
        world.ok(Command::DeleteFailed { path: path.clone(), reason, pause_ms: 10 * MINUTE });
        let failed = &world.state.failed_deletes[&path];
        pauses.push(failed.next_at.since(world.now) / MINUTE);
        assert!(!is_tried_again(failed, world.now));
        assert!(is_tried_again(failed, failed.next_at));
        assert!(
            is_tried_again(failed, world.now.plus(-3 * DAY)),
            "a clock that was set back is no reason to wait"
        );
        world.now = failed.next_at;
    }
    assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440, 1440, 1440]);
    assert_eq!(world.state.failed_deletes[&path].attempts, 12);
    assert!(world.last.events.is_empty(), "it is no fact of the journal");
    world.ok(Command::DeleteSettled { path });
    assert!(world.state.failed_deletes.is_empty());
    assert_eq!(world.last.failed_deletes.len(), 1);
    world.ok(Command::DeleteSettled { path: "sessions/y".to_owned() });
    assert!(world.last.is_empty());
}
