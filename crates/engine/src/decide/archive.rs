//! Tasks that are over: archived, brought back, deleted, their outputs removed.

use std::collections::{BTreeMap, BTreeSet};

use rallypoint_model::command::Outcome;
use rallypoint_model::delivery::DeliveryStatus;
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::TaskId;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::retention::{DeleteMode, FailedDelete};
use rallypoint_model::task::TaskStatus;
use rallypoint_model::time::Timestamp;

use super::Deciding;
use crate::due::archive_deadline;
use crate::state::Task;

/// Tasks that one tick archives at most; the next tick goes on.
const ARCHIVED_AT_ONCE: usize = 256;
/// No full output is removed that is younger than this.
const YOUNGEST_RESULT_MS: i64 = 86_400_000;
/// Longest pause between two attempts to remove something.
const LONGEST_PAUSE_MS: i64 = 86_400_000;

impl Deciding<'_, '_> {
    /// Archives what ended long enough ago.
    pub(crate) fn archive_due(&mut self) {
        let now = self.now();
        let limits = self.context.limits;
        let due: Vec<TaskId> = self
            .state
            .ended_tasks()
            .filter_map(|(_, task)| Some((archive_deadline(self.state, task, limits)?, task.id)))
            .take_while(|(at, _)| *at <= now)
            .map(|(_, id)| id)
            .take(ARCHIVED_AT_ONCE)
            .collect();
        for task_id in due {
            self.archive(task_id, "archiveAfterMinutes");
        }
    }

    fn archive(&mut self, task_id: TaskId, by: &str) {
        self.withdraw_questions(task_id, by, |_| true);
        let scope = self.task_scope(task_id);
        self.emit(Aggregate::Task(task_id), scope, Event::TaskArchived { task_id, by: by.to_owned() });
    }

    /// A task that moves is not out of sight any more.
    pub(crate) fn bring_back(&mut self, task_id: TaskId, by: &str) {
        if self.state.tasks.get(&task_id).is_some_and(|task| task.archived_at.is_some()) {
            let scope = self.task_scope(task_id);
            self.emit(Aggregate::Task(task_id), scope, Event::TaskUnarchived { task_id, by: by.to_owned() });
        }
    }

    /// The task, unless it is not known or was deleted.
    pub(crate) fn kept_task(&self, task_id: TaskId) -> Result<&Task, Refusal> {
        let task = self.state.tasks.get(&task_id).ok_or_else(|| Refusal::not_found("task", task_id))?;
        match &task.deleted {
            None => Ok(task),
            Some(deletion) => Err(Refusal::new(
                RefusalCode::Conflict,
                format!("the task `{task_id}` was deleted by {}", deletion.by),
            )
            .with_hint("`rally task show` still tells what is kept of it")),
        }
    }

    pub(crate) fn archive_task(&mut self, task_id: TaskId, by: &str) -> Result<Outcome, Refusal> {
        let task = self.kept_task(task_id)?;
        if task.archived_at.is_some() {
            return Ok(Outcome::Done);
        }
        self.check_over(task)?;
        self.archive(task_id, by);
        Ok(Outcome::Done)
    }

    pub(crate) fn unarchive_task(&mut self, task_id: TaskId, by: &str) -> Result<Outcome, Refusal> {
        self.kept_task(task_id)?;
        self.bring_back(task_id, by);
        Ok(Outcome::Done)
    }

    pub(crate) fn delete_task(
        &mut self,
        task_id: TaskId,
        mode: DeleteMode,
        by: &str,
    ) -> Result<Outcome, Refusal> {
        let task = self.state.tasks.get(&task_id).ok_or_else(|| Refusal::not_found("task", task_id))?;
        match task.deleted.as_ref().map(|deletion| deletion.mode) {
            Some(DeleteMode::Purge) => return Ok(Outcome::Done),
            Some(known) if known == mode => return Ok(Outcome::Done),
            Some(_) | None => {}
        }
        self.check_over(task)?;
        if mode == DeleteMode::Purge {
            self.check_silent(task)?;
            self.check_nothing_offered(task_id)?;
        }
        if task.archived_at.is_none() {
            self.archive(task_id, by);
        }
        let digests = match mode {
            DeleteMode::Purge => {
                self.discard_purged(task_id);
                self.own_results(task_id)
            }
            DeleteMode::Preserve => Vec::new(),
        };
        let scope = self.task_scope(task_id);
        self.emit(Aggregate::Task(task_id), scope, Event::TaskDeleted { task_id, mode, by: by.to_owned() });
        if mode == DeleteMode::Purge {
            self.changes.removed_blobs.extend(digests);
            self.changes.purged.push(task_id);
        }
        Ok(Outcome::Done)
    }

    /// Refuses while a sink holds a message of it: what it answers must still find its delivery whole.
    fn check_nothing_offered(&self, task_id: TaskId) -> Result<(), Refusal> {
        let mut open = self.state.open_deliveries().filter(|delivery| delivery.task_id == Some(task_id));
        match open.find(|delivery| delivery.status == DeliveryStatus::Offered) {
            None => Ok(()),
            Some(delivery) => Err(Refusal {
                code: RefusalCode::Conflict,
                message: format!("a message of it is on its way to {}", delivery.conversation.words()),
                hint: Some("try again when the channel has answered".to_owned()),
                retryable: true,
            }),
        }
    }

    /// Refuses a task that is still worked on.
    fn check_over(&self, task: &Task) -> Result<(), Refusal> {
        let over = match task.status {
            TaskStatus::Done | TaskStatus::Failed | TaskStatus::Interrupted | TaskStatus::WaitingOnUser => {
                !self.state.task_has_open_run(task)
            }
            TaskStatus::Open | TaskStatus::Active | TaskStatus::Blocked | TaskStatus::Validating => false,
        };
        if over {
            return Ok(());
        }
        let message = format!("the task is `{}` and not over", task.status.as_str());
        Err(Refusal::new(RefusalCode::Conflict, message)
            .with_hint(format!("`rally task stop {}` ends it first", task.id)))
    }

    /// Refuses a task whose processes may still say something.
    fn check_silent(&self, task: &Task) -> Result<(), Refusal> {
        let speaks =
            self.state.open_generations().any(|generation| task.sessions.contains(&generation.session_id));
        if !speaks {
            return Ok(());
        }
        Err(Refusal {
            code: RefusalCode::Conflict,
            message: "an agent process of the task is still being ended".to_owned(),
            hint: Some("try again in a moment".to_owned()),
            retryable: true,
        })
    }

    /// Digests of a task's full outputs and files that no other task refers to.
    fn own_results(&self, task_id: TaskId) -> Vec<String> {
        let (mut own, mut others) = self.attached(task_id);
        for run in self.state.runs.values() {
            if let Some(result) = &run.result {
                let set = if run.task_id == Some(task_id) { &mut own } else { &mut others };
                set.insert(result.digest.clone());
            }
        }
        own.difference(&others).cloned().collect()
    }

    /// Removes full outputs whose time is over: every task that refers to one was archived long enough ago.
    pub(crate) fn remove_results(&mut self, keep_ms: i64, at_most: u32) -> Outcome {
        let now = self.now();
        let mut over: BTreeMap<String, bool> = BTreeMap::new();
        let mut tasks: BTreeMap<TaskId, Vec<String>> = BTreeMap::new();
        for run in self.state.runs.values().filter(|run| !run.result_removed) {
            let Some(result) = &run.result else { continue };
            let archived =
                run.task_id.and_then(|id| self.state.tasks.get(&id)).and_then(|task| task.archived_at);
            let old = archived.is_some_and(|at| at.plus(keep_ms) <= now)
                && run.ended_at.is_some_and(|at| at.plus(YOUNGEST_RESULT_MS) <= now);
            let known = over.entry(result.digest.clone()).or_insert(true);
            *known = *known && old;
            if let Some(task_id) = run.task_id {
                tasks.entry(task_id).or_default().push(result.digest.clone());
            }
        }
        let chosen: BTreeSet<String> = over
            .into_iter()
            .filter(|(digest, old)| *old && !self.is_attached(digest))
            .map(|(digest, _)| digest)
            .take(at_most as usize)
            .collect();
        for (task_id, digests) in tasks {
            let digests: Vec<String> = digests
                .into_iter()
                .filter(|digest| chosen.contains(digest))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect();
            if !digests.is_empty() {
                let scope = self.task_scope(task_id);
                self.emit(Aggregate::Task(task_id), scope, Event::TaskResultsRemoved { task_id, digests });
            }
        }
        self.changes.removed_blobs.extend(chosen);
        Outcome::Done
    }

    /// Keeps in mind what could not be removed, and when it is tried again. Operational, so no fact of the journal.
    pub(crate) fn delete_failed(&mut self, path: &str, reason: &str, pause_ms: i64) -> Outcome {
        let now = self.now();
        let known = self.state.failed_deletes.get(path);
        let attempts = known.map_or(1, |failed| failed.attempts.saturating_add(1));
        let doublings = attempts.saturating_sub(1).min(20);
        let pause = pause_ms.max(1).saturating_mul(1_i64 << doublings).min(LONGEST_PAUSE_MS);
        let failed = FailedDelete {
            path: path.to_owned(),
            reason: reason.to_owned(),
            attempts,
            first_at: known.map_or(now, |failed| failed.first_at),
            next_at: now.plus(pause),
        };
        self.state.failed_deletes.insert(path.to_owned(), failed);
        self.changes.failed_deletes.insert(path.to_owned());
        Outcome::Done
    }

    /// Forgets what is gone, or is to stay after all.
    pub(crate) fn delete_settled(&mut self, path: &str) -> Outcome {
        if self.state.failed_deletes.remove(path).is_some() {
            self.changes.failed_deletes.insert(path.to_owned());
        }
        Outcome::Done
    }
}

/// Whether something that could not be removed is to be tried again. A clock that was set back must not put it off
/// for longer than the longest pause.
pub fn is_tried_again(failed: &FailedDelete, now: Timestamp) -> bool {
    failed.next_at <= now || failed.next_at.since(now) > LONGEST_PAUSE_MS
}
