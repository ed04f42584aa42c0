//! Facts of tasks that are over.

use std::collections::BTreeSet;

use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::ids::{QuestionId, RunId, SessionId, TaskId};
use rallypoint_model::retention::{DeleteMode, Deletion};
use rallypoint_model::time::Timestamp;

use crate::changes::{Changes, RowRef};
use crate::scrub::scrubbed;
use crate::state::{Said, State};

pub(super) fn archive_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    match &record.event {
        Event::TaskArchived { task_id, .. } => set_archived(state, *task_id, Some(record.at), changes),
        Event::TaskUnarchived { task_id, .. } => {
            if let Some(task) = state.tasks.get_mut(task_id) {
                task.unarchived_at = Some(record.at);
            }
            set_archived(state, *task_id, None, changes);
        }
        Event::TaskDeleted { task_id, mode, by } => {
            if let Some(task) = state.tasks.get_mut(task_id) {
                task.deleted = Some(Deletion { mode: *mode, by: by.clone(), at: record.at });
                changes.touch(RowRef::Task(*task_id));
            }
            if *mode == DeleteMode::Purge {
                purge(state, *task_id, changes);
            }
        }
        Event::TaskResultsRemoved { digests, .. } => {
            for run in state.runs.values_mut() {
                if run.result.as_ref().is_some_and(|result| digests.contains(&result.digest)) {
                    run.result_removed = true;
                    changes.touch(RowRef::Run(run.id));
                }
            }
        }
        _ => {}
    }
}

fn set_archived(state: &mut State, task_id: TaskId, at: Option<Timestamp>, changes: &mut Changes) {
    let Some(task) = state.tasks.get_mut(&task_id) else { return };
    task.archived_at = at;
    changes.touch(RowRef::Task(task_id));
    for session_id in task.sessions.clone() {
        if let Some(session) = state.sessions.get_mut(&session_id) {
            session.archived_at = at;
            changes.touch(RowRef::Session(session_id));
        }
    }
}

/// Takes a task's content out of every row that holds some.
fn purge(state: &mut State, task_id: TaskId, changes: &mut Changes) {
    let Some(task) = state.tasks.get_mut(&task_id) else { return };
    if let Some(clean) = scrubbed(task) {
        *task = clean;
    }
    changes.touch(RowRef::Task(task_id));
    let sessions: BTreeSet<SessionId> = task.sessions.iter().copied().collect();
    for session_id in &sessions {
        if let Some(session) = state.sessions.get_mut(session_id)
            && let Some(clean) = scrubbed(session)
        {
            *session = clean;
            changes.touch(RowRef::Session(*session_id));
        }
    }
    let runs: Vec<RunId> = state
        .runs
        .values()
        .filter(|run| run.task_id == Some(task_id) || run.about_task == Some(task_id))
        .map(|run| run.id)
        .collect();
    for run_id in runs {
        if let Some(run) = state.runs.get_mut(&run_id)
            && let Some(mut clean) = scrubbed(run)
        {
            clean.result_removed = clean.result.is_some();
            clean.said = Said::default();
            *run = clean;
            changes.touch(RowRef::Run(run_id));
        }
    }
    for generation in state.generations.values_mut().filter(|each| sessions.contains(&each.session_id)) {
        if let Some(mut clean) = scrubbed(generation) {
            clean.cursor = generation.cursor;
            clean.last_report_at = generation.last_report_at;
            *generation = clean;
            changes.touch(RowRef::Generation(generation.id));
        }
    }
    for delivery in state.deliveries.values_mut().filter(|each| each.task_id == Some(task_id)) {
        if let Some(clean) = scrubbed(delivery) {
            *delivery = clean;
            changes.touch(RowRef::Delivery(delivery.id));
        }
    }
    let questions: Vec<QuestionId> =
        state.questions.values().filter(|each| each.task_id == task_id).map(|each| each.id).collect();
    for question_id in questions {
        if let Some(question) = state.questions.get_mut(&question_id)
            && let Some(clean) = scrubbed(question)
        {
            *question = clean;
            changes.touch(RowRef::Question(question_id));
        }
    }
}
