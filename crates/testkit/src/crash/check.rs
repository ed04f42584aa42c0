//! What must hold afterwards.

mod harm;
mod messages;
mod orphans;
mod output;
mod prompts;
mod replay;
mod shown;

use std::collections::BTreeMap;

use rallypoint_engine::state::Task;
use rallypoint_model::event::Event;
use rallypoint_model::ids::TaskId;

pub use harm::Harm;
pub(crate) use orphans::check_orphans;
pub(crate) use shown::{check_answers, check_shown};

use crate::crash::Request;
use crate::journal::Journal;
use crate::violation::{Rule, Violation};

/// Everything that the journal can tell about requests that all came to their end.
pub fn check_work(journal: &Journal, requests: &[Request], harm: Harm) -> Vec<Violation> {
    let tasks = tasks_of(journal, requests);
    let mut violations = Vec::new();
    violations.extend(check_tasks(journal, requests, &tasks, harm));
    violations.extend(check_versions(journal));
    violations.extend(messages::check(journal));
    violations.extend(prompts::check(journal, requests, &tasks, harm));
    violations.extend(output::check(journal, requests, &tasks, harm));
    violations.extend(replay::check(journal));
    violations
}

/// Tasks by the key of their request.
type TasksByKey<'a> = BTreeMap<&'a str, Vec<&'a Task>>;

fn tasks_of<'a>(journal: &'a Journal, requests: &'a [Request]) -> TasksByKey<'a> {
    let mut tasks: TasksByKey<'a> =
        requests.iter().map(|request| (request.key.as_str(), Vec::new())).collect();
    for (task_id, key) in journal.tasks() {
        if let (Some(key), Some(task)) = (key, journal.state.tasks.get(&task_id)) {
            tasks.entry(key).or_default().push(task);
        }
    }
    tasks
}

fn check_tasks(
    journal: &Journal,
    requests: &[Request],
    tasks: &TasksByKey<'_>,
    harm: Harm,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for record in &journal.events {
        if let Event::MessagePosted { delivery_key: Some(key), .. } = &record.event
            && let Some(key) = key.strip_prefix("request|")
        {
            *asked.entry(key.to_owned()).or_default() += 1;
        }
    }
    for (key, tasks) in tasks {
        if tasks.len() != 1 {
            let text =
                format!("`{key}` made {} tasks: {}", tasks.len(), list(tasks.iter().map(|task| task.id)));
            violations.push(Violation::new(Rule::OneTask, text));
        }
        let messages = asked.get(*key).copied().unwrap_or(0);
        if messages != 1 {
            let text = format!("`{key}` stands {messages} times in the room as a person's message");
            violations.push(Violation::new(Rule::OneTask, text));
        }
    }
    for request in requests {
        for task in tasks.get(request.key.as_str()).into_iter().flatten() {
            if harm == Harm::Possible && harm::was_harmed(journal, task) {
                if let Some(untruth) = harm::untruth(journal, task) {
                    let text =
                        format!("task {} of `{}` ({:?}) {untruth}", task.id, request.key, request.work);
                    violations.push(Violation::new(Rule::Ending, text));
                }
                if task.runs.len() > request.work.runs() {
                    let text = format!("task {} of `{}` took {} runs", task.id, request.key, task.runs.len());
                    violations.push(Violation::new(Rule::Ending, text));
                }
                continue;
            }
            if task.status != request.work.ending() {
                let text = format!(
                    "task {} of `{}` ({:?}) is {:?} because of {:?}, not {:?}; its last reply: {:?}",
                    task.id,
                    request.key,
                    request.work,
                    task.status,
                    task.reason,
                    request.work.ending(),
                    task.last_reply
                );
                violations.push(Violation::new(Rule::Ending, text));
            }
            if task.runs.len() != request.work.runs() {
                let text = format!(
                    "task {} of `{}` ({:?}) took {} runs, not {}",
                    task.id,
                    request.key,
                    request.work,
                    task.runs.len(),
                    request.work.runs()
                );
                violations.push(Violation::new(Rule::Ending, text));
            }
        }
    }
    violations
}

/// Numbers within an aggregate go up by one, and an event is never of another schema than its neighbours.
fn check_versions(journal: &Journal) -> Vec<Violation> {
    let mut last = BTreeMap::new();
    let mut violations = Vec::new();
    for record in &journal.events {
        let before = last.insert(record.aggregate, record.version).unwrap_or(0);
        if record.version != before + 1 {
            let text = format!("event {} has version {} after {before}", record.seq, record.version);
            violations.push(Violation::new(Rule::Replay, text));
        }
    }
    violations
}

/// Things in a row, for a sentence.
fn list(things: impl Iterator<Item = impl std::fmt::Display>) -> String {
    things.map(|thing| thing.to_string()).collect::<Vec<_>>().join(", ")
}

/// The key that a task was asked for with, for a sentence.
fn key_of(journal: &Journal, task_id: Option<TaskId>) -> String {
    journal
        .tasks()
        .find(|(id, _)| Some(*id) == task_id)
        .and_then(|(_, key)| key.map(str::to_owned))
        .unwrap_or_default()
}
