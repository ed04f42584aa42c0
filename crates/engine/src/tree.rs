//! The tree of a task's sessions: who works for whom, and who is still at work.

use rallypoint_model::ids::{SessionId, TaskId};
use rallypoint_model::run::RunStatus;

use crate::state::{Run, Session, State, Task};

/// Sessions that work directly for this one, or for the task itself, in the order they were made.
pub fn children(
    state: &State,
    task_id: TaskId,
    parent: Option<SessionId>,
) -> impl Iterator<Item = &Session> + '_ {
    let ids = state.tasks.get(&task_id).map(|task| task.sessions.as_slice()).unwrap_or_default();
    ids.iter()
        .filter_map(|id| state.sessions.get(id))
        .filter(move |session| session.parent_session_id == parent)
}

/// Whether a session is not settled: it works or is to work, waits for an
/// answer, or has children that are not settled and will report to it.
pub fn is_open(state: &State, session: &Session) -> bool {
    if session.open_run.is_some() || !session.queue.is_empty() {
        return true;
    }
    let Some(task_id) = session.task_id else { return false };
    state.open_questions(task_id).any(|question| question.session_id == Some(session.id))
        || children(state, task_id, Some(session.id)).any(|child| is_open(state, child))
}

/// Children that are not settled. One that waits for its own children counts,
/// although it holds no slot.
pub fn open_children(state: &State, task_id: TaskId, parent: Option<SessionId>) -> Vec<&Session> {
    children(state, task_id, parent).filter(|child| is_open(state, child)).collect()
}

/// A session and all below it, parents before their children.
pub fn with_descendants(state: &State, session_id: SessionId) -> Vec<SessionId> {
    let mut found = vec![session_id];
    let Some(task_id) = state.sessions.get(&session_id).and_then(|session| session.task_id) else {
        return found;
    };
    found.extend(
        children(state, task_id, Some(session_id)).flat_map(|child| with_descendants(state, child.id)),
    );
    found
}

/// All sessions of a task, parents before their children.
pub fn of_task(state: &State, task: &Task) -> Vec<SessionId> {
    let mut found: Vec<SessionId> =
        children(state, task.id, None).flat_map(|child| with_descendants(state, child.id)).collect();
    // A parent may be gone from the state; its children are still the task's.
    found.extend(task.sessions.iter().filter(|id| !found.contains(id)).copied().collect::<Vec<_>>());
    found
}

/// The sessions above one, nearest first. One that is gone ends the chain.
pub fn ancestors(state: &State, session: &Session) -> Vec<SessionId> {
    let mut chain = Vec::new();
    let mut at = session.parent_session_id;
    while let Some(id) = at {
        chain.push(id);
        at = state.sessions.get(&id).and_then(|session| session.parent_session_id);
    }
    chain
}

/// Whether a stop that is under way covers this session.
pub fn is_being_stopped(state: &State, session: &Session) -> bool {
    session.task_id.and_then(|id| state.tasks.get(&id)).is_some_and(|task| {
        task.stops.iter().any(|stop| stop.nodes.iter().any(|node| node.session_id == session.id))
    })
}

/// Whether nothing of a session works any more: no run, no process, no trace of one.
pub fn is_at_rest(state: &State, session_id: SessionId) -> bool {
    let works = state
        .sessions
        .get(&session_id)
        .is_some_and(|session| session.open_run.is_some() || !session.queue.is_empty());
    let process = state.generations_of(session_id).any(|generation| generation.cleaned.is_none());
    !works && !process
}

/// Runs that wait for children of theirs which have all settled.
pub fn awaited_in_vain(state: &State) -> Option<&Run> {
    state.busy_sessions().find_map(|session| {
        let run = session.open_run.and_then(|id| state.runs.get(&id))?;
        if run.status != RunStatus::WaitingChildren {
            return None;
        }
        let waits = open_children(state, session.task_id?, Some(session.id));
        waits.is_empty().then_some(run)
    })
}
