//! Admission of one more sub-agent: every limit is looked at in the decision that makes it.

use rallypoint_model::command::{Outcome, SpawnSession};
use rallypoint_model::ids::{RunId, SessionId, TaskId};
use rallypoint_model::question::QuestionKind;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::run::OutcomeReason;
use rallypoint_model::session::SessionKind;
use rallypoint_model::task::{TaskStatus, TaskTrigger};

use super::{Deciding, UniqueKeys};
use crate::admission;
use crate::apply::spawn_key;
use crate::permission::holding;
use crate::state::{KeyedFact, Session, Task};
use crate::tree;

impl Deciding<'_, '_> {
    pub(crate) fn spawn_session(&mut self, spawn: &SpawnSession) -> Result<Outcome, Refusal> {
        if let Some(known) = self.known_spawn(spawn)? {
            return Ok(known);
        }
        let task =
            self.state.tasks.get(&spawn.task_id).ok_or_else(|| Refusal::not_found("task", spawn.task_id))?;
        Self::check_task_takes_work(task)?;
        let parent = match spawn.parent_session_id {
            Some(id) => Some(self.checked_parent(task, id)?),
            None => None,
        };
        self.check_depth(task, parent)?;
        self.check_children(task, parent)?;
        self.check_budget(task)?;
        self.check_queue(1)?;
        self.check_nickname(Some(task), spawn.parent_session_id, &spawn.launch)?;
        let above = parent.and_then(|parent| parent.launch.as_ref());
        let above = above.or_else(|| holding::ceiling(&task.agents));
        let mut launch = holding::hold(&spawn.launch, above)?;
        // Whoever is called by its name keeps it; others may share theirs with one of another parent.
        if launch.conversation.is_none() {
            launch.label = self.free_label(task, &launch.label);
        }
        let task_id = spawn.task_id;
        let session_id = self
            .open_session(task_id, launch, spawn.parent_session_id, spawn.idempotency_key.clone())
            .map_err(|problem| Refusal::new(RefusalCode::Internal, problem))?;
        self.start_task_again(task_id);
        let run_id = self
            .queue_goal(session_id, None)
            .ok_or_else(|| Refusal::new(RefusalCode::Internal, "the session was made and is not there"))?;
        Ok(Outcome::Spawned { session_id, run_id, position: None })
    }

    /// The session that this key made before.
    fn known_spawn(&self, spawn: &SpawnSession) -> Result<Option<Outcome>, Refusal> {
        let Some(key) =
            spawn.idempotency_key.as_ref().filter(|_| self.context.unique_keys == UniqueKeys::Enforced)
        else {
            return Ok(None);
        };
        let Some(known) = self.state.keys.get(&spawn_key(key)) else { return Ok(None) };
        let session = match known {
            KeyedFact::Session { id } => self.state.sessions.get(id),
            KeyedFact::Task { .. }
            | KeyedFact::Message { .. }
            | KeyedFact::Run { .. }
            | KeyedFact::Room { .. }
            | KeyedFact::Delivery { .. } => None,
        };
        let same = session.filter(|session| {
            session.task_id == Some(spawn.task_id) && session.parent_session_id == spawn.parent_session_id
        });
        let run_id = same.and_then(|session| self.first_run(session));
        match (same, run_id) {
            (Some(session), Some(run_id)) => {
                Ok(Some(Outcome::Spawned { session_id: session.id, run_id, position: None }))
            }
            _ => Err(Refusal::new(
                RefusalCode::KeyReused,
                format!("the key `{key}` was used before for something else"),
            )
            .with_hint("use a new key for a new sub-agent")),
        }
    }

    fn first_run(&self, session: &Session) -> Option<RunId> {
        let task = self.state.tasks.get(&session.task_id?)?;
        let runs = task.runs.iter().filter_map(|id| self.state.runs.get(id));
        runs.filter(|run| run.session_id == session.id).map(|run| run.id).next()
    }

    fn check_task_takes_work(task: &Task) -> Result<(), Refusal> {
        let retry = format!("`rally task retry {}` gives the task another run", task.id);
        if task.status.is_terminal() || task.status == TaskStatus::Interrupted {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("the task has ended as `{}` and takes no more sub-agents", task.status.as_str()),
            )
            .with_hint(retry));
        }
        if task.stops.iter().any(|stop| stop.root_session_id.is_none()) {
            return Err(Refusal::new(RefusalCode::Conflict, "the task is being stopped")
                .with_hint(format!("when it has ended, {retry}")));
        }
        Ok(())
    }

    fn checked_parent(&self, task: &Task, session_id: SessionId) -> Result<&Session, Refusal> {
        let session =
            self.state.sessions.get(&session_id).ok_or_else(|| Refusal::not_found("session", session_id))?;
        if session.kind != SessionKind::SubAgent || session.task_id != Some(task.id) {
            return Err(Refusal::new(
                RefusalCode::Invalid,
                format!("the session `{session_id}` is no sub-agent of this task"),
            )
            .with_hint(format!("`rally task show {}` lists those of it", task.id)));
        }
        if session.stopped || session.capped || tree::is_being_stopped(self.state, session) {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("`{}` was stopped and starts no sub-agents", label_of(session)),
            )
            .with_hint("leave out the parent to start one for the task itself"));
        }
        Ok(session)
    }

    fn check_depth(&self, task: &Task, parent: Option<&Session>) -> Result<(), Refusal> {
        let limit = self.context.limits.spawn_depth;
        let depth = parent.map_or(0, |parent| parent.depth);
        if depth < limit {
            return Ok(());
        }
        let who = parent.map_or_else(|| "the task".to_owned(), |parent| format!("`{}`", label_of(parent)));
        let hint = match parent {
            Some(_) => format!(
                "`rally task spawn {}` without `--parent` starts one for the task itself, or raise the limit in the configuration",
                task.id
            ),
            None => "raise the limit in the configuration".to_owned(),
        };
        Err(Refusal::new(
            RefusalCode::Limit,
            format!("{who} stands at depth {depth}/{limit}, so it can't start a sub-agent; the limit is `spawnDepth`"),
        )
        .with_hint(hint))
    }

    fn check_children(&self, task: &Task, parent: Option<&Session>) -> Result<(), Refusal> {
        let limit = self.context.limits.children_per_parent;
        let open = tree::open_children(self.state, task.id, parent.map(|parent| parent.id));
        if open.len() < limit as usize {
            return Ok(());
        }
        let who = parent.map_or_else(|| "the task".to_owned(), |parent| format!("`{}`", label_of(parent)));
        let first = open.first().map(|session| session.id);
        let hint = match first {
            Some(id) => format!("wait until one ends, or end one: `rally task stop --session {id}`"),
            None => "raise the limit in the configuration".to_owned(),
        };
        Err(Refusal {
            code: RefusalCode::Limit,
            message: format!(
                "{who} has {}/{limit} sub-agents at work; the limit is `childrenPerParent`",
                open.len()
            ),
            hint: Some(hint),
            retryable: true,
        })
    }

    /// Whether the task may still use something.
    pub(crate) fn check_budget(&self, task: &Task) -> Result<(), Refusal> {
        match admission::budget_used_up(self.state, task, self.context.now) {
            None => Ok(()),
            Some(reason) => Err(used_up(task.id, &reason)),
        }
    }

    /// Whether this many more runs may wait where no slot is free for them.
    fn check_queue(&self, more: usize) -> Result<(), Refusal> {
        let limits = self.context.limits;
        let parked = admission::parked(self.state, limits, self.context.now).len();
        let free = (limits.lane_subagent as usize).saturating_sub(self.state.running_slots());
        let would_wait = parked.saturating_add(more).saturating_sub(free);
        let limit = limits.queue_depth;
        if would_wait <= limit as usize {
            return Ok(());
        }
        Err(Refusal {
            code: RefusalCode::Limit,
            message: format!("{parked}/{limit} runs wait for a slot; the limit is `queueDepth`"),
            hint: Some("try again when some have started; `rally task list` shows what works".to_owned()),
            retryable: true,
        })
    }

    /// A name that no other sub-agent of the task has.
    pub(super) fn free_label(&self, task: &Task, wanted: &str) -> String {
        let taken = |name: &str| {
            task.sessions
                .iter()
                .filter_map(|id| self.state.sessions.get(id))
                .filter_map(|session| session.launch.as_ref())
                .any(|launch| launch.label == name)
        };
        let numbered = (2..).map(|number: u64| format!("{wanted}-{number}"));
        std::iter::once(wanted.to_owned())
            .chain(numbered)
            .find(|name| !taken(name))
            .unwrap_or_else(|| wanted.to_owned())
    }

    /// A task that waited for a person or for its checks goes on, because more work was asked for.
    fn start_task_again(&mut self, task_id: TaskId) {
        let status = self.state.tasks.get(&task_id).map(|task| task.status);
        match status {
            Some(TaskStatus::Open) => {
                self.move_task(task_id, TaskTrigger::SessionActive, None);
            }
            Some(TaskStatus::WaitingOnUser | TaskStatus::Validating) => {
                self.withdraw_questions(task_id, "more work", |question| {
                    matches!(question.question, QuestionKind::Acceptance { .. })
                });
                self.move_task(task_id, TaskTrigger::Retrying, None);
            }
            // Whoever asked something there still waits for the answer.
            Some(TaskStatus::Blocked | TaskStatus::Active) => {}
            Some(TaskStatus::Done | TaskStatus::Failed | TaskStatus::Interrupted) | None => {}
        }
    }

    /// Ends what waits for a slot in a task whose budget is used up.
    pub(crate) fn cap_parked(&mut self) -> bool {
        let now = self.context.now;
        let found = self.state.busy_sessions().find_map(|session| {
            let run_id = *session.queue.first()?;
            let task = self.state.tasks.get(&session.task_id?)?;
            if task.budget.is_unset() {
                return None;
            }
            Some((run_id, admission::budget_used_up(self.state, task, now)?))
        });
        let Some((run_id, reason)) = found else { return false };
        self.finish_run(run_id, rallypoint_model::run::RunOutcome::Capped, reason);
        true
    }
}

fn used_up(task_id: TaskId, reason: &OutcomeReason) -> Refusal {
    Refusal::new(RefusalCode::Limit, reason.words()).with_hint(format!(
        "`rally task override {task_id}` takes the result as it is, or make a new task with a larger budget"
    ))
}

pub(super) fn label_of(session: &Session) -> String {
    session.launch.as_ref().map_or_else(|| session.id.to_string(), |launch| launch.label.clone())
}
