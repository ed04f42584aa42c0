//! Pausing: turns are cancelled, what waits is held, sessions are kept and go on from there.

use rallypoint_model::command::Outcome;
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::{RunId, SessionId, TaskId};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::run::{OutcomeReason, RunPurpose, RunStatus};
use rallypoint_model::steering::{TaskPaused, TaskResumed};
use rallypoint_model::task::{TaskReason, TaskStatus, TaskTrigger};

use super::Deciding;
use crate::prompt::FollowUpReason;
use crate::state::{Pause, PromptProgress, Run, Task, TurnCause};

/// Said to a session whose turn was cancelled by a pause.
const GO_ON: &str = "The work was paused and goes on now. Continue where you were.";

impl Deciding<'_, '_> {
    pub(crate) fn is_paused(&self, task_id: TaskId) -> bool {
        self.state.tasks.get(&task_id).is_some_and(|task| task.pause.is_some())
    }

    /// Refuses what would only wait without a word of why.
    pub(crate) fn check_not_paused(task: &Task) -> Result<(), Refusal> {
        match &task.pause {
            None => Ok(()),
            Some(pause) => {
                Err(Refusal::new(RefusalCode::Conflict, format!("the task was paused by {}", pause.by))
                    .with_hint(format!("`rally task resume {}` lets it go on", task.id)))
            }
        }
    }

    pub(crate) fn pause_task(&mut self, task_id: TaskId, by: &str) -> Result<Outcome, Refusal> {
        let task = self.kept_task(task_id)?;
        if task.status.is_terminal() || task.status == TaskStatus::Interrupted {
            let message =
                format!("the task has ended as `{}`; nothing is left to pause", task.status.as_str());
            return Err(Refusal::new(RefusalCode::Conflict, message)
                .with_hint(format!("`rally task reopen {task_id}` opens it again")));
        }
        if task.stops.iter().any(|stop| stop.root_session_id.is_none()) {
            return Err(Refusal::new(RefusalCode::Conflict, "the task is being stopped"));
        }
        self.pause(task_id, by);
        Ok(Outcome::Done)
    }

    pub(crate) fn pause_all(&mut self, by: &str) -> Outcome {
        let open: Vec<TaskId> = self
            .state
            .tasks
            .values()
            .filter(|task| task.pause.is_none() && task.deleted.is_none() && task.archived_at.is_none())
            .filter(|task| !task.status.is_terminal() && task.status != TaskStatus::Interrupted)
            .filter(|task| task.stops.iter().all(|stop| stop.root_session_id.is_some()))
            .map(|task| task.id)
            .collect();
        for task_id in &open {
            self.pause(*task_id, by);
        }
        Outcome::Count { tasks: u32::try_from(open.len()).unwrap_or(u32::MAX) }
    }

    fn pause(&mut self, task_id: TaskId, by: &str) {
        let Some(task) = self.state.tasks.get(&task_id) else { return };
        if task.pause.is_some() {
            return;
        }
        let runs: Vec<RunId> = task
            .runs
            .iter()
            .filter_map(|id| self.state.runs.get(id))
            .filter(|run| run.cancel.is_none())
            .filter(|run| match run.status {
                RunStatus::Starting
                | RunStatus::Running
                | RunStatus::WaitingApproval
                | RunStatus::WaitingQuestion
                | RunStatus::WaitingChildren
                | RunStatus::WaitingLogin => true,
                RunStatus::Queued | RunStatus::Settling | RunStatus::Terminal => false,
            })
            .map(|run| run.id)
            .collect();
        let scope = self.task_scope(task_id);
        let paused = TaskPaused { task_id, by: by.to_owned(), runs: runs.clone() };
        self.emit(Aggregate::Task(task_id), scope, Event::TaskPaused(paused));
        self.tell_task_quietly(task_id, &format!("{by} paused the task"));
        let reason = OutcomeReason::Paused { by: by.to_owned() };
        for run_id in runs {
            self.cancel_run(run_id, by, &reason);
            self.hold_unsent(run_id);
        }
    }

    /// What no agent was given yet keeps its place in front of what is said while it is held.
    fn hold_unsent(&mut self, run_id: RunId) {
        let unsent = |run: &&Run| run.prompt == PromptProgress::NotSent && !run.is_open();
        let Some(run) = self.state.runs.get(&run_id).filter(unsent) else { return };
        let (session_id, purpose, trigger) = (run.session_id, run.purpose, run.trigger_message_id);
        let blocks = run.blocks.clone();
        self.queue_run(session_id, purpose, blocks, trigger);
    }

    pub(crate) fn resume_task(&mut self, task_id: TaskId, by: &str) -> Result<Outcome, Refusal> {
        self.kept_task(task_id)?;
        self.resume(task_id, by);
        Ok(Outcome::Done)
    }

    pub(crate) fn resume_all(&mut self, by: &str) -> Outcome {
        let paused: Vec<TaskId> =
            self.state.tasks.values().filter(|task| task.pause.is_some()).map(|task| task.id).collect();
        for task_id in &paused {
            self.resume(*task_id, by);
        }
        Outcome::Count { tasks: u32::try_from(paused.len()).unwrap_or(u32::MAX) }
    }

    /// A task that is not paused stays as it is.
    pub(crate) fn resume(&mut self, task_id: TaskId, by: &str) {
        let Some(pause) = self.state.tasks.get(&task_id).and_then(|task| task.pause.clone()) else { return };
        let paused_ms = self.now().since(pause.at).max(0);
        let scope = self.task_scope(task_id);
        let resumed = TaskResumed { task_id, by: by.to_owned(), paused_ms };
        self.emit(Aggregate::Task(task_id), scope, Event::TaskResumed(resumed));
        self.tell_task_quietly(task_id, &format!("{by} resumed the task"));
        if self.state.tasks.get(&task_id).is_some_and(|task| task.status == TaskStatus::Blocked) {
            self.unblock_task(task_id);
        }
        let lost = self.continue_paused(&pause);
        let idle = self.state.tasks.get(&task_id).is_some_and(|task| !self.state.task_has_open_run(task));
        if !idle {
            return;
        }
        if let Some(run_id) = pause.ended {
            self.catch_up(task_id, run_id);
        } else if lost {
            self.move_task(task_id, TaskTrigger::AwaitingUser, Some(TaskReason::Cut));
            let text = format!(
                "the session that was paused can't go on, its process is gone; `rally task retry {task_id}` begins anew"
            );
            self.tell_task(task_id, &text, TurnCause::Moved);
        }
    }

    /// Lets each session go on whose turn was cancelled. Tells whether one can't.
    fn continue_paused(&mut self, pause: &Pause) -> bool {
        let mut seen: Vec<SessionId> = Vec::new();
        let mut lost = false;
        for run_id in &pause.runs {
            let Some(run) = self.state.runs.get(run_id).filter(|run| run.was_paused() || run.is_open())
            else {
                continue;
            };
            let session_id = run.session_id;
            if seen.contains(&session_id) {
                continue;
            }
            seen.push(session_id);
            let over =
                self.state.sessions.get(&session_id).is_none_or(|session| session.stopped || session.capped);
            if over || run.prompt == PromptProgress::NotSent {
                continue;
            }
            if self.session_can_go_on(session_id) {
                self.queue_follow_up(session_id, RunPurpose::FollowUp, FollowUpReason::Resume, GO_ON, None);
            } else {
                lost = true;
            }
        }
        lost
    }

    /// What would have followed from the end of a run, had its task not been paused.
    fn catch_up(&mut self, task_id: TaskId, run_id: RunId) {
        let Some(run) = self.state.runs.get(&run_id) else { return };
        if let (Some(outcome), Some(reason)) = (run.outcome, run.reason.clone()) {
            self.move_task_after_run(run_id, task_id, outcome, &reason, false);
        }
    }
}
