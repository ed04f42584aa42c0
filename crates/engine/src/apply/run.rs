//! Facts of sessions, runs and turns.

use rallypoint_model::event::{Event, EventRecord, PlannedAction, ReplyRole};
use rallypoint_model::ids::SessionId;
use rallypoint_model::mail::{Mail, MailFrom};
use rallypoint_model::run::{OutcomeReason, RunPurpose, RunStatus};
use rallypoint_model::session::SessionKind;
use rallypoint_model::time::Timestamp;
use rallypoint_model::usage::UsageNoted;

use crate::changes::{Changes, RowRef};
use crate::state::{AgentAnswer, CancelAsked, KeyedFact, PromptProgress, Run, Said, Session, State};
use crate::voice::ending;

/// Where the key of a request for a sub-agent is kept, apart from other keys.
pub(crate) fn spawn_key(idempotency_key: &str) -> String {
    format!("spawn|{idempotency_key}")
}

pub(super) fn run_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
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
            parent_session_id,
            depth,
            idempotency_key,
        } => {
            if let Some(key) = idempotency_key {
                let key = spawn_key(key);
                state.keys.insert(key.clone(), KeyedFact::Session { id: *session_id });
                changes.keys.push(key);
            }
            state.sessions.insert(
                *session_id,
                Session {
                    id: *session_id,
                    key: session_key.clone(),
                    kind: *session_kind,
                    task_id: *task_id,
                    room_id: *room_id,
                    entity_id: *entity_id,
                    parent_session_id: *parent_session_id,
                    // Journals of before say nothing of it, and then nobody could start others.
                    depth: if *session_kind == SessionKind::SubAgent { (*depth).max(1) } else { *depth },
                    launch: launch.clone(),
                    origin: origin.clone(),
                    generation_id: None,
                    inbox: Vec::new(),
                    mid_turn: None,
                    not_in_turn: None,
                    open_run: None,
                    queue: Vec::new(),
                    last_run: None,
                    round_trips: 0,
                    kept_events: 0,
                    capped: false,
                    stopped: false,
                    agent_session_id: None,
                    can_load: false,
                    can_resume: false,
                    offer: None,
                    offered_by: None,
                    native_agents: Vec::new(),
                    created_at: record.at,
                    archived_at: None,
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
        Event::SessionMailReceived { session_id, mail } => mail_received(state, *session_id, mail, changes),
        Event::SessionMailTaken { session_id, keys, .. } => {
            if let Some(session) = state.sessions.get_mut(session_id) {
                session.inbox.retain(|mail| !keys.contains(&mail.key));
                changes.touch(RowRef::Session(*session_id));
            }
        }
        Event::SessionEventKept { session_id, .. } => {
            if let Some(session) = state.sessions.get_mut(session_id) {
                session.kept_events = session.kept_events.saturating_add(1);
                changes.touch(RowRef::Session(*session_id));
            }
        }
        Event::RunQueued {
            run_id,
            session_id,
            predecessor,
            purpose,
            blocks,
            trigger_message_id,
            delivery_key,
        } => {
            if let Some(key) = delivery_key {
                state.keys.insert(key.clone(), KeyedFact::Run { id: *run_id });
                changes.keys.push(key.clone());
            }
            let Some(session) = state.sessions.get_mut(session_id) else {
                return;
            };
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
                if *purpose == RunPurpose::Corrective {
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
                    detecting_since: None,
                    answer: None,
                    open_tools: std::collections::BTreeMap::new(),
                    tools: 0,
                    last_frame: 0,
                    plan: None,
                    actions_done: 0,
                    about_task: None,
                    outcome: None,
                    reason: None,
                    result: None,
                    result_removed: false,
                    reported: None,
                    claim: None,
                    summary: String::new(),
                    usage: None,
                    noted: UsageNoted::default(),
                    used: None,
                    queued_at: record.at,
                    admitted_at: None,
                    started_at: None,
                    waits_since: None,
                    waited_ms: 0,
                    resumed_at: None,
                    working_since: None,
                    ended_at: None,
                    said: Said::default(),
                },
            );
            changes.touch(RowRef::Run(*run_id));
        }
        Event::RunMoved { run_id, to, .. } => {
            let Some(run) = state.runs.get_mut(run_id) else {
                return;
            };
            run.status = *to;
            end_of_waiting(run, record.at);
            if *to == RunStatus::WaitingChildren {
                run.waits_since = Some(record.at);
            }
            changes.touch(RowRef::Run(*run_id));
            let session_id = run.session_id;
            run.working_since = (*to == RunStatus::Running).then_some(record.at);
            match to {
                RunStatus::Starting => run.admitted_at = Some(record.at),
                RunStatus::Running if run.started_at.is_none() => run.started_at = Some(record.at),
                RunStatus::Queued => {
                    run.generation_id = None;
                    run.input_seq = None;
                    run.prompt = PromptProgress::NotSent;
                    run.started_at = None;
                    // Its prompt never reached that process; whatever it said was about earlier ones.
                    run.noted = UsageNoted::default();
                    run.waited_ms = 0;
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
                run.answer =
                    Some(AgentAnswer { stop_reason: stop_reason.clone(), frame: *frame, at: record.at });
                run.usage = usage.clone();
                run.prompt = PromptProgress::Seen;
                changes.touch(RowRef::Run(*run_id));
            }
        }
        Event::RunCounted { run_id, tokens, whole } => {
            if let Some(run) = state.runs.get_mut(run_id) {
                if *whole {
                    run.usage = Some(tokens.clone());
                } else {
                    run.noted.tokens = Some(tokens.clone());
                }
                changes.touch(RowRef::Run(*run_id));
            }
        }
        Event::RunUsed { run_id, usage } => {
            if let Some(run) = state.runs.get_mut(run_id) {
                run.used = Some(usage.clone());
                changes.touch(RowRef::Run(*run_id));
            }
        }
        Event::RunCancelRequested { run_id, by, reason } => {
            if let Some(run) = state.runs.get_mut(run_id) {
                run.cancel = Some(CancelAsked { by: by.clone(), at: record.at, reason: reason.clone() });
                changes.touch(RowRef::Run(*run_id));
            }
        }
        Event::RunSuspected { run_id, .. } => {
            if let Some(run) = state.runs.get_mut(run_id) {
                run.detecting_since = Some(record.at);
                changes.touch(RowRef::Run(*run_id));
            }
        }
        Event::RunReassured { run_id } => {
            if let Some(run) = state.runs.get_mut(run_id) {
                run.detecting_since = None;
                changes.touch(RowRef::Run(*run_id));
            }
        }
        Event::RunEnded { run_id, outcome, reason, result, claim, summary, last_frame } => {
            let Some(run) = state.runs.get_mut(run_id) else {
                return;
            };
            run.status = RunStatus::Terminal;
            end_of_waiting(run, record.at);
            run.outcome = Some(*outcome);
            run.reason = Some(reason.clone());
            run.result = result.clone();
            run.claim = claim.clone();
            run.summary = summary.clone();
            run.last_frame = *last_frame;
            run.ended_at = Some(record.at);
            run.detecting_since = None;
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
                if matches!(reason, OutcomeReason::Cap { .. }) {
                    session.capped = true;
                }
                changes.touch(RowRef::Session(session_id));
            }
            if purpose != RunPurpose::Turn
                && let Some(task) = task_id.and_then(|id| state.tasks.get_mut(&id))
            {
                task.last_run_ended_at = Some(record.at);
                if let Some(pause) = &mut task.pause
                    && !matches!(reason, OutcomeReason::Paused { .. })
                {
                    pause.ended = Some(*run_id);
                }
                if *outcome == rallypoint_model::run::RunOutcome::Completed {
                    task.last_completed_run = Some(*run_id);
                }
            }
        }
        Event::TurnPlanned { run_id, actions } => {
            if let Some(run) = state.runs.get_mut(run_id) {
                run.plan = Some(actions.clone());
                run.about_task = record.scope.task_id;
                changes.touch(RowRef::Run(*run_id));
            }
        }
        Event::TurnActionDone { run_id, index, problem } => {
            let Some(run) = state.runs.get_mut(run_id) else {
                return;
            };
            run.actions_done = index.saturating_add(1);
            changes.touch(RowRef::Run(*run_id));
            let action = run.plan.as_ref().and_then(|plan| plan.get(*index as usize));
            if let (Some(PlannedAction::Reply { text, role }), Some(task_id)) = (action, record.scope.task_id)
                && problem.is_none()
                && let Some(task) = state.tasks.get_mut(&task_id)
            {
                task.voice.said(*role, ending(task.status));
                if matches!(role, ReplyRole::Terminal | ReplyRole::Question) {
                    task.last_reply = Some(text.clone());
                }
            }
        }
        _ => {}
    }
}

/// Hops count since a person last spoke: all that these words set off is one trace.
fn mail_received(state: &mut State, session_id: SessionId, mail: &Mail, changes: &mut Changes) {
    state.keys.insert(mail.key.clone(), KeyedFact::Session { id: session_id });
    changes.keys.push(mail.key.clone());
    let Some(session) = state.sessions.get_mut(&session_id) else { return };
    session.inbox.push(mail.clone());
    changes.touch(RowRef::Session(session_id));
    let Some(task) = session.task_id.and_then(|id| state.tasks.get_mut(&id)) else { return };
    match mail.from {
        MailFrom::User { .. } => {
            task.hops = 0;
            task.traces = task.traces.saturating_add(1);
        }
        MailFrom::Sibling { .. } => task.hops = task.hops.saturating_add(1),
        MailFrom::Parent | MailFrom::Child { .. } | MailFrom::System => return,
    }
    changes.touch(RowRef::Task(task.id));
}

/// What a run waited for its children is kept apart from its active time.
fn end_of_waiting(run: &mut Run, at: Timestamp) {
    if let Some(since) = run.waits_since.take() {
        run.waited_ms = run.waited_ms.saturating_add(at.since(since).max(0));
        run.resumed_at = Some(at);
    }
}
