//! Facts onto state. The only code that changes [`State`] by journalled events.
//!
//! Total: an event that refers to something unknown changes nothing, since a
//! journal must always replay.

use rallypoint_model::agent_io::{AgentInput, AgentOutput};
use rallypoint_model::event::{Event, EventRecord, PlannedAction, ReplyRole};
use rallypoint_model::message::{Message, Speaker};
use rallypoint_model::question::QuestionStatus;
use rallypoint_model::run::{RunPurpose, RunStatus};
use rallypoint_model::session::{GenerationStatus, SessionKind, SpoolCursor};
use rallypoint_model::task::{TaskStatus, TaskTrigger, Verdict};
use rallypoint_model::time::Timestamp;

use crate::changes::{Changes, RowRef};
use crate::state::{
    AgentAnswer, CancelAsked, Cleaned, Generation, InputEntry, InputKind, KeyedFact, MailboxItem, PromptProgress,
    Question, Room, Run, Said, Session, State, Task, TurnCause, World,
};

/// Applies one fact.
pub fn apply(state: &mut State, record: &EventRecord, changes: &mut Changes) {
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
        Event::WorldOpened { world_id, main_room_id, user_id, main_agent_id, system_id } => {
            state.world = Some(World {
                id: *world_id,
                main_room_id: *main_room_id,
                user_id: *user_id,
                main_agent_id: *main_agent_id,
                system_id: *system_id,
            });
            changes.touch(RowRef::World);
        }
        Event::RoomCreated { room_id, room_kind, title } => {
            state.rooms.insert(
                *room_id,
                Room {
                    id: *room_id,
                    kind: *room_kind,
                    title: title.clone(),
                    incarnation: 1,
                    messages: 0,
                    created_at: at,
                    mailbox: Vec::new(),
                    session_id: None,
                },
            );
            changes.touch(RowRef::Room(*room_id));
        }
        Event::MessagePosted { message, delivery_key } => {
            message_posted(state, message, delivery_key.as_deref(), changes);
        }
        Event::TriggerRefused { .. } => {}
        Event::QuestionOpened { question_id, question, task_id, run_id, session_id, request_id, deadline_at } => {
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
                    opened_at: at,
                    deadline_at: *deadline_at,
                    answer: None,
                },
            );
            changes.touch(RowRef::Question(*question_id));
        }
        Event::QuestionClosed { question_id, status, answer, .. } => {
            if let Some(question) = state.questions.get_mut(question_id) {
                question.status = *status;
                question.answer = answer.clone();
                changes.touch(RowRef::Question(*question_id));
            }
        }
        Event::TaskCreated { .. }
        | Event::TaskStatusChanged { .. }
        | Event::TaskVerified { .. }
        | Event::TaskStopRequested { .. }
        | Event::TaskOverridden { .. } => task_event(state, record, changes),
        Event::SessionCreated { .. }
        | Event::RunQueued { .. }
        | Event::RunMoved { .. }
        | Event::RunAnswered { .. }
        | Event::RunCancelRequested { .. }
        | Event::RunEnded { .. }
        | Event::TurnPlanned { .. }
        | Event::TurnActionDone { .. } => run_event(state, record, changes),
        Event::GenerationStarted { .. }
        | Event::GenerationMoved { .. }
        | Event::GenerationOpened { .. }
        | Event::GenerationInput { .. }
        | Event::GenerationInputAccepted { .. }
        | Event::GenerationNoted { .. }
        | Event::GenerationEnded { .. }
        | Event::GenerationCleaned { .. }
        | Event::AgentOutput { .. } => generation_event(state, record, changes),
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

/// The session whose round trip a message counts for.
fn counted_session(message: &Message) -> Option<rallypoint_model::ids::SessionId> {
    if message.metadata.get("subAgent")?.as_bool()? {
        message.metadata.get("subAgentSessionId")?.as_str()?.parse().ok()
    } else {
        None
    }
}

fn task_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    match &record.event {
        Event::TaskCreated {
            task_id,
            idempotency_key,
            title,
            goal,
            origin_room_id,
            cwd,
            criteria,
            acceptance,
            deadline_at,
            timeout_ms,
            agents,
            requested_by,
            source,
            corrective_rounds,
        } => {
            if let Some(key) = idempotency_key {
                state.keys.insert(key.clone(), KeyedFact::Task { id: *task_id });
                changes.keys.push(key.clone());
            }
            state.tasks.insert(
                *task_id,
                Task {
                    id: *task_id,
                    title: title.clone(),
                    goal: goal.clone(),
                    status: TaskStatus::Open,
                    reason: None,
                    origin_room_id: *origin_room_id,
                    origin_message_id: None,
                    cwd: cwd.clone(),
                    criteria: criteria.clone(),
                    acceptance: *acceptance,
                    deadline_at: *deadline_at,
                    timeout_ms: *timeout_ms,
                    agents: agents.clone(),
                    sessions: Vec::new(),
                    runs: Vec::new(),
                    requested_by: requested_by.clone(),
                    source: source.clone(),
                    corrective_limit: *corrective_rounds,
                    corrective_rounds: 0,
                    rounds: 0,
                    verification_due: false,
                    last_run_ended_at: None,
                    last_completed_run: None,
                    evidence: Vec::new(),
                    verdict: None,
                    stop_requested_by: None,
                    last_reply: None,
                    created_at: record.at,
                    updated_at: record.at,
                    ended_at: None,
                },
            );
            changes.touch(RowRef::Task(*task_id));
        }
        Event::TaskStatusChanged { task_id, to, reason, trigger, .. } => {
            if let Some(task) = state.tasks.get_mut(task_id) {
                if matches!(trigger, TaskTrigger::Restarted | TaskTrigger::Retrying) {
                    // A person asked for more work: limits of the time before don't count against it.
                    task.stop_requested_by = None;
                }
                if *trigger == TaskTrigger::Restarted {
                    task.corrective_rounds = 0;
                    task.deadline_at = (task.timeout_ms > 0).then(|| record.at.plus(task.timeout_ms));
                }
                task.status = *to;
                task.reason = *reason;
                task.verification_due = *to == TaskStatus::Validating;
                let ended = to.is_terminal() || *to == TaskStatus::Interrupted;
                task.ended_at = ended.then_some(record.at);
            }
        }
        Event::TaskVerified { task_id, round, evidence, verdict, .. } => {
            if let Some(task) = state.tasks.get_mut(task_id) {
                task.rounds = *round;
                task.evidence = evidence.clone();
                task.verdict = Some(*verdict);
                task.verification_due = false;
            }
        }
        Event::TaskStopRequested { task_id, by } => {
            if let Some(task) = state.tasks.get_mut(task_id) {
                task.stop_requested_by = Some(by.clone());
            }
        }
        Event::TaskOverridden { task_id, passed, .. } => {
            if let Some(task) = state.tasks.get_mut(task_id) {
                task.verdict = Some(if *passed { Verdict::Passed } else { Verdict::Failed });
            }
        }
        _ => {}
    }
}

fn run_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    match &record.event {
        Event::SessionCreated {
            session_id,
            session_key,
            session_kind,
            task_id,
            room_id,
            entity_id,
            launch,
            origin,
        } => {
            state.sessions.insert(
                *session_id,
                Session {
                    id: *session_id,
                    key: session_key.clone(),
                    kind: *session_kind,
                    task_id: *task_id,
                    room_id: *room_id,
                    entity_id: *entity_id,
                    launch: launch.clone(),
                    origin: origin.clone(),
                    generation_id: None,
                    open_run: None,
                    queue: Vec::new(),
                    last_run: None,
                    round_trips: 0,
                    capped: false,
                    stopped: false,
                    created_at: record.at,
                },
            );
            changes.touch(RowRef::Session(*session_id));
            if let Some(task) = task_id.and_then(|id| state.tasks.get_mut(&id)) {
                task.sessions.push(*session_id);
            }
            if let Some(room) = room_id.and_then(|id| state.rooms.get_mut(&id)) {
                room.session_id = Some(*session_id);
                changes.touch(RowRef::Room(room.id));
            }
        }
        Event::RunQueued { run_id, session_id, predecessor, purpose, blocks, trigger_message_id } => {
            let Some(session) = state.sessions.get_mut(session_id) else { return };
            session.queue.push(*run_id);
            changes.touch(RowRef::Session(*session_id));
            let task_id = session.task_id;
            if session.kind == SessionKind::Room
                && let Some(room) = session.room_id.and_then(|id| state.rooms.get_mut(&id))
            {
                room.mailbox.retain(|item| Some(item.message_id) != *trigger_message_id);
                changes.touch(RowRef::Room(room.id));
            }
            if let Some(task) = task_id.and_then(|id| state.tasks.get_mut(&id)) {
                task.runs.push(*run_id);
                if matches!(purpose, RunPurpose::Corrective | RunPurpose::Continuing) {
                    task.corrective_rounds = task.corrective_rounds.saturating_add(1);
                }
            }
            state.runs.insert(
                *run_id,
                Run {
                    id: *run_id,
                    session_id: *session_id,
                    task_id,
                    predecessor: *predecessor,
                    purpose: *purpose,
                    blocks: blocks.clone(),
                    trigger_message_id: *trigger_message_id,
                    status: RunStatus::Queued,
                    prompt: PromptProgress::NotSent,
                    generation_id: None,
                    input_seq: None,
                    attempts: 0,
                    cancel: None,
                    answer: None,
                    open_tools: std::collections::BTreeMap::new(),
                    last_frame: 0,
                    plan: None,
                    actions_done: 0,
                    outcome: None,
                    reason: None,
                    result: None,
                    claim: None,
                    summary: String::new(),
                    usage: None,
                    queued_at: record.at,
                    admitted_at: None,
                    started_at: None,
                    ended_at: None,
                    said: Said::default(),
                },
            );
            changes.touch(RowRef::Run(*run_id));
        }
        Event::RunMoved { run_id, to, .. } => {
            let Some(run) = state.runs.get_mut(run_id) else { return };
            run.status = *to;
            changes.touch(RowRef::Run(*run_id));
            let session_id = run.session_id;
            match to {
                RunStatus::Starting => run.admitted_at = Some(record.at),
                RunStatus::Running if run.started_at.is_none() => run.started_at = Some(record.at),
                RunStatus::Queued => {
                    run.generation_id = None;
                    run.input_seq = None;
                    run.prompt = PromptProgress::NotSent;
                    run.started_at = None;
                }
                _ => {}
            }
            if let Some(session) = state.sessions.get_mut(&session_id) {
                match to {
                    RunStatus::Starting => {
                        session.queue.retain(|queued| queued != run_id);
                        session.open_run = Some(*run_id);
                    }
                    RunStatus::Queued => {
                        session.open_run = None;
                        session.queue.retain(|queued| queued != run_id);
                        session.queue.insert(0, *run_id);
                    }
                    _ => {}
                }
                changes.touch(RowRef::Session(session_id));
            }
        }
        Event::RunAnswered { run_id, stop_reason, frame, usage } => {
            if let Some(run) = state.runs.get_mut(run_id) {
                run.answer = Some(AgentAnswer { stop_reason: stop_reason.clone(), frame: *frame, at: record.at });
                run.usage = usage.clone();
                run.prompt = PromptProgress::Seen;
                changes.touch(RowRef::Run(*run_id));
            }
        }
        Event::RunCancelRequested { run_id, by, reason } => {
            if let Some(run) = state.runs.get_mut(run_id) {
                run.cancel = Some(CancelAsked { by: by.clone(), at: record.at, reason: reason.clone() });
                changes.touch(RowRef::Run(*run_id));
            }
        }
        Event::RunEnded { run_id, outcome, reason, result, claim, summary, last_frame } => {
            let Some(run) = state.runs.get_mut(run_id) else { return };
            run.status = RunStatus::Terminal;
            run.outcome = Some(*outcome);
            run.reason = Some(reason.clone());
            run.result = result.clone();
            run.claim = claim.clone();
            run.summary = summary.clone();
            run.last_frame = *last_frame;
            run.ended_at = Some(record.at);
            run.open_tools.clear();
            run.said = Said::default();
            changes.touch(RowRef::Run(*run_id));
            let (session_id, task_id, purpose) = (run.session_id, run.task_id, run.purpose);
            if let Some(session) = state.sessions.get_mut(&session_id) {
                session.queue.retain(|queued| queued != run_id);
                if session.open_run == Some(*run_id) {
                    session.open_run = None;
                }
                session.last_run = Some(*run_id);
                if *outcome == rallypoint_model::run::RunOutcome::Capped {
                    session.capped = true;
                }
                changes.touch(RowRef::Session(session_id));
            }
            if purpose != RunPurpose::Turn
                && let Some(task) = task_id.and_then(|id| state.tasks.get_mut(&id))
            {
                task.last_run_ended_at = Some(record.at);
                if *outcome == rallypoint_model::run::RunOutcome::Completed {
                    task.last_completed_run = Some(*run_id);
                }
            }
        }
        Event::TurnPlanned { run_id, actions } => {
            if let Some(run) = state.runs.get_mut(run_id) {
                run.plan = Some(actions.clone());
                changes.touch(RowRef::Run(*run_id));
            }
        }
        Event::TurnActionDone { run_id, index, .. } => {
            let Some(run) = state.runs.get_mut(run_id) else { return };
            run.actions_done = index.saturating_add(1);
            changes.touch(RowRef::Run(*run_id));
            let action = run.plan.as_ref().and_then(|plan| plan.get(*index as usize));
            if let (Some(PlannedAction::Reply { text, role }), Some(task_id)) = (action, record.scope.task_id)
                && matches!(role, ReplyRole::Terminal | ReplyRole::Question)
                && let Some(task) = state.tasks.get_mut(&task_id)
            {
                task.last_reply = Some(text.clone());
            }
        }
        _ => {}
    }
}

fn generation_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    match &record.event {
        Event::GenerationStarted { generation_id, session_id, run_id } => {
            state.generations.insert(
                *generation_id,
                Generation {
                    id: *generation_id,
                    session_id: *session_id,
                    run_id: *run_id,
                    status: GenerationStatus::Launching,
                    started_at: record.at,
                    agent_session_id: None,
                    inputs: Vec::new(),
                    end: None,
                    cleaned: None,
                    seen_requests: std::collections::BTreeSet::new(),
                    junk_lines: 0,
                    stderr_tail: String::new(),
                    cursor: SpoolCursor::default(),
                    last_report_at: record.at,
                },
            );
            if let Some(session) = state.sessions.get_mut(session_id) {
                session.generation_id = Some(*generation_id);
                changes.touch(RowRef::Session(*session_id));
            }
            if let Some(run) = state.runs.get_mut(run_id) {
                run.attempts = run.attempts.saturating_add(1);
                changes.touch(RowRef::Run(*run_id));
            }
            changes.touch(RowRef::Generation(*generation_id));
        }
        Event::GenerationMoved { generation_id, status } => {
            if let Some(generation) = state.generations.get_mut(generation_id) {
                generation.status = *status;
                changes.touch(RowRef::Generation(*generation_id));
            }
        }
        Event::GenerationOpened { generation_id, agent_session_id } => {
            if let Some(generation) = state.generations.get_mut(generation_id) {
                generation.agent_session_id = Some(agent_session_id.clone());
                generation.status = GenerationStatus::Ready;
                changes.touch(RowRef::Generation(*generation_id));
            }
        }
        Event::GenerationInput { generation_id, seq, input, run_id } => {
            let Some(generation) = state.generations.get_mut(generation_id) else { return };
            generation.inputs.push(InputEntry {
                seq: *seq,
                kind: kind_of(input),
                input: Some(input.clone()),
                run_id: *run_id,
                accepted: false,
            });
            match input {
                AgentInput::AnswerPermission { request_id, .. } | AgentInput::RefuseMethod { request_id, .. } => {
                    generation.seen_requests.insert(request_id.clone());
                }
                _ => {}
            }
            changes.touch(RowRef::Generation(*generation_id));
            if matches!(input, AgentInput::Prompt { .. })
                && let Some(run) = run_id.and_then(|id| state.runs.get_mut(&id))
            {
                run.prompt = PromptProgress::Journalled;
                run.generation_id = Some(*generation_id);
                run.input_seq = Some(*seq);
                changes.touch(RowRef::Run(run.id));
            }
        }
        Event::GenerationInputAccepted { generation_id, seq } => {
            let Some(generation) = state.generations.get_mut(generation_id) else { return };
            let mut prompt_of = None;
            for entry in &mut generation.inputs {
                if entry.seq == *seq {
                    entry.accepted = true;
                    entry.input = None;
                    if entry.kind == InputKind::Prompt {
                        prompt_of = entry.run_id;
                    }
                }
            }
            changes.touch(RowRef::Generation(*generation_id));
            if let Some(run) = prompt_of.and_then(|id| state.runs.get_mut(&id))
                && run.prompt == PromptProgress::Journalled
            {
                run.prompt = PromptProgress::Accepted;
                changes.touch(RowRef::Run(run.id));
            }
        }
        Event::GenerationNoted { generation_id, note, count, .. } => {
            if note == "junk"
                && let Some(generation) = state.generations.get_mut(generation_id)
            {
                generation.junk_lines = generation.junk_lines.saturating_add(*count);
                changes.touch(RowRef::Generation(*generation_id));
            }
        }
        Event::GenerationEnded { generation_id, end } => {
            let Some(generation) = state.generations.get_mut(generation_id) else { return };
            generation.status = GenerationStatus::Ended;
            generation.end = Some(end.clone());
            changes.touch(RowRef::Generation(*generation_id));
            if let Some(session) = state.sessions.get_mut(&generation.session_id)
                && session.generation_id == Some(*generation_id)
            {
                session.generation_id = None;
                changes.touch(RowRef::Session(session.id));
            }
        }
        Event::GenerationCleaned { generation_id, swept, left } => {
            if let Some(generation) = state.generations.get_mut(generation_id) {
                generation.cleaned = Some(Cleaned { swept: *swept, left: *left });
                changes.touch(RowRef::Generation(*generation_id));
            }
        }
        Event::AgentOutput { last_frame, late, output, .. } => {
            let Some(run) = record.scope.run_id.and_then(|id| state.runs.get_mut(&id)) else { return };
            if *late || !run.is_open() {
                return;
            }
            // Text alone does not rewrite the run's row: the journal holds it.
            hear(run, *last_frame, output, changes);
        }
        _ => {}
    }
}

/// Takes an output into what a run has said and what tools are at work.
pub fn hear(run: &mut Run, last_frame: u64, output: &AgentOutput, changes: &mut Changes) {
    run.last_frame = run.last_frame.max(last_frame);
    if run.prompt == PromptProgress::Accepted {
        run.prompt = PromptProgress::Seen;
        changes.touch(RowRef::Run(run.id));
    }
    match output {
        AgentOutput::Message { text } => run.said.text.push_str(text),
        AgentOutput::ToolCall { call } | AgentOutput::ToolCallUpdate { call } => {
            if !run.said.text.is_empty() && run.said.last_stretch != run.said.text.len() {
                if !run.said.text.ends_with('\n') {
                    run.said.text.push('\n');
                }
                run.said.last_stretch = run.said.text.len();
            }
            let was = run.open_tools.len();
            match call.status.as_deref() {
                Some("completed" | "failed") => {
                    run.open_tools.remove(&call.tool_call_id);
                }
                _ => {
                    let title = call.title.clone().or_else(|| call.tool_kind.clone());
                    let known = run.open_tools.get(&call.tool_call_id).cloned();
                    let title = title.or(known).unwrap_or_else(|| call.tool_call_id.clone());
                    if matches!(call.status.as_deref(), Some("pending" | "in_progress"))
                        || matches!(output, AgentOutput::ToolCall { .. })
                    {
                        run.open_tools.insert(call.tool_call_id.clone(), title);
                    }
                }
            }
            if was != run.open_tools.len() {
                changes.touch(RowRef::Run(run.id));
            }
        }
        AgentOutput::Thought { .. }
        | AgentOutput::Plan { .. }
        | AgentOutput::Usage { .. }
        | AgentOutput::Other { .. } => {}
    }
}

fn kind_of(input: &AgentInput) -> InputKind {
    match input {
        AgentInput::Initialize => InputKind::Initialize,
        AgentInput::NewSession { .. } => InputKind::NewSession,
        AgentInput::Prompt { .. } => InputKind::Prompt,
        AgentInput::Cancel { .. }
        | AgentInput::AnswerPermission { .. }
        | AgentInput::RefuseMethod { .. }
        | AgentInput::SetConfigOption { .. } => InputKind::Other,
    }
}
