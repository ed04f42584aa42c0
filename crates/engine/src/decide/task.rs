//! Making, retrying and overriding tasks.

use rallypoint_model::command::{Acceptance, AgentLaunch, CreateTask, Outcome};
use rallypoint_model::event::{Aggregate, Event, Scope};
use rallypoint_model::ids::{CriterionId, TaskId};
use rallypoint_model::progress::ProgressModeSet;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::run::RunPurpose;
use rallypoint_model::steering::NewPlan;
use rallypoint_model::task::{Criterion, CriterionCheck, TaskReason, TaskStatus, TaskTrigger};
use serde_json::json;

use super::{Deciding, Post, UniqueKeys, Voice};
use crate::apply::task_key;
use crate::permission::holding::hold;
use crate::prompt::{FollowUp, FollowUpReason, follow_up};
use crate::state::{KeyedFact, TurnCause};

fn request_metadata(task_id: TaskId, platform_message_id: Option<&str>) -> serde_json::Value {
    match platform_message_id {
        Some(id) => json!({ "taskId": task_id, "platformMessageId": id }),
        None => json!({ "taskId": task_id }),
    }
}

impl Deciding<'_, '_> {
    pub(crate) fn create_task(&mut self, create: &CreateTask) -> Result<Outcome, Refusal> {
        if let Some(known) = self.known_task(create)? {
            return Ok(Outcome::Task { task_id: known });
        }
        if self.state.tasks.contains_key(&create.task_id) {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("the task `{}` was made before", create.task_id),
            )
            .with_hint("use a new id for a new task"));
        }
        let room_id = self.checked_room(create)?;
        let plan = self.plan_of_source(create)?;
        self.check_worktree_room(create)?;
        for (index, launch) in create.agents.iter().enumerate() {
            self.check_nickname(None, None, launch)?;
            let same = create.agents.iter().take(index).any(|other| other.label == launch.label);
            if launch.conversation.is_some() && same {
                let message = format!("the name `{}` is given to two sub-agents", launch.label);
                return Err(Refusal::new(RefusalCode::Conflict, message)
                    .with_hint("give each of them a name of its own"));
            }
        }
        self.check_limits(create)?;
        let agents: Result<Vec<AgentLaunch>, Refusal> =
            create.agents.iter().map(|launch| hold(launch, None)).collect();
        let agents = agents?;
        let mut criteria = create.criteria.clone();
        if criteria.is_empty() && create.acceptance == Acceptance::Checked {
            let text = "accept this result".to_owned();
            criteria.push(Criterion {
                id: CriterionId(self.context.ids.next_uuid()),
                text: text.clone(),
                check: CriterionCheck::Human { text },
            });
        }
        let task_id = create.task_id;
        let attachments = self.store_attachments(create);
        let deadline_at = (create.timeout_ms > 0).then(|| self.now().plus(create.timeout_ms));
        let scope = Scope { task_id: Some(task_id), room_id: Some(room_id), ..Scope::default() };
        self.emit(
            Aggregate::Task(task_id),
            scope,
            Event::TaskCreated {
                task_id,
                idempotency_key: create.idempotency_key.clone(),
                title: create.title.clone(),
                goal: create.goal.clone(),
                origin_room_id: room_id,
                worktree_room_id: create.worktree_room_id,
                cwd: create.cwd.clone(),
                criteria,
                acceptance: create.acceptance,
                deadline_at,
                timeout_ms: create.timeout_ms,
                agents,
                requested_by: create.requested_by.clone(),
                source: create.source.clone(),
                corrective_rounds: self.context.limits.corrective_rounds,
                priority: create.priority,
                budget: create.budget,
                platform_message_id: create.platform_message_id.clone(),
                attachments,
                forked_from: create.forked_from,
            },
        );
        if let Some(plan) = plan {
            self.add_plan(task_id, &plan, &create.requested_by);
        }
        if let Some(mode) = create.progress {
            let by = create.requested_by.clone();
            let set = ProgressModeSet { room_id, task_id: Some(task_id), mode, by };
            self.emit(Aggregate::Task(task_id), self.task_scope(task_id), Event::ProgressModeSet(set));
        }
        self.post(Post {
            room_id,
            speaker: Voice::User(create.requested_by.clone()),
            text: create.goal.clone(),
            source: create.source.clone(),
            in_reply_to: None,
            task_id: Some(task_id),
            metadata: request_metadata(task_id, create.platform_message_id.as_deref()),
            delivery_key: create.idempotency_key.as_ref().map(|key| format!("request|{key}")),
            turn: Some(TurnCause::TaskRequested),
        });
        Ok(Outcome::Task { task_id })
    }

    /// The plan that a fork takes along. It is there before the first prompt.
    fn plan_of_source(&self, create: &CreateTask) -> Result<Option<NewPlan>, Refusal> {
        let Some(source) = &create.forked_from else { return Ok(None) };
        let task = self.kept_task(source.task_id)?;
        let revision = source.plan_revision_id.and_then(|id| task.plan_of(id));
        Ok(revision.map(|revision| NewPlan {
            value: revision.value.clone(),
            base_id: None,
            summary: revision.summary.clone(),
        }))
    }

    /// The task that this key made before.
    fn known_task(&self, create: &CreateTask) -> Result<Option<TaskId>, Refusal> {
        if self.context.unique_keys == UniqueKeys::Ignored {
            return Ok(None);
        }
        let Some(key) = &create.idempotency_key else {
            return Ok(None);
        };
        match self.state.keys.get(&task_key(key)) {
            Some(KeyedFact::Task { id }) => {
                let same = self.state.tasks.get(id).is_none_or(|task| task.goal == create.goal);
                if same {
                    Ok(Some(*id))
                } else {
                    Err(Refusal::new(
                        RefusalCode::KeyReused,
                        format!("the key `{key}` was used before for another goal"),
                    )
                    .with_hint("use a new key for a new task"))
                }
            }
            Some(
                KeyedFact::Message { .. }
                | KeyedFact::Session { .. }
                | KeyedFact::Run { .. }
                | KeyedFact::Room { .. }
                | KeyedFact::Delivery { .. },
            ) => Err(Refusal::new(
                RefusalCode::KeyReused,
                format!("the key `{key}` was used before for something else"),
            )
            .with_hint("use a new key for a new task")),
            None => Ok(None),
        }
    }

    fn checked_room(&self, create: &CreateTask) -> Result<rallypoint_model::ids::RoomId, Refusal> {
        if create.goal.trim().is_empty() {
            return Err(Refusal::new(RefusalCode::Invalid, "the goal is empty")
                .with_hint("say what is to be reached"));
        }
        if create.agents.is_empty() {
            return Err(Refusal::new(RefusalCode::Invalid, "no agent is named for the task"));
        }
        let main = self.state.world.as_ref().map(|world| world.main_room_id);
        let room_id = create
            .room_id
            .or(main)
            .ok_or_else(|| Refusal::new(RefusalCode::Internal, "the store has no world yet"))?;
        if self.state.rooms.contains_key(&room_id) {
            Ok(room_id)
        } else {
            Err(Refusal::not_found("room", room_id).with_hint("`rally room list` shows the rooms there are"))
        }
    }

    fn check_limits(&self, create: &CreateTask) -> Result<(), Refusal> {
        let limits = self.context.limits;
        if create.budget.tokens == Some(0)
            || create.budget.active_ms.is_some_and(|limit| limit <= 0)
            || create.budget.cost.is_some_and(|limit| limit.micros == 0)
        {
            return Err(Refusal::new(RefusalCode::Invalid, "a budget of nothing lets nothing run")
                .with_hint("leave it out for no limit"));
        }
        if create.agents.len() > limits.children_per_parent as usize {
            return Err(Refusal::new(
                RefusalCode::Limit,
                format!(
                    "the task asks for {} sub-agents, the limit `childrenPerParent` is {}",
                    create.agents.len(),
                    limits.children_per_parent
                ),
            )
            .with_hint("name fewer agents, or raise the limit in the configuration"));
        }
        let waiting = self.state.busy_sessions().filter(|session| !session.queue.is_empty()).count();
        if waiting.saturating_add(create.agents.len()) > limits.queue_depth as usize {
            return Err(Refusal {
                code: RefusalCode::Limit,
                message: format!(
                    "{waiting} runs wait already, the limit `queueDepth` is {}",
                    limits.queue_depth
                ),
                hint: Some("try again when some have started".to_owned()),
                retryable: true,
            });
        }
        Ok(())
    }

    pub(crate) fn retry_task(
        &mut self,
        task_id: TaskId,
        by: &str,
        text: Option<&str>,
    ) -> Result<Outcome, Refusal> {
        let task = self.kept_task(task_id)?;
        Self::check_not_paused(task)?;
        if self.state.task_has_open_run(task) {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("the task is `{}` and a sub-agent still works on it", task.status.as_str()),
            )
            .with_hint("answer what it asks, or stop the task first"));
        }
        self.check_budget(task)?;
        let trigger = match task.status {
            TaskStatus::WaitingOnUser | TaskStatus::Blocked => TaskTrigger::Retrying,
            TaskStatus::Interrupted | TaskStatus::Done | TaskStatus::Failed => TaskTrigger::Restarted,
            TaskStatus::Open | TaskStatus::Active | TaskStatus::Validating => {
                return Err(Refusal::new(
                    RefusalCode::Conflict,
                    format!("the task is `{}` and works already", task.status.as_str()),
                )
                .with_hint("`rally task send` says something to a sub-agent that works"));
            }
        };
        let session_id = task
            .last_completed_run
            .or_else(|| task.runs.last().copied())
            .and_then(|run| self.state.runs.get(&run))
            .map(|run| run.session_id)
            .or_else(|| task.sessions.last().copied())
            .ok_or_else(|| Refusal::new(RefusalCode::Conflict, "the task never had a session"))?;
        self.withdraw_questions(task_id, by, |_| true);
        self.move_task(task_id, trigger, None);
        let session_id = if self.session_can_go_on(session_id) {
            let message = text.unwrap_or("Continue, or report how far it got and what keeps you from it.");
            let reason = if text.is_some() { FollowUpReason::UserMessage } else { FollowUpReason::Resume };
            self.queue_follow_up(session_id, RunPurpose::FollowUp, reason, message, None);
            session_id
        } else {
            // The conversation is gone; a person asks for the goal to be run again.
            self.queue_goal_again(session_id, text)
        };
        Ok(Outcome::Queued { session_id })
    }

    pub(crate) fn override_task(
        &mut self,
        task_id: TaskId,
        passed: bool,
        by: &str,
        reason: &str,
    ) -> Result<Outcome, Refusal> {
        let task = self.kept_task(task_id)?;
        if by.trim().is_empty() || reason.trim().is_empty() {
            return Err(Refusal::new(RefusalCode::Invalid, "an override needs a name and a reason"));
        }
        if task.status.is_terminal() {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("the task has ended as `{}` and can't be overridden", task.status.as_str()),
            ));
        }
        if self.state.task_has_open_run(task) {
            return Err(Refusal::new(RefusalCode::Conflict, "a sub-agent still works on the task")
                .with_hint("stop the task first, or wait for its end"));
        }
        self.withdraw_questions(task_id, by, |_| true);
        let scope = self.task_scope(task_id);
        self.emit(
            Aggregate::Task(task_id),
            scope,
            Event::TaskOverridden { task_id, passed, by: by.to_owned(), reason: reason.to_owned() },
        );
        if passed {
            self.move_task(task_id, TaskTrigger::HumanOverridePassed, Some(TaskReason::Overridden));
            self.tell_task(task_id, &format!("{by} accepts the result: {reason}"), TurnCause::Moved);
        } else {
            let session_id = self.state.tasks.get(&task_id).and_then(|task| task.sessions.last().copied());
            self.move_task(task_id, TaskTrigger::HumanOverrideFailed, None);
            match session_id {
                Some(session_id) if self.session_can_go_on(session_id) => {
                    self.queue_follow_up(
                        session_id,
                        RunPurpose::FollowUp,
                        FollowUpReason::ValidationFailed,
                        &format!("{by} rejects the result: {reason}"),
                        None,
                    );
                }
                _ => {
                    self.move_task(task_id, TaskTrigger::AwaitingUser, Some(TaskReason::Cut));
                    self.tell_task(
                        task_id,
                        &format!("{by} rejects the result: {reason}. The session is gone; `rally task retry` starts anew."),
                        TurnCause::Moved,
                    );
                }
            }
        }
        Ok(Outcome::Done)
    }

    /// Name of the sub-agent that a run belongs to.
    pub(crate) fn label_of(&self, run_id: rallypoint_model::ids::RunId) -> String {
        let session = self.state.runs.get(&run_id).and_then(|run| self.state.sessions.get(&run.session_id));
        session
            .and_then(|session| session.launch.as_ref())
            .map(|launch| launch.label.clone())
            .unwrap_or_default()
    }

    /// A system entry of a task in its room, which nobody has to look at now.
    pub(crate) fn tell_task_quietly(&mut self, task_id: TaskId, text: &str) {
        self.tell(task_id, text, None);
    }

    /// A system entry of a task in its room.
    pub(crate) fn tell_task(&mut self, task_id: TaskId, text: &str, turn: TurnCause) {
        self.tell(task_id, text, Some(turn));
    }

    fn tell(&mut self, task_id: TaskId, text: &str, turn: Option<TurnCause>) {
        let Some(task) = self.state.tasks.get(&task_id) else {
            return;
        };
        let post = Post {
            room_id: task.origin_room_id,
            speaker: Voice::System,
            text: text.to_owned(),
            source: "system".to_owned(),
            in_reply_to: task.origin_message_id,
            task_id: Some(task_id),
            metadata: json!({ "taskId": task_id }),
            delivery_key: None,
            turn,
        };
        self.post(post);
    }

    /// Texts of a task's criteria, for prompts.
    pub(crate) fn criteria_texts(&self, task_id: TaskId) -> Vec<String> {
        self.state
            .tasks
            .get(&task_id)
            .map(|task| task.criteria.iter().map(|criterion| criterion.text.clone()).collect())
            .unwrap_or_default()
    }

    /// Queues something to be said to a session that already works.
    pub(crate) fn queue_follow_up(
        &mut self,
        session_id: rallypoint_model::ids::SessionId,
        purpose: RunPurpose,
        reason: FollowUpReason,
        message: &str,
        evidence: Option<&str>,
    ) {
        self.queue_follow_up_once(session_id, purpose, reason, message, evidence, None);
    }

    /// The same with the unique key of what it brings.
    pub(crate) fn queue_follow_up_once(
        &mut self,
        session_id: rallypoint_model::ids::SessionId,
        purpose: RunPurpose,
        reason: FollowUpReason,
        message: &str,
        evidence: Option<&str>,
        delivery_key: Option<String>,
    ) -> Option<rallypoint_model::ids::RunId> {
        let session = self.state.sessions.get(&session_id)?;
        let (task_id, origin) = (session.task_id?, session.origin.clone()?);
        let goal = self.state.tasks.get(&task_id).map(|task| task.goal.clone()).unwrap_or_default();
        let blocks = follow_up(&FollowUp {
            reason,
            goal: &goal,
            criteria: &self.criteria_texts(task_id),
            task_room: origin.task_room_id,
            worktree_room: origin.worktree_room_id,
            message,
            evidence,
        });
        Some(self.queue_run_once(session_id, purpose, blocks, None, delivery_key))
    }
}
