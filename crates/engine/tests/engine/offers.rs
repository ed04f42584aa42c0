//! What agents say that they can do, what they offer to set, what they ask a person, and helpers of their own.

use rallypoint_model::agent_io::{AgentItem, AgentOutput, FileAsk};
use rallypoint_model::agent_offer::{
    AgentCapabilities, AuthMethod, ConversationOffer, NativeAgentUpdate, OfferChange, OfferedChoice,
    OfferedOption, OfferedValue, Wanted,
};
use rallypoint_model::command::{AgentService, Command, CreateTask};
use rallypoint_model::ids::SessionId;
use rallypoint_model::question::{Answer, AskField, AskForm, QuestionStatus};
use rallypoint_model::refusal::RefusalCode;
use rallypoint_model::run::OutcomeReason;

use crate::answers::{LATER, loads, told};
use crate::host::{Host, OnCancel, Verb, report};
use crate::world::{World, agent, task};

/// An option of this id that takes these values.
pub(crate) fn offered(frame: u64, values: &[&str]) -> AgentItem {
    let options = vec![option("model", "model", values)];
    AgentItem::Offered { frame, agent_session_id: None, change: OfferChange::Options { options } }
}

/// A form with one field.
pub(crate) fn elicitation(request: &str, frame: u64) -> AgentItem {
    let field = AskField {
        name: "port".to_owned(),
        kind: "integer".to_owned(),
        required: true,
        ..AskField::default()
    };
    AgentItem::ElicitationAsked {
        request_id: request.to_owned(),
        frame,
        text: "Which port?".to_owned(),
        form: AskForm { fields: vec![field], url: None },
    }
}

fn option(id: &str, category: &str, words: &[&str]) -> OfferedOption {
    let value = |word: &&str| OfferedValue { value: (*word).to_owned(), name: (*word).to_owned() };
    OfferedOption {
        id: id.to_owned(),
        category: category.to_owned(),
        kind: "select".to_owned(),
        current: words.first().map_or(String::new(), |word| (*word).to_owned()),
        values: words.iter().map(value).collect(),
        ..OfferedOption::default()
    }
}

fn models() -> ConversationOffer {
    ConversationOffer {
        options: vec![option("model", "model", &["small", "big", "refused"])],
        ..ConversationOffer::default()
    }
}

fn wants_model(model: &str) -> CreateTask {
    let mut launch = agent("ada");
    launch.wanted.model = Some(model.to_owned());
    CreateTask { agents: vec![launch], ..task(1) }
}

fn done() -> Vec<Verb> {
    vec![Verb::Say("Done."), Verb::Stop("end_turn")]
}

fn native(id: &str, state: &str) -> Verb {
    let update = NativeAgentUpdate {
        agent_session_id: id.to_owned(),
        title: Some("look around".to_owned()),
        state: Some(state.to_owned()),
        can_cancel: Some(true),
        ..NativeAgentUpdate::default()
    };
    output(None, AgentOutput::NativeAgent { update })
}

fn output(session: Option<&str>, output: AgentOutput) -> Verb {
    Verb::Item(AgentItem::Output {
        first_frame: LATER,
        last_frame: LATER,
        agent_session_id: session.map(str::to_owned),
        output,
    })
}

fn configure(session_id: SessionId, model: &str) -> Command {
    let wanted = Wanted { model: Some(model.to_owned()), ..Wanted::default() };
    Command::ConfigureSession { session_id, wanted, config: Vec::new(), by: "kim".to_owned() }
}

#[test]
fn a_model_is_set_before_the_prompt_and_only_once() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done(), done()]);
    host.offer = models();
    host.checks = [rallypoint_model::task::EvidenceResult::Failed].into();
    let id = world.create(wants_model("big"));
    host.finish(&mut world, id);
    assert_eq!(host.prompts.len(), 2, "the goal and one corrective prompt");
    assert_eq!(host.told, ["model=big"]);
}

#[test]
fn a_model_that_is_not_offered_fails_the_run_before_its_prompt() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done()]);
    host.offer = models();
    let id = world.create(wants_model("huge"));
    host.finish(&mut world, id);
    assert!(host.prompts.is_empty() && host.told.is_empty());
    assert_eq!(
        world.last_run(id).reason.as_ref().map(OutcomeReason::words),
        Some("the model `huge` is not offered; the agent offers: small, big, refused".to_owned())
    );
}

#[test]
fn a_model_that_the_agent_refuses_fails_the_run_before_its_prompt() {
    let mut world = World::new();
    let mut host = Host::ada(vec![done()]);
    host.offer = models();
    let id = world.create(wants_model("refused"));
    host.finish(&mut world, id);
    assert!(host.prompts.is_empty());
    let words = world.last_run(id).reason.as_ref().map(OutcomeReason::words).unwrap();
    assert!(words.contains("does not take") && words.contains("not this"), "{words}");
}

#[test]
fn another_model_on_a_live_session_is_set_before_its_next_prompt() {
    let mut world = World::new();
    let mut host =
        Host::ada(vec![vec![Verb::Ask("7"), Verb::Say("So far."), Verb::Stop("end_turn")], done()]);
    host.offer = ConversationOffer {
        models: Some(OfferedChoice {
            current: "small".to_owned(),
            values: models().options[0].values.clone(),
        }),
        ..ConversationOffer::default()
    };
    host.checks = [rallypoint_model::task::EvidenceResult::Failed].into();
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let session_id = world.session(id);
    let (code, words) = world.refused(configure(session_id, "huge"));
    assert_eq!(code, RefusalCode::Invalid);
    assert!(words.contains("the agent offers: small, big, refused"), "{words}");
    world.ok(configure(session_id, "big"));
    host.work(&mut world);
    assert!(host.told.is_empty(), "its turn is still open");
    let question_id = world.question();
    world.ok(Command::AnswerQuestion { question_id, answer: Answer::Allow, by: "kim".to_owned() });
    host.finish(&mut world, id);
    assert_eq!((host.prompts.len(), host.told.as_slice()), (2, &["model big".to_owned()][..]));
}

#[test]
fn a_conversation_is_resumed_where_that_is_known_and_trusted_and_loaded_else() {
    for (resume, trusts_resume, expected) in [
        (true, true, "resume conversation"),
        (true, false, "load conversation"),
        (false, true, "load conversation"),
    ] {
        let mut world = World::new();
        let mut host = Host::ada(vec![vec![Verb::Say("So far."), Verb::Exit(9)], done()]);
        host.capabilities = AgentCapabilities { resume, ..loads() };
        let mut launch = agent("ada");
        (launch.trusts_load, launch.trusts_resume) = (true, trusts_resume);
        let id = world.create(CreateTask { agents: vec![launch], ..task(1) });
        host.finish(&mut world, id);
        assert_eq!(host.told, [expected], "{resume} {trusts_resume}");
    }
}

#[test]
fn a_conversation_is_closed_before_its_process_is_ended_where_the_agent_knows_how() {
    for (close, expected) in [(true, vec!["close conversation".to_owned()]), (false, vec![])] {
        let mut world = World::new();
        let mut host = Host::ada(vec![done()]);
        host.capabilities = AgentCapabilities { close, ..loads() };
        let id = world.create(task(1));
        host.finish(&mut world, id);
        host.work(&mut world);
        let closed: Vec<String> = world
            .facts("generation.input")
            .iter()
            .filter_map(|event| match event {
                rallypoint_model::event::Event::GenerationInput { input, .. } => told(input),
                _ => None,
            })
            .collect();
        assert_eq!(closed, expected);
    }
}

#[test]
fn a_way_to_log_in_is_taken_before_the_conversation_is_opened_where_the_agent_names_it() {
    for (wanted, expected, story) in [
        ("key", vec!["log in by key"], "done(proven), exit 0: goal completed"),
        ("unknown", vec![], "done(proven), exit 0: goal completed"),
        ("refused", vec!["log in by refused"], "waiting_on_user(login_needed), exit 3: goal failed"),
    ] {
        let mut world = World::new();
        let mut host = Host::ada(vec![done()]);
        let named = ["key", "refused"].map(|id| AuthMethod {
            id: id.to_owned(),
            name: format!("by {id}"),
            kind: String::new(),
        });
        host.capabilities = AgentCapabilities { auth_methods: named.to_vec(), ..loads() };
        let mut launch = agent("ada");
        launch.auth_method = Some(wanted.to_owned());
        launch.login_hint = String::new();
        let id = world.create(CreateTask { agents: vec![launch], ..task(1) });
        host.finish(&mut world, id);
        assert_eq!(
            (host.told, world.story(id)),
            (expected.iter().map(|it| (*it).to_owned()).collect(), story.to_owned())
        );
        if wanted == "refused" {
            let words = world.last_run(id).reason.as_ref().map(OutcomeReason::words).unwrap();
            assert!(words.contains("these ways to log in: by key, by refused"), "{words}");
        }
    }
}

#[test]
fn files_are_served_only_to_those_that_need_it_and_written_only_where_that_is_let_through() {
    let read = FileAsk::Read { path: "/srv/example/a".to_owned(), line: None, limit: None };
    let write = |path: &str| FileAsk::Write { path: path.to_owned(), content: "x".to_owned() };
    let inside = format!("{}/a", task(1).cwd);
    let asked = |request: &str, ask: FileAsk| {
        let request_id = request.to_owned();
        Verb::Item(AgentItem::FileAsked { request_id, frame: LATER, ask })
    };
    for (services, expected) in [
        (
            vec![AgentService::Fs],
            vec![
                "fs/read_text_file /srv/example/a None".to_owned(),
                format!("fs/write_text_file {inside} None"),
                "fs/write_text_file /etc/x Some(\"`/etc/x` is not let through: `standard`: edit outside the work folder, or without a path\")"
                    .to_owned(),
            ],
        ),
        (vec![], vec![]),
    ] {
        let mut world = World::new();
        let mut turn =
            vec![asked("1", read.clone()), asked("2", write(&inside)), asked("3", write("/etc/x"))];
        turn.extend(done());
        let mut host = Host::ada(vec![turn]);
        let mut launch = agent("ada");
        launch.services = services.clone();
        let id = world.create(CreateTask { agents: vec![launch], ..task(1) });
        host.finish(&mut world, id);
        let told: Vec<String> = world.facts("generation.input").iter().filter_map(|event| match event {
            rallypoint_model::event::Event::GenerationInput { input, .. } => told(input),
            _ => None,
        }).collect();
        assert_eq!(told, expected);
        let refused = world.facts("generation.noted").len();
        assert_eq!(refused, if services.is_empty() { 3 } else { 0 });
    }
}

#[test]
fn a_form_is_asked_and_its_values_reach_the_agent_in_the_same_turn() {
    let mut world = World::new();
    let turn = vec![Verb::Item(elicitation("5", LATER)), Verb::Exit(1)];
    let mut host = Host::ada(vec![turn]);
    host.otherwise = vec![];
    let id = world.create(task(1));
    // The process goes on only after the answer, which a person gives in between.
    host.turns.get_mut("ada").unwrap()[0].truncate(1);
    host.work(&mut world);
    assert_eq!(world.story(id), "blocked(question_asked), exit 3: goal [waiting_question]");
    let question_id = world.question();
    let reply = world.replies(id, "question").join("\n");
    assert!(reply.contains("--field NAME=VALUE") && reply.contains("`port`, integer"), "{reply}");
    let by = "kim".to_owned();
    let answer = Answer::Text { text: "many".to_owned() };
    let (code, words) = world.refused(Command::AnswerQuestion { question_id, answer, by: by.clone() });
    assert_eq!(code, RefusalCode::Invalid);
    assert!(words.contains("`port` takes a whole number"), "{words}");
    world.ok(Command::AnswerQuestion { question_id, answer: Answer::Text { text: "80".to_owned() }, by });
    host.work(&mut world);
    assert_eq!(host.told, [r#"accept {"port":80}"#]);
    assert_eq!(world.story(id), "active, not settled: goal [running]");
}

#[test]
fn a_form_is_declined_at_its_deadline_and_cancelled_with_its_turn() {
    let asked = || {
        let mut world = World::new();
        let mut host = Host::ada(vec![vec![Verb::Item(elicitation("5", LATER))]]);
        let id = world.create(task(1));
        host.work(&mut world);
        (world, host, id)
    };
    let (mut world, mut host, _) = asked();
    let minutes = i64::try_from(world.limits.question_deadline_minutes).unwrap();
    world.pass(minutes * 60_000);
    host.work(&mut world);
    assert_eq!(host.told, ["decline"]);
    let (mut world, mut host, id) = asked();
    host.on_cancel = OnCancel::Answers("cancelled");
    world.ok(Command::StopTask { task_id: id, by: "kim".to_owned() });
    host.work(&mut world);
    assert_eq!(host.told, ["cancel the question", "cancel conversation"]);
    let statuses: Vec<QuestionStatus> = world.state.questions.values().map(|it| it.status).collect();
    assert_eq!(statuses, [QuestionStatus::Withdrawn]);
}

#[test]
fn words_of_an_agents_own_helper_are_never_its_own() {
    let mut world = World::new();
    let words = AgentOutput::Message { text: "I am the helper".to_owned() };
    let turn = vec![
        native("child", "running"),
        output(Some("child"), words.clone()),
        Verb::Say("Done."),
        Verb::Stop("end_turn"),
    ];
    let mut host = Host::ada(vec![turn]);
    let id = world.create(task(1));
    host.work(&mut world);
    let generation_id = world.last_run(id).generation_id.unwrap();
    // The last words of a helper, and its end, may come after the turn that made it.
    for verb in [output(Some("child"), words), native("child", "idle")] {
        if let Verb::Item(item) = verb {
            report(&mut world, generation_id, vec![item]);
        }
    }
    host.finish(&mut world, id);
    assert_eq!(world.last_run(id).summary, "Done.");
    let session = &world.state.sessions[&world.session(id)];
    let helpers: Vec<(&str, &str)> = session
        .native_agents
        .iter()
        .map(|helper| (helper.agent_session_id.as_str(), helper.state.as_str()))
        .collect();
    assert_eq!(helpers, [("child", "idle")]);
}

#[test]
fn a_cancel_reaches_the_helpers_that_can_be_cancelled() {
    let mut world = World::new();
    let mut fixed = native("fixed", "running");
    if let Verb::Item(AgentItem::Output { output: AgentOutput::NativeAgent { update }, .. }) = &mut fixed {
        update.can_cancel = None;
    }
    let mut host =
        Host::ada(vec![vec![native("child", "running"), native("over", "idle"), fixed, Verb::Say("…")]]);
    host.on_cancel = OnCancel::Ignores;
    let id = world.create(task(1));
    host.work(&mut world);
    world.ok(Command::StopTask { task_id: id, by: "kim".to_owned() });
    host.work(&mut world);
    assert_eq!(host.told, ["cancel conversation", "cancel child"]);
}
