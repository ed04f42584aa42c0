//! Clocks of what is under way, moved together.
//!
//! When the clock of the machine is set, or the machine sleeps, no time has
//! passed for those who work: every start and deadline that is still compared
//! with now is moved by as much, so that the distances stay.

use crate::changes::{Changes, RowRef};
use crate::state::{Generation, Run, State, Task};

/// Whether anything is under way whose clock could be moved.
pub(crate) fn is_anything_open(state: &State) -> bool {
    state.open_runs().next().is_some()
        || state.open_generations().any(Generation::is_live)
        || state.open_tasks().any(|task| !task.status.is_terminal())
        || state.all_open_questions().next().is_some()
        || state.open_deliveries().next().is_some()
}

pub(super) fn shift(state: &mut State, by_ms: i64, changes: &mut Changes) {
    for id in state.open_runs().map(|run| run.id).collect::<Vec<_>>() {
        let Some(run) = state.runs.get_mut(&id) else { continue };
        shift_run(run, by_ms);
        changes.touch(RowRef::Run(run.id));
    }
    let live = state.open_generations().filter(|generation| generation.is_live());
    for id in live.map(|generation| generation.id).collect::<Vec<_>>() {
        let Some(generation) = state.generations.get_mut(&id) else { continue };
        generation.started_at = generation.started_at.plus(by_ms);
        generation.last_report_at = generation.last_report_at.plus(by_ms);
        changes.touch(RowRef::Generation(generation.id));
    }
    let unfinished = state.open_tasks().filter(|task| !task.status.is_terminal());
    for id in unfinished.map(|task| task.id).collect::<Vec<_>>() {
        let Some(task) = state.tasks.get_mut(&id) else { continue };
        shift_task(task, by_ms);
        changes.touch(RowRef::Task(task.id));
    }
    for id in state.all_open_questions().map(|question| question.id).collect::<Vec<_>>() {
        let Some(question) = state.questions.get_mut(&id) else { continue };
        question.opened_at = question.opened_at.plus(by_ms);
        question.deadline_at = question.deadline_at.plus(by_ms);
        changes.touch(RowRef::Question(question.id));
    }
    for id in state.open_deliveries().map(|delivery| delivery.id).collect::<Vec<_>>() {
        let Some(delivery) = state.deliveries.get_mut(&id) else { continue };
        delivery.next_at = delivery.next_at.plus(by_ms);
        delivery.deadline_at = delivery.deadline_at.plus(by_ms);
        changes.touch(RowRef::Delivery(delivery.id));
    }
}

fn shift_run(run: &mut Run, by_ms: i64) {
    run.queued_at = run.queued_at.plus(by_ms);
    for at in [
        &mut run.admitted_at,
        &mut run.started_at,
        &mut run.waits_since,
        &mut run.resumed_at,
        &mut run.working_since,
        &mut run.detecting_since,
    ] {
        *at = at.map(|at| at.plus(by_ms));
    }
    if let Some(cancel) = &mut run.cancel {
        cancel.at = cancel.at.plus(by_ms);
    }
    if let Some(answer) = &mut run.answer {
        answer.at = answer.at.plus(by_ms);
    }
}

fn shift_task(task: &mut Task, by_ms: i64) {
    // Proof must be newer than the last end, and both are of one clock.
    for at in [&mut task.deadline_at, &mut task.last_run_ended_at, &mut task.progress.next_at] {
        *at = at.map(|at| at.plus(by_ms));
    }
    if let Some(pause) = &mut task.pause {
        pause.at = pause.at.plus(by_ms);
    }
}
