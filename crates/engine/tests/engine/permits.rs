//! What holds an agent to its permissions, who answers its requests, and what comes too late.

use std::collections::BTreeMap;

use rallypoint_engine::permission::holding::{ceiling, hold, may_take};
use rallypoint_model::agent_io::{AgentInput, AgentItem};
use rallypoint_model::agent_offer::{OfferedOption, OfferedValue, Wanted};
use rallypoint_model::command::{AgentLaunch, Command, SpawnSession};
use rallypoint_model::event::Event;
use rallypoint_model::ids::{QuestionId, SessionId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::permission::{AgentPermissions, LayerSource, PolicyLayer, Preset};
use rallypoint_model::question::{Answer, AnsweringAgent, ApprovalOption, QuestionKind, QuestionStatus};
use rallypoint_model::refusal::RefusalCode;

use crate::host::{Host, Verb, call};
use crate::questions::blocked;
use crate::world::{World, agent, task};

fn layer(source: LayerSource, preset: Preset) -> PolicyLayer {
    PolicyLayer { source, inherited_from: None, preset, rules: Vec::new() }
}

fn launch(label: &str, source: LayerSource, preset: Preset, modes: &[(Preset, &str)]) -> AgentLaunch {
    let modes: BTreeMap<Preset, String> =
        modes.iter().map(|(preset, mode)| (*preset, (*mode).to_owned())).collect();
    let permissions =
        AgentPermissions { layers: vec![layer(source, preset)], preset_modes: modes, asks_always: false };
    AgentLaunch { permissions, ..agent(label) }
}

const MODES: &[(Preset, &str)] = &[(Preset::Readonly, "plan"), (Preset::Standard, "default")];

fn asked(label: &str, preset: Preset) -> AgentLaunch {
    launch(label, LayerSource::Request, preset, MODES)
}

fn presets(launch: &AgentLaunch) -> Vec<(Preset, Option<&str>)> {
    let layers = launch.permissions.layers.iter();
    layers.map(|layer| (layer.preset, layer.inherited_from.as_deref())).collect()
}

#[test]
fn an_agent_that_nothing_holds_is_refused_where_it_has_to_be_held() {
    let bare = launch("ada", LayerSource::Request, Preset::Readonly, &[]);
    let refusal = hold(&bare, None).unwrap_err();
    assert_eq!(refusal.code, RefusalCode::Invalid);
    assert!(refusal.message.contains("`ada` can't be held to `readonly`"), "{refusal}");
    assert!(refusal.to_string().contains("presetModes.readonly"), "{refusal}");
    let mut asks = bare.clone();
    asks.permissions.asks_always = true;
    assert_eq!(hold(&asks, None), Ok(asks.clone()));
    for preset in [Preset::Standard, Preset::Permissive, Preset::Autonomous] {
        let free = launch("ada", LayerSource::Request, preset, &[]);
        assert_eq!(hold(&free, None), Ok(free.clone()), "{preset:?}");
    }
}

#[test]
fn a_held_agent_gets_the_mode_of_its_preset_and_no_other() {
    let held = hold(&asked("ada", Preset::Readonly), None).unwrap();
    assert_eq!(held.wanted.mode.as_deref(), Some("plan"), "a run ends where it is not taken");
    let eased = hold(&asked("ada", Preset::Standard), None).unwrap();
    assert_eq!((eased.wanted.mode, eased.config), (None, vec![("mode".to_owned(), "default".to_owned())]));
    for way in 0..2 {
        let mut other = asked("ada", Preset::Readonly);
        match way {
            0 => other.wanted.mode = Some("yolo".to_owned()),
            _ => other.config.push(("mode".to_owned(), "yolo".to_owned())),
        }
        let refusal = hold(&other, None).unwrap_err();
        assert!(refusal.message.contains("`plan`") && refusal.message.contains("`yolo`"), "{refusal}");
        // Whoever starts work may choose; what is below another agent must not choose its way out.
        other.permissions = asked("ada", Preset::Standard).permissions;
        assert!(hold(&other, None).is_ok());
        assert!(hold(&other, Some(&asked("lead", Preset::Standard))).is_err());
    }
}

#[test]
fn a_child_has_its_parents_layers_before_its_own_and_only_shrinks() {
    let lead = hold(&asked("lead", Preset::Standard), None).unwrap();
    let wide = hold(&asked("ada", Preset::Autonomous), Some(&lead)).unwrap();
    assert_eq!(presets(&wide), [(Preset::Standard, Some("lead")), (Preset::Autonomous, None)]);
    assert_eq!(wide.permissions.narrowest(), Preset::Standard);
    let narrow = hold(&asked("ada", Preset::Readonly), Some(&lead)).unwrap();
    assert_eq!(narrow.wanted.mode.as_deref(), Some("plan"));
    // What only the configuration says for all adds nothing, and whose a layer was first stays said.
    let silent = launch("bob", LayerSource::Configuration, Preset::Permissive, MODES);
    let below = hold(&silent, Some(&wide)).unwrap();
    assert_eq!(presets(&below), [(Preset::Standard, Some("lead")), (Preset::Autonomous, Some("ada"))]);
    // One that can't be held to what is above it is refused.
    let strict = hold(&asked("lead", Preset::Readonly), None).unwrap();
    let bare = launch("bob", LayerSource::Request, Preset::Autonomous, &[]);
    assert!(hold(&bare, Some(&strict)).is_err());
}

#[test]
fn one_that_joins_without_a_parent_stays_below_the_widest_that_was_asked_for() {
    let agents = [asked("ada", Preset::Readonly), asked("bob", Preset::Standard)];
    assert_eq!(ceiling(&agents).map(|launch| launch.label.as_str()), Some("bob"));
    let unasked = launch("kim", LayerSource::Configuration, Preset::Standard, MODES);
    assert_eq!(ceiling(&[agents[0].clone(), unasked]), None, "nobody bounded one of them");
    let mut world = World::with_limits(Limits { spawn_depth: 3, ..Limits::default() });
    let mut create = task(1);
    create.agents = vec![asked("ada", Preset::Readonly)];
    let id = world.create(create);
    let joined = spawn(&mut world, id, None, asked("bob", Preset::Autonomous));
    let launch = world.state.sessions[&joined].launch.clone().unwrap();
    assert_eq!(presets(&launch), [(Preset::Readonly, Some("ada")), (Preset::Autonomous, None)]);
    assert_eq!(launch.wanted.mode.as_deref(), Some("plan"));
    let bare = self::launch("eve", LayerSource::Request, Preset::Autonomous, &[]);
    let refused = world.refused(Command::SpawnSession(spawn_command(id, None, bare)));
    assert!(refused.1.contains("can't be held to `readonly`"), "{refused:?}");
}

fn spawn_command(task_id: TaskId, parent: Option<SessionId>, launch: AgentLaunch) -> SpawnSession {
    SpawnSession { task_id, parent_session_id: parent, launch, idempotency_key: None }
}

fn spawn(world: &mut World, task_id: TaskId, parent: Option<SessionId>, launch: AgentLaunch) -> SessionId {
    world.ok(Command::SpawnSession(spawn_command(task_id, parent, launch)));
    *world.state.sessions.keys().max().expect("a session")
}

#[test]
fn a_session_that_is_held_by_its_mode_keeps_it_whatever_is_configured() {
    let held = hold(&asked("ada", Preset::Readonly), None).unwrap();
    assert!(may_take(&held, "plan").is_ok() && may_take(&held, "yolo").is_err());
    assert!(may_take(&asked("ada", Preset::Standard), "yolo").is_ok());
    let mut world = World::new();
    let mut create = task(1);
    create.agents = vec![asked("ada", Preset::Readonly)];
    let mut host = Host::ada(vec![blocked(), vec![Verb::Say("Again."), Verb::Stop("end_turn")]]);
    let values = ["plan", "yolo"].map(|word| OfferedValue { value: word.to_owned(), name: word.to_owned() });
    host.offer.options = vec![OfferedOption {
        id: "approval".to_owned(),
        category: "mode".to_owned(),
        current: "yolo".to_owned(),
        values: values.to_vec(),
        ..OfferedOption::default()
    }];
    let id = world.create(create);
    host.finish(&mut world, id);
    let session_id = world.session(id);
    let configure = |wanted: Option<&str>, config: &[(&str, &str)]| Command::ConfigureSession {
        session_id,
        wanted: Wanted { mode: wanted.map(str::to_owned), ..Wanted::default() },
        config: config.iter().map(|(id, value)| ((*id).to_owned(), (*value).to_owned())).collect(),
        by: "kim".to_owned(),
    };
    for (wanted, config) in [(Some("yolo"), vec![]), (None, vec![("mode", "yolo")])] {
        let refused = world.refused(configure(wanted, &config));
        assert!(refused.1.contains("`ada` is held to `readonly` by its mode `plan`"), "{refused:?}");
    }
    // The same option under the agent's own name for it is taken down and never said.
    let _ = world.decide(&configure(None, &[("approval", "yolo")]));
    let (question_id, answer) = (world.question(), Answer::Text { text: "Go on".to_owned() });
    world.ok(Command::AnswerQuestion { question_id, answer, by: "kim".to_owned() });
    host.finish(&mut world, id);
    assert_eq!(host.prompts.len(), 2);
    assert!(host.told.iter().any(|told| told.contains("plan")), "{:?}", host.told);
    assert!(!host.told.iter().any(|told| told.contains("yolo")), "{:?}", host.told);
}

/// A request whose options stand in an order of their own.
fn ask_with(request: &str, kind: &str, options: &[(&str, &str)]) -> Verb {
    let option = |(id, kind): &(&str, &str)| ApprovalOption {
        option_id: (*id).to_owned(),
        name: (*id).to_owned(),
        kind: (*kind).to_owned(),
    };
    Verb::Item(AgentItem::PermissionAsked {
        request_id: request.to_owned(),
        frame: 4,
        call: call(request, kind, "pending"),
        options: options.iter().map(option).collect(),
    })
}

const ODD: &[(&str, &str)] =
    &[("1", "reject_always"), ("2", "allow_always"), ("3", "reject_once"), ("4", "allow_once")];

fn answers(world: &World) -> Vec<(String, Option<String>)> {
    let given = |event: &&Event| match event {
        Event::GenerationInput { input: AgentInput::AnswerPermission { request_id, option_id }, .. } => {
            Some((request_id.clone(), option_id.clone()))
        }
        _ => None,
    };
    world.facts("generation.input").iter().filter_map(given).collect()
}

/// A task whose agent waits for one permission.
fn waiting(options: &[(&str, &str)]) -> (World, Host, TaskId, QuestionId) {
    let mut world = World::new();
    let mut host = Host::ada(vec![vec![ask_with("7", "execute", options)]]);
    let id = world.create(task(1));
    host.work(&mut world);
    let question_id = world.question();
    (world, host, id, question_id)
}

fn by_main(question_id: QuestionId, answer: Answer) -> Command {
    Command::AnswerQuestionAsAgent { question_id, answer, agent: AnsweringAgent::MainAgent }
}

fn option(id: &str) -> Answer {
    Answer::Option { option_id: id.to_owned() }
}

#[test]
fn the_question_says_which_rule_or_default_made_it_ask() {
    let (world, _, _, question_id) = waiting(ODD);
    let QuestionKind::Approval { because: Some(because), .. } = &world.state.questions[&question_id].question
    else {
        panic!("no reason is kept");
    };
    assert_eq!(because.to_string(), "`standard`: execute a dangerous or unreadable command (configuration)");
    let json = serde_json::to_value(&world.state.questions[&question_id].question).unwrap();
    assert_eq!(json["because"]["layer"], "configuration");
}

#[test]
fn the_main_agent_allows_or_declines_one_call_and_nothing_beyond_it() {
    for (answer, told) in
        [(Answer::Allow, "4"), (option("3"), "3"), (Answer::Decline { reason: String::new() }, "3")]
    {
        let (mut world, _, _, question_id) = waiting(ODD);
        for kept in ["1", "2"] {
            let refused = world.refused(by_main(question_id, option(kept)));
            assert_eq!(refused.0, RefusalCode::Forbidden, "{refused:?}");
        }
        world.ok(by_main(question_id, answer));
        assert_eq!(answers(&world), [("7".to_owned(), Some(told.to_owned()))]);
        assert_eq!(
            world.state.questions.values().next().unwrap().closed_by.as_deref(),
            Some("the main agent")
        );
    }
}

#[test]
fn an_agent_above_allows_only_what_it_would_not_have_to_ask_for_itself() {
    for (own, allowed) in [(Preset::Standard, true), (Preset::Permissive, false)] {
        let limits = Limits { spawn_depth: 3, ..Limits::default() };
        let mut world = World::with_limits(limits);
        let mut host = Host::new(&[
            ("lead", vec![vec![Verb::Say("I lead.")]]),
            ("ada", vec![vec![ask_with("7", "fetch", ODD)]]),
            ("other", vec![vec![Verb::Say("I look.")]]),
        ]);
        let mut create = task(1);
        // `autonomous` lets it fetch; `permissive` would have to ask.
        let lead = if allowed { Preset::Autonomous } else { Preset::Permissive };
        create.agents = vec![
            launch("lead", LayerSource::Request, lead, &[]),
            launch("other", LayerSource::Request, lead, &[]),
        ];
        let id = world.create(create);
        host.work(&mut world);
        let named = |world: &World, label: &str| {
            let mut sessions = world.state.sessions.values();
            sessions
                .find(|it| it.launch.as_ref().is_some_and(|it| it.label == label))
                .map(|it| it.id)
                .unwrap()
        };
        let (above, beside) = (named(&world, "lead"), named(&world, "other"));
        let child = spawn(&mut world, id, Some(above), launch("ada", LayerSource::Request, own, &[]));
        host.work(&mut world);
        if allowed {
            // A layer that never asks leaves nothing to be answered: the policy has said no.
            assert_eq!(
                (world.state.questions.len(), answers(&world)),
                (0, vec![("7".to_owned(), Some("3".to_owned()))])
            );
            continue;
        }
        let question_id = world.question();
        let say = |session_id: SessionId, answer: Answer| Command::AnswerQuestionAsAgent {
            question_id,
            answer,
            agent: AnsweringAgent::Session { session_id },
        };
        for stranger in [child, beside] {
            let refused = world.refused(say(stranger, Answer::Allow));
            assert!(refused.1.contains("does not stand above"), "{refused:?}");
        }
        let refused = world.refused(say(above, Answer::Allow));
        assert!(refused.1.contains("`lead` would have to ask for this itself"), "{refused:?}");
        world.ok(say(above, Answer::Decline { reason: "no".to_owned() }));
        assert_eq!(answers(&world), [("7".to_owned(), Some("3".to_owned()))]);
    }
}

#[test]
fn an_agent_above_that_may_do_it_itself_allows_it() {
    let mut world = World::with_limits(Limits { spawn_depth: 3, ..Limits::default() });
    let mut host = Host::new(&[
        ("lead", vec![vec![Verb::Say("I lead.")]]),
        ("ada", vec![vec![ask_with("7", "move", ODD)]]),
    ]);
    let mut create = task(1);
    let mut lead = launch("lead", LayerSource::Request, Preset::Permissive, &[]);
    let rule = serde_json::json!({"effect": "allow", "tools": ["move"]});
    lead.permissions.layers[0].rules = vec![serde_json::from_value(rule).unwrap()];
    create.agents = vec![lead];
    let id = world.create(create);
    host.work(&mut world);
    let above = world.session(id);
    spawn(&mut world, id, Some(above), launch("ada", LayerSource::Request, Preset::Standard, &[]));
    host.work(&mut world);
    let question_id = world.question();
    let agent = AnsweringAgent::Session { session_id: above };
    world.ok(Command::AnswerQuestionAsAgent { question_id, answer: Answer::Allow, agent });
    assert_eq!(answers(&world), [("7".to_owned(), Some("4".to_owned()))]);
}

#[test]
fn no_agent_takes_a_result_in_a_persons_name() {
    let mut world = World::new();
    let mut host = Host::ada(vec![vec![Verb::Say("Done."), Verb::Stop("end_turn")]]);
    let mut create = task(1);
    create.criteria[0].check =
        rallypoint_model::task::CriterionCheck::Human { text: "Is it fine?".to_owned() };
    let id = world.create(create);
    host.finish(&mut world, id);
    let question_id = world.question();
    let refused = world.refused(by_main(question_id, Answer::Accept { reason: String::new() }));
    assert_eq!(refused.0, RefusalCode::Forbidden, "{refused:?}");
    assert_eq!(world.open_questions().len(), 1);
}

#[test]
fn a_request_that_is_open_when_its_prompt_ends_is_answered_cancelled_and_a_late_answer_runs_nothing() {
    let mut world = World::new();
    let turn = vec![Verb::AskOn("7"), Verb::AskOn("8"), Verb::Say("Did without."), Verb::Stop("end_turn")];
    let mut host = Host::ada(vec![turn]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    assert_eq!(answers(&world), [("7".to_owned(), None), ("8".to_owned(), None)]);
    let question = world.state.questions.values().next().unwrap().clone();
    assert_eq!(question.status, QuestionStatus::Withdrawn);
    let closed_at = question.closed_at.unwrap();
    world.pass(60_000);
    let inputs = world.facts("generation.input").len();
    let (code, message) = world.refused(Command::AnswerQuestion {
        question_id: question.id,
        answer: Answer::Allow,
        by: "kim".to_owned(),
    });
    assert_eq!(code, RefusalCode::AlreadyClosed);
    let expected = format!("it was taken back by the end of its prompt at {}", closed_at.in_words());
    assert!(message.contains(&expected) && message.contains("answered `cancelled`"), "{message}");
    assert_eq!(world.facts("generation.input").len(), inputs, "nothing is said to the agent");
}

#[test]
fn a_stop_answers_every_open_request_and_names_itself_to_who_comes_later() {
    let mut world = World::new();
    let mut host = Host::ada(vec![vec![Verb::AskOn("7"), Verb::AskOn("8"), Verb::Ask("9")]]);
    let id = world.create(task(1));
    host.finish(&mut world, id);
    let ids: Vec<QuestionId> = world.open_questions().iter().map(|question| question.id).collect();
    assert_eq!(ids.len(), 3);
    world.ok(Command::StopTask { task_id: id, by: "kim".to_owned() });
    let cancelled: Vec<_> = ["7", "8", "9"].map(|request| (request.to_owned(), None)).to_vec();
    assert_eq!(answers(&world), cancelled);
    for question_id in ids {
        let (_, message) = world.refused(by_main(question_id, Answer::Allow));
        assert!(message.contains("taken back by the stop of its run by kim at "), "{message}");
    }
}
