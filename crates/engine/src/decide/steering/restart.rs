//! A task begun again: in new sessions, from an event, with another plan; or one more turn.

use rallypoint_model::command::{AgentLaunch, Outcome};
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::{SessionId, TaskId};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::run::RunPurpose;
use rallypoint_model::steering::{PlanChoice, RestartKind, RestartTask, RetryTurn, TaskRestarted};
use rallypoint_model::task::{TaskStatus, TaskTrigger};

use super::super::Deciding;
use super::super::session::plan_text;
use crate::permission::holding::hold;
use crate::prompt::FollowUpReason;
use crate::state::Task;

impl Deciding<'_, '_> {
    /// The goal again in new sessions. Those of before are over; what they did stays in the journal.
    pub(crate) fn restart_task(&mut self, restart: &RestartTask) -> Result<Outcome, Refusal> {
        let task_id = restart.task_id;
        let task = self.kept_task(task_id)?;
        self.check_idle(task)?;
        self.check_budget(task)?;
        match &restart.plan {
            PlanChoice::Latest => {}
            PlanChoice::Revision { id } => Self::check_revision(task, *id)?,
            PlanChoice::New { plan } => Self::check_plan(task, plan)?,
        }
        let launches: Vec<AgentLaunch> = match &restart.launch {
            Some(launch) => vec![hold(launch, None)?],
            None => task.agents.clone(),
        };
        let superseded = task.sessions.clone();
        let how = match (&restart.earlier, &restart.plan) {
            (Some(_), _) => RestartKind::Rerun,
            (None, PlanChoice::New { .. }) => RestartKind::EditedPlan,
            (None, PlanChoice::Latest | PlanChoice::Revision { .. }) => RestartKind::Restart,
        };
        let plan_revision_id = match &restart.plan {
            PlanChoice::Latest => task.plan_id,
            PlanChoice::Revision { id } => Some(*id),
            PlanChoice::New { plan } => Some(self.add_plan(task_id, plan, &restart.by)),
        };
        self.begin_again(
            task_id,
            TaskRestarted {
                task_id,
                by: restart.by.clone(),
                how,
                superseded,
                instruction: restart.instruction.clone(),
                plan_revision_id,
                event_seq: restart.earlier.as_ref().map(|earlier| earlier.event_seq),
            },
        );
        let words = match how {
            RestartKind::Rerun => "began the work again from an earlier point",
            RestartKind::EditedPlan => "began the work again with another plan",
            RestartKind::Restart | RestartKind::NewSession => "began the work again",
        };
        self.tell_task_quietly(task_id, &format!("{} {words}", restart.by));
        let earlier = restart.earlier.as_ref().map(|earlier| earlier.text.as_str());
        let mut last = None;
        for launch in launches {
            last = Some(self.open_anew(task_id, launch, restart.instruction.as_deref(), earlier)?);
        }
        let session_id =
            last.ok_or_else(|| Refusal::new(RefusalCode::Conflict, "no agent is named for the task"))?;
        Ok(Outcome::Queued { session_id })
    }

    /// One more turn: in the session that had the last one, or in a new one in its place.
    pub(crate) fn retry_turn(&mut self, retry: &RetryTurn) -> Result<Outcome, Refusal> {
        let task_id = retry.task_id;
        let task = self.kept_task(task_id)?;
        Self::check_not_paused(task)?;
        self.check_idle(task)?;
        self.check_budget(task)?;
        if let Some(id) = retry.plan_revision_id {
            Self::check_revision(task, id)?;
        }
        let session_id = match retry.session_id {
            Some(id) if task.sessions.contains(&id) => id,
            Some(id) => {
                return Err(Refusal::not_found("session of this task", id)
                    .with_hint(format!("`rally task show {task_id}` lists its sessions")));
            }
            None => last_session(self, task)
                .ok_or_else(|| Refusal::new(RefusalCode::Conflict, "the task never had a session"))?,
        };
        let launch = self.state.sessions.get(&session_id).and_then(|session| session.launch.clone());
        if retry.new_session {
            let launch = launch.ok_or_else(|| {
                Refusal::new(RefusalCode::Conflict, "how the session was started is not known")
            })?;
            self.begin_again(
                task_id,
                TaskRestarted {
                    task_id,
                    by: retry.by.clone(),
                    how: RestartKind::NewSession,
                    superseded: vec![session_id],
                    instruction: retry.text.clone(),
                    plan_revision_id: retry.plan_revision_id,
                    event_seq: None,
                },
            );
            let session_id = self.open_anew(task_id, launch, retry.text.as_deref(), None)?;
            return Ok(Outcome::Queued { session_id });
        }
        if !self.session_can_go_on(session_id) {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("the conversation of the session `{session_id}` is gone"),
            )
            .with_hint("`--new-session` begins another one in its place"));
        }
        let plan = retry.plan_revision_id.or(task.plan_id).and_then(|id| task.plan_of(id)).map(plan_text);
        let words = retry.text.as_deref().unwrap_or("Continue, or report how far it got.");
        let message = match plan.filter(|_| retry.plan_revision_id.is_some()) {
            Some(plan) => format!("{words}\n\nThe plan to follow:\n{plan}"),
            None => words.to_owned(),
        };
        self.put_to_work(task_id, &retry.by);
        let reason = if retry.text.is_some() { FollowUpReason::UserMessage } else { FollowUpReason::Resume };
        self.queue_follow_up(session_id, RunPurpose::FollowUp, reason, &message, None);
        Ok(Outcome::Queued { session_id })
    }

    /// Refuses while somebody works on it, so that nobody's turn is lost without a word.
    fn check_idle(&self, task: &Task) -> Result<(), Refusal> {
        if task.stops.iter().any(|stop| stop.root_session_id.is_none()) {
            return Err(Refusal {
                code: RefusalCode::Conflict,
                message: "the task is being stopped".to_owned(),
                hint: Some("try again in a moment".to_owned()),
                retryable: true,
            });
        }
        if !self.state.task_has_open_run(task) {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalCode::Conflict,
            format!("the task is `{}` and a sub-agent still works on it", task.status.as_str()),
        )
        .with_hint("stop the task first, or ask for that with `stopActive` (`--stop`)"))
    }

    fn begin_again(&mut self, task_id: TaskId, restarted: TaskRestarted) {
        let by = restarted.by.clone();
        let superseded = restarted.superseded.clone();
        let scope = self.task_scope(task_id);
        self.emit(Aggregate::Task(task_id), scope, Event::TaskRestarted(restarted));
        for session_id in superseded {
            let generation_id =
                self.state.sessions.get(&session_id).and_then(|session| session.generation_id);
            if let Some(generation_id) = generation_id {
                self.stop_generation(generation_id);
            }
        }
        self.put_to_work(task_id, &by);
    }

    /// Whatever a task waited for, it is worked on from now on.
    pub(super) fn put_to_work(&mut self, task_id: TaskId, by: &str) {
        self.resume(task_id, by);
        self.withdraw_questions(task_id, by, |_| true);
        let trigger = match self.state.tasks.get(&task_id).map(|task| task.status) {
            Some(TaskStatus::Open) => Some(TaskTrigger::SessionActive),
            Some(TaskStatus::WaitingOnUser | TaskStatus::Blocked | TaskStatus::Validating) => {
                Some(TaskTrigger::Retrying)
            }
            Some(TaskStatus::Interrupted | TaskStatus::Done | TaskStatus::Failed) => {
                Some(TaskTrigger::Restarted)
            }
            Some(TaskStatus::Active) | None => None,
        };
        if let Some(trigger) = trigger {
            self.move_task(task_id, trigger, None);
        }
    }

    /// A new session with the goal.
    pub(super) fn open_anew(
        &mut self,
        task_id: TaskId,
        mut launch: AgentLaunch,
        instruction: Option<&str>,
        earlier: Option<&str>,
    ) -> Result<SessionId, Refusal> {
        if launch.conversation.is_none()
            && let Some(task) = self.state.tasks.get(&task_id)
        {
            launch.label = self.free_label(task, &launch.label);
        }
        let session_id = self
            .open_session(task_id, launch, None, None)
            .map_err(|problem| Refusal::new(RefusalCode::Internal, problem))?;
        self.queue_goal_after(session_id, instruction, earlier);
        Ok(session_id)
    }
}

/// The session that worked last.
pub(super) fn last_session(deciding: &Deciding<'_, '_>, task: &Task) -> Option<SessionId> {
    task.last_completed_run
        .or_else(|| task.runs.last().copied())
        .and_then(|run| deciding.state.runs.get(&run))
        .map(|run| run.session_id)
        .or_else(|| task.sessions.last().copied())
}
