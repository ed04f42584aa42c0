//! Facts of progress posts.

use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::progress::{ProgressResult, ProgressShape, SettledProgress};

use crate::changes::{Changes, RowRef};
use crate::state::{Progress, State};

pub(super) fn progress_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    match &record.event {
        Event::ProgressModeSet(set) => match set.task_id {
            Some(task_id) => {
                if let Some(task) = state.tasks.get_mut(&task_id) {
                    task.progress.mode = Some(set.mode);
                    changes.touch(RowRef::Task(task_id));
                }
            }
            None => {
                if let Some(room) = state.rooms.get_mut(&set.room_id) {
                    room.progress = set.mode;
                    changes.touch(RowRef::Room(set.room_id));
                }
            }
        },
        Event::ProgressOffered(offered) => {
            if let Some(task) = state.tasks.get_mut(&offered.task_id) {
                task.progress.editions = offered.edition;
                task.progress.offered = Some(offered.clone());
                changes.touch(RowRef::Task(task.id));
            }
        }
        Event::ProgressSettled(settled) => {
            if let Some(task) = state.tasks.get_mut(&settled.task_id) {
                settle(&mut task.progress, settled);
                changes.touch(RowRef::Task(task.id));
            }
        }
        _ => {}
    }
}

fn settle(progress: &mut Progress, settled: &SettledProgress) {
    let Some(offered) = progress.offered.take() else { return };
    progress.next_at = Some(settled.next_at);
    progress.over = settled.ends;
    match settled.result {
        ProgressResult::Posted => {
            progress.failures = 0;
            progress.again = None;
            if matches!(offered.shape, ProgressShape::Post) {
                progress.post_id.clone_from(&settled.post_id);
            }
            heard(progress, offered.shape, offered.text, offered.status);
        }
        ProgressResult::Lost if offered.repeatable && !settled.ends => {
            progress.failures = progress.failures.saturating_add(1);
            progress.again = Some(offered);
        }
        // It may be there, so it counts as heard.
        ProgressResult::Lost => heard(progress, offered.shape, offered.text, offered.status),
        ProgressResult::Returned | ProgressResult::Refused => {
            progress.failures = progress.failures.saturating_add(1);
        }
    }
}

fn heard(
    progress: &mut Progress,
    shape: ProgressShape,
    text: String,
    status: rallypoint_model::task::TaskStatus,
) {
    if matches!(shape, ProgressShape::InThread { .. }) {
        progress.posts = progress.posts.saturating_add(1);
    }
    progress.text = text;
    progress.status = Some(status);
}
