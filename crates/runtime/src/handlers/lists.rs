//! Lists of what the live state holds, page by page.
//!
//! A cursor is the place of the last row of a page and not its number, so that a row is not shown twice when others
//! come or move in between.

use std::cmp::Reverse;

use rallypoint_engine::state::{State, Task};
use rallypoint_model::ids::{QuestionId, TaskId};
use rallypoint_model::time::Timestamp;
use rallypoint_ops::Problem;
use rallypoint_ops::types::{ListQuestionsInput, ListTasksInput, QuestionList, TaskPage};

use super::{PAGE, PAGE_MAX};
use crate::daemon::Shared;
use crate::views;

pub(super) async fn tasks(shared: &Shared, input: ListTasksInput) -> Result<TaskPage, Problem> {
    let limit = input.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX) as usize;
    let after: Option<(Timestamp, TaskId)> = place(input.cursor.as_deref(), "a task list")?;
    let search = input.search.as_ref().map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
    let page = shared
        .decider
        .look(move |state| {
            let mut tasks: Vec<&Task> = state
                .tasks
                .values()
                .filter(|task| fits(task, &input))
                .filter(|task| search.as_ref().is_none_or(|text| holds(state, task, text)))
                .filter(|task| after.is_none_or(|after| (task.updated_at, task.id) < after))
                .collect();
            tasks.sort_by_key(|task| Reverse((task.updated_at, task.id)));
            let more = tasks.len() > limit;
            tasks.truncate(limit);
            let last = tasks.last().filter(|_| more);
            let next_cursor = last.map(|task| format!("{}.{}", task.updated_at.0, task.id));
            TaskPage { items: tasks.into_iter().map(views::task_summary).collect(), next_cursor }
        })
        .await?;
    Ok(page)
}

fn fits(task: &Task, input: &ListTasksInput) -> bool {
    task.deleted.is_none()
        && (input.include_archived || task.archived_at.is_none())
        && input.status.is_none_or(|status| task.status == status)
        && input.room_id.is_none_or(|room| task.origin_room_id == room)
        && input.priority.is_none_or(|priority| task.priority == priority)
        && input.paused.is_none_or(|paused| task.pause.is_some() == paused)
        && input.parent_task_id.is_none_or(|id| task.forked_from.is_some_and(|source| source.task_id == id))
}

/// Whether a text, given in lower case, is in the words of a task or in the names and kinds of its agents.
fn holds(state: &State, task: &Task, text: &str) -> bool {
    let has = |words: &str| words.to_lowercase().contains(text);
    let criteria = || task.criteria.iter().any(|criterion| has(&criterion.text));
    let agents = || {
        let sessions = task.sessions.iter().filter_map(|id| state.sessions.get(id));
        let launches = sessions.filter_map(|session| session.launch.as_ref()).chain(&task.agents);
        let mut launches = launches;
        launches.any(|launch| has(&launch.label) || has(&launch.profile))
    };
    has(&task.title) || has(&task.goal) || has(&task.cwd) || criteria() || agents()
}

pub(super) async fn questions(shared: &Shared, input: ListQuestionsInput) -> Result<QuestionList, Problem> {
    let limit = input.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX) as usize;
    let after: Option<(Timestamp, QuestionId)> = place(input.cursor.as_deref(), "a list of questions")?;
    let mut items = shared.decider.look(move |state| views::open_questions(state, input.task_id)).await?;
    items.retain(|question| after.is_none_or(|after| (question.opened_at, question.question_id) > after));
    let more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| more);
    let next_cursor = last.map(|question| format!("{}.{}", question.opened_at.0, question.question_id));
    Ok(QuestionList { items, next_cursor })
}

/// Where a page ended: the time and the id of its last row.
fn place<T: std::str::FromStr>(cursor: Option<&str>, of: &str) -> Result<Option<(Timestamp, T)>, Problem> {
    let Some(text) = cursor else { return Ok(None) };
    let parts =
        text.split_once('.').and_then(|(at, id)| Some((Timestamp(at.parse().ok()?), id.parse().ok()?)));
    parts.map(Some).ok_or_else(|| Problem::invalid(format!("`{text}` is no cursor of {of}")))
}
