//! Who waits for a slot, in which order, and what a budget lets run.

use proptest::prelude::*;
use rallypoint_engine::admission::{active_ms_used, parked, position, tokens_used};
use rallypoint_engine::due::next_wakeup;
use rallypoint_model::admission::{Budget, Priority};
use rallypoint_model::agent_io::AgentItem;
use rallypoint_model::command::{Command, SpawnSession};
use rallypoint_model::event::Event;
use rallypoint_model::ids::{GenerationId, RunId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::refusal::RefusalCode;
use rallypoint_model::run::{RunPurpose, RunStatus, RunTrigger};
use rallypoint_model::task::EvidenceResult;
use rallypoint_model::usage::TokenCounts;

use crate::host::{Host, Verb};
use crate::tasks::done;
use crate::world::{World, agent, task};

fn create(world: &mut World, number: u128, priority: Priority) -> TaskId {
    let mut create = task(number);
    create.priority = priority;
    world.create(create)
}

/// The numbers of the tasks whose runs wait, the next one first.
fn order(world: &World) -> Vec<u128> {
    let runs = parked(&world.state, &world.limits, world.now);
    let tasks = runs.iter().map(|id| world.state.runs[id].task_id.expect("a task"));
    tasks.map(|id| id.0.as_u128() - 0x100).collect()
}

#[test]
fn a_higher_band_goes_first_and_within_one_who_came_first() {
    let mut world = World::with_limits(Limits { lane_subagent: 1, ..Limits::default() });
    let bands = [Priority::Normal, Priority::Low, Priority::Normal, Priority::Urgent, Priority::High];
    for (number, priority) in (1..).zip(bands) {
        create(&mut world, number, priority);
        world.now = world.now.plus(1);
    }
    create(&mut world, 6, Priority::Urgent);
    assert_eq!(order(&world), [4, 6, 5, 3, 2]);
    let first = world.runs(TaskId(uuid::Uuid::from_u128(0x104)))[0].id;
    assert_eq!(position(&world.state, &world.limits, world.now, first), Some(1));
    let running = world.runs(TaskId(uuid::Uuid::from_u128(0x101)))[0].id;
    assert_eq!(position(&world.state, &world.limits, world.now, running), None);
}

#[test]
fn waiting_raises_a_run_by_a_band_for_each_period() {
    let limits = Limits { lane_subagent: 1, queue_aging_ms: 1_000, ..Limits::default() };
    let mut world = World::with_limits(limits);
    create(&mut world, 1, Priority::Normal);
    create(&mut world, 2, Priority::Low);
    world.now = world.now.plus(2_999);
    create(&mut world, 3, Priority::Urgent);
    assert_eq!(order(&world), [3, 2]);
    world.now = world.now.plus(1);
    assert_eq!(order(&world), [2, 3], "three periods make low as urgent, and it came first");
}

#[test]
fn a_run_behind_another_of_its_session_waits_for_that_and_not_for_a_slot() {
    let mut world = World::with_limits(Limits { lane_subagent: 1, ..Limits::default() });
    let id = create(&mut world, 1, Priority::Normal);
    let session_id = world.session(id);
    world.ok(Command::SendToSession { session_id, text: "more".to_owned(), by: "kim".to_owned() });
    assert_eq!(order(&world), [0; 0]);
    assert_eq!(position(&world.state, &world.limits, world.now, world.last_run(id).id), None);
}

/// Admissions of a journal, each with the slots in use right after it.
fn slots_at_admissions(world: &World) -> Vec<usize> {
    let mut holding: std::collections::BTreeSet<RunId> = std::collections::BTreeSet::new();
    let mut turns: std::collections::BTreeSet<RunId> = std::collections::BTreeSet::new();
    let mut seen = Vec::new();
    for record in &world.journal {
        match &record.event {
            Event::RunQueued { run_id, purpose: RunPurpose::Turn, .. } => {
                turns.insert(*run_id);
            }
            Event::RunMoved { run_id, to, trigger, .. } if !turns.contains(run_id) => {
                if matches!(to, RunStatus::Queued | RunStatus::WaitingChildren) {
                    holding.remove(run_id);
                } else {
                    holding.insert(*run_id);
                }
                if *trigger == RunTrigger::Admitted {
                    seen.push(holding.len());
                }
            }
            Event::RunEnded { run_id, .. } => {
                holding.remove(run_id);
            }
            _ => {}
        }
    }
    seen
}

/// What happens between two looks: a task comes, a sub-agent is spawned, a turn waits, a turn ends, time passes.
#[derive(Clone, Copy, Debug)]
enum Step {
    Create(u8),
    Spawn(u8),
    Await(u8),
    End(u8),
    Stop(u8),
    Pass(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4_u8).prop_map(Step::Create),
        3 => any::<u8>().prop_map(Step::Spawn),
        2 => any::<u8>().prop_map(Step::Await),
        4 => any::<u8>().prop_map(Step::End),
        1 => any::<u8>().prop_map(Step::Stop),
        2 => any::<u16>().prop_map(Step::Pass),
    ]
}

fn pick<T: Copy>(of: &[T], which: u8) -> Option<T> {
    (!of.is_empty()).then(|| of[which as usize % of.len()])
}

fn prompted(world: &World) -> Vec<GenerationId> {
    let runs = world.state.runs.values().filter(|run| {
        matches!(run.status, RunStatus::Running | RunStatus::WaitingChildren) && run.input_seq.is_some()
    });
    runs.filter_map(|run| run.generation_id).collect()
}

fn act(world: &mut World, host: &mut Host, step: Step, number: &mut u128) {
    // What is refused is refused; the properties hold either way.
    match step {
        Step::Create(band) => {
            *number += 1;
            let mut create = task(*number);
            create.priority = Priority::ALL[band as usize];
            let _refused = world.decide(&Command::CreateTask(create));
        }
        Step::Spawn(which) => {
            let sessions: Vec<_> =
                world.state.sessions.values().filter_map(|it| Some((it.task_id?, it.id))).collect();
            if let Some((task_id, parent)) = pick(&sessions, which) {
                let _refused = world.decide(&Command::SpawnSession(SpawnSession {
                    task_id,
                    parent_session_id: (which % 4 != 0).then_some(parent),
                    launch: agent("child"),
                    idempotency_key: None,
                }));
            }
        }
        Step::Await(which) | Step::Stop(which) => {
            let sessions: Vec<_> = world.state.sessions.keys().copied().collect();
            if let Some(session_id) = pick(&sessions, which) {
                let command = match step {
                    Step::Stop(_) => Command::StopSession { session_id, by: "kim".to_owned() },
                    _ => Command::AwaitChildren { session_id },
                };
                let _refused = world.decide(&command);
            }
        }
        Step::End(which) => {
            if let Some(id) = pick(&prompted(world), which) {
                host.verb(world, id, Verb::Say("ok"));
                host.verb(world, id, Verb::Stop("end_turn"));
            }
        }
        Step::Pass(millis) => world.pass(i64::from(millis)),
    }
    host.work(world);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_admitted_above_the_lane_and_nothing_starves(
        lane in 1..4_u32,
        aging in prop_oneof![Just(0_i64), Just(500), Just(60_000)],
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let limits = Limits { lane_subagent: lane, queue_aging_ms: aging, spawn_depth: 3, stall_ms: 0, ..Limits::default() };
        let mut world = World::with_limits(limits);
        let mut host = Host::new(&[]);
        let mut number = 0;
        for step in steps {
            act(&mut world, &mut host, step, &mut number);
            let free = (lane as usize).saturating_sub(world.state.running_slots());
            let waits = parked(&world.state, &world.limits, world.now).len();
            prop_assert!(free == 0 || waits == 0, "{free} slots are free and {waits} runs wait");
            for session in world.state.sessions.values() {
                let run = session.open_run.map(|id| &world.state.runs[&id]);
                if run.is_some_and(|run| run.status == RunStatus::WaitingChildren) {
                    let task_id = session.task_id.expect("a task");
                    let open = rallypoint_engine::tree::open_children(&world.state, task_id, Some(session.id));
                    prop_assert!(!open.is_empty(), "it waits for nobody");
                }
            }
        }
        prop_assert!(slots_at_admissions(&world).iter().all(|slots| *slots <= lane as usize));
        // Once nothing new comes, everything that waits gets its turn and ends.
        host.otherwise = done("ok");
        for _ in 0..4_000 {
            host.work(&mut world);
            for id in prompted(&world) {
                host.verb(&mut world, id, Verb::Say("ok"));
                host.verb(&mut world, id, Verb::Stop("end_turn"));
            }
            if !world.state.runs.values().any(rallypoint_engine::state::Run::is_open) {
                break;
            }
            world.pass(1_000);
        }
        prop_assert!(!world.state.runs.values().any(rallypoint_engine::state::Run::is_open), "a run never ended");
        prop_assert!(world.state.tasks.values().all(|task| task.stops.is_empty()), "a stop never ended");
        let again = crate::invariants::replay(&world.journal);
        prop_assert_eq!(crate::invariants::documents(&again), crate::invariants::documents(&world.state));
    }

    #[test]
    fn whoever_waited_long_enough_is_before_every_later_one(
        early in 0..4_usize,
        late in 0..4_usize,
        wait in 0..5_000_i64,
    ) {
        let limits = Limits { lane_subagent: 1, queue_aging_ms: 1_000, ..Limits::default() };
        let mut world = World::with_limits(limits);
        create(&mut world, 1, Priority::Normal);
        create(&mut world, 2, Priority::ALL[early]);
        world.now = world.now.plus(wait);
        create(&mut world, 3, Priority::ALL[late]);
        let first = order(&world)[0];
        if wait >= 3_000 {
            prop_assert_eq!(first, 2);
        }
        if wait < 1_000 && late > early {
            prop_assert_eq!(first, 3);
        }
    }
}

/// An answer with these tokens to the first prompt of a process.
fn answer(tokens: u64) -> Vec<Verb> {
    let usage = Some(TokenCounts { input: tokens, ..TokenCounts::default() });
    let item = AgentItem::PromptAnswered { seq: 3, frame: 9, stop_reason: "end_turn".to_owned(), usage };
    vec![Verb::Say("ok"), Verb::Item(item)]
}

#[test]
fn when_the_tokens_are_used_up_nothing_more_is_run_and_the_limit_is_named() {
    let mut world = World::new();
    let mut host = Host::ada(vec![answer(1_200)]).checks(&[EvidenceResult::Failed]);
    let mut create = task(1);
    create.budget = Budget { tokens: Some(1_000), ..Budget::default() };
    let id = world.create(create);
    host.finish(&mut world, id);
    assert_eq!(tokens_used(&world.state, world.task(id)), 1_200);
    assert_eq!(world.story(id), "waiting_on_user(capped), exit 3: goal completed, corrective capped");
    let why = world.last_run(id).reason.as_ref().expect("a reason").words();
    assert_eq!(why, "the task's limit `budget.tokens` is used up (1200/1000)");
    let told = world.room().into_iter().any(|line| line.starts_with("ada: [sub-agent: ada (shell) — error]"));
    assert!(told, "{:#?}", world.room());
    for command in [
        Command::RetryTask { task_id: id, by: "kim".to_owned(), text: None },
        Command::SpawnSession(SpawnSession {
            task_id: id,
            parent_session_id: None,
            launch: agent("cyd"),
            idempotency_key: None,
        }),
    ] {
        let (code, words) = world.refused(command);
        assert_eq!(code, RefusalCode::Limit);
        assert!(words.contains("1200/1000") && words.contains("rally task override"), "{words}");
    }
}

#[test]
fn when_the_active_time_is_used_up_a_turn_is_cancelled_and_capped() {
    let mut world = World::new();
    let mut host = Host::new(&[]);
    let mut create = task(1);
    create.agents = vec![agent("ada"), agent("bob")];
    create.budget = Budget { active_ms: Some(10_000), ..Budget::default() };
    let id = world.create(create);
    host.work(&mut world);
    let at = next_wakeup(&world.state, &world.limits).expect("a wake-up");
    assert!(active_ms_used(&world.state, world.task(id), at) >= 10_000);
    assert!(
        active_ms_used(&world.state, world.task(id), at.plus(-1)) < 10_000,
        "two turns use it up twice as fast"
    );
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "waiting_on_user(capped), exit 3: goal capped, goal capped");
}

#[test]
fn a_budget_of_nothing_is_refused() {
    let mut world = World::new();
    for budget in
        [Budget { tokens: Some(0), ..Budget::default() }, Budget { active_ms: Some(-1), ..Budget::default() }]
    {
        let mut create = task(1);
        create.budget = budget;
        assert_eq!(world.refused(Command::CreateTask(create)).0, RefusalCode::Invalid);
    }
}
