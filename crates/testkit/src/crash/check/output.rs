//! Output of agents is stored once, whole and in order.

use std::collections::BTreeMap;

use rallypoint_model::agent_io::AgentOutput;
use rallypoint_model::event::Event;
use rallypoint_model::ids::{GenerationId, RunId};

use super::TasksByKey;
use super::harm::{Harm, is_cut};
use crate::crash::Request;
use crate::journal::Journal;
use crate::violation::{Rule, Violation};

/// What is stored of one run's output.
#[derive(Debug, Default)]
struct Stored {
    text: String,
    first_frame: Option<u64>,
    last_frame: u64,
    holes: Vec<(u64, u64)>,
    late: usize,
    answer_frame: Option<u64>,
}

pub(super) fn check(
    journal: &Journal,
    requests: &[Request],
    tasks: &TasksByKey<'_>,
    harm: Harm,
) -> Vec<Violation> {
    let mut violations = frames_in_order(journal);
    let stored = stored(journal);
    for request in requests {
        let Some(chunks) = request.work.chunks() else { continue };
        let wanted: String = (1..=chunks).map(|number| format!("chunk {number} of {chunks}\n")).collect();
        let runs = tasks.get(request.key.as_str()).into_iter().flatten().flat_map(|task| &task.runs);
        for run_id in runs {
            let mut found = |text: String| {
                let text = format!("run {run_id} of `{}` ({:?}): {text}", request.key, request.work);
                violations.push(Violation::new(Rule::Output, text));
            };
            let run = journal.state.runs.get(run_id);
            let cut = harm == Harm::Possible && run.is_some_and(is_cut);
            let nothing = Stored::default();
            let stored = stored.get(run_id).or(cut.then_some(&nothing));
            let Some(stored) = stored else {
                found("no output is stored".to_owned());
                continue;
            };
            let as_far_as_it_got = cut && wanted.starts_with(&stored.text);
            if stored.text != wanted && !as_far_as_it_got {
                found(difference(&wanted, &stored.text));
            }
            if let Some((before, after)) = stored.holes.first() {
                found(format!("frames between {before} and {after} are not covered"));
            }
            if stored.late > 0 {
                found(format!("{} outputs count as late", stored.late));
            }
            if !cut && stored.answer_frame != Some(stored.last_frame + 1) {
                let (last, answer) = (stored.last_frame, stored.answer_frame);
                found(format!("the last output is frame {last}, the answer {answer:?}"));
            }
            let result = run.and_then(|run| run.result.as_ref());
            match result.and_then(|result| journal.output(&result.digest)) {
                Some(text) if text == stored.text && (cut || text == wanted) => {}
                None if cut && stored.text.is_empty() => {}
                Some(text) => found(format!("the kept result is another: {}", difference(&wanted, &text))),
                None => found("no result is kept".to_owned()),
            }
        }
    }
    violations
}

/// Rows of one process cover frames that only go up.
fn frames_in_order(journal: &Journal) -> Vec<Violation> {
    let mut last: BTreeMap<GenerationId, u64> = BTreeMap::new();
    let mut violations = Vec::new();
    for record in &journal.events {
        let Event::AgentOutput { generation_id, first_frame, last_frame, .. } = &record.event else {
            continue;
        };
        let before = last.entry(*generation_id).or_default();
        if first_frame <= before || last_frame < first_frame {
            let text = format!(
                "event {} covers frames {first_frame} to {last_frame} of generation {generation_id}, after {before}",
                record.seq
            );
            violations.push(Violation::new(Rule::Output, text));
        }
        *before = (*before).max(*last_frame);
    }
    violations
}

fn stored(journal: &Journal) -> BTreeMap<RunId, Stored> {
    let mut all: BTreeMap<RunId, Stored> = BTreeMap::new();
    for record in &journal.events {
        match &record.event {
            Event::AgentOutput { first_frame, last_frame, late, output, .. } => {
                let Some(run_id) = record.scope.run_id else { continue };
                let stored = all.entry(run_id).or_default();
                if let AgentOutput::Message { text } = output {
                    stored.text.push_str(text);
                }
                if stored.first_frame.is_some() && *first_frame > stored.last_frame + 1 {
                    stored.holes.push((stored.last_frame, *first_frame));
                }
                stored.first_frame.get_or_insert(*first_frame);
                stored.last_frame = stored.last_frame.max(*last_frame);
                stored.late += usize::from(*late);
            }
            Event::RunAnswered { run_id, frame, .. } => {
                all.entry(*run_id).or_default().answer_frame = Some(*frame);
            }
            _ => {}
        }
    }
    all
}

/// Where two texts begin to differ.
fn difference(wanted: &str, found: &str) -> String {
    let lines = wanted.lines().count();
    let place = wanted.lines().zip(found.lines()).position(|(wanted, found)| wanted != found);
    let place = place.unwrap_or_else(|| lines.min(found.lines().count()));
    let line = |text: &str| text.lines().nth(place).unwrap_or("nothing").to_owned();
    format!(
        "{} lines instead of {lines}; line {} is `{}` instead of `{}`",
        found.lines().count(),
        place + 1,
        line(found),
        line(wanted)
    )
}
