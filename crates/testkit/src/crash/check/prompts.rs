//! Each prompt reached its agent once: neither twice nor never.
//!
//! Agents note each prompt before they work on it, so the notes are the truth and the journal has to agree.

use rallypoint_model::run::{RunOutcome, RunPurpose};

use super::TasksByKey;
use super::harm::{Harm, was_harmed};
use crate::crash::Request;
use crate::journal::Journal;
use crate::violation::{Rule, Violation};

pub(super) fn check(
    journal: &Journal,
    requests: &[Request],
    tasks: &TasksByKey<'_>,
    harm: Harm,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let (prompts, accepted) = (journal.prompts(), journal.accepted());
    let accepted_of = |run_id| {
        let inputs = prompts.get(&run_id).map(Vec::as_slice).unwrap_or_default();
        inputs.iter().map(|input| accepted.get(input).copied().unwrap_or(0)).sum::<usize>()
    };
    for run in journal.state.runs.values().filter(|run| run.purpose != RunPurpose::Turn) {
        let count = accepted_of(run.id);
        if count > 1 {
            let text = format!("the prompt of run {} was accepted {count} times", run.id);
            violations.push(Violation::new(Rule::OnePrompt, text));
        }
        if run.outcome == Some(RunOutcome::Completed) && count == 0 {
            let text = format!("run {} completed and its prompt was never accepted", run.id);
            violations.push(Violation::new(Rule::OnePrompt, text));
        }
    }
    for (input, count) in accepted.iter().filter(|(_, count)| **count > 1) {
        let text = format!("input {} of generation {} was accepted {count} times", input.1, input.0);
        violations.push(Violation::new(Rule::OnePrompt, text));
    }
    for request in requests.iter().filter(|request| request.work.leaves_notes()) {
        let notes = std::fs::read_to_string(&request.notes).unwrap_or_default();
        let lines = notes.lines().count();
        let tasks = tasks.get(request.key.as_str()).map(Vec::as_slice).unwrap_or_default();
        let sent: usize = tasks.iter().flat_map(|task| &task.runs).map(|run_id| accepted_of(*run_id)).sum();
        // A request is one piece of work, however many tasks a fault made of it.
        let wanted = request.work.runs();
        if harm == Harm::Possible && tasks.iter().any(|task| was_harmed(journal, task)) {
            // An agent may be killed between its prompt and its note, but it notes nothing that it was not given.
            if lines > sent || sent > wanted {
                let text = format!(
                    "`{}` ({:?}) is {wanted} prompts at most, {sent} were accepted, agents noted {lines}",
                    request.key, request.work
                );
                violations.push(Violation::new(Rule::OnePrompt, text));
            }
            continue;
        }
        if lines != sent || lines != wanted {
            let text = format!(
                "`{}` ({:?}) is {wanted} prompts, {sent} were accepted, agents noted {lines}",
                request.key, request.work
            );
            violations.push(Violation::new(Rule::OnePrompt, text));
        }
    }
    violations
}
