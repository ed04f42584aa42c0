//! Steering: a task opened again, changed, begun anew, spoken to.

mod messages;
mod restart;
mod verdicts;

use rallypoint_model::command::Outcome;
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::{PlanRevisionId, TaskId};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::steering::{
    NewPlan, PlanRevision, TaskChange, TaskPatched, TaskPlanRevised, TaskReopened,
};
use rallypoint_model::task::{TaskReason, TaskStatus, TaskTrigger};

use super::Deciding;
use crate::permission::holding::hold;
use crate::state::Task;

impl Deciding<'_, '_> {
    /// Opens a task that has ended. Nothing runs by it: what is to be done is said next.
    pub(crate) fn reopen_task(&mut self, task_id: TaskId, by: &str) -> Result<Outcome, Refusal> {
        let task = self.kept_task(task_id)?;
        let (archived, paused, ran) =
            (task.archived_at.is_some(), task.pause.is_some(), !task.sessions.is_empty());
        let trigger = match task.status {
            TaskStatus::Done | TaskStatus::Failed if !ran => Some(TaskTrigger::Reopened),
            TaskStatus::Done | TaskStatus::Failed | TaskStatus::Interrupted => Some(TaskTrigger::Restarted),
            TaskStatus::Open
            | TaskStatus::Active
            | TaskStatus::WaitingOnUser
            | TaskStatus::Blocked
            | TaskStatus::Validating => None,
        };
        if trigger.is_none() && !archived {
            let message = format!("the task is `{}` and was never closed", task.status.as_str());
            return Err(Refusal::new(RefusalCode::Conflict, message)
                .with_hint(format!("`rally task message {task_id}` says something to whoever works on it")));
        }
        let scope = self.task_scope(task_id);
        let reopened = TaskReopened { task_id, by: by.to_owned() };
        self.emit(Aggregate::Task(task_id), scope, Event::TaskReopened(reopened));
        self.bring_back(task_id, by);
        if paused {
            self.resume(task_id, by);
        }
        if let Some(trigger) = trigger {
            self.move_task(task_id, trigger, None);
            self.move_task(task_id, TaskTrigger::AwaitingUser, Some(TaskReason::Reopened));
        }
        self.tell_task_quietly(task_id, &format!("{by} opened the task again"));
        Ok(Outcome::Done)
    }

    pub(crate) fn patch_task(
        &mut self,
        task_id: TaskId,
        change: &TaskChange,
        by: &str,
    ) -> Result<Outcome, Refusal> {
        let task = self.kept_task(task_id)?;
        Self::check_change(task, change)?;
        let mut change = change.clone();
        if let Some(criteria) = &mut change.criteria {
            for criterion in criteria.iter_mut() {
                // What was seen of a criterion that stays still speaks to it.
                if let Some(known) = task.criteria.iter().find(|known| known.check == criterion.check) {
                    criterion.id = known.id;
                }
            }
        }
        if let Some(agents) = &change.agents {
            let held: Result<Vec<_>, Refusal> = agents.iter().map(|launch| hold(launch, None)).collect();
            change.agents = Some(held?);
        }
        if change == TaskChange::default() {
            return Err(Refusal::new(RefusalCode::Invalid, "nothing is named that is to be changed")
                .with_hint("name a title, goal, criteria, priority, budget or agents"));
        }
        let scope = self.task_scope(task_id);
        let patched = TaskPatched { task_id, by: by.to_owned(), change };
        self.emit(Aggregate::Task(task_id), scope, Event::TaskPatched(patched));
        Ok(Outcome::Done)
    }

    fn check_change(task: &Task, change: &TaskChange) -> Result<(), Refusal> {
        let empty = |text: &Option<String>| text.as_ref().is_some_and(|text| text.trim().is_empty());
        if empty(&change.title) || empty(&change.goal) {
            return Err(Refusal::new(RefusalCode::Invalid, "a title or goal can't be empty"));
        }
        if change.agents.as_ref().is_some_and(Vec::is_empty) {
            return Err(Refusal::new(RefusalCode::Invalid, "no agent is named for the task"));
        }
        if change.criteria.as_ref().is_some_and(Vec::is_empty) {
            return Err(Refusal::new(RefusalCode::Invalid, "a task without criteria can't be proven done")
                .with_hint("name at least one check, or one statement that a person accepts"));
        }
        let contract = change.goal.is_some() || change.criteria.is_some();
        match task.status {
            TaskStatus::Validating if contract => Err(Refusal {
                code: RefusalCode::Conflict,
                message: "the result is being checked against the goal and criteria as they are".to_owned(),
                hint: Some("try again when the checks have ended, or pause the task first".to_owned()),
                retryable: true,
            }),
            TaskStatus::Done if contract => Err(Refusal::new(
                RefusalCode::Conflict,
                "the task is done by the goal and criteria that it had",
            )
            .with_hint(format!(
                "`rally task reopen {0}` opens it again, `rally task fork {0}` makes another one of it",
                task.id
            ))),
            _ => Ok(()),
        }
    }

    pub(crate) fn revise_plan(
        &mut self,
        task_id: TaskId,
        plan: &NewPlan,
        by: &str,
    ) -> Result<Outcome, Refusal> {
        let task = self.kept_task(task_id)?;
        Self::check_plan(task, plan)?;
        Ok(Outcome::Plan { revision_id: self.add_plan(task_id, plan, by) })
    }

    fn check_plan(task: &Task, plan: &NewPlan) -> Result<(), Refusal> {
        if !plan.value.is_object() {
            return Err(Refusal::new(RefusalCode::Invalid, "a plan is a JSON object"));
        }
        match plan.base_id {
            Some(id) => Self::check_revision(task, id),
            None => Ok(()),
        }
    }

    fn check_revision(task: &Task, id: PlanRevisionId) -> Result<(), Refusal> {
        if task.plan_of(id).is_some() {
            return Ok(());
        }
        Err(Refusal::new(RefusalCode::Conflict, format!("the task has no plan revision `{id}`"))
            .with_hint(format!("`rally task plan list {}` shows those there are", task.id)))
    }

    pub(super) fn add_plan(&mut self, task_id: TaskId, plan: &NewPlan, by: &str) -> PlanRevisionId {
        let id = PlanRevisionId(self.context.ids.next_uuid());
        let revision = PlanRevision {
            id,
            value: plan.value.clone(),
            base_id: plan.base_id,
            summary: plan.summary.clone(),
            by: by.to_owned(),
            at: self.now(),
        };
        let scope = self.task_scope(task_id);
        self.emit(
            Aggregate::Task(task_id),
            scope,
            Event::TaskPlanRevised(TaskPlanRevised { task_id, revision }),
        );
        id
    }
}
