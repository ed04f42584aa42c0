//! All tasks at a glance, and the slots.

use std::collections::BTreeMap;

use rallypoint_engine::admission;
use rallypoint_engine::state::State;
use rallypoint_model::limits::Limits;
use rallypoint_model::run::RunPurpose;
use rallypoint_model::session::SessionKind;
use rallypoint_model::task::TaskStatus;
use rallypoint_ops::Problem;
use rallypoint_ops::steering::{CapacityView, QueuedRun, StatusView};

use crate::daemon::Shared;
use crate::sources::SystemClock;
use crate::views::usage;

pub(super) async fn status(shared: &Shared) -> Result<StatusView, Problem> {
    Ok(shared.decider.look(status_of).await?)
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn status_of(state: &State) -> StatusView {
    let tasks: Vec<_> = state.tasks.values().filter(|task| task.deleted.is_none()).collect();
    let mut by_status: BTreeMap<String, u32> =
        TaskStatus::ALL.iter().map(|status| (status.as_str().to_owned(), 0)).collect();
    for task in &tasks {
        let count = by_status.entry(task.status.as_str().to_owned()).or_insert(0);
        *count = count.saturating_add(1);
    }
    let waits = |status| matches!(status, TaskStatus::Blocked | TaskStatus::WaitingOnUser);
    let sessions: Vec<_> =
        state.sessions.values().filter(|session| session.kind == SessionKind::SubAgent).collect();
    let active = |open: bool, queued: bool| open || queued;
    StatusView {
        tasks: number(tasks.len()),
        by_status,
        paused: number(tasks.iter().filter(|task| task.pause.is_some()).count()),
        archived: number(tasks.iter().filter(|task| task.archived_at.is_some()).count()),
        waiting: number(tasks.iter().filter(|task| waits(task.status)).count()),
        sessions: number(sessions.len()),
        active_sessions: number(
            sessions
                .iter()
                .filter(|session| active(session.open_run.is_some(), !session.queue.is_empty()))
                .count(),
        ),
        used: usage::sum(state, state.runs.values().filter(|run| run.purpose != RunPurpose::Turn)),
    }
}

pub(super) async fn capacity(shared: &Shared) -> Result<CapacityView, Problem> {
    let limits = shared.config.limits.clone();
    Ok(shared.decider.look(move |state| capacity_of(state, &limits)).await?)
}

fn capacity_of(state: &State, limits: &Limits) -> CapacityView {
    let parked = admission::parked(state, limits, SystemClock.now());
    let queue = parked
        .iter()
        .enumerate()
        .filter_map(|(place, id)| {
            let run = state.runs.get(id)?;
            let task_id = run.task_id?;
            Some(QueuedRun {
                position: number(place.saturating_add(1)),
                run_id: *id,
                session_id: run.session_id,
                task_id,
                priority: state.tasks.get(&task_id)?.priority,
                queued_at: run.queued_at,
            })
        })
        .collect();
    let used = number(state.running_slots());
    let held = state
        .sessions
        .values()
        .filter_map(|session| session.queue.first().and_then(|id| state.runs.get(id)))
        .filter(|run| state.is_held(run))
        .count();
    CapacityView {
        slots: limits.lane_subagent,
        used,
        free: limits.lane_subagent.saturating_sub(used),
        queue_depth: limits.queue_depth,
        held: number(held),
        queue,
    }
}
