//! Requests for permission: asked, answered, expired, withdrawn.

use rallypoint_model::agent_io::AgentInput;
use rallypoint_model::command::Command;
use rallypoint_model::event::Event;
use rallypoint_model::ids::QuestionId;
use rallypoint_model::question::{Answer, QuestionStatus};
use rallypoint_model::refusal::RefusalCode;

use crate::host::{Host, OnCancel, Verb, ask};
use crate::world::{World, task};

fn asks(requests: &[&'static str]) -> Vec<Verb> {
    let mut turn: Vec<Verb> = requests.iter().map(|request| Verb::AskOn(request)).collect();
    if let Some(Verb::AskOn(last)) = turn.pop() {
        turn.push(Verb::Ask(last));
    }
    turn.extend([Verb::Say("Ran it."), Verb::Stop("end_turn")]);
    turn
}

/// Answers to permission requests in the order in which they were journalled.
fn answers(world: &World) -> Vec<(String, Option<String>)> {
    world
        .facts("generation.input")
        .iter()
        .filter_map(|event| match event {
            Event::GenerationInput {
                input: AgentInput::AnswerPermission { request_id, option_id }, ..
            } => Some((request_id.clone(), option_id.clone())),
            _ => None,
        })
        .collect()
}

fn say(world: &mut World, question_id: QuestionId, answer: Answer) {
    world.ok(Command::AnswerQuestion { question_id, answer, by: "kim".to_owned() });
}

fn statuses(world: &World) -> Vec<QuestionStatus> {
    world.state.questions.values().map(|question| question.status).collect()
}

fn some(request: &str, option: &str) -> (String, Option<String>) {
    (request.to_owned(), Some(option.to_owned()))
}

#[test]
fn a_permission_blocks_the_task_and_is_given_by_a_person() {
    let mut world = World::new();
    let mut host = Host::ada(vec![asks(&["7"])]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "blocked(question_asked), exit 3: goal [waiting_approval]");
    let question_id = world.question();
    assert_eq!(
        world.replies(id, "question"),
        [format!(
            "`ada` needs an answer. May it do this: run 7?\n\
             Asked by `standard`: execute a dangerous or unreadable command (configuration).\n\
             Answer with `rally question answer {question_id} --allow` or `--decline REASON`."
        )]
    );
    say(&mut world, question_id, Answer::Allow);
    assert_eq!(world.story(id), "active, not settled: goal [running]");
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    assert_eq!(answers(&world), [some("7", "yes")]);
}

#[test]
fn a_permission_is_declined_with_the_agents_own_option_and_work_goes_on() {
    let mut world = World::new();
    let mut host = Host::ada(vec![asks(&["7"])]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let question_id = world.question();
    say(&mut world, question_id, Answer::Decline { reason: "not here".to_owned() });
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    assert_eq!(answers(&world), [some("7", "no")]);
    assert_eq!(statuses(&world), [QuestionStatus::Declined]);
}

#[test]
fn an_option_that_was_not_offered_is_refused_with_those_that_were() {
    let mut world = World::new();
    let mut host = Host::ada(vec![asks(&["7"])]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let question_id = world.question();
    let answer = Answer::Option { option_id: "maybe".to_owned() };
    let by = "kim".to_owned();
    assert_eq!(
        world.refused(Command::AnswerQuestion { question_id, answer, by: by.clone() }),
        (RefusalCode::Invalid, "`maybe` is none of the options; the options are: yes, no".to_owned())
    );
    let words = Answer::Text { text: "yes".to_owned() };
    let command = Command::AnswerQuestion { question_id, answer: words, by };
    assert_eq!(world.refused(command).0, RefusalCode::Invalid);
    say(&mut world, question_id, Answer::Option { option_id: "no".to_owned() });
    assert_eq!(answers(&world), [some("7", "no")]);
}

#[test]
fn a_permission_that_nobody_gives_is_rejected_at_its_deadline() {
    let mut world = World::new();
    let mut host = Host::ada(vec![asks(&["7"])]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let asked_at = world.now;
    world.pass_to_wakeup();
    assert!(world.now.since(asked_at) > 59 * 60_000, "it waited for {} ms", world.now.since(asked_at));
    assert_eq!(statuses(&world), [QuestionStatus::Expired]);
    assert_eq!(answers(&world), [some("7", "no")]);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
}

#[test]
fn of_two_open_permissions_each_is_answered_and_only_the_last_lets_the_run_go_on() {
    let mut world = World::new();
    let mut host = Host::ada(vec![asks(&["7", "8"])]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let open: Vec<QuestionId> = world.open_questions().iter().map(|question| question.id).collect();
    say(&mut world, open[1], Answer::Allow);
    assert_eq!(world.story(id), "blocked(question_asked), exit 3: goal [waiting_approval]");
    say(&mut world, open[0], Answer::Decline { reason: String::new() });
    assert_eq!(world.story(id), "active, not settled: goal [running]");
    assert_eq!(answers(&world), [some("8", "yes"), some("7", "no")]);
}

#[test]
fn a_stop_withdraws_the_permission_and_tells_the_agent_before_the_cancel() {
    let mut world = World::new();
    let mut host = Host::ada(vec![asks(&["7"])]);
    host.on_cancel = OnCancel::Answers("cancelled");
    let id = world.create(task(1));
    host.finish(&mut world, id);
    world.ok(Command::StopTask { task_id: id, by: "kim".to_owned() });
    assert_eq!(world.story(id), "active, not settled: goal [running]", "it waits for nobody any more");
    let said: Vec<&str> = world
        .last
        .events
        .iter()
        .filter_map(|record| match &record.event {
            Event::GenerationInput {
                input: AgentInput::AnswerPermission { option_id: None, .. }, ..
            } => Some("cancelled"),
            Event::GenerationInput { input: AgentInput::Cancel { .. }, .. } => Some("cancel"),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["cancelled", "cancel"]);
    assert_eq!(statuses(&world), [QuestionStatus::Withdrawn]);
}

#[test]
fn an_agent_that_answers_while_it_asks_takes_its_question_back() {
    let mut world = World::new();
    let turn = vec![Verb::AskOn("7"), Verb::Say("Did without."), Verb::Stop("end_turn")];
    let mut host = Host::ada(vec![turn]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    assert_eq!(statuses(&world), [QuestionStatus::Withdrawn]);
}

#[test]
fn looking_is_let_through_without_a_person() {
    let mut world = World::new();
    let turn = vec![Verb::Item(ask("7", 4, "read")), Verb::Say("Read it."), Verb::Stop("end_turn")];
    let mut host = Host::ada(vec![turn]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
    assert_eq!((answers(&world), world.state.questions.len()), (vec![some("7", "yes")], 0));
}

#[test]
fn the_same_request_twice_is_one_question_and_one_message() {
    let mut world = World::new();
    let mut host = Host::ada(vec![vec![Verb::AskOn("7"), Verb::AskOn("7")]]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(world.open_questions().len(), 1);
    assert_eq!(world.replies(id, "question").len(), 1);
}

#[test]
fn a_permission_asked_without_a_run_or_after_a_stop_is_answered_as_cancelled() {
    let mut world = World::new();
    let mut host = Host::ada(vec![vec![Verb::Say("x")]]);
    host.on_cancel = OnCancel::Ignores;
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let generation_id = *world.state.generations.keys().next().expect("a generation");
    world.ok(Command::StopTask { task_id: id, by: "kim".to_owned() });
    host.verb(&mut world, generation_id, Verb::AskOn("7"));
    assert_eq!((answers(&world), world.state.questions.len()), (vec![("7".to_owned(), None)], 0));
}

#[test]
fn words_to_a_session_that_waits_for_a_permission_leave_the_permission_open() {
    let mut world = World::new();
    let mut host = Host::ada(vec![asks(&["7"]), crate::tasks::done("Both.")]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let (session_id, by) = (world.session(id), "kim".to_owned());
    world.ok(Command::SendToSession { session_id, text: "And the docs".to_owned(), by });
    assert_eq!(
        world.story(id),
        "blocked(question_asked), not settled: goal [waiting_approval], follow_up [queued]"
    );
    let question_id = world.question();
    say(&mut world, question_id, Answer::Allow);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, follow_up completed");
}

#[test]
fn a_process_that_counts_its_requests_anew_is_not_taken_for_the_one_before() {
    let mut world = World::new();
    let mut host = Host::ada(vec![vec![Verb::AskOn("1"), Verb::Exit(3)], asks(&["1"])]);
    let id = world.create(task(1));
    let session_id = world.session(id);
    let again = Command::SendToSession { session_id, text: "and more".to_owned(), by: "kim".to_owned() };
    world.ok(again);
    // No time passes between the question, the end of its process and the start of the next.
    host.finish(&mut world, id);
    assert_eq!(statuses(&world), [QuestionStatus::Withdrawn, QuestionStatus::Open]);
    let question_id = world.question();
    say(&mut world, question_id, Answer::Allow);
    host.finish(&mut world, id);
    assert_eq!(answers(&world), [some("1", "yes")]);
}
