//! One outcome for each run, one routed message for each boundary event, one terminal reply for each task.

use std::collections::BTreeMap;

use rallypoint_engine::consequences::boundary_of_outcome;
use rallypoint_model::event::Event;
use rallypoint_model::run::RunPurpose;
use rallypoint_model::task::TaskStatus;
use serde_json::Value;

use super::key_of;
use crate::journal::Journal;
use crate::violation::{Rule, Violation};

pub(super) fn check(journal: &Journal) -> Vec<Violation> {
    let mut violations = outcomes(journal);
    violations.extend(routed(journal));
    violations.extend(replies(journal));
    violations
}

fn outcomes(journal: &Journal) -> Vec<Violation> {
    let mut ends = BTreeMap::new();
    for record in &journal.events {
        match &record.event {
            Event::RunQueued { run_id, .. } => drop(ends.entry(*run_id).or_insert(0_usize)),
            Event::RunEnded { run_id, .. } => *ends.entry(*run_id).or_insert(0) += 1,
            _ => {}
        }
    }
    ends.into_iter()
        .filter(|(_, count)| *count != 1)
        .map(|(run_id, count)| Violation::new(Rule::OneOutcome, format!("run {run_id} has {count} outcomes")))
        .collect()
}

fn routed(journal: &Journal) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut posts: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for message in journal.messages() {
        let word =
            |name: &str| message.metadata.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if message.metadata.get("subAgent").and_then(Value::as_bool) == Some(true) {
            let key = (word("runId"), word("subAgentEvent"), message.room_id.to_string());
            *posts.entry(key).or_default() += 1;
        }
    }
    for ((run, event, room), count) in &posts {
        if *count != 1 {
            let text = format!("`{event}` of run {run} stands {count} times in room {room}");
            violations.push(Violation::new(Rule::OneMessage, text));
        }
    }
    for run in journal.state.runs.values().filter(|run| run.purpose != RunPurpose::Turn) {
        let Some(boundary) = run.outcome.and_then(boundary_of_outcome) else { continue };
        let room = run
            .task_id
            .and_then(|id| journal.state.tasks.get(&id))
            .map(|task| task.origin_room_id.to_string())
            .unwrap_or_default();
        let wanted = (run.id.to_string(), boundary.as_str().to_owned(), room);
        let told = posts.keys().filter(|(id, _, _)| *id == wanted.0).count();
        if told != 1 || !posts.contains_key(&wanted) {
            let text = format!(
                "run {} of `{}` ended as {:?} and its room was told {told} things about it",
                run.id,
                key_of(journal, run.task_id),
                run.outcome
            );
            violations.push(Violation::new(Rule::OneMessage, text));
        }
    }
    violations
}

fn replies(journal: &Journal) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut replies: BTreeMap<(Option<_>, &str), usize> = BTreeMap::new();
    for message in journal.messages() {
        if let Some(role) = message.metadata.get("role").and_then(Value::as_str) {
            *replies.entry((message.task_id, role)).or_default() += 1;
        }
    }
    for task in journal.state.tasks.values() {
        for role in ["acknowledgement", "terminal"] {
            let count = replies.get(&(Some(task.id), role)).copied().unwrap_or(0);
            // An end by a cut is told like any other end; a person can take the task up again.
            let ended = task.status.is_terminal() || task.status == TaskStatus::Interrupted;
            let wanted = usize::from(role == "acknowledgement" || ended);
            if count != wanted {
                let text = format!(
                    "task {} of `{}` has {count} {role} replies",
                    task.id,
                    key_of(journal, Some(task.id))
                );
                violations.push(Violation::new(Rule::OneMessage, text));
            }
        }
    }
    violations
}
