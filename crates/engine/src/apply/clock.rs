//! Clocks of what is under way, moved together.
//!
//! When the clock of the machine is set, or the machine sleeps, no time has
//! passed for those who work: every start and deadline that is still compared
//! with now is moved by as much, so that the distances stay.

use rallypoint_model::question::QuestionStatus;

use crate::changes::{Changes, RowRef};
use crate::state::{Generation, Run, State, Task};

/// Whether anything is under way whose clock could be moved.
pub(crate) fn is_anything_open(state: &State) -> bool {
    state.runs.values().any(Run::is_open)
        || state.generations.values().any(Generation::is_live)
        || state.tasks.values().any(|task| !task.status.is_terminal())
        || state.questions.values().any(|question| question.status == QuestionStatus::Open)
        || state.open_deliveries().next().is_some()
}

pub(super) fn shift(state: &mut State, by_ms: i64, changes: &mut Changes) {
    for run in state.runs.values_mut().filter(|run| run.is_open()) {
        shift_run(run, by_ms);
        changes.touch(RowRef::Run(run.id));
    }
    for generation in state.generations.values_mut().filter(|generation| generation.is_live()) {
        generation.started_at = generation.started_at.plus(by_ms);
        generation.last_report_at = generation.last_report_at.plus(by_ms);
        changes.touch(RowRef::Generation(generation.id));
    }
    for task in state.tasks.values_mut().filter(|task| !task.status.is_terminal()) {
        shift_task(task, by_ms);
        changes.touch(RowRef::Task(task.id));
    }
    for question in state.questions.values_mut().filter(|question| question.status == QuestionStatus::Open) {
        question.opened_at = question.opened_at.plus(by_ms);
        question.deadline_at = question.deadline_at.plus(by_ms);
        changes.touch(RowRef::Question(question.id));
    }
    for delivery in state.deliveries.values_mut().filter(|delivery| delivery.status.is_open()) {
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
    for at in [&mut task.deadline_at, &mut task.last_run_ended_at] {
        *at = at.map(|at| at.plus(by_ms));
    }
    if let Some(pause) = &mut task.pause {
        pause.at = pause.at.plus(by_ms);
    }
}
