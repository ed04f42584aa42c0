//! Stopping at every point of a task's life, and races with its completion.

use rallypoint_engine::view::is_idle;
use rallypoint_model::command::{Command, Outcome};
use rallypoint_model::ids::TaskId;
use rallypoint_model::limits::Limits;
use rallypoint_model::refusal::RefusalCode;
use rallypoint_model::task::EvidenceResult;

use crate::host::{Host, OnCancel, Verb};
use crate::questions::blocked;
use crate::tasks::done;
use crate::world::{World, task};

fn stop(world: &mut World, task_id: TaskId) {
    world.ok(Command::StopTask { task_id, by: "kim".to_owned() });
}

/// A task that waits in the turn that the host has begun.
fn begun(host: &mut Host) -> (World, TaskId) {
    let mut world = World::new();
    let id = world.create(task(1));
    host.work(&mut world);
    (world, id)
}

#[test]
fn a_queued_task_is_stopped_at_once() {
    let mut world = World::with_limits(Limits { lane_subagent: 1, ..Limits::default() });
    let (_first, second) = (world.create(task(1)), world.create(task(2)));
    stop(&mut world, second);
    assert_eq!(world.story(second), "interrupted(stopped), exit 130: goal cancelled");
    assert_eq!(
        world.replies(second, "terminal"),
        [format!("Stopped, not done. `rally task retry {second}` gives it another run.")]
    );
}

#[test]
fn a_starting_task_is_stopped_at_once_and_its_process_ended() {
    let mut host = Host::ada(vec![]);
    host.answering = false;
    let (mut world, id) = begun(&mut host);
    assert_eq!(world.story(id), "active, not settled: goal [starting]");
    stop(&mut world, id);
    assert_eq!(world.story(id), "interrupted(stopped), exit 130: goal cancelled");
    host.work(&mut world);
    assert!(is_idle(&world.state));
}

#[test]
fn a_running_task_is_cancelled_with_its_agent_and_keeps_what_was_said() {
    for on_cancel in [OnCancel::Answers("cancelled"), OnCancel::Fails(-32800)] {
        let mut host = Host::ada(vec![vec![Verb::Say("Half")]]);
        host.on_cancel = on_cancel;
        let (mut world, id) = begun(&mut host);
        stop(&mut world, id);
        assert_eq!(world.story(id), "active, not settled: goal [running]");
        host.finish(&mut world, id);
        host.work(&mut world);
        assert_eq!(world.story(id), "interrupted(stopped), exit 130: goal cancelled");
        let run_id = world.last_run(id).id;
        let told = format!(
            "system: ada was cancelled (stopped by kim); what it said is kept: `rally result get {run_id}`"
        );
        assert!(world.room().contains(&told), "{:#?}", world.room());
        assert!(is_idle(&world.state));
    }
}

#[test]
fn an_agent_that_ignores_the_cancel_is_killed_after_the_grace() {
    let mut host = Host::ada(vec![vec![Verb::Say("Half")]]);
    host.on_cancel = OnCancel::Ignores;
    let (mut world, id) = begun(&mut host);
    stop(&mut world, id);
    host.work(&mut world);
    world.pass(world.limits.cancel_grace_ms - 10);
    assert_eq!(world.story(id), "active, not settled: goal [running]");
    world.pass(10);
    assert_eq!(world.story(id), "interrupted(stopped), exit 130: goal killed");
    host.work(&mut world);
    assert!(is_idle(&world.state));
}

#[test]
fn an_agent_that_dies_of_the_cancel_was_killed() {
    let mut host = Host::ada(vec![vec![]]);
    host.on_cancel = OnCancel::Ignores;
    let (mut world, id) = begun(&mut host);
    stop(&mut world, id);
    let generation_id = *world.state.generations.keys().next().expect("a generation");
    host.verb(&mut world, generation_id, Verb::Exit(1));
    assert_eq!(world.story(id), "interrupted(stopped), exit 130: goal killed");
}

#[test]
fn a_task_that_waits_for_an_answer_is_stopped_and_its_question_withdrawn() {
    let mut host = Host::ada(vec![blocked()]);
    let mut world = World::new();
    let id = world.create(task(1));
    host.finish(&mut world, id);
    stop(&mut world, id);
    assert_eq!(world.story(id), "interrupted(stopped), exit 130: goal completed");
    assert_eq!(world.open_questions().len(), 0);
}

#[test]
fn a_task_that_waits_for_a_permission_is_stopped_with_exit_130_and_not_3() {
    let mut host = Host::ada(vec![vec![Verb::Ask("7")]]);
    let mut world = World::new();
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "blocked(question_asked), exit 3: goal [waiting_approval]");
    stop(&mut world, id);
    assert_eq!(world.story(id), "active, not settled: goal [running]");
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "interrupted(stopped), exit 130: goal cancelled");
}

#[test]
fn a_task_that_is_checked_is_stopped_and_the_checks_that_come_later_are_not_taken() {
    let mut host = Host::ada(vec![done("Fixed.")]);
    host.checking = false;
    let mut world = World::new();
    let id = world.create(task(1));
    host.work(&mut world);
    world.pass_to_wakeup();
    assert_eq!(world.story(id), "validating, not settled: goal completed");
    stop(&mut world, id);
    assert_eq!(world.story(id), "interrupted(stopped), exit 130: goal completed");
    let late = Command::Verified { task_id: id, round: 1, evidence: Vec::new() };
    assert_eq!(world.ok(late), Outcome::Stale);
}

#[test]
fn a_completion_that_beats_the_stop_is_one_completion() {
    let mut host = Host::ada(vec![vec![Verb::Say("Fixed.")]]);
    host.on_cancel = OnCancel::Answers("end_turn");
    let (mut world, id) = begun(&mut host);
    stop(&mut world, id);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    assert_eq!(world.facts("run.ended").len(), 4, "three turns and the run");
}

#[test]
fn after_a_stop_nothing_is_sent_back_or_continued() {
    for (stop_reason, story) in [
        ("end_turn", "waiting_on_user(verification_exhausted), exit 5: goal completed"),
        ("max_tokens", "waiting_on_user(no_usable_result), exit 1: goal incomplete"),
    ] {
        let mut host = Host::ada(vec![vec![Verb::Say("Fixed.")]]).checks(&[EvidenceResult::Failed]);
        host.on_cancel = OnCancel::Answers(stop_reason);
        let (mut world, id) = begun(&mut host);
        stop(&mut world, id);
        host.finish(&mut world, id);
        assert_eq!(world.story(id), story);
    }
}

#[test]
fn a_second_stop_ends_a_task_that_went_on_after_the_first() {
    let mut host = Host::ada(vec![vec![Verb::Say("Fixed.")]]).checks(&[EvidenceResult::Failed]);
    host.on_cancel = OnCancel::Answers("end_turn");
    let (mut world, id) = begun(&mut host);
    stop(&mut world, id);
    let facts = world.journal.len();
    stop(&mut world, id);
    assert_eq!(world.journal.len(), facts, "the same wish twice");
    host.finish(&mut world, id);
    stop(&mut world, id);
    assert_eq!(world.story(id), "interrupted(stopped), exit 130: goal completed");
}

#[test]
fn a_worker_that_reports_itself_blocked_after_a_stop_asks_nobody() {
    let mut host = Host::ada(vec![vec![Verb::Say(crate::questions::REPORT_BLOCKED)]]);
    host.on_cancel = OnCancel::Answers("end_turn");
    let (mut world, id) = begun(&mut host);
    stop(&mut world, id);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "interrupted(stopped), exit 130: goal completed");
    assert_eq!(world.state.questions.len(), 0);
}

#[test]
fn a_task_that_has_ended_can_not_be_stopped() {
    let mut host = Host::ada(vec![done("Fixed.")]);
    let mut world = World::new();
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let refusal = world.refused(Command::StopTask { task_id: id, by: "kim".to_owned() });
    assert_eq!(
        refusal,
        (RefusalCode::Conflict, "the task has ended as `done`; nothing is left to stop".to_owned())
    );
}
