//! What happens because time has passed.

use rallypoint_model::command::Outcome;
use rallypoint_model::event::{Aggregate, Event, Scope};
use rallypoint_model::ids::RunId;
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunStatus};
use rallypoint_model::task::{TaskReason, TaskStatus, TaskTrigger};
use rallypoint_model::time::{ClockAnchor, Timestamp};

use super::Deciding;
use super::stop::outcome_of_cancel;
use crate::admission::{active_time_used_up, can_be_capped};
use crate::apply::is_anything_open;
use crate::due::{run_deadline, settle_deadline, setup_deadline, stall_deadline};
use crate::state::TurnCause;
use crate::text::one_line;

impl Deciding<'_, '_> {
    pub(crate) fn tick(&mut self) {
        let open: Vec<RunId> = self.state.open_runs().map(|run| run.id).collect();
        for run_id in open {
            self.run_deadlines(run_id);
        }
        self.task_deadlines();
        self.expire_questions();
        self.expire_deliveries();
        self.archive_due();
    }

    /// Moves the clocks of what is under way, if there is anything, and keeps how the machine's clock stands.
    pub(crate) fn shift_clocks(&mut self, by_ms: i64, anchor: Option<&ClockAnchor>) -> Outcome {
        let Some(world) = &self.state.world else { return Outcome::Stale };
        let by_ms = if is_anything_open(self.state) { by_ms } else { 0 };
        let anchor = anchor.filter(|anchor| world.clock.as_ref() != Some(*anchor)).cloned();
        if by_ms != 0 || anchor.is_some() {
            let event = Event::ClockShifted { by_ms, anchor };
            self.emit(Aggregate::World(world.id), Scope::default(), event);
        }
        Outcome::Done
    }

    fn run_deadlines(&mut self, run_id: RunId) {
        let now = self.now();
        let limits = self.context.limits;
        let Some(run) = self.state.runs.get(&run_id) else {
            return;
        };
        if run.status == RunStatus::Settling {
            if settle_deadline(self.state, run, limits).is_some_and(|at| at <= now) {
                self.finish_answered(run_id);
            }
            return;
        }
        if let Some(cancel) = run.cancel.clone() {
            if cancel.at.plus(limits.cancel_grace_ms) <= now {
                let outcome = outcome_of_cancel(&cancel.reason, RunOutcome::Killed);
                let generation_id =
                    self.state.sessions.get(&run.session_id).and_then(|session| session.generation_id);
                self.finish_run(run_id, outcome, cancel.reason);
                if let Some(generation_id) = generation_id {
                    self.stop_generation(generation_id);
                }
            }
            return;
        }
        if run.status == RunStatus::Starting {
            self.setup_deadline_of(run_id, now);
            return;
        }
        if can_be_capped(run)
            && let Some(task) = run.task_id.and_then(|id| self.state.tasks.get(&id))
            && let Some(reason) = active_time_used_up(self.state, task, now)
        {
            self.cancel_run(run_id, "the platform", &reason);
            return;
        }
        if let Some((since, at)) = stall_deadline(self.state, run, limits)
            && at <= now
        {
            self.suspect(run_id, since);
            return;
        }
        if run_deadline(run, limits).is_some_and(|at| at <= now) {
            let limit_ms = i64::try_from(limits.run_timeout_seconds).unwrap_or(i64::MAX).saturating_mul(1000);
            self.cancel_run(
                run_id,
                "the platform",
                &OutcomeReason::Deadline { limit: "runTimeoutSeconds".to_owned(), limit_ms },
            );
        }
    }

    /// Tells that a run has been silent for long. Nothing is decided by it.
    fn suspect(&mut self, run_id: RunId, silent_since: Timestamp) {
        let Some(aggregate) = self.run_aggregate(run_id) else { return };
        let scope = self.run_scope(run_id);
        self.emit(aggregate, scope, Event::RunSuspected { run_id, silent_since });
        let Some(task_id) = scope.task_id else { return };
        let seconds = self.now().since(silent_since) / 1000;
        let label = self.label_of(run_id);
        let text = format!(
            "{label} has said nothing for {seconds} s. Its process is watched and it may still finish; \
             `rally task stop {task_id}` ends it."
        );
        self.tell_task_quietly(task_id, &text);
    }

    fn setup_deadline_of(&mut self, run_id: RunId, now: Timestamp) {
        let Some(run) = self.state.runs.get(&run_id) else {
            return;
        };
        let Some(session) = self.state.sessions.get(&run.session_id) else {
            return;
        };
        let Some(generation) = session.generation_id.and_then(|id| self.state.generations.get(&id)) else {
            return;
        };
        let Some((at, limit_ms)) = setup_deadline(session, generation, self.context.limits) else {
            return;
        };
        if at > now {
            return;
        }
        let generation_id = generation.id;
        let stderr = one_line(generation.stderr_tail.lines().last().unwrap_or_default(), 300);
        self.finish_run(run_id, RunOutcome::Failed, OutcomeReason::SetupTimedOut { limit_ms, stderr });
        self.stop_generation(generation_id);
    }

    fn task_deadlines(&mut self) {
        let now = self.now();
        let due: Vec<_> = self
            .state
            .open_tasks()
            .filter(|task| {
                matches!(
                    task.status,
                    TaskStatus::Open | TaskStatus::Active | TaskStatus::Blocked | TaskStatus::Validating
                ) && task.pause.is_none()
                    && task.deadline_at.is_some_and(|at| at <= now)
            })
            .map(|task| (task.id, task.timeout_ms, task.runs.clone()))
            .collect();
        for (task_id, limit_ms, runs) in due {
            let reason = OutcomeReason::Deadline { limit: "timeout".to_owned(), limit_ms };
            for run_id in runs {
                self.cancel_run(run_id, "the platform", &reason);
            }
            let idle = self
                .state
                .tasks
                .get(&task_id)
                .is_some_and(|task| !self.state.task_has_open_run(task) && !task.status.is_terminal());
            if idle {
                self.withdraw_questions(task_id, "the task's time limit", |_| true);
                self.move_task(task_id, TaskTrigger::Unrecoverable, Some(TaskReason::TimedOut));
                self.tell_task(task_id, &reason.words(), TurnCause::Moved);
            }
        }
    }
}
