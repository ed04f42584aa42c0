//! What was told is in the journal.

use std::collections::BTreeMap;

use rallypoint_model::event::EventRecord;

use crate::crash::Request;
use crate::follower::Shown;
use crate::journal::Journal;
use crate::violation::{Rule, Violation};

/// What a follower was shown is the journal from where it began to the last event that it saw, filtered, with nothing
/// left out, repeated or changed.
pub(crate) fn check_shown(journal: &Journal, shown: &Shown) -> Vec<Violation> {
    let filter = &shown.filter;
    let who = match (filter.task_id, filter.room_id) {
        (Some(task_id), _) => format!("a follower of task {task_id}"),
        (None, Some(room_id)) => format!("a follower of room {room_id}"),
        (None, None) => "a follower of everything".to_owned(),
    };
    let mut violations: Vec<Violation> = shown
        .problems
        .iter()
        .map(|problem| Violation::new(Rule::Shown, format!("{who} was cut off: {problem}")))
        .collect();
    let after = filter.after.unwrap_or(0);
    let last = shown.events.iter().map(|event| event.seq).max().unwrap_or(after);
    let wanted: Vec<&EventRecord> = journal
        .events
        .iter()
        .filter(|event| event.seq > after && event.seq <= last)
        .filter(|event| filter.task_id.is_none_or(|id| event.scope.task_id == Some(id)))
        .filter(|event| filter.room_id.is_none_or(|id| event.scope.room_id == Some(id)))
        .collect();
    let stored: BTreeMap<i64, &EventRecord> = journal.events.iter().map(|event| (event.seq, event)).collect();
    for event in &shown.events {
        match stored.get(&event.seq) {
            Some(stored) if *stored == event => {}
            Some(stored) => {
                let text = format!("{who} saw event {} as {event:?}, stored is {stored:?}", event.seq);
                violations.push(Violation::new(Rule::Shown, text));
            }
            None => {
                let text = format!("{who} saw event {} ({}), which is lost", event.seq, event.event.kind());
                violations.push(Violation::new(Rule::Shown, text));
            }
        }
    }
    let seqs: Vec<i64> = shown.events.iter().map(|event| event.seq).collect();
    let wanted: Vec<i64> = wanted.iter().map(|event| event.seq).collect();
    if seqs != wanted {
        let place = seqs.iter().zip(&wanted).position(|(shown, wanted)| shown != wanted);
        let place = place.unwrap_or_else(|| seqs.len().min(wanted.len()));
        let text = format!(
            "{who}, after {after}, saw {} events instead of {}; as its number {} it saw {:?} instead of {:?}",
            seqs.len(),
            wanted.len(),
            place + 1,
            seqs.get(place),
            wanted.get(place)
        );
        violations.push(Violation::new(Rule::Shown, text));
    }
    violations
}

/// A caller who was answered has its task, the same one each time.
pub(crate) fn check_answers(journal: &Journal, requests: &[Request]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for request in requests {
        let mut answers = request.answers.clone();
        answers.sort();
        answers.dedup();
        if answers.len() != 1 {
            let text = format!("`{}` was answered with {} tasks", request.key, answers.len());
            violations.push(Violation::new(Rule::OneTask, text));
        }
        for task_id in answers.iter().filter(|id| !journal.state.tasks.contains_key(id)) {
            let text = format!("`{}` was answered with task {task_id}, which is lost", request.key);
            violations.push(Violation::new(Rule::Shown, text));
        }
    }
    violations
}
