//! What follows without an effect: turns of the `rules` planner, admission,
//! prompts to ready processes, the end of processes that nobody needs.

use rallypoint_model::agent_io::{AgentInput, PromptBlock};
use rallypoint_model::event::{Aggregate, Event, PlannedAction, Scope};
use rallypoint_model::ids::{GenerationId, RoomId, RunId, SessionId};
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunPurpose, RunStatus, RunTrigger};
use rallypoint_model::session::{GenerationStatus, SessionKind};
use rallypoint_model::task::TaskStatus;
use serde_json::json;

use super::settings::Settled;
use super::{Deciding, Post, Voice};
use crate::admission;
use crate::mailbox::next_turn;
use crate::planner::plan;
use crate::prompt::{FollowUpReason, active_sub_agents};
use crate::state::{MailboxItem, PromptProgress};
use crate::tree;
use crate::voice::ending;

/// Rounds after which conclusions are left to the next command. Each round ends
/// something or starts something, so this is far above what can happen; it
/// keeps a fault from holding the decider for ever.
const MAX_ROUNDS: usize = 10_000;

impl Deciding<'_, '_> {
    pub(crate) fn advance(&mut self) {
        for _ in 0..MAX_ROUNDS {
            if !(self.take_turn()
                || self.deliver_mail()
                || self.steer()
                || self.resume_waiting()
                || self.cap_parked()
                || self.admit()
                || self.prompt()
                || self.retire()
                || self.lose_track()
                || self.offer()
                || self.lose_progress()
                || self.offer_progress()
                || self.close_stops())
            {
                return;
            }
        }
    }

    /// One turn of one room's main agent.
    fn take_turn(&mut self) -> bool {
        let waiting = self
            .state
            .rooms_with_mail()
            .find_map(|room| next_turn(&room.mailbox).map(|item| (room.id, item.clone())));
        let Some((room_id, item)) = waiting else {
            return false;
        };
        self.turn(room_id, &item);
        true
    }

    fn turn(&mut self, room_id: RoomId, item: &MailboxItem) {
        let Some(session_id) = self.room_session(room_id) else {
            return;
        };
        let blocks = self.active_block(room_id, session_id);
        let run_id = self.queue_run(session_id, RunPurpose::Turn, blocks, Some(item.message_id));
        self.move_run(run_id, RunTrigger::Admitted);
        self.move_run(run_id, RunTrigger::Prompted);
        let actions = plan(self.state, item);
        let scope = Scope {
            task_id: item.task_id,
            room_id: Some(room_id),
            session_id: Some(session_id),
            run_id: Some(run_id),
        };
        let aggregate = Aggregate::Session(session_id);
        self.emit(aggregate, scope, Event::TurnPlanned { run_id, actions: actions.clone() });
        for (index, action) in actions.iter().enumerate() {
            let problem = self.action(room_id, item, run_id, index, action);
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            self.emit(aggregate, scope, Event::TurnActionDone { run_id, index, problem });
        }
        self.finish_run(run_id, RunOutcome::Completed, OutcomeReason::EndTurn);
    }

    /// What the main agent's turn is told of the active sub-agents: all of them at the first turn of its conversation
    /// under this daemon, and then what changed since its last turn.
    fn active_block(&mut self, room_id: RoomId, session_id: SessionId) -> Vec<PromptBlock> {
        let begins = self.state.sessions.get(&session_id).is_some_and(|session| session.last_run.is_none());
        if begins {
            self.state.rosters.forget_told(room_id);
        }
        self.state.rosters.news(room_id).map(active_sub_agents).unwrap_or_default()
    }

    fn action(
        &mut self,
        room_id: RoomId,
        item: &MailboxItem,
        run_id: RunId,
        index: usize,
        action: &PlannedAction,
    ) -> Option<String> {
        match action {
            PlannedAction::Reply { text, role } => {
                let task = item.task_id.and_then(|id| self.state.tasks.get(&id));
                if let Some(why) = task.and_then(|task| task.voice.refuses(*role, ending(task.status))) {
                    return Some(why.to_owned());
                }
                self.post(Post {
                    room_id,
                    speaker: Voice::MainAgent,
                    text: text.clone(),
                    source: "main".to_owned(),
                    in_reply_to: Some(item.message_id),
                    task_id: item.task_id,
                    metadata: json!({ "role": role, "taskId": item.task_id, "turn_run": run_id }),
                    delivery_key: Some(format!("action|{run_id}|{index}")),
                    turn: None,
                });
                None
            }
            PlannedAction::SpawnAgent { task_id, index } => self.spawn_agent(*task_id, *index).err(),
            PlannedAction::SendToAgent { session_id, text, purpose } => {
                if !self.session_can_go_on(*session_id) {
                    return Some("the session has ended".to_owned());
                }
                let reason = match purpose {
                    RunPurpose::Corrective => FollowUpReason::ValidationFailed,
                    _ => FollowUpReason::Orchestrator,
                };
                let evidence = item.task_id.and_then(|task_id| self.evidence_text(task_id));
                self.queue_follow_up(*session_id, *purpose, reason, text, evidence.as_deref());
                None
            }
            PlannedAction::StopAgent { session_id } => {
                let open = self.state.sessions.get(session_id).and_then(|session| session.open_run);
                if let Some(open) = open {
                    self.cancel_run(open, "main", &OutcomeReason::StopAsked { by: "main".to_owned() });
                }
                None
            }
        }
    }

    fn evidence_text(&self, task_id: rallypoint_model::ids::TaskId) -> Option<String> {
        let task = self.state.tasks.get(&task_id)?;
        let mut text = String::new();
        let lines = super::verification::evidence_lines(&task.criteria, &task.evidence);
        for (line, evidence) in lines.iter().zip(&task.evidence) {
            text.push_str(line);
            text.push('\n');
            if !evidence.detail.trim().is_empty() {
                text.push_str(evidence.detail.trim());
                text.push('\n');
            }
        }
        (!text.is_empty()).then_some(text)
    }

    /// Gives the run whose turn it is a slot.
    fn admit(&mut self) -> bool {
        let slots = self.context.limits.lane_subagent as usize;
        if self.state.running_slots() >= slots {
            return false;
        }
        let parked = admission::parked(self.state, self.context.limits, self.context.now);
        let Some(run_id) = parked.first().copied() else { return false };
        self.move_run(run_id, RunTrigger::Admitted)
    }

    /// Starts a process for an admitted run, or prompts the one that is ready.
    fn prompt(&mut self) -> bool {
        let starting: Vec<(RunId, SessionId)> = self
            .state
            .busy_sessions()
            .filter(|session| session.kind == SessionKind::SubAgent)
            .filter_map(|session| session.open_run)
            .filter_map(|run_id| self.state.runs.get(&run_id))
            .filter(|run| run.status == RunStatus::Starting && run.prompt == PromptProgress::NotSent)
            .map(|run| (run.id, run.session_id))
            .collect();
        for (run_id, session_id) in starting {
            if self.prompt_run(run_id, session_id) {
                return true;
            }
        }
        false
    }

    fn prompt_run(&mut self, run_id: RunId, session_id: SessionId) -> bool {
        let generation_id = self.state.sessions.get(&session_id).and_then(|session| session.generation_id);
        let Some(generation_id) = generation_id else {
            let generation_id = GenerationId(self.context.ids.next_uuid());
            let scope = self.run_scope(run_id);
            self.emit(
                Aggregate::Session(session_id),
                scope,
                Event::GenerationStarted { generation_id, session_id, run_id },
            );
            return true;
        };
        let Some(generation) = self.state.generations.get(&generation_id) else {
            return false;
        };
        if generation.status != GenerationStatus::Ready {
            return false;
        }
        let Some(agent_session_id) = generation.agent_session_id.clone() else {
            return false;
        };
        match self.settle_settings(generation_id, session_id, run_id) {
            Settled::Ready => {}
            Settled::Waits => return false,
            Settled::Moved => return true,
        }
        let Some(blocks) = self.state.runs.get(&run_id).map(|run| run.blocks.clone()) else {
            return false;
        };
        let attachments = self.attachments_of(run_id, generation_id);
        let prompt = AgentInput::Prompt { agent_session_id, blocks, attachments };
        self.input(generation_id, prompt, Some(run_id));
        self.move_run(run_id, RunTrigger::Prompted)
    }

    /// Ends a process that nobody needs any more.
    fn retire(&mut self) -> bool {
        let idle = self.state.busy_sessions().find_map(|session| {
            let generation_id = session.generation_id?;
            let generation = self.state.generations.get(&generation_id)?;
            if generation.status == GenerationStatus::Stopping || !generation.is_live() {
                return None;
            }
            if session.open_run.is_some() || !session.queue.is_empty() {
                return None;
            }
            let task = session.task_id.and_then(|id| self.state.tasks.get(&id));
            let over = task.is_none_or(|task| match task.status {
                TaskStatus::Done | TaskStatus::Failed | TaskStatus::Interrupted => true,
                // Nobody can be expected to come back to a conversation that waits for no answer.
                TaskStatus::WaitingOnUser => self.state.open_questions(task.id).next().is_none(),
                TaskStatus::Open | TaskStatus::Active | TaskStatus::Blocked | TaskStatus::Validating => false,
            });
            let ended = session.stopped || session.capped || tree::is_being_stopped(self.state, session);
            (over || ended).then_some(generation_id)
        });
        let Some(generation_id) = idle else { return false };
        self.stop_generation(generation_id);
        true
    }
}
