//! Workers that are blocked, and workers that need a login.

use rallypoint_model::command::Command;
use rallypoint_model::question::{Answer, QuestionKind, QuestionStatus};
use rallypoint_model::refusal::RefusalCode;
use rallypoint_model::run::OutcomeReason;

use crate::host::{Host, Verb};
use crate::tasks::done;
use crate::world::{World, task};

pub(crate) const REPORT_BLOCKED: &str = "Stuck.\n```json\n{\"status\":\"blocked\",\"reason\":\"Which branch?\",\"diffSummary\":\"\",\"filesChanged\":[],\"testResults\":[],\"acceptanceCriteriaStatus\":[],\"residualRisks\":[]}\n```";

pub(crate) fn blocked() -> Vec<Verb> {
    vec![Verb::Say(REPORT_BLOCKED), Verb::Stop("end_turn")]
}

fn answer(world: &mut World, answer: Answer) {
    let question_id = world.question();
    world.ok(Command::AnswerQuestion { question_id, answer, by: "kim".to_owned() });
}

fn text(text: &str) -> Answer {
    Answer::Text { text: text.to_owned() }
}

#[test]
fn a_blocked_worker_asks_and_the_answer_goes_to_the_same_session_in_its_words() {
    let mut world = World::new();
    let mut host = Host::ada(vec![blocked(), done("Fixed.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "blocked(question_asked), exit 3: goal completed");
    let question_id = world.question();
    assert_eq!(
        world.state.questions[&question_id].question,
        QuestionKind::Ask { text: "Which branch?".to_owned(), form: None }
    );
    assert_eq!(
        world.replies(id, "question"),
        [format!(
            "`ada` needs an answer. Which branch?\nAnswer with `rally question answer {question_id} --text \"…\"`."
        )]
    );
    answer(&mut world, text("main, please"));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, follow_up completed");
    assert_eq!(host.prompts[1], ("ada".to_owned(), "main, please".to_owned()));
    assert_eq!(world.state.generations.len(), 1);
}

#[test]
fn an_answer_is_taken_once_and_only_in_words() {
    let mut world = World::new();
    let mut host = Host::ada(vec![blocked()]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let question_id = world.question();
    let by = "kim".to_owned();
    for wrong in [Answer::Allow, text("  "), Answer::Value { value: serde_json::Value::Null }] {
        let command = Command::AnswerQuestion { question_id, answer: wrong, by: by.clone() };
        assert_eq!(world.refused(command).0, RefusalCode::Invalid);
    }
    answer(&mut world, text("main"));
    let closed_at = world.now;
    world.pass(90_000);
    let again = Command::AnswerQuestion { question_id, answer: text("other"), by };
    assert_eq!(
        world.refused(again),
        (
            RefusalCode::AlreadyClosed,
            format!(
                "the question `{question_id}` was closed before: it was answered by kim at {}; \
                 this answer is not passed on; `rally task show {id}` shows where its task stands",
                closed_at.in_words()
            )
        )
    );
}

#[test]
fn a_declined_question_tells_the_worker_so_with_the_reason() {
    let mut world = World::new();
    let mut host = Host::ada(vec![blocked(), done("Guessed.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    answer(&mut world, Answer::Decline { reason: "find out yourself".to_owned() });
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, follow_up completed");
    assert_eq!(host.prompts[1].1, "kim does not answer the question: find out yourself.");
}

#[test]
fn a_question_that_nobody_answers_expires_and_the_room_is_told() {
    let mut world = World::new();
    let mut host = Host::ada(vec![blocked()]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let question_id = world.question();
    world.pass_to_wakeup();
    assert_eq!(world.state.questions[&question_id].status, QuestionStatus::Expired);
    assert_eq!(world.story(id), "waiting_on_user(question_expired), exit 3: goal completed");
    assert_eq!(
        world.replies(id, "question")[1..],
        [format!(
            "The question of `ada` was not answered in time. `rally task retry {id}` gives it another run."
        )]
    );
    let late = Command::AnswerQuestion { question_id, answer: text("main"), by: "kim".to_owned() };
    assert_eq!(world.refused(late).0, RefusalCode::AlreadyClosed);
}

#[test]
fn an_answer_after_the_process_is_gone_starts_the_goal_anew_with_the_words() {
    let mut world = World::new();
    let mut turn = blocked();
    turn.push(Verb::Exit(0));
    let mut host = Host::ada(vec![turn, done("Fixed.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    host.work(&mut world);
    assert_eq!(world.story(id), "blocked(question_asked), exit 3: goal completed");
    answer(&mut world, text("main"));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, goal completed");
    assert_eq!(host.prompts[1].1, "Fix the test\n\nmain");
}

#[test]
fn words_to_a_blocked_session_answer_it_and_take_the_question_back() {
    let mut world = World::new();
    let mut host = Host::ada(vec![blocked(), done("Fixed.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let (session_id, by) = (world.session(id), "kim".to_owned());
    world.ok(Command::SendToSession { session_id, text: "Use main".to_owned(), by });
    let states: Vec<QuestionStatus> = world.state.questions.values().map(|one| one.status).collect();
    assert_eq!(states, [QuestionStatus::Withdrawn]);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, follow_up completed");
}

#[test]
fn nothing_is_said_to_a_session_that_ended_or_to_a_rooms_own() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done("Fixed.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    host.work(&mut world);
    let own = world.state.rooms.values().find_map(|room| room.session_id).expect("a room's session");
    for (session_id, text, code) in [
        (world.session(id), "more", RefusalCode::Conflict),
        (world.session(id), " ", RefusalCode::Invalid),
        (own, "more", RefusalCode::Invalid),
    ] {
        let command = Command::SendToSession { session_id, text: text.to_owned(), by: "kim".to_owned() };
        assert_eq!(world.refused(command).0, code);
    }
}

#[test]
fn a_login_that_is_needed_before_or_in_a_prompt_waits_for_a_person_with_the_hint() {
    let reason = OutcomeReason::LoginNeeded { hint: "log in first; run `agent login`".to_owned() };
    let mut at_start = Host::ada(vec![]);
    at_start.session_new = Some((-32000, "log in first"));
    let in_prompt = Host::ada(vec![vec![Verb::Fail(-32000, "log in first")]]);
    for mut host in [at_start, in_prompt] {
        let mut world = World::new();
        let id = world.create(task(1));
        host.finish(&mut world, id);
        host.work(&mut world);
        assert_eq!(world.story(id), "waiting_on_user(login_needed), exit 3: goal failed");
        assert_eq!(world.last_run(id).reason, Some(reason.clone()));
        assert_eq!(
            world.replies(id, "question"),
            [format!(
                "`ada` can't go on: the agent needs a login: log in first; run `agent login`. \
                 Then `rally task retry {id}` gives it another run."
            )]
        );
        assert!(rallypoint_engine::view::is_idle(&world.state));
    }
}

#[test]
fn a_conversation_that_is_refused_for_another_reason_fails_the_task() {
    let mut world = World::new();
    let mut host = Host::ada(vec![]);
    host.session_new = Some((-32603, "no such folder"));
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "failed(run_failed), exit 1: goal failed");
    assert_eq!(
        world.last_run(id).reason,
        Some(OutcomeReason::AgentError { code: -32603, message: "no such folder".to_owned() })
    );
}

#[test]
fn time_without_a_daemon_does_not_count_for_a_question() {
    let mut world = World::new();
    let mut host = Host::ada(vec![blocked(), done("Fixed.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let question_id = world.question();
    let day = 24 * 60 * 60 * 1000;
    let before = world.state.questions[&question_id].deadline_at;
    world.now = world.now.plus(3 * day);
    world.ok(Command::ResumeClocks { away_ms: 3 * day });
    world.ok(Command::Tick);
    let question = &world.state.questions[&question_id];
    assert_eq!(question.status, QuestionStatus::Open);
    assert_eq!(question.deadline_at, before.plus(3 * day));
    answer(&mut world, text("main, please"));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, follow_up completed");
}
