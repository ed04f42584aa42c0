//! Decisions: one command on the state so far, facts out.
//!
//! A decision checks everything that it can refuse before its first fact. Each
//! fact passes the funnel (redaction) and is applied at once, so that the next
//! rule sees it. After a command, [`advance`] draws the conclusions that need
//! no effect (turns of the `rules` planner, admission, prompts), in the same
//! transaction.

mod advance;
mod agent;
mod agent_answer;
pub mod archive;
mod attachments;
mod children;
mod conversation;
mod counting;
mod deadline;
mod delivery;
mod delivery_end;
mod elicitation;
mod files;
mod generation;
mod mail;
mod mid_turn;
mod pause;
mod permission;
mod progress;
mod question;
mod room;
mod route;
mod run_end;
mod session;
mod settings;
mod spawn;
mod steering;
mod stop;
mod task;
mod tools;
mod tree_stop;
pub mod verification;

pub use session::can_go_on;

use rallypoint_model::command::{Command, Outcome};
use rallypoint_model::event::{Aggregate, EVENT_SCHEMA_VERSION, Event, EventRecord, Scope};
use rallypoint_model::ids::{IdSource, MessageId, RoomId, RunId, SessionId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::message::{Message, Speaker};
use rallypoint_model::money::PriceTable;
use rallypoint_model::refusal::Refusal;
use rallypoint_model::routing::RouterSwitch;
use rallypoint_model::run::RunTrigger;
use rallypoint_model::task::{TaskReason, TaskTrigger};
use rallypoint_model::time::Timestamp;
use serde_json::Value;

use crate::apply::apply;
use crate::changes::Changes;
use crate::state::{State, TurnCause};
use crate::{admission, run_machine, task_machine};

/// The one way of text into the journal: takes secrets out of an event.
pub trait Funnel {
    /// The event as it may be stored and shown.
    fn clean(&self, event: Event) -> Event;
}

/// A funnel without secrets.
#[derive(Clone, Copy, Debug)]
pub struct NoSecrets;

impl Funnel for NoSecrets {
    fn clean(&self, event: Event) -> Event {
        event
    }
}

/// Whether the unique keys are looked at. Off only in tests that prove their worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniqueKeys {
    /// As always.
    Enforced,
    /// Fault switch.
    Ignored,
}

/// What a decision is made with.
pub struct Context<'a> {
    /// The time.
    pub now: Timestamp,
    /// New ids.
    pub ids: &'a mut dyn IdSource,
    /// The limits.
    pub limits: &'a Limits,
    /// What models cost.
    pub prices: &'a PriceTable,
    /// The funnel.
    pub funnel: &'a dyn Funnel,
    /// Fault switch.
    pub unique_keys: UniqueKeys,
    /// Whether events of sub-agents reach rooms.
    pub router: RouterSwitch,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Context").field("now", &self.now).finish_non_exhaustive()
    }
}

/// A decision in the making.
pub(crate) struct Deciding<'a, 'c> {
    pub(crate) state: &'a mut State,
    pub(crate) context: &'a mut Context<'c>,
    pub(crate) changes: &'a mut Changes,
}

/// Decides one command and everything that follows from it without an effect.
pub fn decide(
    state: &mut State,
    command: &Command,
    context: &mut Context<'_>,
    changes: &mut Changes,
) -> Result<Outcome, Refusal> {
    let mut deciding = Deciding { state, context, changes };
    let outcome = deciding.command(command)?;
    deciding.advance();
    if let Outcome::Spawned { session_id, run_id, .. } = outcome {
        let position =
            admission::position(deciding.state, deciding.context.limits, deciding.context.now, run_id);
        return Ok(Outcome::Spawned { session_id, run_id, position });
    }
    Ok(outcome)
}

impl Deciding<'_, '_> {
    fn command(&mut self, command: &Command) -> Result<Outcome, Refusal> {
        match command {
            Command::OpenWorld { world_id, main_room_id, user_id, main_agent_id, system_id, clock } => {
                if self.state.world.is_none() {
                    self.emit(
                        Aggregate::World(*world_id),
                        Scope::default(),
                        Event::WorldOpened {
                            world_id: *world_id,
                            main_room_id: *main_room_id,
                            user_id: *user_id,
                            main_agent_id: *main_agent_id,
                            system_id: *system_id,
                            clock: clock.clone(),
                        },
                    );
                    self.emit(
                        Aggregate::Room(*main_room_id),
                        Scope { room_id: Some(*main_room_id), ..Scope::default() },
                        Event::RoomCreated {
                            room_id: *main_room_id,
                            room_kind: rallypoint_model::message::RoomKind::Main,
                            title: "main".to_owned(),
                            conversation: None,
                            idempotency_key: None,
                        },
                    );
                }
                Ok(Outcome::Done)
            }
            Command::CreateRoom(create) => self.create_room(create),
            Command::ResetRoom { room_id, by } => self.reset_room(*room_id, by),
            Command::SayInRoom(say) => self.say_in_room(say),
            Command::SetProgress { room_id, mode, by } => self.set_progress(*room_id, *mode, by),
            Command::ProgressAnswered { task_id, edition, answer } => {
                Ok(self.progress_answered(*task_id, *edition, answer))
            }
            Command::DeliveryAnswered { delivery_id, offer, answer } => {
                Ok(self.delivery_answered(*delivery_id, *offer, answer))
            }
            Command::RetryDelivery { delivery_id, by } => self.retry_delivery(*delivery_id, by),
            Command::DiscardDelivery { delivery_id, by, reason } => {
                self.discard_delivery(*delivery_id, by, reason)
            }
            Command::CreateTask(create) => self.create_task(create),
            Command::SpawnSession(spawn) => self.spawn_session(spawn),
            Command::RaiseEvent { session_id, event } => self.raise_event(*session_id, event),
            Command::AwaitChildren { session_id } => self.await_children(*session_id),
            Command::StopSession { session_id, by } => self.stop_session(*session_id, by),
            Command::StopTask { task_id, by } => self.stop_task(*task_id, by),
            Command::RetryTask { task_id, by, text } => self.retry_task(*task_id, by, text.as_deref()),
            Command::RetryTurn(retry) => self.retry_turn(retry),
            Command::RestartTask(restart) => self.restart_task(restart),
            Command::PauseTask { task_id, by } => self.pause_task(*task_id, by),
            Command::ResumeTask { task_id, by } => self.resume_task(*task_id, by),
            Command::PauseAll { by } => Ok(self.pause_all(by)),
            Command::ResumeAll { by } => Ok(self.resume_all(by)),
            Command::ReopenTask { task_id, by } => self.reopen_task(*task_id, by),
            Command::PatchTask { task_id, change, by } => self.patch_task(*task_id, change, by),
            Command::RevisePlan { task_id, plan, by } => self.revise_plan(*task_id, plan, by),
            Command::MessageTask(message) => self.message_task(message),
            Command::ValidateTask(validate) => self.validate_task(validate),
            Command::CheckAgain { task_id, by } => self.check_again(*task_id, by),
            Command::SendToSession { session_id, text, by } => self.send_to_session(*session_id, text, by),
            Command::ConfigureSession { session_id, wanted, config, by } => {
                self.configure_session(*session_id, wanted, config, by)
            }
            Command::AnswerQuestion { question_id, answer, by } => {
                self.answer_question(*question_id, answer, by)
            }
            Command::AnswerQuestionAsAgent { question_id, answer, agent } => {
                self.answer_as_agent(*question_id, answer, *agent)
            }
            Command::OverrideTask { task_id, passed, by, reason } => {
                self.override_task(*task_id, *passed, by, reason)
            }
            Command::GenerationLaunched { generation_id } => Ok(self.generation_launched(*generation_id)),
            Command::GenerationGone { generation_id, end } => Ok(self.generation_gone(*generation_id, end)),
            Command::AgentReported { generation_id, report } => {
                Ok(self.agent_reported(*generation_id, report))
            }
            Command::GenerationCleaned { generation_id, swept, left } => {
                Ok(self.generation_cleaned(*generation_id, *swept, *left))
            }
            Command::SpoolUnreadable { generation_id, why } => Ok(self.spool_unreadable(*generation_id, why)),
            Command::Verified { task_id, round, evidence } => Ok(self.verified(*task_id, *round, evidence)),
            Command::ArchiveTask { task_id, by } => self.archive_task(*task_id, by),
            Command::UnarchiveTask { task_id, by } => self.unarchive_task(*task_id, by),
            Command::DeleteTask { task_id, mode, by } => self.delete_task(*task_id, *mode, by),
            Command::RemoveResults { keep_ms, at_most } => Ok(self.remove_results(*keep_ms, *at_most)),
            Command::DeleteFailed { path, reason, pause_ms } => {
                Ok(self.delete_failed(path, reason, *pause_ms))
            }
            Command::DeleteSettled { path } => Ok(self.delete_settled(path)),
            Command::ResumeClocks { away_ms } => {
                self.extend_questions(*away_ms);
                self.extend_deliveries(*away_ms);
                Ok(Outcome::Done)
            }
            Command::ShiftClocks { by_ms, anchor } => Ok(self.shift_clocks(*by_ms, anchor.as_ref())),
            Command::ToolsConnected { generation_id, process, client } => {
                self.tools_connected(*generation_id, process, client)
            }
            Command::ToolCalled { generation_id, process, request_id, request } => {
                self.tool_called(*generation_id, process, request_id, request)
            }
            Command::ToolCallCancelled { generation_id, process, request_id } => {
                Ok(self.tool_call_cancelled(*generation_id, process, request_id))
            }
            Command::Tick => {
                self.tick();
                Ok(Outcome::Done)
            }
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.context.now
    }

    /// Makes one fact and applies it.
    pub(crate) fn emit(&mut self, aggregate: Aggregate, scope: Scope, event: Event) {
        let version = self.state.versions.get(&aggregate).copied().unwrap_or(0).saturating_add(1);
        let record = EventRecord {
            seq: 0,
            at: self.context.now,
            aggregate,
            version,
            schema: EVENT_SCHEMA_VERSION,
            cause: None,
            scope,
            event: self.context.funnel.clean(event),
        };
        apply(self.state, &record, self.changes);
        self.changes.events.push(record);
    }

    pub(crate) fn task_scope(&self, task_id: TaskId) -> Scope {
        Scope {
            task_id: Some(task_id),
            room_id: self.state.tasks.get(&task_id).map(|task| task.origin_room_id),
            ..Scope::default()
        }
    }

    pub(crate) fn session_scope(&self, session_id: SessionId) -> Scope {
        let session = self.state.sessions.get(&session_id);
        let task_id = session.and_then(|session| session.task_id);
        let room_id = session.and_then(|session| {
            session.room_id.or_else(|| session.origin.as_ref().map(|origin| origin.origin_room_id))
        });
        Scope { task_id, room_id, session_id: Some(session_id), run_id: None }
    }

    pub(crate) fn run_scope(&self, run_id: RunId) -> Scope {
        match self.state.runs.get(&run_id) {
            Some(run) => Scope { run_id: Some(run_id), ..self.session_scope(run.session_id) },
            None => Scope { run_id: Some(run_id), ..Scope::default() },
        }
    }

    pub(crate) fn run_aggregate(&self, run_id: RunId) -> Option<Aggregate> {
        self.state.runs.get(&run_id).map(|run| Aggregate::Session(run.session_id))
    }

    /// Moves a run through its table; an illegal move is recorded and changes nothing.
    pub(crate) fn move_run(&mut self, run_id: RunId, trigger: RunTrigger) -> bool {
        let (Some(run), Some(aggregate)) = (self.state.runs.get(&run_id), self.run_aggregate(run_id)) else {
            return false;
        };
        let from = run.status;
        let scope = self.run_scope(run_id);
        match run_machine::next(from, trigger) {
            Some(to) => {
                self.emit(aggregate, scope, Event::RunMoved { run_id, from, to, trigger });
                true
            }
            None => {
                self.emit(
                    aggregate,
                    scope,
                    Event::TriggerRefused {
                        machine: "run".to_owned(),
                        state: format!("{from:?}"),
                        trigger: format!("{trigger:?}"),
                    },
                );
                false
            }
        }
    }

    /// Moves a task through its table; an illegal move is recorded and changes nothing.
    pub(crate) fn move_task(
        &mut self,
        task_id: TaskId,
        trigger: TaskTrigger,
        reason: Option<TaskReason>,
    ) -> bool {
        let Some(task) = self.state.tasks.get(&task_id) else {
            return false;
        };
        let from = task.status;
        let scope = self.task_scope(task_id);
        match task_machine::next(from, trigger) {
            Some(to) => {
                self.bring_back(task_id, "the platform");
                self.emit(
                    Aggregate::Task(task_id),
                    scope,
                    Event::TaskStatusChanged { task_id, from, to, trigger, reason },
                );
                true
            }
            None => {
                self.emit(
                    Aggregate::Task(task_id),
                    scope,
                    Event::TriggerRefused {
                        machine: "task".to_owned(),
                        state: from.as_str().to_owned(),
                        trigger: format!("{trigger:?}"),
                    },
                );
                false
            }
        }
    }

    /// Posts a message unless its key was used before.
    pub(crate) fn post(&mut self, mut post: Post) -> Option<MessageId> {
        self.land(&mut post);
        if let Some(key) = &post.delivery_key
            && self.context.unique_keys == UniqueKeys::Enforced
            && self.state.keys.contains_key(key)
        {
            return None;
        }
        let id = MessageId(self.context.ids.next_uuid());
        let mut metadata = post.metadata;
        if let (Some(turn), Some(map)) = (&post.turn, metadata.as_object_mut())
            && let Ok(turn) = serde_json::to_value(turn)
        {
            map.insert("turn".to_owned(), turn);
        }
        let (entity_id, name) = self.voice(&post.speaker);
        let message = Message {
            id,
            room_id: post.room_id,
            entity_id,
            speaker: post.speaker.kind(),
            name,
            text: post.text,
            source: post.source,
            in_reply_to: post.in_reply_to,
            task_id: post.task_id,
            metadata,
            created_at: self.context.now,
            incarnation: self.state.rooms.get(&post.room_id).map_or(1, |room| room.incarnation),
        };
        let scope = Scope { task_id: post.task_id, room_id: Some(post.room_id), ..Scope::default() };
        self.emit(
            Aggregate::Room(post.room_id),
            scope,
            Event::MessagePosted { message, delivery_key: post.delivery_key },
        );
        if let Voice::MainAgent = post.speaker
            && let Some(Event::MessagePosted { message, .. }) =
                self.changes.events.last().map(|record| record.event.clone())
        {
            self.queue_for_conversation(&message);
        }
        Some(id)
    }

    fn voice(&self, voice: &Voice) -> (rallypoint_model::ids::EntityId, String) {
        let nil = rallypoint_model::ids::EntityId(uuid::Uuid::nil());
        let world = self.state.world.as_ref();
        match voice {
            Voice::User(name) => (world.map_or(nil, |world| world.user_id), name.clone()),
            Voice::MainAgent => (world.map_or(nil, |world| world.main_agent_id), "main".to_owned()),
            Voice::System => (world.map_or(nil, |world| world.system_id), "system".to_owned()),
            Voice::SubAgent(session_id) => {
                let session = self.state.sessions.get(session_id);
                let name = session
                    .and_then(|session| session.launch.as_ref())
                    .map_or_else(|| session_id.to_string(), |launch| launch.label.clone());
                (session.map_or(nil, |session| session.entity_id), name)
            }
        }
    }
}

/// Who speaks.
#[derive(Clone, Debug)]
pub(crate) enum Voice {
    /// A person by name.
    User(String),
    /// The main agent.
    MainAgent,
    /// The platform.
    System,
    /// A sub-agent under its own identity.
    SubAgent(SessionId),
}

impl Voice {
    fn kind(&self) -> Speaker {
        match self {
            Self::User(_) => Speaker::User,
            Self::MainAgent => Speaker::MainAgent,
            Self::System => Speaker::System,
            Self::SubAgent(_) => Speaker::SubAgent,
        }
    }
}

/// A message to be posted.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) room_id: RoomId,
    pub(crate) speaker: Voice,
    pub(crate) text: String,
    pub(crate) source: String,
    pub(crate) in_reply_to: Option<MessageId>,
    pub(crate) task_id: Option<TaskId>,
    pub(crate) metadata: Value,
    pub(crate) delivery_key: Option<String>,
    pub(crate) turn: Option<TurnCause>,
}
