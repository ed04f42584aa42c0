//! Stopping: a run is cancelled, a session ended, a task's whole tree brought down.

use rallypoint_model::agent_io::AgentInput;
use rallypoint_model::command::Outcome;
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::{RunId, SessionId, TaskId};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunStatus, RunTrigger};
use rallypoint_model::task::{TaskReason, TaskStatus, TaskTrigger};

use super::Deciding;
use crate::state::TurnCause;
use crate::tree;

/// The outcome of a run that was cancelled for this reason: a limit of ours
/// that made us cancel is the outcome, whichever way the agent took it.
pub(super) fn outcome_of_cancel(reason: &OutcomeReason, otherwise: RunOutcome) -> RunOutcome {
    match reason {
        OutcomeReason::Deadline { .. } => RunOutcome::TimedOut,
        OutcomeReason::Budget { .. } => RunOutcome::Capped,
        _ => otherwise,
    }
}

impl Deciding<'_, '_> {
    pub(crate) fn stop_task(&mut self, task_id: TaskId, by: &str) -> Result<Outcome, Refusal> {
        let task = self.state.tasks.get(&task_id).ok_or_else(|| Refusal::not_found("task", task_id))?;
        if task.status.is_terminal() || task.status == TaskStatus::Interrupted {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("the task has ended as `{}`; nothing is left to stop", task.status.as_str()),
            ));
        }
        // Asked before and still under way; a task that went on since is stopped anew.
        if task.stop_requested_by.is_some() && self.state.task_has_open_run(task) {
            return Ok(Outcome::Done);
        }
        let runs = task.runs.clone();
        let nodes = tree::of_task(self.state, task);
        let rests = nodes.iter().all(|id| tree::is_at_rest(self.state, *id));
        let scope = self.task_scope(task_id);
        self.emit(Aggregate::Task(task_id), scope, Event::TaskStopRequested { task_id, by: by.to_owned() });
        if !rests {
            self.begin_stop(task_id, None, by, &nodes);
        }
        let reason = OutcomeReason::StopAsked { by: by.to_owned() };
        for run_id in runs {
            self.cancel_run(run_id, by, &reason);
        }
        self.withdraw_questions(task_id, by, |_| true);
        let idle = self.state.tasks.get(&task_id).is_some_and(|task| {
            !self.state.task_has_open_run(task)
                && !task.status.is_terminal()
                && task.status != TaskStatus::Interrupted
        });
        if idle {
            self.move_task(task_id, TaskTrigger::Interrupted, Some(TaskReason::Stopped));
            self.tell_task(task_id, &format!("{by} stopped the task"), TurnCause::Moved);
        } else {
            // Nothing is asked any more, but a run has yet to end.
            self.unblock_task(task_id);
        }
        Ok(Outcome::Done)
    }

    /// Cancels a run without an outcome: at once where no agent has its prompt,
    /// else by asking the agent, with a deadline.
    pub(crate) fn cancel_run(&mut self, run_id: RunId, by: &str, reason: &OutcomeReason) {
        let Some(run) = self.state.runs.get(&run_id) else {
            return;
        };
        if !run.is_open() || run.cancel.is_some() || run.status == RunStatus::Settling {
            return;
        }
        let session_id = run.session_id;
        let generation_id = self.state.sessions.get(&session_id).and_then(|session| session.generation_id);
        let with_agent = run.input_seq.is_some();
        let Some(aggregate) = self.run_aggregate(run_id) else {
            return;
        };
        let scope = self.run_scope(run_id);
        self.emit(
            aggregate,
            scope,
            Event::RunCancelRequested { run_id, by: by.to_owned(), reason: reason.clone() },
        );
        if !with_agent {
            let outcome = outcome_of_cancel(reason, RunOutcome::Cancelled);
            let was_starting =
                self.state.runs.get(&run_id).is_some_and(|run| run.status == RunStatus::Starting);
            self.finish_run(run_id, outcome, reason.clone());
            if was_starting && let Some(generation_id) = generation_id {
                self.stop_generation(generation_id);
            }
            return;
        }
        let Some(generation_id) = generation_id else {
            return;
        };
        // Closing them answers the agent's requests, before it hears of the cancel.
        self.withdraw_run_questions(run_id, &format!("the stop of its run by {by}"));
        // It waits for the agent now, no longer for a person.
        if self.waits_for_a_person(run_id) {
            self.move_run(run_id, RunTrigger::Resumed);
        }
        self.unblock_task_of(run_id);
        let agent_session_id = self
            .state
            .generations
            .get(&generation_id)
            .and_then(|generation| generation.agent_session_id.clone());
        if let Some(agent_session_id) = agent_session_id {
            self.input(generation_id, AgentInput::Cancel { agent_session_id }, Some(run_id));
        }
        // Helpers that work on after the turn that made them end only when they are told so themselves.
        let session = self.state.sessions.get(&session_id);
        let helpers: Vec<String> = session
            .map(|session| session.native_agents.as_slice())
            .unwrap_or_default()
            .iter()
            .filter(|helper| helper.can_cancel && matches!(&*helper.state, "running" | "requires_action"))
            .map(|helper| helper.agent_session_id.clone())
            .collect();
        for agent_session_id in helpers {
            self.input(generation_id, AgentInput::Cancel { agent_session_id }, Some(run_id));
        }
    }

    /// Ends a session for good: queued runs too.
    pub(crate) fn end_session(&mut self, session_id: SessionId, reason: &OutcomeReason, outcome: RunOutcome) {
        let Some(session) = self.state.sessions.get(&session_id) else {
            return;
        };
        let queued = session.queue.clone();
        let generation_id = session.generation_id;
        for run_id in queued {
            self.finish_run(run_id, outcome, reason.clone());
        }
        if let Some(generation_id) = generation_id {
            self.stop_generation(generation_id);
        }
    }
}
