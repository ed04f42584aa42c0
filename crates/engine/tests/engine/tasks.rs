//! From a request to its end: the straight way, empty answers, retries, keys.

use rallypoint_engine::view::{is_idle, is_settled};
use rallypoint_model::command::{Acceptance, Command, Outcome};
use rallypoint_model::ids::{RoomId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::refusal::RefusalCode;
use rallypoint_model::session::GenerationEnd;
use rallypoint_model::task::{CriterionCheck, EvidenceResult};
use uuid::Uuid;

use crate::host::{Host, Verb};
use crate::world::{World, agent, command_criterion, task};

pub(crate) fn done(words: &'static str) -> Vec<Verb> {
    vec![Verb::Say(words), Verb::Stop("end_turn")]
}

const REPORT_FAILED: &str = "Tried.\n```json\n{\"status\":\"failed\",\"reason\":\"no compiler\",\"diffSummary\":\"\",\"filesChanged\":[],\"testResults\":[],\"acceptanceCriteriaStatus\":[],\"residualRisks\":[]}\n```";

#[test]
fn a_request_is_worked_on_checked_and_told_as_done_once() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    let id = world.create(task(1));
    assert!(!is_settled(&world.state, world.task(id)));
    host.finish(&mut world, id);
    host.work(&mut world);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    insta::assert_snapshot!(world.room().join("\n"), @r"
    kim: Fix the test
    main: Started `ada`.
    ada: [sub-agent: ada (shell) — task_complete]
    system: check `make test` passed (exit 0)
    main: Fixed.
    ");
    assert_eq!(
        world.replies(id, "terminal"),
        ["Fixed.\n\nDone, with proof:\n- check `make test` passed (exit 0)"]
    );
    assert!(is_idle(&world.state), "something is left of it");
}

#[test]
fn done_rests_on_evidence_that_is_newer_than_the_end_of_the_run() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    let id = world.create(task(1));
    host.checking = false;
    host.finish(&mut world, id);
    let ended = world.last_run(id).ended_at.expect("ended");
    let stale = vec![rallypoint_model::task::Evidence {
        id: rallypoint_model::ids::EvidenceId(Uuid::nil()),
        criterion_id: command_criterion(1).id,
        result: EvidenceResult::Passed,
        procedure: "make test".to_owned(),
        exit_code: Some(0),
        started_at: ended.plus(-1),
        ended_at: ended.plus(1),
        detail: String::new(),
    }];
    world.ok(Command::Verified { task_id: id, round: 1, evidence: stale });
    assert_eq!(world.story(id), "waiting_on_user(verification_inconclusive), exit 5: goal completed");

    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let ended = world.last_run(id).ended_at.expect("ended");
    assert!(world.task(id).evidence.iter().all(|evidence| evidence.started_at >= ended));
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
}

#[test]
fn a_worker_that_reports_failure_is_believed_and_not_sent_back() {
    let mut world = World::new();
    let mut host = Host::ada(vec![vec![Verb::Say(REPORT_FAILED), Verb::Stop("end_turn")]]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "failed(run_failed), exit 1: goal failed");
    assert_eq!(world.last_run(id).summary, "Tried.");
    assert_eq!(
        world.replies(id, "terminal"),
        [format!("`ada` failed: no compiler. `rally task retry {id}` gives it another run.")]
    );
}

#[test]
fn an_empty_answer_is_no_success_and_is_continued_within_the_crash_budget() {
    let mut world = World::with_limits(Limits { crash_budget: 2, corrective_rounds: 0, ..Limits::default() });
    let mut host = Host::ada(vec![vec![Verb::Stop("end_turn")]; 5]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(
        world.story(id),
        "waiting_on_user(no_usable_result), exit 1: goal completed_empty, \
         continuing completed_empty, continuing completed_empty"
    );
    assert_eq!(world.state.generations.len(), 1, "it continued in another conversation");
    assert_eq!(world.task(id).corrective_rounds, 0);
}

#[test]
fn an_answer_cut_by_a_token_limit_is_continued_to_a_result() {
    let mut world = World::new();
    let cut = vec![Verb::Say("half"), Verb::Stop("max_tokens")];
    let mut host = Host::ada(vec![cut, done("All of it.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal incomplete, continuing completed");
}

#[test]
fn a_refusal_of_the_model_or_an_unknown_stop_reason_fails_the_task() {
    for stop in ["refusal", "banana", "cancelled"] {
        let mut world = World::new();
        let mut host = Host::ada(vec![vec![Verb::Say("no"), Verb::Stop(stop)]]);
        let id = world.create(task(1));
        host.finish(&mut world, id);
        assert_eq!(world.story(id), "failed(run_failed), exit 1: goal failed", "{stop}");
    }
}

#[test]
fn a_task_made_unchecked_without_criteria_is_done_by_override_and_says_so() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    let mut create = task(1);
    create.criteria.clear();
    create.acceptance = Acceptance::Unchecked;
    let id = world.create(create);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(unchecked), exit 0: goal completed");
    assert_eq!(world.facts("task.overridden").len(), 1);
    assert_eq!(world.replies(id, "terminal"), ["Fixed.\n\nDone, unchecked: kim took the result beforehand."]);
}

#[test]
fn a_task_without_criteria_gets_one_that_only_a_person_can_meet() {
    let mut world = World::new();
    let mut create = task(1);
    create.criteria.clear();
    let id = world.create(create);
    let checks: Vec<CriterionCheck> = world.task(id).criteria.iter().map(|one| one.check.clone()).collect();
    assert_eq!(checks, [CriterionCheck::Human { text: "accept this result".to_owned() }]);
}

#[test]
fn a_retry_of_a_done_task_runs_the_goal_again_in_a_new_conversation() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed."), done("Fixed again.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    host.work(&mut world);
    world.ok(Command::RetryTask { task_id: id, by: "kim".to_owned(), text: Some("with care".to_owned()) });
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, goal completed");
    let said: Vec<&str> = host.prompts.iter().map(|(_, words)| words.as_str()).collect();
    assert_eq!(said, ["Fix the test", "Fix the test\n\nwith care"]);
    assert_eq!((world.state.sessions.len(), world.state.generations.len()), (2, 2), "room and sub-agent");
    assert_eq!(world.replies(id, "terminal").len(), 2, "each end is told");
}

#[test]
fn a_retry_after_a_failure_or_a_cut_gets_a_run_and_a_new_budget() {
    let ends = [
        (vec![Verb::Exit(3)], "goal failed"),
        (vec![Verb::Gone(GenerationEnd::Lost)], "goal lost"),
        (vec![Verb::Stop("end_turn")], "goal completed_empty"),
    ];
    for (first, told) in ends {
        let mut world = World::with_limits(Limits { crash_budget: 0, ..Limits::default() });
        let mut host = Host::ada(vec![first, done("Fixed.")]);
        let id = world.create(task(1));
        host.finish(&mut world, id);
        host.work(&mut world);
        world.ok(Command::RetryTask { task_id: id, by: "kim".to_owned(), text: None });
        host.finish(&mut world, id);
        assert_eq!(world.story(id), format!("done(proven), exit 0: {told}, goal completed"));
    }
}

#[test]
fn a_task_that_works_or_waits_for_a_permission_is_not_retried() {
    let mut world = World::new();
    let mut host = Host::ada(vec![vec![Verb::Ask("7"), Verb::Say("ok"), Verb::Stop("end_turn")]]);
    let id = world.create(task(1));
    let retry = || Command::RetryTask { task_id: id, by: "kim".to_owned(), text: None };
    assert_eq!(world.refused(retry()).0, RefusalCode::Conflict);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "blocked(question_asked), exit 3: goal [waiting_approval]");
    assert_eq!(world.refused(retry()).0, RefusalCode::Conflict);
    assert_eq!(world.open_questions().len(), 1);
}

#[test]
fn a_retry_after_the_time_was_up_has_the_whole_time_again() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed."), done("Fixed.")]).checks(&[EvidenceResult::Inconclusive]);
    let mut create = task(1);
    create.timeout_ms = 60_000;
    let id = world.create(create);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "waiting_on_user(verification_inconclusive), exit 5: goal completed");
    world.pass(3_600_000);
    world.ok(Command::RetryTask { task_id: id, by: "kim".to_owned(), text: None });
    assert_eq!(world.task(id).deadline_at, Some(world.now.plus(60_000)));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, follow_up completed");
}

#[test]
fn the_same_key_gives_the_same_task_and_another_goal_under_it_is_refused() {
    let mut world = World::new();
    let mut first = task(1);
    first.idempotency_key = Some("k".to_owned());
    let id = world.create(first.clone());
    let facts = world.journal.len();
    let mut again = first.clone();
    again.task_id = TaskId(Uuid::from_u128(0x999));
    assert_eq!(world.ok(Command::CreateTask(again.clone())), Outcome::Task { task_id: id });
    assert_eq!(world.journal.len(), facts);
    again.goal = "Another".to_owned();
    assert_eq!(
        world.refused(Command::CreateTask(again)),
        (
            RefusalCode::KeyReused,
            "the key `k` was used before for another goal; use a new key for a new task".to_owned()
        )
    );
    first.idempotency_key = None;
    assert_eq!(world.refused(Command::CreateTask(first)).0, RefusalCode::Conflict, "the id was taken over");
}

#[test]
fn a_task_without_goal_agent_or_known_room_is_refused() {
    let mut world = World::new();
    let mut no_goal = task(1);
    no_goal.goal = "  ".to_owned();
    let mut no_agent = task(1);
    no_agent.agents.clear();
    let mut no_room = task(1);
    no_room.room_id = Some(RoomId(Uuid::from_u128(9)));
    let codes = [no_goal, no_agent, no_room].map(|create| world.refused(Command::CreateTask(create)).0);
    assert_eq!(codes, [RefusalCode::Invalid, RefusalCode::Invalid, RefusalCode::NotFound]);
}

#[test]
fn a_refusal_by_a_limit_names_the_limit_and_the_numbers() {
    let mut world = World::with_limits(Limits {
        children_per_parent: 2,
        queue_depth: 2,
        lane_subagent: 1,
        ..Limits::default()
    });
    let mut many = task(1);
    many.agents = vec![agent("a"), agent("b"), agent("c")];
    assert_eq!(
        world.refused(Command::CreateTask(many)),
        (
            RefusalCode::Limit,
            "the task asks for 3 sub-agents, the limit `childrenPerParent` is 2; \
             name fewer agents, or raise the limit in the configuration"
                .to_owned()
        )
    );
    for number in 1..=3 {
        world.create(task(number));
    }
    assert_eq!(
        world.refused(Command::CreateTask(task(4))),
        (
            RefusalCode::Limit,
            "2 runs wait already, the limit `queueDepth` is 2; try again when some have started".to_owned()
        )
    );
}

#[test]
fn a_world_is_opened_once() {
    let mut world = World::new();
    let facts = world.journal.len();
    world.open();
    assert_eq!(world.journal.len(), facts);
}
