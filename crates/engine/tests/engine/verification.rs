//! Checks, corrective rounds, acceptance and overrides.

use rallypoint_model::command::Command;
use rallypoint_model::event::Event;
use rallypoint_model::ids::CriterionId;
use rallypoint_model::limits::Limits;
use rallypoint_model::question::{Answer, QuestionStatus};
use rallypoint_model::refusal::RefusalCode;
use rallypoint_model::task::{Criterion, CriterionCheck, EvidenceResult};
use uuid::Uuid;

use crate::host::Host;
use crate::tasks::done;
use crate::world::{World, command_criterion, task};

const FAILED: EvidenceResult = EvidenceResult::Failed;
const PASSED: EvidenceResult = EvidenceResult::Passed;

fn human() -> Criterion {
    Criterion {
        id: CriterionId(Uuid::from_u128(0x300)),
        text: "it looks good".to_owned(),
        check: CriterionCheck::Human { text: "Does it look good?".to_owned() },
    }
}

fn overridden(world: &mut World, id: rallypoint_model::ids::TaskId, passed: bool) {
    let (by, reason) = ("kim".to_owned(), "seen it".to_owned());
    world.ok(Command::OverrideTask { task_id: id, passed, by, reason });
}

#[test]
fn a_failed_check_goes_back_to_the_same_session_with_what_was_seen() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed."), done("Now.")]).checks(&[FAILED, PASSED]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, corrective completed");
    assert_eq!(world.state.generations.len(), 1);
    let blocks: Vec<(&str, &str)> =
        world.last_run(id).blocks.iter().map(|block| (block.part.as_str(), block.text.as_str())).collect();
    assert_eq!(blocks[1], ("criteria", "--- Acceptance Criteria ---\n- [ ] tests pass"));
    assert_eq!(
        blocks[4..],
        [
            ("evidence", "--- Observed ---\ncheck `make test` failed (exit 1)\noutput\n"),
            ("frame", "--- Message ---"),
            (
                "message",
                "These criteria are not met. Meet each of them, then report again.\n- [ ] tests pass"
            ),
        ]
    );
}

#[test]
fn after_three_corrective_rounds_a_person_must_look() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed."); 6]).checks(&[FAILED; 6]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(
        world.story(id),
        "waiting_on_user(verification_exhausted), exit 5: goal completed, \
         corrective completed, corrective completed, corrective completed"
    );
    assert_eq!(world.replies(id, "terminal"), [""; 0]);
    assert_eq!(
        world.replies(id, "question"),
        [format!(
            "Not done: checked 4 times, sent back 3 times, and still not met:\n- [ ] tests pass (output)\n\
             `rally task retry {id}` gives it another run; `rally task override {id}` takes it as it is."
        )]
    );
}

#[test]
fn a_corrective_round_that_can_not_be_delivered_is_left_to_a_person() {
    let mut world = World::new();
    let mut turn = done("Fixed.");
    turn.push(crate::host::Verb::Exit(0));
    let mut host = Host::ada(vec![turn]).checks(&[FAILED]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "waiting_on_user(verification_exhausted), exit 5: goal completed");
}

#[test]
fn cannot_tell_is_asked_and_a_yes_is_recorded_as_an_override_by_name() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]).checks(&[EvidenceResult::Inconclusive]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "waiting_on_user(verification_inconclusive), exit 5: goal completed");
    let question_id = world.question();
    let answer = Answer::Accept { reason: "ran it myself".to_owned() };
    world.ok(Command::AnswerQuestion { question_id, answer, by: "kim".to_owned() });
    assert_eq!(world.story(id), "done(overridden), exit 0: goal completed");
    let expected = Event::TaskOverridden {
        task_id: id,
        passed: true,
        by: "kim".to_owned(),
        reason: "ran it myself".to_owned(),
    };
    assert_eq!(world.facts("task.overridden"), [&expected]);
}

#[test]
fn a_person_who_accepts_completes_the_proof_of_the_machine() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    let mut create = task(1);
    create.criteria.push(human());
    let id = world.create(create);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "waiting_on_user(acceptance_asked), exit 3: goal completed");
    let question_id = world.question();
    let wrong = Answer::Text { text: "yes".to_owned() };
    let by = "kim".to_owned();
    let refusal = world.refused(Command::AnswerQuestion { question_id, answer: wrong, by: by.clone() });
    assert_eq!(refusal.0, RefusalCode::Invalid);
    let answer = Answer::Accept { reason: String::new() };
    world.ok(Command::AnswerQuestion { question_id, answer: answer.clone(), by: by.clone() });
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    let who: Vec<&str> = world.task(id).evidence.iter().map(|one| one.procedure.as_str()).collect();
    assert_eq!(who, ["make test", "asked kim"]);
    let refusal = world.refused(Command::AnswerQuestion { question_id, answer, by });
    assert_eq!(refusal.0, RefusalCode::AlreadyClosed);
}

#[test]
fn a_person_who_declines_sends_the_work_back_with_the_reason() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed."), done("Better.")]);
    let mut create = task(1);
    create.criteria = vec![human()];
    let id = world.create(create);
    host.finish(&mut world, id);
    let answer = Answer::Decline { reason: "too slow".to_owned() };
    let question_id = world.question();
    world.ok(Command::AnswerQuestion { question_id, answer, by: "kim".to_owned() });
    host.finish(&mut world, id);
    assert_eq!(
        world.story(id),
        "waiting_on_user(acceptance_asked), exit 3: goal completed, corrective completed"
    );
    let seen: Vec<&str> = world
        .last_run(id)
        .blocks
        .iter()
        .filter(|block| block.part.as_str() == "evidence")
        .map(|block| block.text.as_str())
        .collect();
    assert_eq!(seen, ["--- Observed ---\ncheck Does it look good? (asked kim) failed\ntoo slow\n"]);
}

#[test]
fn an_acceptance_that_nobody_gives_stays_with_the_person() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    let mut create = task(1);
    create.criteria = vec![human()];
    let id = world.create(create);
    host.finish(&mut world, id);
    world.pass_to_wakeup();
    assert_eq!(world.story(id), "waiting_on_user(acceptance_asked), exit 3: goal completed");
    let states: Vec<QuestionStatus> = world.state.questions.values().map(|one| one.status).collect();
    assert_eq!(states, [QuestionStatus::Expired]);
}

#[test]
fn an_override_needs_a_name_and_a_reason_and_an_idle_task() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]).checks(&[EvidenceResult::Inconclusive]);
    let id = world.create(task(1));
    let command = |by: &str, reason: &str| Command::OverrideTask {
        task_id: id,
        passed: true,
        by: by.to_owned(),
        reason: reason.to_owned(),
    };
    assert_eq!(world.refused(command("kim", "works")).0, RefusalCode::Conflict);
    host.finish(&mut world, id);
    assert_eq!(world.refused(command("", "works")).0, RefusalCode::Invalid);
    assert_eq!(world.refused(command("kim", " ")).0, RefusalCode::Invalid);
    overridden(&mut world, id, true);
    assert_eq!(world.story(id), "done(overridden), exit 0: goal completed");
    assert_eq!(world.replies(id, "terminal"), ["Fixed.\n\nDone by a person's override, not by proof."]);
    assert_eq!(world.open_questions().len(), 0);
    assert_eq!(world.refused(command("kim", "again")).0, RefusalCode::Conflict);
}

#[test]
fn an_override_against_a_result_sends_it_back() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed."), done("Now.")]).checks(&[EvidenceResult::Inconclusive]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    overridden(&mut world, id, false);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, follow_up completed");
    assert_eq!(host.prompts[1].1, "kim rejects the result: seen it");
}

#[test]
fn a_round_that_is_not_the_one_due_is_not_taken() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    host.checking = false;
    let id = world.create(task(1));
    host.finish(&mut world, id);
    for round in [0, 2] {
        let outcome = world.ok(Command::Verified { task_id: id, round, evidence: Vec::new() });
        assert_eq!(outcome, rallypoint_model::command::Outcome::Stale);
        assert!(world.last.is_empty());
    }
}

#[test]
fn what_is_said_while_a_result_is_checked_makes_it_be_checked_again() {
    let mut world = World::with_limits(Limits::default());
    let mut host = Host::ada(vec![done("Fixed."), done("With tests.")]);
    host.checking = false;
    let id = world.create(task(1));
    for _ in 0..2 {
        host.work(&mut world);
        world.pass_to_wakeup();
    }
    assert_eq!(world.story(id), "validating, not settled: goal completed");
    let (session_id, by) = (world.session(id), "kim".to_owned());
    world.ok(Command::SendToSession { session_id, text: "Add tests".to_owned(), by });
    assert_eq!(world.story(id), "active, not settled: goal completed, follow_up [running]");
    let early = world.ok(Command::Verified { task_id: id, round: 1, evidence: Vec::new() });
    assert_eq!(early, rallypoint_model::command::Outcome::Stale);
    host.checking = true;
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, follow_up completed");
}

#[test]
fn what_is_said_to_a_task_that_waits_for_acceptance_takes_that_question_back() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed."), done("With tests.")]);
    let mut create = task(1);
    create.criteria = vec![command_criterion(1), human()];
    let id = world.create(create);
    host.finish(&mut world, id);
    let (session_id, by) = (world.session(id), "kim".to_owned());
    world.ok(Command::SendToSession { session_id, text: "Add tests".to_owned(), by });
    assert_eq!(world.open_questions().len(), 0);
    host.finish(&mut world, id);
    assert_eq!(world.open_questions().len(), 1);
    assert_eq!(
        world.story(id),
        "waiting_on_user(acceptance_asked), exit 3: goal completed, follow_up completed"
    );
}
