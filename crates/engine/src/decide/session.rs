//! Sessions and the runs that are given to them.

use rallypoint_model::agent_io::PromptBlock;
use rallypoint_model::command::{AgentLaunch, Outcome};
use rallypoint_model::event::{Aggregate, Event, Scope};
use rallypoint_model::ids::{MessageId, RoomId, RunId, SessionId, TaskId};
use rallypoint_model::question::QuestionKind;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::routing::{RoomRole, SwarmRoom};
use rallypoint_model::run::RunPurpose;
use rallypoint_model::session::{FrozenOrigin, GenerationStatus, SessionKind};
use rallypoint_model::steering::PlanRevision;
use rallypoint_model::task::{TaskStatus, TaskTrigger};

use super::Deciding;
use crate::prompt::{FollowUpReason, GoalPrompt, goal_prompt};
use crate::router::sub_agent_entity;
use crate::state::{Session, State};

/// How an earlier conversation is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restoring {
    /// Without its history.
    Resume,
    /// With its history repeated.
    Load,
}

/// The way that the agent says it knows and its profile trusts; the one without history first, since what is repeated
/// was told long ago.
pub(crate) fn way_to_restore(session: &Session) -> Option<Restoring> {
    let launch = session.launch.as_ref()?;
    if session.can_resume && launch.trusts_resume {
        return Some(Restoring::Resume);
    }
    (session.can_load && launch.trusts_load).then_some(Restoring::Load)
}

/// A plan as it stands in a prompt.
pub(crate) fn plan_text(plan: &PlanRevision) -> String {
    serde_json::to_string_pretty(&plan.value).unwrap_or_default()
}

/// Whether what is said to a session goes on in the same conversation: its process is there, or another can open it again.
pub fn can_go_on(state: &State, session_id: SessionId) -> bool {
    let Some(session) = state.sessions.get(&session_id) else { return false };
    if session.stopped || session.capped {
        return false;
    }
    match session.generation_id.and_then(|id| state.generations.get(&id)) {
        Some(generation) if generation.status == GenerationStatus::Ready => true,
        Some(generation) => generation.status == GenerationStatus::Stopping && restorable(session),
        None => restorable(session),
    }
}

fn restorable(session: &Session) -> bool {
    session.agent_session_id.is_some() && !session.stopped && way_to_restore(session).is_some()
}

impl Deciding<'_, '_> {
    /// Starts the sub-agent that a task asks for at this place.
    pub(crate) fn spawn_agent(&mut self, task_id: TaskId, index: u32) -> Result<SessionId, String> {
        let Some(task) = self.state.tasks.get(&task_id) else {
            return Err("the task is gone".to_owned());
        };
        let Some(launch) = task.agents.get(index as usize).cloned() else {
            return Err(format!("the task asks for no sub-agent number {index}"));
        };
        let session_id = self.open_session(task_id, launch, None, None)?;
        self.queue_goal(session_id, None);
        if self.state.tasks.get(&task_id).is_some_and(|task| task.status == TaskStatus::Open) {
            self.move_task(task_id, TaskTrigger::SessionActive, None);
        }
        Ok(session_id)
    }

    /// Makes a session of a task. Its origin is frozen here; a child has its parent's.
    pub(crate) fn open_session(
        &mut self,
        task_id: TaskId,
        launch: AgentLaunch,
        parent_session_id: Option<SessionId>,
        idempotency_key: Option<String>,
    ) -> Result<SessionId, String> {
        let Some(task) = self.state.tasks.get(&task_id) else {
            return Err("the task is gone".to_owned());
        };
        let Some(world) = self.state.world.clone() else {
            return Err("there is no world".to_owned());
        };
        let Some(message_id) = task.origin_message_id else {
            return Err("the task has no message to answer".to_owned());
        };
        let room_id = task.origin_room_id;
        let parent = parent_session_id.and_then(|id| self.state.sessions.get(&id));
        let depth = parent.map_or(0, |parent| parent.depth).saturating_add(1);
        let inherited = parent.and_then(|parent| parent.origin.clone());
        let mut origin = inherited.unwrap_or_else(|| {
            let worktree_room_id = task.worktree_room_id;
            let worktree = worktree_room_id.map(|room_id| (room_id, RoomRole::Worktree));
            let rooms = std::iter::once((room_id, RoomRole::Task)).chain(worktree);
            FrozenOrigin {
                origin_room_id: room_id,
                task_room_id: room_id,
                worktree_room_id,
                room_id: Some(room_id),
                swarm_rooms: rooms.map(|(room_id, role)| SwarmRoom { room_id, roles: vec![role] }).collect(),
                world_id: Some(world.id),
                label: String::new(),
                // That of the request, whatever became of the room since.
                incarnation: task.room_incarnation,
                message_id,
                user_id: world.user_id,
                source: task.source.clone(),
                conversation: task.conversation.clone(),
                platform_message_id: task.platform_message_id.clone(),
            }
        });
        origin.label.clone_from(&launch.label);
        let room_id = origin.origin_room_id;
        let session_id = SessionId(self.context.ids.next_uuid());
        let entity_id = sub_agent_entity(&world.main_agent_id.to_string(), session_id);
        self.emit(
            Aggregate::Session(session_id),
            Scope {
                task_id: Some(task_id),
                room_id: Some(room_id),
                session_id: Some(session_id),
                run_id: None,
            },
            Event::SessionCreated {
                session_id,
                session_key: format!("agent:{}:subagent:{session_id}", launch.agent_id),
                session_kind: SessionKind::SubAgent,
                task_id: Some(task_id),
                room_id: None,
                entity_id,
                launch: Some(launch),
                origin: Some(origin),
                parent_session_id,
                depth,
                idempotency_key,
            },
        );
        Ok(session_id)
    }

    /// The goal again, in a new conversation, because a person asked for it. A
    /// session over its cap can tell its room nothing more, and a stopped one
    /// stays stopped, so another takes over.
    pub(crate) fn queue_goal_again(&mut self, session_id: SessionId, extra: Option<&str>) -> SessionId {
        let session = self.state.sessions.get(&session_id);
        let over = session
            .filter(|session| session.capped || session.stopped)
            .and_then(|session| Some((session.task_id?, session.launch.clone()?)));
        let session_id = match over {
            Some((task_id, launch)) => self.open_session(task_id, launch, None, None).unwrap_or(session_id),
            None => session_id,
        };
        self.queue_goal(session_id, extra);
        session_id
    }

    /// The first prompt of a conversation, with what a person adds to it.
    pub(crate) fn queue_goal(&mut self, session_id: SessionId, extra: Option<&str>) -> Option<RunId> {
        self.queue_goal_after(session_id, extra, None)
    }

    /// The same for one that goes on from what was said and done before.
    pub(crate) fn queue_goal_after(
        &mut self,
        session_id: SessionId,
        extra: Option<&str>,
        earlier: Option<&str>,
    ) -> Option<RunId> {
        let session = self.state.sessions.get(&session_id)?;
        let (task_id, origin, launch) = (session.task_id?, session.origin.clone()?, session.launch.clone()?);
        let task = self.state.tasks.get(&task_id)?;
        let task_text = match (extra, &launch.task) {
            (Some(extra), Some(task)) => Some(format!("{task}\n\n{extra}")),
            (Some(extra), None) => Some(format!("{}\n\n{extra}", task.goal)),
            (None, task) => task.clone(),
        };
        let (goal, cwd) = (task.goal.clone(), task.cwd.clone());
        let plan = task.plan().map(plan_text);
        let blocks = goal_prompt(&GoalPrompt {
            agent_name: &launch.label,
            goal: &goal,
            task: task_text.as_deref(),
            criteria: &self.criteria_texts(task_id),
            task_room: origin.task_room_id,
            worktree_room: origin.worktree_room_id,
            workdir: &cwd,
            plan: plan.as_deref(),
            earlier,
        });
        Some(self.queue_run(session_id, RunPurpose::Goal, blocks, None))
    }

    /// Accepts a run. The blocks come from the prompt builders, or are empty for a turn.
    pub(crate) fn queue_run(
        &mut self,
        session_id: SessionId,
        purpose: RunPurpose,
        blocks: Vec<PromptBlock>,
        trigger_message_id: Option<MessageId>,
    ) -> RunId {
        self.queue_run_once(session_id, purpose, blocks, trigger_message_id, None)
    }

    /// The same with the unique key of what it brings.
    pub(crate) fn queue_run_once(
        &mut self,
        session_id: SessionId,
        purpose: RunPurpose,
        blocks: Vec<PromptBlock>,
        trigger_message_id: Option<MessageId>,
        delivery_key: Option<String>,
    ) -> RunId {
        let run_id = RunId(self.context.ids.next_uuid());
        let session = self.state.sessions.get(&session_id);
        let predecessor = session
            .and_then(|session| session.queue.last().copied().or(session.open_run).or(session.last_run));
        let scope = Scope { run_id: Some(run_id), ..self.session_scope(session_id) };
        self.emit(
            Aggregate::Session(session_id),
            scope,
            Event::RunQueued {
                run_id,
                session_id,
                predecessor,
                purpose,
                blocks,
                trigger_message_id,
                delivery_key,
            },
        );
        run_id
    }

    /// The room's own session, made at its main agent's first turn.
    pub(crate) fn room_session(&mut self, room_id: RoomId) -> Option<SessionId> {
        let room = self.state.rooms.get(&room_id)?;
        if let Some(session_id) = room.session_id {
            return Some(session_id);
        }
        let entity_id = self.state.world.as_ref()?.main_agent_id;
        let session_key = match room.incarnation {
            1 => format!("agent:main:room:{room_id}"),
            later => format!("agent:main:room:{room_id}:{later}"),
        };
        let session_id = SessionId(self.context.ids.next_uuid());
        self.emit(
            Aggregate::Session(session_id),
            Scope { room_id: Some(room_id), session_id: Some(session_id), ..Scope::default() },
            Event::SessionCreated {
                session_id,
                session_key,
                session_kind: SessionKind::Room,
                task_id: None,
                room_id: Some(room_id),
                entity_id,
                launch: None,
                origin: None,
                parent_session_id: None,
                depth: 0,
                idempotency_key: None,
            },
        );
        Some(session_id)
    }

    /// Whether something can be said to this session in the conversation it has.
    pub(crate) fn session_can_go_on(&self, session_id: SessionId) -> bool {
        can_go_on(self.state, session_id)
    }

    /// Whether its agent can be trusted to open this conversation again in a new process.
    pub(crate) fn can_be_restored(&self, session_id: SessionId) -> bool {
        self.state.sessions.get(&session_id).is_some_and(restorable)
    }

    pub(crate) fn send_to_session(
        &mut self,
        session_id: SessionId,
        text: &str,
        by: &str,
    ) -> Result<Outcome, Refusal> {
        let session =
            self.state.sessions.get(&session_id).ok_or_else(|| Refusal::not_found("session", session_id))?;
        let Some(task_id) = session.task_id else {
            return Err(Refusal::new(RefusalCode::Invalid, "a room's own session takes no messages"));
        };
        if text.trim().is_empty() {
            return Err(Refusal::new(RefusalCode::Invalid, "the message is empty"));
        }
        let over = self
            .state
            .tasks
            .get(&task_id)
            .is_none_or(|task| task.status.is_terminal() || task.status == TaskStatus::Interrupted);
        let idle = session.open_run.is_none() && session.queue.is_empty();
        if over || idle && !self.session_can_go_on(session_id) {
            return Err(Refusal::new(RefusalCode::Conflict, format!("the session `{session_id}` has ended"))
                .with_hint(format!("`rally task retry {task_id}` gives the task another run")));
        }
        if let Some(task) = self.state.tasks.get(&task_id) {
            self.check_budget(task)?;
        }
        self.resume_task_for(task_id, session_id, by);
        self.queue_follow_up(session_id, RunPurpose::FollowUp, FollowUpReason::UserMessage, text, None);
        Ok(Outcome::Queued { session_id })
    }

    /// A task that waits goes on, because something is said to its session.
    pub(crate) fn resume_task_for(&mut self, task_id: TaskId, session_id: SessionId, by: &str) {
        // An agent that waits for a permission still needs its answer, so that question stays.
        self.withdraw_questions(task_id, by, |question| match &question.question {
            // One who fills in a form answers the agent itself, which still waits.
            QuestionKind::Ask { form, .. } => form.is_none() && question.session_id == Some(session_id),
            QuestionKind::Acceptance { .. } => true,
            QuestionKind::Approval { .. } => false,
        });
        if self.state.tasks.get(&task_id).is_some_and(|task| task.status == TaskStatus::Validating) {
            // What was to be checked changes again.
            self.move_task(task_id, TaskTrigger::Retrying, None);
        } else {
            self.unblock_task(task_id);
        }
    }
}
