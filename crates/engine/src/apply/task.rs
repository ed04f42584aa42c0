//! Facts of tasks.

use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::task::{TaskStatus, TaskTrigger, Verdict};

use crate::changes::{Changes, RowRef};
use crate::state::{KeyedFact, Progress, State, Task, TreeStop};

/// Where the key of a request for a task is kept, apart from the keys of deliveries.
pub(crate) fn task_key(idempotency_key: &str) -> String {
    format!("task|{idempotency_key}")
}

pub(super) fn task_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    match &record.event {
        Event::TaskCreated {
            task_id,
            idempotency_key,
            title,
            goal,
            origin_room_id,
            worktree_room_id,
            cwd,
            criteria,
            acceptance,
            deadline_at,
            timeout_ms,
            agents,
            requested_by,
            source,
            corrective_rounds,
            priority,
            budget,
            attachments,
            platform_message_id,
            forked_from,
        } => {
            let room = state.rooms.get(origin_room_id);
            let room_incarnation = room.map_or(1, |room| room.incarnation);
            let conversation = room.and_then(|room| room.conversation.clone());
            if let Some(key) = idempotency_key {
                let key = task_key(key);
                state.keys.insert(key.clone(), KeyedFact::Task { id: *task_id });
                changes.keys.push(key);
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
                    room_incarnation,
                    conversation,
                    platform_message_id: platform_message_id.clone(),
                    worktree_room_id: *worktree_room_id,
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
                    priority: *priority,
                    budget: *budget,
                    attachments: attachments.clone(),
                    stops: Vec::new(),
                    last_stop: None,
                    pause: None,
                    plans: Vec::new(),
                    plan_id: None,
                    forked_from: *forked_from,
                    hops: 0,
                    traces: 0,
                    voice: crate::voice::Voice::default(),
                    progress: Progress::default(),
                    last_reply: None,
                    created_at: record.at,
                    updated_at: record.at,
                    ended_at: None,
                    archived_at: None,
                    unarchived_at: None,
                    deleted: None,
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
                }
                let time_is_up = task.deadline_at.is_some_and(|at| at <= record.at);
                let goes_on = *trigger == TaskTrigger::Retrying && task.status == TaskStatus::WaitingOnUser;
                if *trigger == TaskTrigger::Restarted || goes_on && time_is_up {
                    task.deadline_at = (task.timeout_ms > 0).then(|| record.at.plus(task.timeout_ms));
                }
                task.status = *to;
                task.reason = *reason;
                task.verification_due = *to == TaskStatus::Validating;
                let ended = to.is_terminal() || *to == TaskStatus::Interrupted;
                task.ended_at = ended.then_some(record.at);
                if ended {
                    task.pause = None;
                    // Words about what was before say nothing of the end.
                    task.last_reply = None;
                } else {
                    task.voice.goes_on();
                }
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
                task.pause = None;
            }
        }
        Event::TreeStopRequested { task_id, root_session_id, by, nodes } => {
            if root_session_id.is_some() {
                for node in nodes {
                    if let Some(session) = state.sessions.get_mut(&node.session_id) {
                        session.stopped = true;
                        changes.touch(RowRef::Session(node.session_id));
                    }
                }
            }
            if let Some(task) = state.tasks.get_mut(task_id) {
                task.stops.push(TreeStop {
                    root_session_id: *root_session_id,
                    by: by.clone(),
                    asked_at: record.at,
                    nodes: nodes.clone(),
                    ended_at: None,
                    ended: Vec::new(),
                });
            }
        }
        Event::TreeStopped { task_id, root_session_id, nodes, .. } => {
            if let Some(task) = state.tasks.get_mut(task_id)
                && let Some(place) =
                    task.stops.iter().position(|stop| stop.root_session_id == *root_session_id)
            {
                let mut stop = task.stops.remove(place);
                stop.ended_at = Some(record.at);
                stop.ended = nodes.clone();
                task.last_stop = Some(stop);
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
