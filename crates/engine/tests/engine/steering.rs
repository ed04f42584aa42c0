//! How a person steers a task: paused, opened again, begun anew, changed, spoken to.

use rallypoint_model::agent_io::PromptPart;
use rallypoint_model::command::{Acceptance, Command, Outcome};
use rallypoint_model::event::Event;
use rallypoint_model::ids::{PlanRevisionId, SessionId, TaskId};
use rallypoint_model::refusal::RefusalCode;
use rallypoint_model::run::RunOutcome;
use rallypoint_model::session::SessionStatus;
use rallypoint_model::steering::{
    EarlierWork, MessageTask, NewPlan, PlanChoice, RestartTask, RetryTurn, TaskChange, ValidateTask,
};
use rallypoint_model::task::{CriterionCheck, EvidenceResult, TaskStatus};
use serde_json::json;
use uuid::Uuid;

use crate::host::{Host, Verb};
use crate::invariants::{documents, replay};
use crate::properties::task_of;
use crate::tasks::done;
use crate::world::{World, agent, command_criterion, task, word};

fn by() -> String {
    "kim".to_owned()
}

fn pause(task_id: TaskId) -> Command {
    Command::PauseTask { task_id, by: by() }
}

fn resume(task_id: TaskId) -> Command {
    Command::ResumeTask { task_id, by: by() }
}

fn restart(task_id: TaskId) -> RestartTask {
    RestartTask {
        task_id,
        by: by(),
        instruction: None,
        plan: PlanChoice::Latest,
        launch: None,
        earlier: None,
    }
}

fn message(task_id: TaskId, text: &str) -> Command {
    Command::MessageTask(MessageTask { task_id, text: text.to_owned(), by: by(), source: "api".to_owned() })
}

fn plan(step: &str) -> NewPlan {
    NewPlan { value: json!({ "steps": [step] }), base_id: None, summary: None }
}

/// Any steering command, for random worlds.
pub(crate) fn steer(world: &World, which: u8, how: u8, flag: bool) -> Command {
    let task_id = task_of(world, which);
    let known = world.state.tasks.get(&task_id);
    let session_id = known.and_then(|task| task.sessions.first().copied());
    let plan_id = known.and_then(|task| task.plan_id).unwrap_or(PlanRevisionId(Uuid::from_u128(1)));
    match how {
        0 | 1 => pause(task_id),
        2 | 3 => resume(task_id),
        4 => {
            if flag {
                Command::PauseAll { by: by() }
            } else {
                Command::ResumeAll { by: by() }
            }
        }
        5 => Command::ReopenTask { task_id, by: by() },
        6 => {
            let criteria = flag.then(|| vec![command_criterion(0x70)]);
            let change = TaskChange { title: Some("Other".to_owned()), criteria, ..TaskChange::default() };
            Command::PatchTask { task_id, change, by: by() }
        }
        7 => Command::RevisePlan { task_id, plan: plan("look"), by: by() },
        8 => {
            let plan = if flag {
                PlanChoice::Revision { id: plan_id }
            } else {
                PlanChoice::New { plan: plan("go") }
            };
            Command::RestartTask(RestartTask { plan, ..restart(task_id) })
        }
        9 => {
            let earlier = Some(EarlierWork { event_seq: 3, text: "ada: hello".to_owned() });
            let launch = flag.then(|| agent("eve"));
            Command::RestartTask(RestartTask { earlier, launch, ..restart(task_id) })
        }
        10 => Command::RetryTurn(RetryTurn {
            task_id,
            by: by(),
            text: flag.then(|| "again".to_owned()),
            session_id,
            new_session: flag,
            plan_revision_id: None,
        }),
        11 => message(task_id, if flag { "hear" } else { " " }),
        12 => Command::ValidateTask(ValidateTask {
            task_id,
            passed: flag,
            evidence: "seen".to_owned(),
            by: by(),
        }),
        _ => Command::CheckAgain { task_id, by: by() },
    }
}

/// A task whose agent works and waits for a word.
fn working(world: &mut World, host: &mut Host) -> TaskId {
    let id = world.create(task(1));
    host.work(world);
    assert_eq!(world.task(id).status, TaskStatus::Active);
    id
}

/// A turn that has begun and goes on when somebody ends it.
fn begun() -> Vec<Verb> {
    vec![Verb::Say("On it.")]
}

fn status(world: &World, id: TaskId) -> SessionStatus {
    let session = &world.state.sessions[&world.session(id)];
    rallypoint_engine::view::session_status(&world.state, session)
}

#[test]
fn a_pause_cancels_the_turn_and_keeps_the_session_which_goes_on_where_it_was() {
    let mut world = World::new();
    let mut host = Host::ada(vec![begun(), done("Fixed.")]);
    let id = working(&mut world, &mut host);
    world.ok(pause(id));
    host.work(&mut world);
    world.pass(1_000);
    assert_eq!(world.story(id), "active, not settled: goal cancelled");
    assert_eq!(status(&world, id), SessionStatus::Ready);
    world.pass(60 * 60 * 1_000);
    assert_eq!(world.story(id), "active, not settled: goal cancelled", "nothing happens while it is paused");
    let processes = world.state.generations.len();

    world.ok(resume(id));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal cancelled, follow_up completed");
    assert_eq!(world.task(id).sessions.len(), 1, "in the same session");
    assert_eq!(world.state.generations.len(), processes, "and the same process");
    assert!(host.prompts[1].1.contains("goes on now"), "{:?}", host.prompts);
    let goals = world.runs(id).iter().filter(|run| word(&run.purpose) == "goal").count();
    assert_eq!(goals, 1, "the goal is not run again");
    assert_eq!(documents(&replay(&world.journal)), documents(&world.state));
}

#[test]
fn what_is_queued_is_held_by_a_pause_and_a_prompt_that_no_agent_had_is_given_for_the_first_time() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    host.answering = false;
    let id = world.create(task(1));
    host.work(&mut world);
    world.ok(pause(id));
    host.answering = true;
    host.work(&mut world);
    world.ok(Command::SendToSession { session_id: world.session(id), text: "Hurry.".to_owned(), by: by() });
    host.work(&mut world);
    assert_eq!(host.prompts, [], "nothing is said while it is paused");
    assert_eq!(world.state.running_slots(), 0, "and no slot is held");
    world.ok(resume(id));
    host.otherwise = done("Fixed.");
    host.finish(&mut world, id);
    let said: Vec<&str> = host.prompts.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(said.iter().filter(|text| **text == "Fix the test").count(), 1, "{said:?}");
    assert!(said.contains(&"Hurry."), "{said:?}");
}

#[test]
fn an_end_in_a_pause_moves_the_task_when_it_goes_on_and_not_before() {
    let mut world = World::new();
    let mut host = Host::ada(vec![begun()]);
    host.on_cancel = crate::host::OnCancel::Answers("end_turn");
    let id = working(&mut world, &mut host);
    world.ok(pause(id));
    host.work(&mut world);
    world.pass(1_000);
    assert_eq!(world.story(id), "active, not settled: goal completed");
    assert_eq!(world.facts("task.verified").len(), 0);
    world.ok(resume(id));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
}

#[test]
fn checks_that_ended_in_a_pause_are_run_again() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    host.checking = false;
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.task(id).status, TaskStatus::Validating);
    world.ok(pause(id));
    world.ok(Command::Verified { task_id: id, round: 1, evidence: Vec::new() });
    assert_eq!((world.task(id).status, world.task(id).rounds), (TaskStatus::Validating, 0));
    host.checking = true;
    host.work(&mut world);
    assert_eq!(world.task(id).rounds, 0, "none is due while it is paused");
    world.ok(resume(id));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
}

#[test]
fn a_pause_does_not_use_up_the_time_of_a_task() {
    let mut world = World::new();
    let mut host = Host::ada(vec![begun(), done("Fixed.")]);
    let mut create = task(1);
    create.timeout_ms = 60_000;
    let id = world.create(create);
    host.work(&mut world);
    world.ok(pause(id));
    host.work(&mut world);
    world.pass(600_000);
    world.ok(resume(id));
    world.ok(Command::Tick);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal cancelled, follow_up completed");
}

#[test]
fn a_session_that_is_gone_when_its_task_goes_on_is_left_to_a_person() {
    let mut world = World::new();
    let mut host = Host::ada(vec![begun(), done("Fixed.")]);
    let id = working(&mut world, &mut host);
    world.ok(pause(id));
    host.work(&mut world);
    world.pass(1_000);
    let generation_id = world.state.sessions[&world.session(id)].generation_id.expect("a process");
    let end = rallypoint_model::session::GenerationEnd::Lost;
    world.ok(Command::GenerationGone { generation_id, end });
    world.ok(resume(id));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "waiting_on_user(cut), exit 3: goal cancelled");
    assert_eq!(host.prompts.len(), 1, "the goal is not run again by itself");
}

#[test]
fn all_are_paused_and_resumed_and_what_has_ended_is_neither() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    let over = world.create(task(3));
    host.finish(&mut world, over);
    host.otherwise = begun();
    let (first, second) = (world.create(task(1)), world.create(task(2)));
    host.work(&mut world);
    assert_eq!(world.ok(Command::PauseAll { by: by() }), Outcome::Count { tasks: 2 });
    assert_eq!(world.ok(Command::PauseAll { by: by() }), Outcome::Count { tasks: 0 });
    assert_eq!(world.refused(pause(over)).0, RefusalCode::Conflict);
    assert_eq!(world.ok(Command::ResumeAll { by: by() }), Outcome::Count { tasks: 2 });
    for id in [first, second] {
        assert_eq!(world.task(id).pause, None);
        world.ok(pause(id));
        world.ok(Command::StopTask { task_id: id, by: by() });
        host.finish(&mut world, id);
        assert_eq!((world.task(id).status, &world.task(id).pause), (TaskStatus::Interrupted, &None));
    }
}

#[test]
fn a_task_that_is_opened_again_waits_for_a_word_and_then_works() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed."), done("Fixed again.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    host.work(&mut world);
    world.ok(Command::ArchiveTask { task_id: id, by: by() });
    world.ok(Command::ReopenTask { task_id: id, by: by() });
    assert_eq!(world.task(id).archived_at, None);
    assert_eq!(world.story(id), "waiting_on_user(reopened), exit 3: goal completed");
    assert_eq!(world.refused(Command::ReopenTask { task_id: id, by: by() }).0, RefusalCode::Conflict);
    let outcome = world.ok(message(id, "Once more."));
    let Outcome::Handed { started: Some(session_id), .. } = outcome else { panic!("{outcome:?}") };
    assert_ne!(session_id, world.session(id), "its process was gone, so another takes over");
    host.turns.insert("ada-2".to_owned(), [done("Fixed again.")].into());
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, goal completed");
    assert!(host.prompts[1].1.ends_with("Once more."), "{:?}", host.prompts);
}

#[test]
fn a_message_reaches_each_live_session_and_one_that_is_over_gets_a_reason() {
    let mut world = World::new();
    let mut host = Host::new(&[("ada", vec![begun(), done("Ada.")]), ("bob", vec![begun(), done("Bob.")])]);
    let mut create = task(1);
    create.agents = vec![agent("ada"), agent("bob")];
    let id = world.create(create);
    host.work(&mut world);
    let sessions = world.task(id).sessions.clone();
    let outcome = world.ok(message(id, "Mind the gap."));
    let Outcome::Handed { sessions: reached, not_reached, started, .. } = outcome else { panic!() };
    assert_eq!((reached, not_reached.len(), started), (sessions, 0, None));
    let posted = world.messages().into_iter().filter(|message| message.text == "Mind the gap.").count();
    assert_eq!(posted, 1);
    world.ok(Command::StopTask { task_id: id, by: by() });
    let outcome = world.ok(message(id, "Too late."));
    let Outcome::Handed { sessions: reached, started, .. } = outcome else { panic!() };
    assert_eq!((reached, started), (Vec::<SessionId>::new(), None));
    host.finish(&mut world, id);
    assert_eq!(world.task(id).status, TaskStatus::Interrupted);
}

#[test]
fn a_restart_begins_in_a_new_session_and_history_stays() {
    let mut world = World::new();
    let mut host = Host::ada(vec![begun()]);
    host.turns.insert("ada-2".to_owned(), [done("Fixed.")].into());
    let id = working(&mut world, &mut host);
    assert_eq!(world.refused(Command::RestartTask(restart(id))).0, RefusalCode::Conflict);
    world.ok(Command::StopTask { task_id: id, by: by() });
    host.finish(&mut world, id);
    let before = world.journal.len();
    let instruction = Some("Use the other library.".to_owned());
    world.ok(Command::RestartTask(RestartTask { instruction, ..restart(id) }));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal cancelled, goal completed");
    assert_eq!(world.task(id).sessions.len(), 2);
    assert!(world.state.sessions[&world.session(id)].stopped, "the first one is over");
    assert!(host.prompts[1].1.contains("other library"), "{:?}", host.prompts);
    assert!(world.journal.len() > before);
    assert_eq!(documents(&replay(&world.journal)), documents(&world.state));
}

#[test]
fn an_edited_plan_reaches_the_prompt_and_a_run_from_an_event_quotes_what_was_before() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let Outcome::Plan { revision_id: first } =
        world.ok(Command::RevisePlan { task_id: id, plan: plan("inspect first"), by: by() })
    else {
        panic!("no plan")
    };
    let unknown = Some(PlanRevisionId(Uuid::from_u128(1)));
    let wrong = NewPlan { base_id: unknown, ..plan("x") };
    assert_eq!(
        world.refused(Command::RevisePlan { task_id: id, plan: wrong, by: by() }).0,
        RefusalCode::Conflict
    );
    let edited = NewPlan { base_id: Some(first), ..plan("leap") };
    let earlier = Some(EarlierWork { event_seq: 3, text: "ada: $ rm -rf x".to_owned() });
    let choice = PlanChoice::New { plan: edited };
    world.ok(Command::RestartTask(RestartTask { plan: choice, earlier, ..restart(id) }));
    let blocks = world.last_run(id).blocks.clone();
    let of = |word: &str| blocks.iter().filter(|block| block.text.contains(word)).collect::<Vec<_>>();
    assert_eq!(of("leap").len(), 1, "{blocks:?}");
    assert_eq!(of("inspect first").len(), 0, "only the newest plan is followed");
    assert!(of("rm -rf").iter().all(|block| block.part == PromptPart::Evidence), "{blocks:?}");
    let plans: Vec<_> = world.task(id).plans.iter().map(|plan| plan.base_id).collect();
    assert_eq!(plans, [None, Some(first)], "no revision is lost");
    let Some(Event::TaskRestarted(restarted)) = world.facts("task.restarted").last().copied() else {
        panic!()
    };
    assert_eq!((restarted.event_seq, word(&restarted.how).as_str()), (Some(3), "rerun"));
}

#[test]
fn a_turn_is_retried_in_its_session_or_in_a_new_one_in_its_place() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed."), done("Better."), done("Best.")]);
    let mut create = task(1);
    create.criteria[0].check = CriterionCheck::Human { text: "ok?".to_owned() };
    let id = world.create(create);
    host.finish(&mut world, id);
    assert_eq!(world.task(id).status, TaskStatus::WaitingOnUser);
    let retry = RetryTurn {
        task_id: id,
        by: by(),
        text: Some("Polish it.".to_owned()),
        session_id: Some(world.session(id)),
        new_session: false,
        plan_revision_id: None,
    };
    world.ok(Command::RetryTurn(retry.clone()));
    host.finish(&mut world, id);
    assert_eq!(world.task(id).sessions.len(), 1);
    host.turns.insert("ada-2".to_owned(), [done("Best.")].into());
    world.ok(Command::RetryTurn(RetryTurn { new_session: true, ..retry.clone() }));
    host.finish(&mut world, id);
    assert_eq!(world.task(id).sessions.len(), 2);
    assert_eq!(
        world.story(id),
        "waiting_on_user(acceptance_asked), exit 3: goal completed, follow_up completed, goal completed"
    );
    let other = RetryTurn { session_id: Some(SessionId(Uuid::from_u128(1))), ..retry };
    assert_eq!(world.refused(Command::RetryTurn(other)).0, RefusalCode::NotFound);
}

#[test]
fn a_word_on_a_result_is_evidence_and_takes_the_place_of_no_check() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed."), done("Fixed.")]).checks(&[EvidenceResult::Inconclusive]);
    let mut create = task(1);
    create.criteria.push(rallypoint_model::task::Criterion {
        check: CriterionCheck::Human { text: "it looks right".to_owned() },
        ..command_criterion(2)
    });
    let id = world.create(create);
    host.finish(&mut world, id);
    assert_eq!(world.task(id).status, TaskStatus::WaitingOnUser);
    let validate = ValidateTask { task_id: id, passed: true, evidence: "I looked".to_owned(), by: by() };
    let (code, words) = world.refused(Command::ValidateTask(validate.clone()));
    assert_eq!(code, RefusalCode::Conflict);
    assert!(words.contains("rally task check"), "{words}");

    world.ok(Command::CheckAgain { task_id: id, by: by() });
    assert_eq!(world.task(id).status, TaskStatus::Validating);
    host.finish(&mut world, id);
    assert_eq!(world.task(id).status, TaskStatus::WaitingOnUser, "the check passed, a person is asked");
    world.ok(Command::ValidateTask(validate.clone()));
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    assert!(
        world.task(id).evidence.iter().any(|one| one.procedure == "asked kim" && one.detail == "I looked")
    );
    assert_eq!(world.refused(Command::ValidateTask(validate)).0, RefusalCode::Conflict);
}

#[test]
fn a_result_that_is_refused_goes_back_to_its_session() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed."), done("Fixed now.")]);
    let mut create = task(1);
    create.criteria[0].check = CriterionCheck::Human { text: "it looks right".to_owned() };
    let id = world.create(create);
    host.finish(&mut world, id);
    let evidence = "The button is red.".to_owned();
    world.ok(Command::ValidateTask(ValidateTask { task_id: id, passed: false, evidence, by: by() }));
    host.finish(&mut world, id);
    assert_eq!(
        world.story(id),
        "waiting_on_user(acceptance_asked), exit 3: goal completed, corrective completed"
    );
    assert_eq!(world.last_run(id).outcome, Some(RunOutcome::Completed));
}

#[test]
fn a_change_keeps_what_is_absent_and_a_done_task_keeps_its_contract() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    let id = world.create(task(1));
    let change = |change| Command::PatchTask { task_id: id, change, by: by() };
    assert_eq!(world.refused(change(TaskChange::default())).0, RefusalCode::Invalid);
    let criteria = vec![command_criterion(1), command_criterion(9)];
    let known = world.task(id).criteria[0].id;
    world.ok(change(TaskChange {
        title: Some("Fix all".to_owned()),
        criteria: Some(criteria),
        ..TaskChange::default()
    }));
    let task = world.task(id);
    assert_eq!(
        (task.title.as_str(), task.goal.as_str(), task.criteria[0].id),
        ("Fix all", "Fix the test", known)
    );
    host.finish(&mut world, id);
    assert_eq!(world.task(id).status, TaskStatus::Done);
    let goal = TaskChange { goal: Some("Else".to_owned()), ..TaskChange::default() };
    assert_eq!(world.refused(change(goal)).0, RefusalCode::Conflict);
    world.ok(change(TaskChange { title: Some("Fixed".to_owned()), ..TaskChange::default() }));
    assert_eq!(world.task(id).acceptance, Acceptance::Checked);
}
