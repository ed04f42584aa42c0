//! Which effects committed state asks for, after each commit and at start alike.
//!
//! Effects are not stored. Why a repeat is harmless:
//!
//! - `Attend` — the executor holds at most one attendant per generation; the
//!   shim's folder lock keeps a second shim out, and its input numbers keep a
//!   repeated input out.
//! - `Clean` — ending what is gone and removing what is removed changes nothing.
//! - `Export` — a transcript is made from the journal and takes the place of the one before it; what is
//!   removed is removed.
//! - `Send` — the executor sends each offer once. The offer of an earlier daemon is due only where the sink takes our
//!   key, and goes under that key; any other becomes `ambiguous`.
//! - `Progress` — the same; the new text of a post can be given again, since it only says once more what stands there.
//! - `Verify` — checks are run again on the same work folder; only the record
//!   of the round that is due is taken.

use rallypoint_model::agent_io::AgentInput;
use rallypoint_model::channel::Conversation;
use rallypoint_model::command::AgentLaunch;
use rallypoint_model::delivery::DeliveryStatus;
use rallypoint_model::ids::{DeliveryId, GenerationId, MessageId, RoomId, SessionId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::progress::OfferedProgress;
use rallypoint_model::run::RunStatus;
use rallypoint_model::session::{GenerationStatus, SpoolCursor};
use rallypoint_model::task::{Criterion, TaskStatus};
use rallypoint_model::time::Timestamp;

use crate::admission::budget_deadline;
use crate::changes::RowRef;
use crate::progress::wanted;
use crate::state::{Generation, InputKind, Run, Session, State, Task};

/// Times the settle limit after which a run ends although frames keep coming.
const SETTLE_LIMIT_FACTOR: i64 = 20;
/// Times the setup limit after which a start fails although output keeps coming.
const SETUP_LIMIT_FACTOR: i64 = 5;

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// See to a process: launch or find it, say what waits, read it, end it.
    Attend(Attendance),
    /// See that nothing is left of a generation.
    Clean(GenerationId),
    /// Run the checks of a round.
    Verify(Verification),
    /// Write, rename or remove the files of a task that is over.
    Export(TaskId),
    /// Bring a message to a platform conversation.
    Send(Sending),
    /// Bring a progress post to a platform conversation.
    Progress(OfferedProgress),
}

/// A message that was offered to a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// Which offer of it.
    pub offer: u32,
    /// The key for the sink.
    pub sink_key: DeliveryId,
    /// Whether the sink was known to take it when it was offered.
    pub takes_key: bool,
    /// Where it goes.
    pub conversation: Conversation,
    /// What is sent.
    pub text: String,
    /// The platform's id of the message that it answers.
    pub reply_to: Option<String>,
    /// The message.
    pub message_id: MessageId,
    /// Its room.
    pub room_id: RoomId,
    /// The task that it is about.
    pub task_id: Option<TaskId>,
}

/// What a process's attendant has to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Attendance {
    /// The generation.
    pub generation_id: GenerationId,
    /// Its session.
    pub session_id: SessionId,
    /// How it stands.
    pub status: GenerationStatus,
    /// How to start it.
    pub launch: AgentLaunch,
    /// Its task, whose environment it gets.
    pub task_id: TaskId,
    /// Work folder.
    pub cwd: String,
    /// Where to read on.
    pub cursor: SpoolCursor,
    /// What was said to it and is not accepted, in order.
    pub inputs: Vec<(u64, AgentInput)>,
    /// What each input was, for its answer.
    pub kinds: Vec<(u64, InputKind)>,
    /// Agent's id of the conversation.
    pub agent_session_id: Option<String>,
    /// Absolute limit of the process in milliseconds; 0 means none.
    pub hard_deadline_ms: u64,
}

/// A round of checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// The task.
    pub task_id: TaskId,
    /// The round.
    pub round: u32,
    /// Work folder.
    pub cwd: String,
    /// What is to be checked.
    pub criteria: Vec<Criterion>,
    /// Environment that is not secret.
    pub environment: Vec<(String, String)>,
}

/// The effects that a row asks for.
pub fn due_of_row(state: &State, row: RowRef, limits: &Limits) -> Vec<Effect> {
    let one = match row {
        RowRef::Generation(id) => due_of_generation(state, id, limits),
        RowRef::Task(id) => {
            return due_of_task(state, id).into_iter().chain(due_progress(state, id)).collect();
        }
        RowRef::Delivery(id) => due_of_delivery(state, id),
        RowRef::World | RowRef::Room(_) | RowRef::Session(_) | RowRef::Run(_) | RowRef::Question(_) => None,
    };
    one.into_iter().collect()
}

/// Every effect that the state asks for.
pub fn due(state: &State, limits: &Limits) -> Vec<Effect> {
    let generations =
        state.open_generations().filter_map(|generation| due_of_generation(state, generation.id, limits));
    let tasks = state.tasks.keys().filter_map(|id| due_of_task(state, *id));
    let deliveries = state.open_deliveries().filter_map(|delivery| due_of_delivery(state, delivery.id));
    let progress = state.tasks_with_progress().filter_map(|task| due_progress(state, task.id));
    generations.chain(tasks).chain(deliveries).chain(progress).collect()
}

fn due_progress(state: &State, id: TaskId) -> Option<Effect> {
    let offered = state.tasks.get(&id)?.progress.offered.as_ref()?;
    state.progress_may_be_sent(offered).then(|| Effect::Progress(offered.clone()))
}

fn due_of_delivery(state: &State, id: DeliveryId) -> Option<Effect> {
    let delivery = state.deliveries.get(&id)?;
    if delivery.status != DeliveryStatus::Offered || !state.may_be_sent(delivery) {
        return None;
    }
    Some(Effect::Send(Sending {
        delivery_id: id,
        offer: delivery.offers,
        sink_key: delivery.sink_key,
        takes_key: delivery.takes_key,
        conversation: delivery.conversation.clone(),
        text: delivery.text.clone()?,
        reply_to: delivery.reply_to.clone(),
        message_id: delivery.message_id,
        room_id: delivery.room_id,
        task_id: delivery.task_id,
    }))
}

fn due_of_generation(state: &State, id: GenerationId, limits: &Limits) -> Option<Effect> {
    let generation = state.generations.get(&id)?;
    if generation.status == GenerationStatus::Ended {
        return generation.cleaned.is_none().then_some(Effect::Clean(id));
    }
    let session = state.sessions.get(&generation.session_id)?;
    let task_id = session.task_id?;
    let cwd = state.tasks.get(&task_id)?.cwd.clone();
    Some(Effect::Attend(Attendance {
        generation_id: id,
        session_id: session.id,
        status: generation.status,
        launch: session.launch.clone()?,
        task_id,
        cwd,
        cursor: generation.cursor,
        inputs: generation
            .inputs
            .iter()
            .filter(|entry| !entry.accepted)
            .filter_map(|entry| entry.input.clone().map(|input| (entry.seq, input)))
            .collect(),
        kinds: generation.inputs.iter().map(|entry| (entry.seq, entry.kind)).collect(),
        agent_session_id: generation.agent_session_id.clone(),
        hard_deadline_ms: limits.hard_timeout_seconds.saturating_mul(1000),
    }))
}

fn due_of_task(state: &State, id: TaskId) -> Option<Effect> {
    let task = state.tasks.get(&id)?;
    if task.ended_at.is_some() || task.archived_at.is_some() {
        return Some(Effect::Export(id));
    }
    if task.status != TaskStatus::Validating || !task.verification_due || task.pause.is_some() {
        return None;
    }
    let environment = task.agents.first().map(|launch| launch.environment.clone()).unwrap_or_default();
    Some(Effect::Verify(Verification {
        task_id: id,
        round: task.rounds.saturating_add(1),
        cwd: task.cwd.clone(),
        criteria: task.criteria.clone(),
        environment,
    }))
}

/// When a settling run's end is decided: after a quiet spell, or at the latest
/// after a fixed time.
pub fn settle_deadline(state: &State, run: &Run, limits: &Limits) -> Option<Timestamp> {
    let answer = run.answer.as_ref()?;
    let generation = run.generation_id.and_then(|id| state.generations.get(&id));
    let last = generation.map_or(answer.at, |generation| generation.last_report_at.max(answer.at));
    let latest = answer.at.plus(limits.settle_ms.saturating_mul(SETTLE_LIMIT_FACTOR));
    Some(last.plus(limits.settle_ms).min(latest))
}

/// When a run has used up its active time.
pub fn run_deadline(run: &Run, limits: &Limits) -> Option<Timestamp> {
    // Waiting for children is no active time.
    if limits.run_timeout_seconds == 0
        || matches!(run.status, RunStatus::Terminal | RunStatus::WaitingChildren)
    {
        return None;
    }
    let limit = i64::try_from(limits.run_timeout_seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    run.started_at.map(|at| at.plus(run.waited_ms).plus(limit))
}

/// When a run's silence becomes suspicious: it waits for no answer of a person,
/// and its process has put nothing out for the limit of its profile.
pub fn stall_deadline(state: &State, run: &Run, limits: &Limits) -> Option<(Timestamp, Timestamp)> {
    if run.status != RunStatus::Running || run.detecting_since.is_some() {
        return None;
    }
    let session = state.sessions.get(&run.session_id)?;
    let launch = session.launch.as_ref()?;
    let limit = launch.stall_ms.unwrap_or(limits.stall_ms);
    if limit <= 0 {
        return None;
    }
    let heard = run.generation_id.and_then(|id| state.generations.get(&id)).map(|it| it.last_report_at);
    let since = run.working_since.unwrap_or_default().max(heard.unwrap_or_default());
    Some((since, since.plus(limit)))
}

/// When a process should have become ready, and the limit that says so. Output
/// counts as a sign of life, since a slow tool server can hold up a start.
pub fn setup_deadline(
    session: &Session,
    generation: &Generation,
    limits: &Limits,
) -> Option<(Timestamp, i64)> {
    if !matches!(generation.status, GenerationStatus::Launching | GenerationStatus::Opening) {
        return None;
    }
    let limit =
        session.launch.as_ref().and_then(|launch| launch.setup_timeout_ms).unwrap_or(limits.setup_timeout_ms);
    let latest = generation.started_at.plus(limit.saturating_mul(SETUP_LIMIT_FACTOR));
    let quiet = generation.last_report_at.max(generation.started_at).plus(limit);
    Some((quiet.min(latest), limit))
}

/// When a task that ended is put out of sight. The clock starts at its end, or when it was last brought back, so it
/// goes on over restarts. It is the clock of the wall: set back it only waits longer, set forward it comes early,
/// and nothing is lost by that.
pub fn archive_deadline(state: &State, task: &Task, limits: &Limits) -> Option<Timestamp> {
    let after = limits.archive_after_minutes.unless_off()?;
    let ended = task.ended_at?;
    if task.archived_at.is_some() || state.task_has_open_run(task) {
        return None;
    }
    Some(task.unarchived_at.map_or(ended, |at| at.max(ended)).plus(after))
}

/// The next point in time at which [`rallypoint_model::command::Command::Tick`] changes something.
pub fn next_wakeup(state: &State, limits: &Limits) -> Option<Timestamp> {
    let mut next: Option<Timestamp> = None;
    let mut consider = |at: Option<Timestamp>| {
        if let Some(at) = at {
            next = Some(next.map_or(at, |known: Timestamp| known.min(at)));
        }
    };
    for run in state.open_runs() {
        if run.status == RunStatus::Settling {
            consider(settle_deadline(state, run, limits));
            continue;
        }
        consider(run.cancel.as_ref().map(|cancel| cancel.at.plus(limits.cancel_grace_ms)));
        if run.cancel.is_none() {
            consider(run_deadline(run, limits));
            consider(stall_deadline(state, run, limits).map(|(_, at)| at));
        }
        if run.status == RunStatus::Starting
            && let Some(session) = state.sessions.get(&run.session_id)
            && let Some(generation) = session.generation_id.and_then(|id| state.generations.get(&id))
        {
            consider(setup_deadline(session, generation, limits).map(|(at, _)| at));
        }
    }
    for task in state.open_tasks() {
        let cancelling =
            state.open_runs_of(task.id).any(|run| run.cancel.is_some() || run.status == RunStatus::Settling);
        let counts = matches!(
            task.status,
            TaskStatus::Open | TaskStatus::Active | TaskStatus::Blocked | TaskStatus::Validating
        );
        if counts && !cancelling && task.pause.is_none() {
            consider(task.deadline_at);
        }
        consider(budget_deadline(state, task));
    }
    // The earliest comes first; one that can't be archived yet makes place for the next.
    consider(state.ended_tasks().find_map(|(_, task)| archive_deadline(state, task, limits)));
    for delivery in state.open_deliveries() {
        if delivery.status != DeliveryStatus::Offered {
            consider(Some(delivery.deadline_at));
        }
    }
    // One that waits behind another is looked at when that one moves.
    for head in state.heads() {
        if head.status == DeliveryStatus::Pending {
            consider(Some(head.next_at));
        }
    }
    for task in state.tasks_with_progress() {
        consider(wanted(state, task, limits).map(|wanted| wanted.at));
    }
    for question in state.all_open_questions() {
        consider(Some(question.deadline_at));
    }
    next
}
