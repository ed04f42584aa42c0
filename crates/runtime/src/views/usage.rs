//! What runs used together.

use rallypoint_engine::state::{Run, State};
use rallypoint_engine::usage::of_ended;
use rallypoint_model::money::Money;
use rallypoint_model::usage::{Measured, Quality, RunUsage};
use rallypoint_ops::types::{ModelUsage, UsageInput, UsageTotals};

/// Adds up what the input asks for.
pub(crate) fn totals(state: &State, input: &UsageInput) -> UsageTotals {
    let wanted = |run: &&Run| {
        let room = run.task_id.and_then(|id| state.tasks.get(&id)).map(|task| task.origin_room_id);
        let ended = run.ended_at.unwrap_or_default();
        input.task_id.is_none_or(|task| run.task_id == Some(task))
            && input.session_id.is_none_or(|session| run.session_id == session)
            && input.room_id.is_none_or(|wanted| room == Some(wanted))
            && input.from.is_none_or(|from| ended >= from)
            && input.until.is_none_or(|until| ended < until)
    };
    // A task or session names its runs; only wider questions walk all of them.
    let of_task =
        input.task_id.map(|id| state.tasks.get(&id).map(|task| task.runs.as_slice()).unwrap_or_default());
    match of_task {
        Some(runs) => sum(state, runs.iter().filter_map(|id| state.runs.get(id)).filter(wanted)),
        None => sum(state, state.runs.values().filter(wanted)),
    }
}

/// Adds up runs that have ended and were accounted for.
pub(crate) fn sum<'a>(state: &State, runs: impl Iterator<Item = &'a Run>) -> UsageTotals {
    let mut totals = UsageTotals::default();
    for usage in runs.filter_map(|run| of_ended(state, run)) {
        add(&mut totals, &usage);
    }
    totals.tokens_quality = quality(&totals, totals.unknown_runs, totals.estimated_runs);
    totals.cost_quality = quality(&totals, totals.unknown_cost_runs, totals.estimated_cost_runs);
    totals.by_model.sort_by(|one, other| one.model.cmp(&other.model));
    totals
}

/// How well a sum is known: a guess as soon as one of its runs is one or is missing.
fn quality(totals: &UsageTotals, unknown: u64, estimated: u64) -> Quality {
    match (unknown, estimated) {
        _ if unknown == totals.runs => Quality::Unavailable,
        (0, 0) => Quality::Measured,
        _ => Quality::Estimated,
    }
}

fn add(totals: &mut UsageTotals, usage: &RunUsage) {
    totals.runs += 1;
    let place = totals.by_model.iter().position(|entry| entry.model == usage.model);
    let place = place.unwrap_or_else(|| {
        let empty = ModelUsage { model: usage.model.clone(), runs: 0, ..ModelUsage::default() };
        totals.by_model.push(empty);
        totals.by_model.len() - 1
    });
    let Some(by_model) = totals.by_model.get_mut(place) else { return };
    by_model.runs += 1;
    let tokens_estimated = u64::from(usage.tokens.quality() == Quality::Estimated);
    let cost_estimated = u64::from(usage.cost_quality() == Quality::Estimated);
    totals.estimated_runs += tokens_estimated;
    by_model.estimated_runs += tokens_estimated;
    totals.estimated_cost_runs += cost_estimated;
    by_model.estimated_cost_runs += cost_estimated;
    match &usage.tokens {
        Measured::Measured { value } | Measured::Estimated { value } => {
            totals.tokens = totals.tokens.plus(value);
            by_model.tokens = by_model.tokens.plus(value);
        }
        Measured::Unavailable { .. } => totals.unknown_runs += 1,
    }
    match usage.known_cost() {
        Some(cost) => {
            add_money(&mut totals.cost, cost);
            add_money(&mut by_model.cost, cost);
            totals.agent_cost_runs += u64::from(matches!(usage.cost, Measured::Unavailable { .. }));
        }
        None => totals.unknown_cost_runs += 1,
    }
}

fn add_money(sums: &mut Vec<Money>, cost: Money) {
    match sums.iter_mut().find(|sum| sum.currency == cost.currency) {
        Some(sum) => sum.micros = sum.micros.saturating_add(cost.micros),
        None => sums.push(cost),
    }
    sums.sort_by_key(|sum| sum.currency);
}
