//! Who gets the next slot, and what a task has used of its budget.
//!
//! A run that is accepted and has no slot is parked. Its place follows from
//! the band of its task, raised by one band for each `queueAgingMs` that it
//! has waited; equal ones go in the order in which they came. So a parked run
//! is passed only by runs that came within a bounded time after it.

use std::borrow::Cow;

use rallypoint_model::admission::UnknownCost;
use rallypoint_model::ids::RunId;
use rallypoint_model::limits::Limits;
use rallypoint_model::money::Currency;
use rallypoint_model::run::{OutcomeReason, RunStatus};
use rallypoint_model::session::SessionKind;
use rallypoint_model::time::Timestamp;
use rallypoint_model::usage::{Measured, RunUsage};

use crate::state::{Run, State, Task};
use crate::usage::of_ended;

/// Runs that wait for a slot, the next one first. A run behind another one of
/// its own session waits for that, not for a slot.
pub fn parked(state: &State, limits: &Limits, now: Timestamp) -> Vec<RunId> {
    let mut waiting: Vec<&Run> = state
        .busy_sessions()
        .filter(|session| session.kind == SessionKind::SubAgent && session.open_run.is_none())
        .filter(|session| !session.stopped)
        .filter_map(|session| session.queue.first())
        .filter_map(|id| state.runs.get(id))
        .filter(|run| !state.is_held(run))
        .collect();
    waiting.sort_by_key(|run| (std::cmp::Reverse(band(state, run, limits, now)), run.queued_at, run.id));
    waiting.into_iter().map(|run| run.id).collect()
}

/// Place of a run among those that wait for a slot, from 1.
pub fn position(state: &State, limits: &Limits, now: Timestamp, run_id: RunId) -> Option<u32> {
    let place = parked(state, limits, now).iter().position(|id| *id == run_id)?;
    u32::try_from(place).ok()?.checked_add(1)
}

/// The band of a run: its task's, and one more for each aging period that it has waited.
pub fn band(state: &State, run: &Run, limits: &Limits, now: Timestamp) -> i64 {
    let own =
        run.task_id.and_then(|id| state.tasks.get(&id)).map(|task| task.priority).unwrap_or_default().band();
    let waited = now.since(run.queued_at).max(0);
    own.saturating_add(waited.checked_div(limits.queue_aging_ms.max(0)).unwrap_or(0))
}

/// Tokens that the runs of a task are known to have used, each counted once however its agent counts. What agents
/// don't report can't be counted; of what they report of their last model call only, that much is.
pub fn tokens_used(state: &State, task: &Task) -> u64 {
    usages(state, task)
        .filter_map(|usage| match &usage.tokens {
            Measured::Measured { value } | Measured::Estimated { value } => Some(value.total()),
            Measured::Unavailable { .. } => None,
        })
        .fold(0, u64::saturating_add)
}

/// Money of this currency that the runs of a task are known to have cost, in millionths.
pub fn money_used(state: &State, task: &Task, currency: Currency) -> u64 {
    usages(state, task)
        .filter_map(|usage| usage.known_cost())
        .filter(|cost| cost.currency == currency)
        .fold(0, |sum, cost| sum.saturating_add(cost.micros))
}

/// Runs of a task that ended without a known cost in this currency.
fn runs_of_unknown_cost(state: &State, task: &Task, currency: Currency) -> u64 {
    usages(state, task)
        .filter(|usage| usage.known_cost().is_none_or(|cost| cost.currency != currency))
        .count() as u64
}

fn usages<'a>(state: &'a State, task: &'a Task) -> impl Iterator<Item = Cow<'a, RunUsage>> {
    runs_of(state, task).filter_map(|run| of_ended(state, run))
}

/// Active time of a task's runs together, in milliseconds.
pub fn active_ms_used(state: &State, task: &Task, now: Timestamp) -> i64 {
    runs_of(state, task).filter_map(|run| active_ms(run, now)).fold(0, i64::saturating_add)
}

/// From its prompt to its end, without what it waited for its children.
fn active_ms(run: &Run, now: Timestamp) -> Option<i64> {
    let until = run.ended_at.or(run.waits_since).unwrap_or(now);
    Some(until.since(run.started_at?).saturating_sub(run.waited_ms).max(0))
}

/// The limit of a task's budget that is used up, when one is.
pub fn budget_used_up(state: &State, task: &Task, now: Timestamp) -> Option<OutcomeReason> {
    if let Some(cap) = task.budget.tokens {
        let used = tokens_used(state, task);
        if used >= cap {
            return Some(OutcomeReason::Budget { limit: "budget.tokens".to_owned(), used, cap });
        }
    }
    money_used_up(state, task).or_else(|| active_time_used_up(state, task, now))
}

fn money_used_up(state: &State, task: &Task) -> Option<OutcomeReason> {
    let cap = task.budget.cost?;
    let used = money_used(state, task, cap.currency);
    if used >= cap.micros {
        return Some(OutcomeReason::Budget { limit: "budget.cost".to_owned(), used, cap: cap.micros });
    }
    let unknown = runs_of_unknown_cost(state, task, cap.currency);
    (task.budget.unknown_cost == UnknownCost::Refuse && unknown > 0).then(|| OutcomeReason::Budget {
        limit: "budget.unknownCost".to_owned(),
        used: unknown,
        cap: 0,
    })
}

/// The same for the active time alone, which also ends a run that is under way.
pub fn active_time_used_up(state: &State, task: &Task, now: Timestamp) -> Option<OutcomeReason> {
    let cap = task.budget.active_ms?;
    let used = active_ms_used(state, task, now);
    (used >= cap).then(|| OutcomeReason::Budget {
        limit: "budget.activeMs".to_owned(),
        used: used.unsigned_abs(),
        cap: cap.unsigned_abs(),
    })
}

/// Whether a run can be ended because its task's active time is used up.
pub fn can_be_capped(run: &Run) -> bool {
    run.is_open() && run.started_at.is_some() && run.cancel.is_none() && run.status != RunStatus::Settling
}

/// When a task's active time is used up, if nothing changes until then.
pub fn budget_deadline(state: &State, task: &Task) -> Option<Timestamp> {
    let cap = task.budget.active_ms?;
    if !state.open_runs_of(task.id).any(can_be_capped) {
        return None;
    }
    let mut fixed = 0_i64;
    let mut began = 0_i64;
    let mut active = 0_i64;
    for run in runs_of(state, task) {
        let Some(started) = run.started_at else { continue };
        if run.ended_at.is_some() || run.waits_since.is_some() {
            fixed = fixed.saturating_add(active_ms(run, started).unwrap_or(0));
        } else {
            began = began.saturating_add(started.0.saturating_add(run.waited_ms));
            active += 1;
        }
    }
    // Each active run uses one millisecond of it a millisecond; rounded up, so that it is used up by then.
    let sum = cap.saturating_sub(fixed).saturating_add(began);
    let at = sum.saturating_add(active.saturating_sub(1)).checked_div(active)?;
    Some(Timestamp(at))
}

fn runs_of<'a>(state: &'a State, task: &'a Task) -> impl Iterator<Item = &'a Run> {
    task.runs.iter().filter_map(|id| state.runs.get(id))
}
