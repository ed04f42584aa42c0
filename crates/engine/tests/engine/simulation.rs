//! Thousands of small worlds in which everything may happen between any two steps: the daemon restarts, reports are
//! lost, come twice or late, shims and agents are killed, people stop and retry. Each seed repeats exactly.
//!
//! What must hold is judged by books that the engine has no part in: what each agent was given and what it said.

mod books;
mod fleet;
mod obeying;
mod platform;
mod progress;
mod storing;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use rallypoint_engine::due::{due, next_wakeup};
use rallypoint_model::agent_io::AgentReport;
use rallypoint_model::command::Command;
use rallypoint_model::event::Event;
use rallypoint_model::ids::{GenerationId, RunId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::question::{Answer, QuestionKind};

use crate::invariants::{Auditor, check_state};
use crate::world::{World, agent, task};
use fleet::{Fleet, Process};
use platform::{Kind, Platform, world_of};
use progress::Board;

/// Seeds when nobody says how many.
const SEEDS: u64 = 2_000;
/// Steps in which anything may happen.
const STEPS: u64 = 70;
/// Rounds in which everything must come to rest afterwards.
const QUIET_ROUNDS: u32 = 3_000;

/// What a host does wrong, to show that the books notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It reads on from before what is understood, and joins the words that it reads again with those that follow.
    StaleCursor,
    /// It declares a process lost without reading what its spool still holds.
    UnreadSpool,
    /// It takes what was said before a restart for unsaid.
    ForgottenWords,
    /// It promises that the platform knows a message by its key, and the platform doesn't.
    KeysPromised,
    /// It takes a lost answer for a refusal.
    LostTakenForRefused,
}

/// How often something happened, by its name.
type Counts = BTreeMap<&'static str, usize>;

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let index = usize::try_from(self.below(all.len() as u64)).unwrap_or(0);
        all.get(index).copied()
    }
}

struct Simulation {
    world: World,
    fleet: Fleet,
    random: Random,
    /// Reports that come once more, late.
    late: Vec<(GenerationId, AgentReport)>,
    /// Which process each run's prompt reached.
    given: BTreeMap<RunId, Vec<(GenerationId, u64)>>,
    platform: Platform,
    board: Board,
    auditor: Auditor,
    audited: usize,
    fault: Option<Fault>,
    restarts: u32,
    kills: u32,
}

impl Simulation {
    fn new(seed: u64, fault: Option<Fault>) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            random.below(2);
        }
        let limits = Limits {
            lane_subagent: 1 + u32::try_from(random.below(3)).unwrap_or(0),
            crash_budget: u32::try_from(random.below(3)).unwrap_or(0),
            corrective_rounds: u32::try_from(random.below(3)).unwrap_or(0),
            progress_first_ms: 100,
            progress_every_ms: 500,
            ..Limits::default()
        };
        let kind = match random.below(3) {
            0 => Kind::None,
            1 if !matches!(fault, Some(Fault::KeysPromised | Fault::LostTakenForRefused)) => Kind::Keyed,
            _ => Kind::Plain,
        };
        let (world, platform) = world_of(kind, limits, fault);
        let mut simulation = Self {
            world,
            fleet: Fleet::default(),
            random,
            late: Vec::new(),
            given: BTreeMap::new(),
            platform,
            board: Board::default(),
            auditor: Auditor::default(),
            audited: 0,
            fault,
            restarts: 0,
            kills: 0,
        };
        for number in 0..=simulation.random.below(2) {
            simulation.create(number);
        }
        simulation
    }

    fn create(&mut self, number: u64) {
        let mut create = task(u128::from(number));
        create.agents = (0..=self.random.below(2)).map(|index| agent(&format!("agent{index}"))).collect();
        for agent in &mut create.agents {
            agent.trusts_load = self.random.chance(50);
        }
        create.room_id = self.platform.room;
        create.idempotency_key = Some(format!("key{number}"));
        // A client that heard no answer asks again.
        for _ in 0..=self.random.below(2) {
            self.submit(Command::CreateTask(create.clone()));
        }
    }

    /// Has a command decided, and checks what came of it.
    fn submit(&mut self, command: Command) {
        self.world.now = self.world.now.plus(1);
        // Refusals are for people; they are allowed to come too late.
        drop(self.world.decide(&command));
        for record in &self.world.journal[self.audited..] {
            self.auditor.audit(record);
        }
        self.audited = self.world.journal.len();
        check_state(&self.world.state, self.world.limits.lane_subagent);
        for record in &self.world.last.events {
            if let Event::RunEnded { run_id, outcome, reason, .. } = &record.event {
                self.judge(*run_id, *outcome, reason);
            }
        }
    }

    /// One thing of all that can happen.
    fn step(&mut self) {
        match self.random.below(100) {
            0..55 => {
                let effects = due(&self.world.state, &self.world.limits);
                let index = usize::try_from(self.random.below(effects.len() as u64)).unwrap_or(0);
                if let Some(effect) = effects.into_iter().nth(index) {
                    self.effect(effect, true);
                }
            }
            55..85 => {
                let all: Vec<GenerationId> = self.fleet.processes.keys().copied().collect();
                if let Some(id) = self.random.pick(&all) {
                    self.fleet.act(id);
                }
            }
            85..88 => self.restart(),
            88..90 => self.kill(true),
            90..92 => self.kill(false),
            92..94 => {
                if let Some((generation_id, report)) = self.late.pop() {
                    self.submit(Command::AgentReported { generation_id, report });
                }
            }
            94..97 => {
                self.world.now = self.world.now.plus(i64::try_from(self.random.below(2_000)).unwrap_or(0));
                self.submit(Command::Tick);
            }
            97 => self.answer_one(),
            98 => self.person_at_platform(),
            _ => self.person(),
        }
    }

    fn person(&mut self) {
        let tasks: Vec<TaskId> = self.world.state.tasks.keys().copied().collect();
        let Some(task_id) = self.random.pick(&tasks) else { return };
        let by = "kim".to_owned();
        match self.random.below(3) {
            0 => self.submit(Command::StopTask { task_id, by }),
            1 => self.submit(Command::RetryTask { task_id, by, text: None }),
            _ => {
                let session_id = self.world.state.tasks[&task_id].sessions.first().copied();
                if let Some(session_id) = session_id {
                    self.submit(Command::SendToSession { session_id, text: "and more".to_owned(), by });
                }
            }
        }
    }

    fn kill(&mut self, shim: bool) {
        let alive = |process: &Process| process.shim_alive && (shim || process.agent_alive);
        let all: Vec<GenerationId> =
            self.fleet.processes.iter().filter(|(_, it)| alive(it)).map(|(id, _)| *id).collect();
        let Some(id) = self.random.pick(&all) else { return };
        self.kills += 1;
        if shim {
            self.fleet.kill_shim(id);
        } else {
            self.fleet.end_agent(id, None, Some(9));
        }
    }

    fn answer_one(&mut self) {
        let open = self.world.open_questions();
        let Some(question) = open.first() else { return };
        let answer = match question.question {
            QuestionKind::Approval { .. } => Answer::Option { option_id: "yes".to_owned() },
            QuestionKind::Ask { .. } => Answer::Text { text: "the first".to_owned() },
            QuestionKind::Acceptance { .. } => Answer::Accept { reason: "seen".to_owned() },
        };
        let question_id = question.id;
        self.submit(Command::AnswerQuestion { question_id, answer, by: "kim".to_owned() });
    }

    /// Nobody disturbs any more: everything must come to rest, and people answer what they are asked.
    fn come_to_rest(&mut self) {
        for _ in 0..QUIET_ROUNDS {
            let mut moved = false;
            for effect in due(&self.world.state, &self.world.limits) {
                moved |= self.effect(effect, false);
            }
            let all: Vec<GenerationId> = self.fleet.processes.keys().copied().collect();
            for id in all {
                moved |= self.fleet.act(id);
            }
            moved |= self.hear_platform() || self.hear_of_progress();
            if moved {
                continue;
            }
            if !self.world.open_questions().is_empty() {
                self.answer_one();
            } else if let Some(at) = next_wakeup(&self.world.state, &self.world.limits) {
                self.world.now = self.world.now.max(at);
                self.submit(Command::Tick);
            } else {
                return;
            }
        }
        panic!("it never comes to rest");
    }
}

/// Lives one seed to its end. Gives what it saw, by name.
fn live(seed: u64, fault: Option<Fault>) -> Counts {
    let mut simulation = Simulation::new(seed, fault);
    for _ in 0..STEPS {
        simulation.step();
    }
    simulation.come_to_rest();
    simulation.conclude();
    simulation.conclude_platform();
    let mut counts = simulation.deliveries_by_status();
    counts.insert("progress posts", simulation.board.posts());
    counts.insert("progress edits", simulation.board.edits as usize);
    counts.insert("restarts", simulation.restarts as usize);
    counts.insert("kills", simulation.kills as usize);
    counts.insert("events", simulation.world.journal.len());
    counts
}

fn add(to: &mut Counts, more: Counts) {
    for (name, count) in more {
        *to.entry(name).or_default() += count;
    }
}

#[test]
fn whatever_is_killed_lost_or_repeated_each_prompt_is_given_once_and_each_end_told_once() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = number("RALLY_SIM_SEEDS").unwrap_or(SEEDS);
    let first = number("RALLY_SIM_FIRST").unwrap_or(0);
    let next = AtomicU64::new(first);
    let work = || {
        let mut sums = Counts::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds {
                return sums;
            }
            let Ok(lived) = std::panic::catch_unwind(|| live(seed, None)) else {
                panic!("seed {seed} breaks a rule; RALLY_SIM_FIRST={seed} RALLY_SIM_SEEDS=1 repeats it");
            };
            add(&mut sums, lived);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut sums = Counts::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            add(&mut sums, worker.join().expect("no seed breaks a rule"));
        }
    });
    println!("{seeds} seeds: {sums:?}");
    // What is never reached is not tested.
    for name in ["consumed", "failed", "ambiguous", "discarded", "resets", "restarts", "kills"] {
        assert!(seeds < SEEDS || sums[name] * 100 >= usize::try_from(seeds).unwrap_or(0), "{name}: {sums:?}");
    }
}

#[test]
fn a_host_that_does_wrong_is_noticed() {
    for fault in [
        Fault::StaleCursor,
        Fault::UnreadSpool,
        Fault::ForgottenWords,
        Fault::KeysPromised,
        Fault::LostTakenForRefused,
    ] {
        let noticed = (0..400).any(|seed| std::panic::catch_unwind(|| live(seed, Some(fault))).is_err());
        assert!(noticed, "{fault:?} is not noticed");
    }
}
