//! Facts of how a person steers a task.

use rallypoint_model::event::{Event, EventRecord};

use crate::changes::{Changes, RowRef};
use crate::state::{Pause, State, Task};

pub(super) fn steering_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    match &record.event {
        Event::TaskPaused(paused) => {
            if let Some(task) = state.tasks.get_mut(&paused.task_id) {
                task.pause = Some(Pause {
                    by: paused.by.clone(),
                    at: record.at,
                    runs: paused.runs.clone(),
                    ended: None,
                });
            }
        }
        Event::TaskResumed(resumed) => {
            if let Some(task) = state.tasks.get_mut(&resumed.task_id) {
                task.pause = None;
                task.deadline_at = task.deadline_at.map(|at| at.plus(resumed.paused_ms.max(0)));
            }
        }
        // What it does stands in the facts that follow.
        Event::TaskReopened(_) => {}
        Event::TaskPatched(patched) => {
            if let Some(task) = state.tasks.get_mut(&patched.task_id) {
                let change = patched.change.clone();
                put(&mut task.title, change.title);
                put(&mut task.goal, change.goal);
                put(&mut task.criteria, change.criteria);
                put(&mut task.priority, change.priority);
                put(&mut task.budget, change.budget);
                put(&mut task.agents, change.agents);
            }
        }
        Event::TaskPlanRevised(revised) => {
            if let Some(task) = state.tasks.get_mut(&revised.task_id) {
                task.plan_id = Some(revised.revision.id);
                task.plans.push(revised.revision.clone());
            }
        }
        Event::TaskRestarted(restarted) => {
            for session_id in &restarted.superseded {
                if let Some(session) = state.sessions.get_mut(session_id) {
                    session.stopped = true;
                    changes.touch(RowRef::Session(*session_id));
                }
            }
            if let Some(task) = state.tasks.get_mut(&restarted.task_id) {
                begun_again(task);
                if restarted.plan_revision_id.is_some() {
                    task.plan_id = restarted.plan_revision_id;
                }
            }
        }
        _ => return,
    }
    if let Some(task_id) = record.scope.task_id {
        changes.touch(RowRef::Task(task_id));
    }
}

fn put<T>(place: &mut T, change: Option<T>) {
    if let Some(value) = change {
        *place = value;
    }
}

/// Limits of the time before don't count against what a person asked for anew.
fn begun_again(task: &mut Task) {
    task.pause = None;
    task.stop_requested_by = None;
    task.corrective_rounds = 0;
    task.voice.goes_on();
    task.last_reply = None;
}
