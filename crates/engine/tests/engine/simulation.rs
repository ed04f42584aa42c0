//! Thousands of small worlds in which everything may happen between any two steps: the daemon restarts, reports are
//! lost, come twice or late, shims and agents are killed, people stop and retry. Each seed repeats exactly.
//!
//! What must hold is judged by books that the engine has no part in: what each agent was given and what it said.

use std::collections::BTreeMap;

use rallypoint_engine::apply::hear;
use rallypoint_engine::changes::Changes;
use rallypoint_engine::due::{Attendance, Effect, Verification, due};
use rallypoint_engine::state::State;
use rallypoint_engine::view::is_settled;
use rallypoint_model::agent_io::{AgentInput, AgentReport};
use rallypoint_model::command::Command;
use rallypoint_model::event::Event;
use rallypoint_model::ids::{EvidenceId, GenerationId, RunId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::question::{Answer, QuestionKind};
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunPurpose, RunStatus};
use rallypoint_model::session::{GenerationEnd, GenerationStatus};
use rallypoint_model::task::{Evidence, EvidenceResult};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::fleet::{Act, Fleet};
use crate::invariants::{Auditor, check_state, documents, replay};
use crate::world::{World, agent, task};

/// Seeds when nobody says how many.
const SEEDS: u64 = 2_000;
/// Steps in which anything may happen.
const STEPS: u64 = 90;
/// Rounds in which everything must come to rest afterwards.
const QUIET_ROUNDS: u32 = 3_000;

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
    auditor: Auditor,
    audited: usize,
    restarts: u32,
    kills: u32,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            random.below(2);
        }
        let limits = Limits {
            lane_subagent: 1 + u32::try_from(random.below(3)).unwrap_or(0),
            crash_budget: u32::try_from(random.below(3)).unwrap_or(0),
            corrective_rounds: u32::try_from(random.below(3)).unwrap_or(0),
            ..Limits::default()
        };
        let world = World::with_limits(limits);
        let mut simulation = Self {
            world,
            fleet: Fleet::default(),
            random,
            late: Vec::new(),
            given: BTreeMap::new(),
            auditor: Auditor::default(),
            audited: 0,
            restarts: 0,
            kills: 0,
        };
        for number in 0..=simulation.random.below(3) {
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
        for record in self.world.last.events.clone() {
            if let Event::RunEnded { run_id, outcome, reason, .. } = &record.event {
                self.judge(*run_id, *outcome, reason);
            }
        }
    }

    /// The end of a run against what its agent knows.
    fn judge(&self, run_id: RunId, outcome: RunOutcome, reason: &OutcomeReason) {
        let run = &self.world.state.runs[&run_id];
        if run.purpose == RunPurpose::Turn {
            return;
        }
        let given = self.given.get(&run_id).map(Vec::as_slice).unwrap_or_default();
        let heard = given.first().and_then(|place| self.fleet.heard.get(place)).cloned().unwrap_or_default();
        let blob = run.result.as_ref().map(|result| {
            let found = self.world.last.blobs.iter().find(|blob| blob.digest == result.digest);
            String::from_utf8(found.expect("the result is stored").bytes.clone()).expect("text")
        });
        let told = blob.unwrap_or_default();
        let what = format!("run {run_id} ended as {outcome:?} ({reason:?}), agent: {heard:?}, kept: {told}");
        match outcome {
            RunOutcome::Completed => {
                assert_eq!(heard.answered, Some("end_turn"), "{what}");
                assert!(!heard.said.is_empty() && told == heard.said, "{what}");
            }
            RunOutcome::CompletedEmpty | RunOutcome::Incomplete => {
                assert!(heard.answered.is_some() && told == heard.said, "{what}");
            }
            RunOutcome::Lost => {
                assert!(given.is_empty() || heard.cut || heard.answered.is_some(), "{what}");
                assert_eq!(told, heard.said, "{what}");
            }
            RunOutcome::Failed => {
                assert_eq!(told, heard.said, "{what}");
                if matches!(reason, OutcomeReason::AgentExited { .. }) {
                    assert!(given.is_empty() || heard.cut, "{what}");
                }
            }
            RunOutcome::TimedOut
            | RunOutcome::Cancelled
            | RunOutcome::Killed
            | RunOutcome::Interrupted
            | RunOutcome::Capped => assert!(heard.said.starts_with(&told), "{what}"),
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
            97..99 => self.answer_one(),
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
        let alive = |process: &crate::fleet::Process| process.shim_alive && (shim || process.agent_alive);
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

    /// Carries out one step of an effect; false when there was nothing to do.
    fn effect(&mut self, effect: Effect, disturbed: bool) -> bool {
        match effect {
            Effect::Attend(attendance) => self.attend(&attendance, disturbed),
            Effect::Clean(generation_id) => {
                self.fleet.kill_shim(generation_id);
                if let Some(process) = self.fleet.processes.get_mut(&generation_id) {
                    process.removed = true;
                }
                if !(disturbed && self.random.chance(20)) {
                    self.submit(Command::GenerationCleaned { generation_id, swept: 0, left: 0 });
                }
                true
            }
            Effect::Verify(round) => {
                self.verify(&round);
                true
            }
            // Files for people; nothing here reads them.
            Effect::Export(_) => false,
        }
    }

    fn attend(&mut self, attendance: &Attendance, disturbed: bool) -> bool {
        let generation_id = attendance.generation_id;
        let stopping = attendance.status == GenerationStatus::Stopping;
        let Some(process) = self.fleet.processes.get(&generation_id) else {
            if stopping {
                self.submit(Command::GenerationGone { generation_id, end: GenerationEnd::NeverStarted });
            } else {
                self.fleet.launch(generation_id);
            }
            return true;
        };
        let (shim_alive, started, agent_alive, taken) =
            (process.shim_alive, process.started, process.agent_alive, process.taken);
        if shim_alive && !started {
            if stopping {
                self.fleet.kill_shim(generation_id);
            } else {
                self.fleet.start(generation_id);
            }
            return true;
        }
        if shim_alive && attendance.status == GenerationStatus::Launching {
            self.submit(Command::GenerationLaunched { generation_id });
            return true;
        }
        if stopping && agent_alive {
            self.fleet.end_agent(generation_id, Some(0), None);
            return true;
        }
        let next = attendance.inputs.iter().find(|(seq, _)| *seq > taken);
        if let Some((seq, input)) = next.filter(|_| agent_alive) {
            self.send(generation_id, *seq, input);
            return true;
        }
        if self.read(attendance, disturbed) {
            return true;
        }
        if !shim_alive {
            let end = if self.fleet.is_empty_spool(generation_id) {
                GenerationEnd::NeverStarted
            } else {
                GenerationEnd::Lost
            };
            self.submit(Command::GenerationGone { generation_id, end });
            return true;
        }
        false
    }

    fn send(&mut self, generation_id: GenerationId, seq: u64, input: &AgentInput) {
        let mut turn: Vec<Act> = (0..self.random.below(4)).map(|_| Act::Say).collect();
        if self.random.chance(15) {
            turn.push(Act::Ask);
            turn.push(Act::Say);
        }
        turn.push(match self.random.below(20) {
            0 => Act::Stop("max_tokens"),
            1 => Act::Stop("refusal"),
            2 => Act::Exit,
            _ => Act::Stop("end_turn"),
        });
        if self.fleet.send(generation_id, seq, input, turn) {
            let entry = self.world.state.generations[&generation_id].input(seq).expect("it was journalled");
            let run_id = entry.run_id.expect("a prompt has a run");
            let places = self.given.entry(run_id).or_default();
            places.push((generation_id, seq));
            assert_eq!(places.len(), 1, "the prompt of run {run_id} reached agents more than once");
        }
    }

    /// Reads on from what is understood. Disturbed, the report may be lost, or come twice, or again much later.
    fn read(&mut self, attendance: &Attendance, disturbed: bool) -> bool {
        let generation_id = attendance.generation_id;
        let most = 1 + usize::try_from(self.random.below(6)).unwrap_or(0);
        let Some(report) = self.fleet.read(generation_id, attendance.cursor, most) else { return false };
        let fate = if disturbed { self.random.below(100) } else { 99 };
        if fate < 10 {
            return true;
        }
        let times = if fate < 20 { 2 } else { 1 };
        if (20..30).contains(&fate) {
            self.late.push((generation_id, report.clone()));
        }
        for _ in 0..times {
            self.submit(Command::AgentReported { generation_id, report: report.clone() });
        }
        true
    }

    fn verify(&mut self, round: &Verification) {
        let result = if self.random.chance(25) { EvidenceResult::Failed } else { EvidenceResult::Passed };
        let now = self.world.now;
        let evidence = round.criteria.iter().map(|criterion| Evidence {
            id: EvidenceId(Uuid::from_u128(7)),
            criterion_id: criterion.id,
            result,
            procedure: "make test".to_owned(),
            exit_code: Some(0),
            started_at: now,
            ended_at: now,
            detail: String::new(),
        });
        let evidence = evidence.collect();
        self.submit(Command::Verified { task_id: round.task_id, round: round.round, evidence });
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

    /// A daemon dies and another loads what is stored.
    fn restart(&mut self) {
        self.restarts += 1;
        let live = std::mem::take(&mut self.world.state);
        let mut state = State {
            world: stored(&live.world),
            rooms: stored(&live.rooms),
            tasks: stored(&live.tasks),
            sessions: stored(&live.sessions),
            runs: stored(&live.runs),
            generations: stored(&live.generations),
            questions: stored(&live.questions),
            keys: stored(&live.keys),
            versions: live.versions.clone(),
            ..State::default()
        };
        for (id, generation) in &mut state.generations {
            generation.cursor = live.generations[id].cursor;
            generation.last_report_at = live.generations[id].last_report_at;
            generation.stderr_tail = live.generations[id].stderr_tail.clone();
        }
        for record in &self.world.journal {
            if let Event::AgentOutput { last_frame, late: false, foreign_session: None, output, .. } =
                &record.event
                && let Some(run) = record.scope.run_id.and_then(|id| state.runs.get_mut(&id))
                && run.is_open()
            {
                hear(run, *last_frame, output, &mut Changes::default());
            }
        }
        assert_eq!(state, live, "what is loaded is not what was live");
        self.world.state = state;
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
            if moved {
                continue;
            }
            if !self.world.open_questions().is_empty() {
                self.answer_one();
            } else if let Some(at) =
                rallypoint_engine::due::next_wakeup(&self.world.state, &self.world.limits)
            {
                self.world.now = self.world.now.max(at);
                self.submit(Command::Tick);
            } else {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    /// What must hold in the end.
    fn conclude(&self) {
        let state = &self.world.state;
        for run in state.runs.values() {
            assert_eq!(run.status, RunStatus::Terminal, "nothing is due and a run is open: {run:?}");
            if run.purpose != RunPurpose::Turn {
                self.told_once(run.id);
            }
        }
        for task in state.tasks.values() {
            assert!(is_settled(state, task), "{task:?}");
        }
        for generation in state.generations.values().filter(|one| !one.is_live()) {
            assert!(generation.cleaned.is_some(), "{generation:?}");
            let removed = self.fleet.processes.get(&generation.id).is_none_or(|process| process.removed);
            assert!(removed, "something of it is left: {generation:?}");
        }
        assert_eq!(documents(&replay(&self.world.journal)), documents(state));
    }

    fn told_once(&self, run_id: RunId) {
        let outcome = self.world.state.runs[&run_id].outcome;
        let id = run_id.to_string();
        let session = self.world.state.runs[&run_id].session_id.to_string();
        let mut rooms: BTreeMap<_, u32> = BTreeMap::new();
        let mut told_with_its_tree = false;
        for message in self.world.messages() {
            let asks = message.metadata["subAgentEvent"] == "blocked";
            let nodes = message.metadata["treeStop"]["nodes"].as_array();
            // One entry tells a whole tree: each session by its last run, and with it what still waited there.
            let in_tree =
                nodes.is_some_and(|nodes| nodes.iter().any(|node| node["sessionId"] == session.as_str()));
            told_with_its_tree |= in_tree;
            if message.metadata["runId"] == id.as_str() && !asks {
                *rooms.entry(message.room_id).or_default() += 1;
            }
        }
        assert!(
            (!rooms.is_empty() || told_with_its_tree) && rooms.values().all(|count| *count == 1),
            "the end of run {id} ({outcome:?}) is told like this: {rooms:?}"
        );
    }
}

fn stored<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let text = serde_json::to_string(value).expect("it can be stored");
    serde_json::from_str(&text).expect("it can be loaded")
}

/// Lives one seed to its end. Gives its restarts, kills and events.
fn live(seed: u64) -> (u32, u32, usize) {
    let mut simulation = Simulation::new(seed);
    for _ in 0..STEPS {
        simulation.step();
    }
    simulation.come_to_rest();
    simulation.conclude();
    (simulation.restarts, simulation.kills, simulation.world.journal.len())
}

#[test]
fn whatever_is_killed_lost_or_repeated_each_prompt_is_given_once_and_each_end_told_once() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = number("RALLY_SIM_SEEDS").unwrap_or(SEEDS);
    let first = number("RALLY_SIM_FIRST").unwrap_or(0);
    let mut sums = (0, 0, 0);
    for seed in first..first + seeds {
        let lived = std::panic::catch_unwind(|| live(seed));
        let Ok((restarts, kills, events)) = lived else {
            panic!("seed {seed} breaks a rule; RALLY_SIM_FIRST={seed} RALLY_SIM_SEEDS=1 repeats it");
        };
        sums = (sums.0 + restarts, sums.1 + kills, sums.2 + events);
    }
    println!("{seeds} seeds, {} restarts, {} kills, {} events", sums.0, sums.1, sums.2);
}
