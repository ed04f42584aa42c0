//! Facts onto state. The only code that changes [`State`] by journalled events.
//!
//! Total: an event that refers to something unknown changes nothing, since a
//! journal must always replay.

mod archive;
mod clock;
mod delivery;
mod generation;
mod mid_turn;
mod native;
mod progress;
mod room;
mod run;
mod steering;
mod task;
mod tools;

use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::message::{Message, Speaker};
use rallypoint_model::question::QuestionStatus;
use rallypoint_model::session::SpoolCursor;
use rallypoint_model::time::Timestamp;

use crate::changes::{Changes, RowRef};
use crate::state::{KeyedFact, MailboxItem, Question, State, TurnCause, World};

pub(crate) use clock::is_anything_open;
pub use generation::hear;
pub(crate) use room::room_key;
pub(crate) use run::spawn_key;
pub(crate) use task::task_key;

/// Applies one fact.
pub fn apply(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    apply_event(state, record, changes);
    for row in std::mem::take(&mut changes.unindexed) {
        state.index(row);
    }
}

fn apply_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    state.versions.insert(record.aggregate, record.version);
    changes.versions.insert(record.aggregate);
    let at = record.at;
    if let Some(task_id) = record.scope.task_id
        && let Some(task) = state.tasks.get_mut(&task_id)
    {
        task.updated_at = at;
        changes.touch(RowRef::Task(task_id));
    }
    match &record.event {
        Event::WorldOpened { world_id, main_room_id, user_id, main_agent_id, system_id, clock } => {
            state.world = Some(World {
                id: *world_id,
                main_room_id: *main_room_id,
                user_id: *user_id,
                main_agent_id: *main_agent_id,
                system_id: *system_id,
                clock: clock.clone(),
            });
            changes.touch(RowRef::World);
        }
        Event::RoomCreated { .. } | Event::RoomReset { .. } => room::room_event(state, record, changes),
        Event::DeliveryQueued(_) | Event::DeliveryMoved(_) | Event::DeliveryExtended { .. } => {
            delivery::delivery_event(state, record, changes);
        }
        Event::ProgressModeSet(_) | Event::ProgressOffered(_) | Event::ProgressSettled(_) => {
            progress::progress_event(state, record, changes);
        }
        Event::MidTurnMoved(_) => mid_turn::mid_turn_event(state, record, changes),
        Event::ResultRerouted { .. } => {}
        Event::MessagePosted { message, delivery_key } => {
            message_posted(state, message, delivery_key.as_deref(), changes);
        }
        Event::TriggerRefused { .. } | Event::PermissionDecided { .. } => {}
        Event::QuestionOpened {
            question_id,
            question,
            task_id,
            run_id,
            session_id,
            request_id,
            deadline_at,
        } => {
            let generation_id = run_id.and_then(|id| state.runs.get(&id)).and_then(|run| run.generation_id);
            state.questions.insert(
                *question_id,
                Question {
                    id: *question_id,
                    question: question.clone(),
                    status: QuestionStatus::Open,
                    task_id: *task_id,
                    run_id: *run_id,
                    session_id: *session_id,
                    request_id: request_id.clone(),
                    generation_id: generation_id.filter(|_| request_id.is_some()),
                    opened_at: at,
                    deadline_at: *deadline_at,
                    answer: None,
                    closed_by: None,
                    closed_at: None,
                },
            );
            changes.touch(RowRef::Question(*question_id));
        }
        Event::ClockShifted { by_ms, anchor } => {
            clock::shift(state, *by_ms, changes);
            if let (Some(world), Some(anchor)) = (&mut state.world, anchor) {
                world.clock = Some(anchor.clone());
                changes.touch(RowRef::World);
            }
        }
        Event::QuestionExtended { question_id, deadline_at } => {
            if let Some(question) = state.questions.get_mut(question_id) {
                question.deadline_at = *deadline_at;
                changes.touch(RowRef::Question(*question_id));
            }
        }
        Event::QuestionClosed { question_id, status, answer, by } => {
            if let Some(question) = state.questions.get_mut(question_id) {
                question.status = *status;
                question.answer = answer.clone();
                question.closed_by = Some(by.clone());
                question.closed_at = Some(at);
                changes.touch(RowRef::Question(*question_id));
            }
        }
        Event::TaskCreated { .. }
        | Event::TaskStatusChanged { .. }
        | Event::TaskVerified { .. }
        | Event::TaskStopRequested { .. }
        | Event::TreeStopRequested { .. }
        | Event::TreeStopped { .. }
        | Event::TaskOverridden { .. } => task::task_event(state, record, changes),
        Event::TaskPaused(_)
        | Event::TaskResumed(_)
        | Event::TaskReopened(_)
        | Event::TaskPatched(_)
        | Event::TaskPlanRevised(_)
        | Event::TaskRestarted(_) => steering::steering_event(state, record, changes),
        Event::TaskArchived { .. }
        | Event::TaskUnarchived { .. }
        | Event::TaskDeleted { .. }
        | Event::TaskResultsRemoved { .. } => archive::archive_event(state, record, changes),
        Event::SessionCreated { .. }
        | Event::SessionEventKept { .. }
        | Event::SessionMailReceived { .. }
        | Event::SessionMailTaken { .. }
        | Event::RunQueued { .. }
        | Event::RunMoved { .. }
        | Event::RunAnswered { .. }
        | Event::RunCounted { .. }
        | Event::RunUsed { .. }
        | Event::RunCancelRequested { .. }
        | Event::RunSuspected { .. }
        | Event::RunReassured { .. }
        | Event::RunEnded { .. }
        | Event::TurnPlanned { .. }
        | Event::TurnActionDone { .. } => run::run_event(state, record, changes),
        Event::SessionOffered { .. } | Event::SessionConfigured { .. } => {
            native::session_event(state, record, changes);
        }
        Event::GenerationToolsConnected { .. }
        | Event::SessionToolCalled { .. }
        | Event::SessionToolAnswered { .. } => tools::tool_event(state, record, changes),
        Event::GenerationStarted { .. }
        | Event::GenerationMoved { .. }
        | Event::GenerationInitialized { .. }
        | Event::GenerationLoadFailed { .. }
        | Event::GenerationOpened { .. }
        | Event::GenerationInput { .. }
        | Event::GenerationInputAccepted { .. }
        | Event::GenerationOptionSet { .. }
        | Event::GenerationNoted { .. }
        | Event::GenerationEnded { .. }
        | Event::GenerationCleaned { .. }
        | Event::AgentOutput { .. } => generation::generation_event(state, record, changes),
    }
}

/// Moves a cursor: operational, so no fact of the journal.
pub fn apply_cursor(
    state: &mut State,
    generation_id: rallypoint_model::ids::GenerationId,
    cursor: SpoolCursor,
    now: Timestamp,
    changes: &mut Changes,
) {
    if let Some(generation) = state.generations.get_mut(&generation_id) {
        if cursor != generation.cursor {
            generation.cursor = cursor;
            changes.cursors.insert(generation_id);
        }
        generation.last_report_at = now;
    }
}

fn message_posted(state: &mut State, message: &Message, delivery_key: Option<&str>, changes: &mut Changes) {
    if let Some(key) = delivery_key {
        state.keys.insert(key.to_owned(), KeyedFact::Message { id: message.id });
        changes.keys.push(key.to_owned());
    }
    let turn = turn_cause(message);
    if let Some(room) = state.rooms.get_mut(&message.room_id) {
        room.messages = room.messages.saturating_add(1);
        if let Some(cause) = turn {
            room.mailbox.push(MailboxItem { message_id: message.id, task_id: message.task_id, cause });
        }
        changes.touch(RowRef::Room(message.room_id));
    }
    if let Some(task_id) = message.task_id
        && let Some(task) = state.tasks.get_mut(&task_id)
    {
        if message.speaker == Speaker::User && task.origin_message_id.is_none() {
            task.origin_message_id = Some(message.id);
        }
        changes.touch(RowRef::Task(task_id));
    }
    if let Some(key) = message.metadata.get("subAgentTextKey").and_then(serde_json::Value::as_str) {
        state.keys.insert(key.to_owned(), KeyedFact::Message { id: message.id });
        changes.keys.push(key.to_owned());
    }
    if let Some(session_id) = counted_session(message)
        && let Some(session) = state.sessions.get_mut(&session_id)
    {
        session.round_trips = session.round_trips.saturating_add(1);
        if message.metadata.get("subAgentCapExceeded").and_then(serde_json::Value::as_bool) == Some(true) {
            session.capped = true;
        }
        changes.touch(RowRef::Session(session_id));
    }
    changes.messages.push(message.clone());
}

/// The turn that a message asks for, as its maker wrote it into the metadata.
fn turn_cause(message: &Message) -> Option<TurnCause> {
    serde_json::from_value(message.metadata.get("turn")?.clone()).ok()
}

/// The session whose round trip a message counts for: one for an event, in
/// however many rooms it is told; the first of them asks for the turn.
fn counted_session(message: &Message) -> Option<rallypoint_model::ids::SessionId> {
    message.metadata.get("turn")?;
    if message.metadata.get("subAgent")?.as_bool()? {
        message.metadata.get("subAgentSessionId")?.as_str()?.parse().ok()
    } else {
        None
    }
}
