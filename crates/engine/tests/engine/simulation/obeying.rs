//! The host: what is due is done, one small step at a time, so that anything can happen in between.

use rallypoint_engine::due::{Attendance, Effect, Verification};
use rallypoint_model::agent_io::AgentInput;
use rallypoint_model::command::Command;
use rallypoint_model::ids::{EvidenceId, GenerationId};
use rallypoint_model::session::{GenerationEnd, GenerationStatus};
use rallypoint_model::task::{Evidence, EvidenceResult};
use uuid::Uuid;

use super::fleet::Act;
use super::{Fault, Simulation};

impl Simulation {
    /// Carries out one step of an effect; false when there was nothing to do.
    pub(super) fn effect(&mut self, effect: Effect, disturbed: bool) -> bool {
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
            Effect::Send(sending) => self.send_to_platform(&sending, disturbed),
            Effect::Progress(offered) => self.progress_to_platform(&offered, disturbed),
            // Files for people; nothing here reads them.
            Effect::Export(_) => false,
        }
    }

    pub(super) fn attend(&mut self, attendance: &Attendance, disturbed: bool) -> bool {
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
        let skips = !shim_alive && self.fault == Some(Fault::UnreadSpool);
        if !skips && self.read(attendance, disturbed) {
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

    pub(super) fn send(&mut self, generation_id: GenerationId, seq: u64, input: &AgentInput) {
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
    pub(super) fn read(&mut self, attendance: &Attendance, disturbed: bool) -> bool {
        let generation_id = attendance.generation_id;
        let most = 1 + usize::try_from(self.random.below(6)).unwrap_or(0);
        let mut cursor = attendance.cursor;
        if self.fault == Some(Fault::StaleCursor) && self.random.chance(20) {
            cursor.record = cursor.record.saturating_sub(2);
        }
        let Some(report) = self.fleet.read(generation_id, cursor, most) else { return false };
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

    pub(super) fn verify(&mut self, round: &Verification) {
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
}
