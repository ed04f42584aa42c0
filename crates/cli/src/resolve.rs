//! Ids as people type them: whole, or a part that only one has.

use std::fmt::Display;
use std::str::FromStr;

use rallypoint_client::Client;
use rallypoint_model::ids::{DeliveryId, QuestionId, RoomId, RunId, SessionId, TaskId};
use rallypoint_ops::rooms::{DeliveryList, ListDeliveriesInput};
use rallypoint_ops::types::{
    Empty, ListQuestionsInput, ListTasksInput, QuestionList, RoomList, TaskPage, TaskRef, TaskView,
};

use crate::failure::Failure;

/// Tasks on one page of a search.
const PAGE: u32 = 500;
/// Tasks whose sessions and runs are searched, latest first.
const TASKS_SEARCHED: u32 = 50;

pub(crate) async fn task(client: &Client, text: &str) -> Result<TaskId, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let mut ids = Vec::new();
    let mut cursor = None;
    loop {
        let input =
            ListTasksInput { limit: Some(PAGE), cursor, include_archived: true, ..Default::default() };
        let page: TaskPage = client.call("task.list", &input).await?;
        ids.extend(page.items.iter().map(|task| task.task_id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return pick("task", text, &ids, "`rally task list` lists them");
        }
    }
}

pub(crate) async fn question(client: &Client, text: &str) -> Result<QuestionId, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let open: QuestionList = client.call("question.list", &ListQuestionsInput::default()).await?;
    let ids: Vec<QuestionId> = open.items.iter().map(|question| question.question_id).collect();
    pick("open question", text, &ids, "`rally question list` lists them")
}

pub(crate) async fn delivery(client: &Client, text: &str) -> Result<DeliveryId, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let input = ListDeliveriesInput { all: true, limit: Some(PAGE), ..Default::default() };
    let list: DeliveryList = client.call("delivery.list", &input).await?;
    let ids: Vec<DeliveryId> = list.items.iter().map(|delivery| delivery.delivery_id).collect();
    pick("delivery", text, &ids, "`rally delivery list --all` lists them")
}

/// The room's id as the operations take it.
pub(crate) async fn room(client: &Client, text: &str) -> Result<String, Failure> {
    if text == "main" || text.parse::<RoomId>().is_ok() {
        return Ok(text.to_owned());
    }
    let rooms: RoomList = client.call("room.list", &Empty {}).await?;
    let ids: Vec<RoomId> = rooms.items.iter().map(|room| room.room_id).collect();
    pick("room", text, &ids, "`rally room list` lists them").map(|id| id.to_string())
}

pub(crate) async fn session(client: &Client, text: &str) -> Result<SessionId, Failure> {
    of_tasks(client, "session", text, |task| task.sessions.iter().map(|session| session.session_id).collect())
        .await
}

pub(crate) async fn run(client: &Client, text: &str) -> Result<RunId, Failure> {
    of_tasks(client, "run", text, |task| task.runs.iter().map(|run| run.run_id).collect()).await
}

async fn of_tasks<T>(
    client: &Client,
    noun: &str,
    text: &str,
    ids_of: impl Fn(&TaskView) -> Vec<T>,
) -> Result<T, Failure>
where
    T: Copy + Display + FromStr,
{
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let input = ListTasksInput { limit: Some(TASKS_SEARCHED), include_archived: true, ..Default::default() };
    let page: TaskPage = client.call("task.list", &input).await?;
    let mut ids = Vec::new();
    for task in page.items {
        let view: TaskView = client.call("task.get", &TaskRef { task_id: task.task_id }).await?;
        ids.extend(ids_of(&view));
    }
    pick(noun, text, &ids, "`rally task show ID` lists those of a task")
}

/// The one whose id begins with the text, or else ends with it: ids made close together begin alike.
fn pick<T: Copy + Display>(noun: &str, text: &str, ids: &[T], hint: &str) -> Result<T, Failure> {
    let wanted = text.to_lowercase();
    let matching = |test: fn(&str, &str) -> bool| -> Vec<T> {
        ids.iter().copied().filter(|id| !wanted.is_empty() && test(&id.to_string(), &wanted)).collect()
    };
    let mut found = matching(|id, wanted| id.starts_with(wanted));
    if found.is_empty() {
        found = matching(|id, wanted| id.ends_with(wanted));
    }
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(Failure::failed(format!("no {noun} has the id `{text}`")).with_hint(hint)),
        several => Err(Failure::usage(format!(
            "`{text}` stands for {} ids, so it is not clear which",
            several.len()
        ))
        .with_hint("write more of the id")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_names_one_or_is_refused() {
        let ids = ["0198aa01-7000-0001", "0198aa02-7000-0002", "0298aa02-7000-0003"];
        let picked = |text: &str| pick("task", text, &ids, "hint");
        assert_eq!(picked("0298").unwrap(), ids[2]);
        assert_eq!(picked("0198AA02").unwrap(), ids[1]);
        assert_eq!(picked("-0001").unwrap(), ids[0]);
        assert!(picked("0198").unwrap_err().message().contains("2 ids"));
        assert!(picked("07").unwrap_err().message().contains("no task"));
        assert!(picked("").is_err());
    }
}
