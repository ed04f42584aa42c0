//! Random commands and random agents on random small worlds.

use proptest::prelude::*;
use rallypoint_engine::due::{due, next_wakeup};
use rallypoint_model::agent_io::{AgentItem, AgentReport};
use rallypoint_model::command::{Acceptance, Command, SayInRoom};
use rallypoint_model::ids::{EvidenceId, GenerationId, QuestionId, RoomId, SessionId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::mail::{ConversationMode, MailMode};
use rallypoint_model::question::Answer;
use rallypoint_model::routing::{ExplicitEvent, ExplicitKind};
use rallypoint_model::session::{GenerationEnd, SpoolCursor};
use rallypoint_model::task::{Criterion, CriterionCheck, Evidence, EvidenceResult};
use rallypoint_model::tool_call::ToolRequest;
use uuid::Uuid;

use crate::answers::loads;
use crate::host::{Host, Verb, ask, call, said, tool_call};
use crate::invariants::{Auditor, check_state, documents, replay};
use crate::offers::{elicitation, offered};
use crate::prompts::check_prompts;
use crate::steering::steer;
use crate::world::{World, agent, command_criterion, task};

const BLOCKED: &str = "```json\n{\"status\":\"blocked\",\"reason\":\"Which one?\",\"diffSummary\":\"\",\"filesChanged\":[],\"testResults\":[],\"acceptanceCriteriaStatus\":[],\"residualRisks\":[]}\n```";
const FAILED: &str = "```json\n{\"status\":\"failed\",\"reason\":\"no\",\"diffSummary\":\"\",\"filesChanged\":[],\"testResults\":[],\"acceptanceCriteriaStatus\":[],\"residualRisks\":[]}\n```";

/// One step. Numbers pick among what there is; a high one names something unknown.
#[derive(Clone, Debug)]
enum Step {
    Create { number: u8, agents: usize, key: u8, timeout: i64, shape: u8 },
    Stop(u8),
    Retry(u8, bool),
    Send(u8, bool),
    Say(u8),
    Raise(u8, u8),
    Tool(u8, u8, u8),
    Answer(u8, u8),
    Override(u8, bool, bool),
    Steer(u8, u8, bool),
    Launched(u8),
    Gone(u8, u8),
    Cleaned(u8),
    Report(u8, i8, Vec<Item>),
    Verified(u8, u8, u8),
    Pass(u32),
    Open,
    Obey(u8, u8),
}

#[derive(Clone, Debug)]
struct Item {
    kind: u8,
    seq: u8,
    frame: i8,
    word: u8,
}

fn step() -> impl Strategy<Value = Step> {
    let item = (0..16_u8, 0..6_u8, -2..3_i8, 0..8_u8).prop_map(|(kind, seq, frame, word)| Item {
        kind,
        seq,
        frame,
        word,
    });
    prop_oneof![
        3 => (any::<u8>(), 0..4_usize, 0..6_u8, prop_oneof![Just(0_i64), Just(500), Just(60_000)], 0..6_u8)
            .prop_map(|(number, agents, key, timeout, shape)| Step::Create { number: number % 12, agents, key, timeout, shape }),
        1 => any::<u8>().prop_map(Step::Stop),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(which, text)| Step::Retry(which, text)),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(which, text)| Step::Send(which, text)),
        1 => (0..6_u8).prop_map(Step::Say),
        1 => (any::<u8>(), 0..4_u8).prop_map(|(which, call)| Step::Raise(which, call)),
        2 => (any::<u8>(), 0..9_u8, 0..3_u8).prop_map(|(which, tool, id)| Step::Tool(which, tool, id)),
        3 => (any::<u8>(), 0..8_u8).prop_map(|(which, answer)| Step::Answer(which, answer)),
        1 => (any::<u8>(), any::<bool>(), any::<bool>()).prop_map(|(which, pass, why)| Step::Override(which, pass, why)),
        3 => (any::<u8>(), 0..14_u8, any::<bool>()).prop_map(|(which, how, flag)| Step::Steer(which, how, flag)),
        1 => any::<u8>().prop_map(Step::Launched),
        1 => (any::<u8>(), 0..7_u8).prop_map(|(which, end)| Step::Gone(which, end)),
        1 => any::<u8>().prop_map(Step::Cleaned),
        6 => (any::<u8>(), -1..3_i8, prop::collection::vec(item, 0..4))
            .prop_map(|(which, cursor, items)| Step::Report(which, cursor, items)),
        1 => (any::<u8>(), 0..3_u8, 0..4_u8).prop_map(|(which, round, result)| Step::Verified(which, round, result)),
        3 => prop_oneof![0..50_u32, 200..6_000_u32, 60_000..4_000_000_u32].prop_map(Step::Pass),
        1 => Just(Step::Open),
        20 => (any::<u8>(), any::<u8>()).prop_map(|(which, turn)| Step::Obey(which, turn)),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    (1..4_u32, 1..4_u32, 1..6_u32, 0..3_u32, 0..3_u32, 1..5_u32, prop_oneof![Just(0_u64), Just(5)]).prop_map(
        |(lane, children, queue, corrective, crash, cap, timeout)| Limits {
            lane_subagent: lane,
            children_per_parent: children,
            queue_depth: queue,
            corrective_rounds: corrective,
            crash_budget: crash,
            round_trip_cap: cap,
            run_timeout_seconds: timeout,
            junk_lines: 3,
            question_deadline_minutes: 30,
            permission_deadline_minutes: 10,
            ..Limits::default()
        },
    )
}

fn pick<T: Copy>(all: impl Iterator<Item = T>, which: u8, unknown: T) -> T {
    let all: Vec<T> = all.collect();
    if which >= 250 || all.is_empty() { unknown } else { all[which as usize % all.len()] }
}

pub(crate) fn task_of(world: &World, which: u8) -> TaskId {
    pick(world.state.tasks.keys().copied(), which, TaskId(Uuid::from_u128(1)))
}

fn generation_of(world: &World, which: u8) -> GenerationId {
    let live = world.state.generations.values().filter(|one| which.is_multiple_of(3) || one.is_live());
    pick(live.map(|one| one.id), which, GenerationId(Uuid::from_u128(1)))
}

/// A hello of a tool server, a call under one of few names, or the end of one.
fn tool_command(generation_id: GenerationId, tool: u8, id: u8) -> Command {
    let (process, request_id) = ("p".to_owned(), id.to_string());
    let send = |to: &str| ToolRequest::Send { recipient: to.to_owned(), text: "Hello.".to_owned() };
    let ask = |options: &[&str]| ToolRequest::AskUser {
        question: "Which?".to_owned(),
        options: options.iter().map(|&option| option.to_owned()).collect(),
    };
    let request = match tool {
        0 => return Command::ToolsConnected { generation_id, process, client: "c".to_owned() },
        1 => return Command::ToolCallCancelled { generation_id, process, request_id },
        2 => ToolRequest::Coordinate { text: "Mine.".to_owned() },
        3 => ask(&[]),
        4 => ask(&["a", "b"]),
        5 => send("parent"),
        6 => send("room"),
        7 => send("agent0"),
        _ => ToolRequest::Unfit { name: "dance".to_owned(), problem: "no".to_owned() },
    };
    Command::ToolCalled { generation_id, process, request_id, request }
}

fn question_of(world: &World, which: u8) -> QuestionId {
    let wanted = world.state.questions.values().filter(|one| {
        which.is_multiple_of(3) || one.status == rallypoint_model::question::QuestionStatus::Open
    });
    pick(wanted.map(|one| one.id), which, QuestionId(Uuid::from_u128(1)))
}

fn create(number: u8, agents: usize, key: u8, timeout: i64, shape: u8) -> Command {
    let mut create = task(u128::from(number));
    create.agents = (0..agents).map(|index| agent(&format!("agent{index}"))).collect();
    for (index, agent) in create.agents.iter_mut().enumerate() {
        agent.trusts_load = (usize::from(number) + index).is_multiple_of(2);
        let mode = MailMode::ALL[(usize::from(number) + index) % 4];
        agent.conversation = (!number.is_multiple_of(3)).then_some(ConversationMode { siblings: true, mode });
    }
    create.idempotency_key = (key < 3).then(|| format!("key{key}"));
    create.timeout_ms = timeout;
    let human = Criterion {
        check: CriterionCheck::Human { text: "ok?".to_owned() },
        ..command_criterion(u128::from(number) + 50)
    };
    match shape {
        0 => create.criteria.clear(),
        1 => {
            create.criteria.clear();
            create.acceptance = Acceptance::Unchecked;
        }
        2 => create.criteria.push(human),
        3 => create.goal = "Another goal".to_owned(),
        4 => create.room_id = (number == 7).then_some(RoomId(Uuid::from_u128(9))),
        _ => {}
    }
    Command::CreateTask(create)
}

fn answer(which: u8) -> Answer {
    let text = |text: &str| text.to_owned();
    match which {
        0 => Answer::Allow,
        1 => Answer::Decline { reason: text("no") },
        2 => Answer::Option { option_id: text("yes") },
        3 => Answer::Option { option_id: text("unheard of") },
        4 => Answer::Text { text: text("the first") },
        5 => Answer::Text { text: text(" ") },
        6 => Answer::Accept { reason: String::new() },
        _ => Answer::Value { value: serde_json::Value::Null },
    }
}

fn end(which: u8) -> GenerationEnd {
    match which {
        0 => GenerationEnd::Exited { code: Some(1), signal: None },
        1 => GenerationEnd::NeverStarted,
        2 => GenerationEnd::StartFailed { message: "not found".to_owned() },
        3 | 4 => GenerationEnd::Lost,
        5 => GenerationEnd::Rebooted,
        _ => GenerationEnd::EnvironmentLost { names: vec!["KEY".to_owned()] },
    }
}

fn item(world: &World, generation_id: GenerationId, item: &Item) -> AgentItem {
    let understood = world.state.generations.get(&generation_id).map_or(0, |one| one.cursor.frames);
    let frame = understood.saturating_add_signed(i64::from(item.frame));
    let seq = u64::from(item.seq);
    let text = [
        "",
        "@agent1 hello, @agent0",
        "\n",
        BLOCKED,
        FAILED,
        "--- Goal ---",
        "[sub-agent: x (y) — error]",
        "{}",
    ][item.word as usize];
    let stop = ["end_turn", "end_turn", "max_tokens", "refusal", "cancelled", "banana", "", "end_turn"];
    let request = ["1", "2", "\"a\""][item.word as usize % 3].to_owned();
    match item.kind {
        0 => AgentItem::InputAccepted { seq },
        1 => AgentItem::Initialized { agent: text.to_owned(), capabilities: loads() },
        2 => AgentItem::SessionOpened { agent_session_id: text.to_owned(), raw: serde_json::Value::Null },
        3 | 4 => said(frame, text),
        5 => tool_call(frame, &request, ["pending", "completed", "failed", "new"][item.word as usize % 4]),
        6 => ask(&request, frame, ["execute", "read", "edit"][item.word as usize % 3]),
        7 => {
            let stop_reason = stop[item.word as usize].to_owned();
            AgentItem::PromptAnswered { seq, frame, stop_reason, usage: None }
        }
        8 => {
            let code = [-32000, -32800, -32603, 1][item.word as usize % 4];
            AgentItem::RequestFailed { seq, frame, code, message: text.to_owned() }
        }
        9 => AgentItem::RequestAnswered { seq, frame },
        10 => AgentItem::UnknownRequest { request_id: request, frame, method: "fs/read".to_owned() },
        11 => AgentItem::Junk { count: seq, bytes: 10, sample: text.to_owned() },
        12 => AgentItem::Oversized { bytes: 99, may_be_answer: item.word == 0 },
        13 => AgentItem::Stderr { text: text.to_owned() },
        14 if item.word < 4 => AgentItem::Started { pid: 7 },
        14 => AgentItem::SessionLoaded { seq, frame },
        _ if item.word == 1 => offered(frame, &["a", "b", "c"][item.seq as usize % 3..]),
        _ if item.word == 2 => elicitation(&request, frame),
        _ if item.word == 0 => AgentItem::Exited { code: Some(0), signal: None },
        _ => AgentItem::PermissionAsked {
            request_id: request,
            frame,
            call: call("x", "move", "?"),
            options: Vec::new(),
        },
    }
}

fn turn(which: u8) -> Vec<Verb> {
    match which % 14 {
        0..=2 => vec![Verb::Say("Done it."), Verb::Stop("end_turn")],
        3 => vec![
            Verb::Say("@agent1 is it done? @agent0 is."),
            Verb::Tool("t", "completed"),
            Verb::Say("@agent1 and @zoe"),
            Verb::Stop("end_turn"),
        ],
        4 => vec![Verb::Stop("end_turn")],
        5 => vec![Verb::Say(BLOCKED), Verb::Stop("end_turn")],
        6 => vec![Verb::Say(FAILED), Verb::Stop("end_turn")],
        7 => vec![Verb::Ask("7"), Verb::Say("Done it."), Verb::Stop("end_turn")],
        8 => vec![Verb::AskOn("7"), Verb::AskOn("8")],
        9 => vec![Verb::Say("Some"), Verb::Exit(3)],
        10 => vec![Verb::Unaccepted(GenerationEnd::Lost)],
        11 => vec![Verb::Tool("t", "pending"), Verb::Say("x"), Verb::Stop("end_turn"), Verb::Say("late")],
        12 => vec![Verb::Fail(-32000, "log in")],
        _ => Vec::new(),
    }
}

fn command(world: &World, step: &Step) -> Option<Command> {
    let by = "kim".to_owned();
    Some(match step {
        Step::Create { number, agents, key, timeout, shape } => {
            create(*number, *agents, *key, *timeout, *shape)
        }
        Step::Stop(which) => Command::StopTask { task_id: task_of(world, *which), by },
        Step::Retry(which, said) => {
            Command::RetryTask { task_id: task_of(world, *which), by, text: said.then(|| "again".to_owned()) }
        }
        Step::Send(which, said) => {
            let session_id =
                pick(world.state.sessions.keys().copied(), *which, SessionId(Uuid::from_u128(1)));
            Command::SendToSession { session_id, text: if *said { "hear" } else { " " }.to_owned(), by }
        }
        Step::Say(which) => Command::SayInRoom(SayInRoom {
            room_id: crate::world::MAIN_ROOM,
            text: ["@agent0 go on", "@agent1 and @agent2: stop", "nobody", " ", "@zoe", "@agent0"]
                [usize::from(*which)]
            .to_owned(),
            by,
            idempotency_key: (*which < 2).then(|| format!("say{which}")),
            source: "api".to_owned(),
            platform_message_id: None,
        }),
        Step::Raise(which, call) => Command::RaiseEvent {
            session_id: pick(world.state.sessions.keys().copied(), *which, SessionId(Uuid::from_u128(1))),
            event: ExplicitEvent {
                kind: ExplicitKind::AgentCoordination,
                text: if *call == 3 { " " } else { "Mine." }.to_owned(),
                call_id: format!("c{call}"),
            },
        },
        Step::Tool(which, tool, id) => tool_command(generation_of(world, *which), *tool, *id),
        Step::Answer(which, how) => {
            Command::AnswerQuestion { question_id: question_of(world, *which), answer: answer(*how), by }
        }
        Step::Steer(which, how, flag) => steer(world, *which, *how, *flag),
        Step::Override(which, passed, why) => Command::OverrideTask {
            task_id: task_of(world, *which),
            passed: *passed,
            by,
            reason: if *why { "seen it" } else { "" }.to_owned(),
        },
        Step::Launched(which) => Command::GenerationLaunched { generation_id: generation_of(world, *which) },
        Step::Gone(which, how) => {
            Command::GenerationGone { generation_id: generation_of(world, *which), end: end(*how) }
        }
        Step::Cleaned(which) => {
            Command::GenerationCleaned { generation_id: generation_of(world, *which), swept: 1, left: 0 }
        }
        Step::Report(which, moved, items) => {
            let generation_id = generation_of(world, *which);
            let known = world.state.generations.get(&generation_id).map(|one| one.cursor).unwrap_or_default();
            let moved = i64::from(*moved);
            let cursor = SpoolCursor {
                record: known.record.saturating_add_signed(moved),
                skip: 0,
                frames: known.frames.saturating_add_signed(moved),
            };
            let items = items.iter().map(|one| item(world, generation_id, one)).collect();
            Command::AgentReported { generation_id, report: AgentReport { cursor, items } }
        }
        Step::Verified(which, round, result) => {
            let task_id = task_of(world, *which);
            let known = world.state.tasks.get(&task_id);
            let results = [EvidenceResult::Passed, EvidenceResult::Failed, EvidenceResult::Inconclusive];
            let evidence = known
                .map(|task| task.criteria.clone())
                .unwrap_or_default()
                .iter()
                .filter(|_| *result < 3)
                .map(|criterion| Evidence {
                    id: EvidenceId(Uuid::nil()),
                    criterion_id: criterion.id,
                    result: results[*result as usize],
                    procedure: "x".to_owned(),
                    exit_code: None,
                    started_at: world.now,
                    ended_at: world.now,
                    detail: String::new(),
                })
                .collect();
            let round = known.map_or(0, |task| task.rounds) + u32::from(*round);
            Command::Verified { task_id, round, evidence }
        }
        Step::Pass(_) => Command::Tick,
        Step::Open => Command::OpenWorld {
            world_id: rallypoint_model::ids::WorldId(Uuid::from_u128(5)),
            main_room_id: RoomId(Uuid::from_u128(6)),
            user_id: rallypoint_model::ids::EntityId(Uuid::from_u128(7)),
            main_agent_id: rallypoint_model::ids::EntityId(Uuid::from_u128(7)),
            system_id: rallypoint_model::ids::EntityId(Uuid::from_u128(7)),
            clock: None,
        },
        Step::Obey(..) => return None,
    })
}

fn act(world: &mut World, host: &mut Host, step: &Step) {
    if let Step::Obey(which, how) = step {
        let effects = due(&world.state, &world.limits);
        if !effects.is_empty() {
            host.otherwise = turn(*how);
            host.checks.clear();
            if how % 3 == 0 {
                host.checks.push_back(EvidenceResult::Failed);
            }
            host.effect(world, effects[*which as usize % effects.len()].clone());
        }
        return;
    }
    if let Step::Pass(millis) = step {
        world.now = world.now.plus(i64::from(*millis));
    }
    let Some(command) = command(world, step) else { return };
    let (before, events) = (world.state.clone(), world.journal.len());
    if world.decide(&command).is_err() {
        assert!(world.last.is_empty(), "a refusal left changes: {command:?}");
        assert_eq!(world.journal.len(), events);
        assert_eq!(world.state, before, "a refusal changed the state: {command:?}");
    }
}

/// A wake-up in the past means that a tick changes something.
fn tick_until_rest(world: &mut World) {
    for _ in 0..50 {
        if next_wakeup(&world.state, &world.limits).is_none_or(|at| at > world.now) {
            return;
        }
        let next = next_wakeup(&world.state, &world.limits);
        world.ok(Command::Tick);
        assert!(!world.last.is_empty(), "a tick that is due at {next:?} changes nothing at {:?}", world.now);
    }
    panic!("ticks never come to rest");
}

fn explore(limits: &Limits, steps: &[Step]) -> World {
    let mut world = World::unopened(limits.clone());
    world.open();
    let mut host = Host::new(&[]);
    let mut auditor = Auditor::default();
    let mut audited = 0;
    for step in steps {
        act(&mut world, &mut host, step);
        if matches!(step, Step::Pass(_)) {
            tick_until_rest(&mut world);
        }
        for record in &world.journal[audited..] {
            auditor.audit(record);
        }
        audited = world.journal.len();
        check_state(&world.state, world.limits.lane_subagent);
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_in_every_fact_is_legal_and_a_replay_gives_the_same(limits in limits(), steps in prop::collection::vec(step(), 1..120)) {
        let world = explore(&limits, &steps);
        let again = replay(&world.journal);
        prop_assert_eq!(documents(&again), documents(&world.state));
        prop_assert_eq!(&again.versions, &world.state.versions);
        check_prompts(&world.journal);
    }
}
