//! Trees of sub-agents that are being ended, as front ends see them.

use std::collections::BTreeMap;

use rallypoint_engine::state::{State, Task, TreeStop};
use rallypoint_engine::tree;
use rallypoint_model::ids::SessionId;
use rallypoint_model::run::RunOutcome;
use rallypoint_ops::trees::{StopNodeView, StopView};

/// The stop of a task that is under way, or else the last one.
pub(crate) fn last_stop(state: &State, task: &Task) -> Option<StopView> {
    let stop = task.stops.last().or(task.last_stop.as_ref())?;
    Some(stop_view(state, task, stop))
}

/// The stop that covers this session.
pub(crate) fn stop_of(state: &State, session_id: SessionId) -> Option<StopView> {
    let task = state.tasks.get(&state.sessions.get(&session_id)?.task_id?)?;
    let covers = |stop: &&TreeStop| stop.nodes.iter().any(|node| node.session_id == session_id);
    let stop = task.stops.iter().rev().find(covers).or(task.last_stop.as_ref().filter(covers))?;
    Some(stop_view(state, task, stop))
}

fn stop_view(state: &State, task: &Task, stop: &TreeStop) -> StopView {
    let nodes: Vec<StopNodeView> = stop
        .nodes
        .iter()
        .map(|node| {
            let session = state.sessions.get(&node.session_id);
            let ended = stop.ended.iter().find(|ended| ended.session_id == node.session_id);
            let running = || node.run_id.and_then(|id| state.runs.get(&id)).and_then(|run| run.outcome);
            StopNodeView {
                session_id: node.session_id,
                label: session
                    .and_then(|session| session.launch.as_ref())
                    .map(|launch| launch.label.clone())
                    .unwrap_or_default(),
                depth: session.map_or(1, |session| session.depth),
                outcome: ended.map_or_else(running, |ended| ended.outcome),
                at_rest: ended.is_some() || tree::is_at_rest(state, node.session_id),
                processes_left: ended.map_or(0, |ended| ended.left),
            }
        })
        .collect();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for node in &nodes {
        let word = match (node.at_rest, node.outcome) {
            (false, _) => "stopping",
            (true, outcome) => outcome.map_or("never_ran", RunOutcome::as_str),
        };
        let count = counts.entry(word.to_owned()).or_insert(0);
        *count = count.saturating_add(1);
    }
    StopView {
        task_id: task.id,
        root_session_id: stop.root_session_id,
        by: stop.by.clone(),
        asked_at: stop.asked_at,
        ended_at: stop.ended_at,
        nodes,
        counts,
    }
}
