//! Processes that end, are lost, or never start; time that is up.

use rallypoint_engine::view::is_idle;
use rallypoint_model::command::Command;
use rallypoint_model::ids::{GenerationId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::run::OutcomeReason;
use rallypoint_model::session::{GenerationEnd, GenerationStatus};
use rallypoint_model::task::EvidenceResult;

use crate::host::{Host, OnCancel, Verb, report};
use crate::tasks::done;
use crate::world::{World, task};

/// A task driven to its end by this host.
fn driven(limits: Limits, host: &mut Host) -> (World, TaskId) {
    let mut world = World::with_limits(limits);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    host.work(&mut world);
    (world, id)
}

fn only_generation(world: &World) -> GenerationId {
    match world.state.generations.keys().collect::<Vec<_>>().as_slice() {
        [one] => **one,
        other => panic!("{} generations", other.len()),
    }
}

#[test]
fn an_agent_that_exits_before_its_prompt_fails_its_run_with_its_last_words() {
    let mut world = World::new();
    let mut host = Host::ada(vec![]);
    host.answering = false;
    let id = world.create(task(1));
    host.work(&mut world);
    let generation_id = only_generation(&world);
    let stderr = rallypoint_model::agent_io::AgentItem::Stderr { text: "warn\nno licence\n".to_owned() };
    report(&mut world, generation_id, vec![stderr]);
    host.verb(&mut world, generation_id, Verb::Exit(7));
    assert_eq!(world.story(id), "failed(run_failed), exit 1: goal failed");
    let expected =
        OutcomeReason::AgentExited { code: Some(7), signal: None, stderr: "no licence".to_owned() };
    assert_eq!(world.last_run(id).reason, Some(expected));
}

#[test]
fn an_agent_that_exits_in_its_turn_fails_its_run_and_what_it_said_is_kept() {
    let mut host = Host::ada(vec![vec![Verb::Say("Half"), Verb::Exit(1)]]);
    let (world, id) = driven(Limits::default(), &mut host);
    assert_eq!(world.story(id), "failed(run_failed), exit 1: goal failed");
    assert_eq!(world.last_run(id).summary, "Half");
    assert_eq!(world.last_run(id).result.as_ref().map(|result| result.bytes), Some(4));
    assert!(is_idle(&world.state));
}

#[test]
fn an_agent_that_exits_after_its_answer_has_completed() {
    let mut host = Host::ada(vec![vec![Verb::Say("Fixed."), Verb::Stop("end_turn"), Verb::Exit(0)]]);
    let (world, id) = driven(Limits::default(), &mut host);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
}

#[test]
fn a_program_that_can_not_be_started_fails_at_once_and_is_not_tried_again() {
    let mut host = Host::ada(vec![]);
    host.launches.push_back(GenerationEnd::StartFailed { message: "not found".to_owned() });
    let (world, id) = driven(Limits::default(), &mut host);
    assert_eq!(world.story(id), "failed(run_failed), exit 1: goal failed");
    assert_eq!(world.state.generations.len(), 1);
}

#[test]
fn a_prompt_that_no_process_accepted_is_sent_for_the_first_time_by_another() {
    for end in [GenerationEnd::Lost, GenerationEnd::NeverStarted] {
        let mut host = Host::ada(vec![vec![Verb::Unaccepted(end)], done("Fixed.")]);
        let (world, id) = driven(Limits::default(), &mut host);
        assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
        assert_eq!((world.state.generations.len(), host.prompts.len()), (2, 1));
    }
}

#[test]
fn a_start_is_renewed_at_most_as_often_as_the_crash_budget_says() {
    let mut host = Host::ada(vec![]);
    host.launches = vec![GenerationEnd::NeverStarted; 9].into();
    let (world, id) = driven(Limits { crash_budget: 2, ..Limits::default() }, &mut host);
    assert_eq!(world.story(id), "interrupted(cut), exit 1: goal lost");
    assert_eq!((world.state.generations.len(), world.last_run(id).attempts), (3, 3));
}

#[test]
fn a_prompt_that_was_accepted_is_never_sent_again() {
    let mut host = Host::ada(vec![vec![Verb::Gone(GenerationEnd::Lost)], done("Twice?")]);
    let (world, id) = driven(Limits::default(), &mut host);
    assert_eq!(world.story(id), "interrupted(cut), exit 1: goal lost");
    assert_eq!(host.prompts.len(), 1);
    assert_eq!(world.replies(id, "terminal").len(), 1);
}

#[test]
fn a_run_that_asked_for_permission_had_its_prompt_and_is_not_started_again() {
    let mut world = World::new();
    let mut host = Host::ada(vec![]);
    host.launching = true;
    let id = world.create(task(1));
    // The agent's request comes in although its spool never told that it took the prompt.
    for _ in 0..3 {
        let due = rallypoint_engine::due::due(&world.state, &world.limits);
        host.effect(&mut world, due[0].clone());
    }
    let generation_id = only_generation(&world);
    host.verb(&mut world, generation_id, Verb::AskOn("7"));
    host.verb(&mut world, generation_id, Verb::Gone(GenerationEnd::Lost));
    assert_eq!(world.story(id), "interrupted(cut), exit 1: goal lost");
    assert_eq!(world.state.generations.len(), 1);
}

#[test]
fn after_a_reboot_a_journalled_prompt_is_interrupted_and_one_not_yet_given_is_sent() {
    let mut host = Host::ada(vec![vec![Verb::Unaccepted(GenerationEnd::Rebooted)]]);
    let (world, id) = driven(Limits::default(), &mut host);
    assert_eq!(world.story(id), "interrupted(cut), exit 1: goal interrupted");

    let mut host = Host::ada(vec![done("Fixed.")]);
    host.launches.push_back(GenerationEnd::Rebooted);
    let (world, id) = driven(Limits::default(), &mut host);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
}

#[test]
fn a_run_whose_environment_is_lost_is_interrupted_and_names_the_variables() {
    let mut host = Host::ada(vec![]);
    host.launches.push_back(GenerationEnd::EnvironmentLost { names: vec!["API_KEY".to_owned()] });
    let (world, id) = driven(Limits::default(), &mut host);
    assert_eq!(world.story(id), "interrupted(cut), exit 1: goal interrupted");
    assert!(world.replies(id, "terminal")[0].contains("environment lost: API_KEY"));
}

#[test]
fn an_agent_that_never_gets_ready_fails_at_the_setup_limit_and_is_ended() {
    for launched in [false, true] {
        let mut world = World::new();
        let mut host = Host::ada(vec![]);
        (host.launching, host.answering) = (launched, false);
        let id = world.create(task(1));
        host.finish(&mut world, id);
        assert_eq!(world.story(id), "failed(run_failed), exit 1: goal failed");
        let limit_ms = world.limits.setup_timeout_ms;
        assert_eq!(
            world.last_run(id).reason,
            Some(OutcomeReason::SetupTimedOut { limit_ms, stderr: String::new() })
        );
        let generation_id = only_generation(&world);
        assert_eq!(world.state.generations[&generation_id].status, GenerationStatus::Ended);
    }
}

#[test]
fn a_run_over_its_time_is_cancelled_and_timed_out_with_its_partial_output() {
    for on_cancel in [OnCancel::Answers("cancelled"), OnCancel::Fails(-32800), OnCancel::Ignores] {
        let mut host = Host::ada(vec![vec![Verb::Say("Half")]]);
        host.on_cancel = on_cancel;
        let (world, id) = driven(Limits { run_timeout_seconds: 60, ..Limits::default() }, &mut host);
        assert_eq!(world.story(id), "failed(timed_out), exit 4: goal timed_out", "{on_cancel:?}");
        assert_eq!(world.last_run(id).summary, "Half");
        let expected = OutcomeReason::Deadline { limit: "runTimeoutSeconds".to_owned(), limit_ms: 60_000 };
        assert_eq!(world.last_run(id).reason, Some(expected));
        assert_eq!(world.replies(id, "terminal").len(), 1);
    }
}

#[test]
fn a_run_over_its_time_whose_agent_dies_of_the_cancel_is_timed_out() {
    let mut world = World::with_limits(Limits { run_timeout_seconds: 60, ..Limits::default() });
    let mut host = Host::ada(vec![vec![Verb::Say("Half")]]);
    host.on_cancel = OnCancel::Ignores;
    let id = world.create(task(1));
    host.work(&mut world);
    world.pass_to_wakeup();
    let generation_id = only_generation(&world);
    host.verb(&mut world, generation_id, Verb::Exit(1));
    assert_eq!(world.story(id), "failed(timed_out), exit 4: goal timed_out");
}

#[test]
fn waiting_in_the_queue_does_not_count_as_active_time() {
    let mut world =
        World::with_limits(Limits { lane_subagent: 1, run_timeout_seconds: 60, ..Limits::default() });
    let mut host = Host::ada(vec![vec![], done("Fixed.")]);
    let (first, second) = (world.create(task(1)), world.create(task(2)));
    host.finish(&mut world, first);
    host.finish(&mut world, second);
    assert_eq!(world.story(first), "failed(timed_out), exit 4: goal timed_out");
    assert_eq!(world.story(second), "done(proven), exit 0: goal completed");
}

#[test]
fn the_total_time_of_a_task_runs_across_its_corrective_rounds() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed."), vec![Verb::Say("Still at it")]]);
    host.checks = vec![EvidenceResult::Failed; 3].into();
    let mut create = task(1);
    create.timeout_ms = 60_000;
    let id = world.create(create);
    let started = world.now;
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "failed(timed_out), exit 4: goal completed, corrective timed_out");
    assert!(world.now.since(started) < 61_000, "it took {} ms", world.now.since(started));
    assert_eq!(world.replies(id, "terminal").len(), 1);
}

#[test]
fn a_task_whose_time_is_up_while_it_is_checked_or_asks_has_failed() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    host.checking = false;
    let mut create = task(1);
    create.timeout_ms = 60_000;
    let id = world.create(create.clone());
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "failed(timed_out), exit 4: goal completed");

    let mut world = World::new();
    let mut host = Host::ada(vec![crate::questions::blocked()]);
    let id = world.create(create);
    host.finish(&mut world, id);
    world.pass_to_wakeup();
    assert_eq!(world.story(id), "failed(timed_out), exit 4: goal completed");
    assert_eq!(world.open_questions().len(), 0);
}

#[test]
fn a_launch_or_an_end_of_something_unknown_or_ended_changes_nothing() {
    let mut host = Host::ada(vec![done("Fixed.")]);
    let (mut world, _) = driven(Limits::default(), &mut host);
    let known = only_generation(&world);
    let unknown = GenerationId(uuid::Uuid::nil());
    for generation_id in [known, unknown] {
        for command in [
            Command::GenerationLaunched { generation_id },
            Command::GenerationGone { generation_id, end: GenerationEnd::Lost },
            Command::GenerationCleaned { generation_id, swept: 1, left: 1 },
        ] {
            let before = world.state.clone();
            assert_eq!(world.ok(command), rallypoint_model::command::Outcome::Stale);
            assert!(world.last.is_empty());
            assert_eq!(world.state, before);
        }
    }
}

/// Ada, whose agent is trusted to open its conversation again.
fn restorable() -> rallypoint_model::command::CreateTask {
    let mut create = task(1);
    create.agents[0].trusts_load = true;
    create
}

#[test]
fn a_cut_turn_goes_on_in_its_restored_conversation_and_the_prompt_is_not_sent_again() {
    for cut in [Verb::Exit(1), Verb::Gone(GenerationEnd::Lost)] {
        let mut world = World::new();
        let mut host = Host::ada(vec![vec![Verb::Say("Half"), cut.clone()], done("The rest.")]);
        let id = world.create(restorable());
        host.finish(&mut world, id);
        let first = if matches!(cut, Verb::Exit(_)) { "failed" } else { "lost" };
        assert_eq!(world.story(id), format!("done(proven), exit 0: goal {first}, continuing completed"));
        let said: Vec<&str> = host.prompts.iter().map(|(_, words)| words.as_str()).collect();
        assert_eq!(said, ["Fix the test", "Continue where the work was cut, or report how far it got."]);
        assert_eq!(world.state.generations.len(), 2);
    }
}

#[test]
fn a_conversation_that_is_not_trusted_to_come_back_is_not_gone_on_with() {
    let mut host = Host::ada(vec![vec![Verb::Say("Half"), Verb::Gone(GenerationEnd::Lost)], done("x")]);
    let (world, id) = driven(Limits::default(), &mut host);
    assert_eq!(world.story(id), "interrupted(cut), exit 1: goal lost");
    assert_eq!(host.prompts.len(), 1);
}

#[test]
fn a_turn_that_is_cut_again_and_again_is_continued_within_the_crash_budget() {
    let mut world = World::with_limits(Limits { crash_budget: 2, ..Limits::default() });
    let mut host = Host::ada(vec![vec![Verb::Exit(1)]; 9]);
    let id = world.create(restorable());
    host.finish(&mut world, id);
    assert_eq!(
        world.story(id),
        "failed(run_failed), exit 1: goal failed, continuing failed, continuing failed"
    );
}

#[test]
fn an_earlier_conversation_that_can_not_be_opened_again_is_interrupted_and_left_to_a_person() {
    let mut world = World::new();
    let mut host = Host::ada(vec![vec![Verb::Say("Half"), Verb::Exit(1)], done("Anew.")]);
    host.session_load = Some((-32602, "no such session"));
    let id = world.create(restorable());
    host.finish(&mut world, id);
    host.work(&mut world);
    assert_eq!(world.story(id), "interrupted(cut), exit 1: goal failed, continuing interrupted");
    world.ok(Command::RetryTask { task_id: id, by: "kim".to_owned(), text: None });
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal failed, continuing interrupted, goal completed");
}

#[test]
fn nothing_is_said_to_the_session_of_a_task_that_ended_even_where_it_could_be_restored() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    let id = world.create(restorable());
    host.finish(&mut world, id);
    host.work(&mut world);
    let (session_id, by) = (world.session(id), "kim".to_owned());
    let refusal = world.refused(Command::SendToSession { session_id, text: "more".to_owned(), by });
    assert_eq!(refusal.0, rallypoint_model::refusal::RefusalCode::Conflict);
}
