//! What a run used, from what its agent reported and how that agent counts.
//!
//! The numbers alone don't tell whether they are of this turn, of the last
//! model call or of the whole conversation, so the profile says. What can't be
//! known is said to be unknown, with the reason, and is never a zero.

use std::borrow::Cow;

use rallypoint_model::agent_offer::ConversationOffer;
use rallypoint_model::money::{Money, PriceTable};
use rallypoint_model::run::RunPurpose;
use rallypoint_model::usage::{ContextFill, Measured, RunUsage, TokenCounts, UsageKind, UsageNoted};
use serde_json::Value;

use crate::settings::model_in_use;
use crate::state::{Generation, Run, State};

/// Takes in what an agent says of its use in mid-turn (`usage_update`: `used`, `size`, `cost`). Whether anything is new.
pub fn note(noted: &mut UsageNoted, raw: &Value) -> bool {
    let before = noted.clone();
    let count = |name: &str| raw.get(name).and_then(Value::as_u64);
    if let (Some(used), Some(size)) = (count("used"), count("size")) {
        noted.context = Some(ContextFill { used, size });
    }
    if let Some(cost) = raw.get("cost").and_then(money) {
        noted.cost_so_far = Some(cost);
    }
    if let Some(model) = raw.get("_meta").and_then(model_in) {
        noted.model = Some(model.to_owned());
    }
    before != *noted
}

/// `{amount, currency}`. The amount comes as a decimal number; beyond millionths it is rounded.
fn money(cost: &Value) -> Option<Money> {
    let currency = cost.get("currency")?.as_str()?.parse().ok()?;
    let amount = cost.get("amount")?.as_f64().filter(|amount| amount.is_finite() && *amount >= 0.0)?;
    let micros = (amount * 1_000_000.0).round();
    (micros < 1e18).then_some(Money { currency, micros: micros as u64 })
}

/// The model's name: agents put it into their own member of `_meta`, which ends in this word.
fn model_in(meta: &Value) -> Option<&str> {
    let object = meta.as_object()?;
    let own = object.iter().find(|(name, _)| *name == "model" || name.ends_with("/model"));
    own.and_then(|(_, value)| value.as_str()).filter(|name| !name.is_empty())
}

/// Adds what one model call used to what the turn has so far, as the agent counts.
pub fn counted(so_far: Option<&TokenCounts>, call: &TokenCounts, kind: UsageKind) -> Option<TokenCounts> {
    match (kind, so_far) {
        (UsageKind::None, _) => None,
        (UsageKind::PerTurn, Some(sum)) => Some(sum.plus(call)),
        // A running count, or the last call only: the newest is what there is.
        (UsageKind::PerTurn | UsageKind::Cumulative | UsageKind::LastCall, _) => Some(call.clone()),
    }
}

/// What an ended run used. Nothing for one whose agent never got its prompt: that cost nothing.
pub fn used(state: &State, run: &Run, prices: &PriceTable) -> Option<RunUsage> {
    run.started_at?;
    let tokens = tokens(state, run);
    let model = model(state, run);
    let cost = cost(&tokens, model.as_deref(), prices);
    let (agent_cost, agent_cost_estimated) = agent_cost(state, run).unzip();
    Some(RunUsage {
        tokens,
        model,
        cost,
        agent_cost,
        agent_cost_estimated: agent_cost_estimated.unwrap_or(false),
    })
}

/// What an ended run used, as its journal has it. Runs of journals from before that was written down have their tokens
/// as the agent reported them, and no cost: what the prices were is not known any more.
pub fn of_ended<'a>(state: &State, run: &'a Run) -> Option<Cow<'a, RunUsage>> {
    if let Some(used) = &run.used {
        return Some(Cow::Borrowed(used));
    }
    if run.ended_at.is_none() || run.purpose == RunPurpose::Turn {
        return None;
    }
    let usage = used(state, run, &PriceTable::default())?;
    let cost = unavailable("its run ended before costs were written down");
    Some(Cow::Owned(RunUsage { cost, ..usage }))
}

/// What an agent reported of a run.
struct Reported<'a> {
    tokens: &'a TokenCounts,
    /// Of the whole turn, and not only of what it had done by then.
    whole: bool,
}

fn reported(run: &Run) -> Option<Reported<'_>> {
    let whole = run.usage.as_ref().map(|tokens| Reported { tokens, whole: true });
    whole.or_else(|| run.noted.tokens.as_ref().map(|tokens| Reported { tokens, whole: false }))
}

/// Tokens of this run alone.
fn tokens(state: &State, run: &Run) -> Measured<TokenCounts> {
    let kind = kind_of(state, run);
    if kind == UsageKind::None {
        return unavailable("this agent reports no tokens");
    }
    let Some(Reported { tokens, whole }) = reported(run) else {
        return unavailable("the agent reported no tokens for this run");
    };
    match kind {
        UsageKind::PerTurn => known(tokens.clone(), whole),
        // It is a part of the turn at least.
        UsageKind::LastCall | UsageKind::None => known(tokens.clone(), false),
        UsageKind::Cumulative => {
            let before = before(state, run, reported);
            let since = before.last.as_ref().map(|before| tokens.since(before.tokens));
            let gap = before.gap || before.last.as_ref().is_some_and(|before| !before.whole);
            match since {
                Some(Some(value)) => known(value, whole && !gap),
                // It went back: what it shows was used since then at least.
                Some(None) => known(tokens.clone(), false),
                None => {
                    let may_go_on = earlier_processes(state, run)
                        .next()
                        .is_some_and(|run| reported(run).is_none_or(|it| tokens.since(it.tokens).is_some()));
                    known(tokens.clone(), whole && !gap && !may_go_on)
                }
            }
        }
    }
}

fn known<T>(value: T, measured: bool) -> Measured<T> {
    if measured { Measured::Measured { value } } else { Measured::Estimated { value } }
}

/// How the agent of a run counts.
pub(crate) fn kind_of(state: &State, run: &Run) -> UsageKind {
    let launch = state.sessions.get(&run.session_id).and_then(|session| session.launch.as_ref());
    launch.map_or(UsageKind::None, |launch| launch.usage_kind)
}

/// The state of a counter before a run.
struct Before<T> {
    /// The last count in the same process. A new process begins anew.
    last: Option<T>,
    /// Whether a run between that and this one used something that nobody counted.
    gap: bool,
}

fn before<'a, T>(state: &'a State, run: &'a Run, count: impl Fn(&'a Run) -> Option<T>) -> Before<T> {
    let mut gap = false;
    for earlier in earlier(state, run).filter(|earlier| earlier.generation_id == run.generation_id) {
        if let Some(last) = count(earlier) {
            return Before { last: Some(last), gap };
        }
        gap = true;
    }
    Before { last: None, gap }
}

/// Earlier runs of the session that got their prompt to an agent, the latest first.
fn earlier<'a>(state: &'a State, run: &'a Run) -> impl Iterator<Item = &'a Run> {
    let task_runs =
        run.task_id.and_then(|id| state.tasks.get(&id)).map(|task| task.runs.as_slice()).unwrap_or_default();
    let end = task_runs.iter().position(|id| *id == run.id).unwrap_or(task_runs.len());
    task_runs
        .iter()
        .take(end)
        .rev()
        .filter_map(|id| state.runs.get(id))
        .filter(|earlier| earlier.session_id == run.session_id && earlier.started_at.is_some())
}

/// Those that had the same conversation in another process. A process that opens it again may go on counting where that
/// one was, or begin anew; a number that is not smaller does not tell.
fn earlier_processes<'a>(state: &'a State, run: &'a Run) -> impl Iterator<Item = &'a Run> {
    let conversation = |run: &Run| {
        let generation = run.generation_id.and_then(|id| state.generations.get(&id));
        generation.and_then(|it: &Generation| it.agent_session_id.clone())
    };
    let own = conversation(run);
    earlier(state, run)
        .filter(|earlier| earlier.generation_id != run.generation_id)
        .filter(move |earlier| own.is_some() && conversation(earlier) == own)
}

/// The agent's own account of this run: what its process has cost since the run before; and whether that is a guess.
fn agent_cost(state: &State, run: &Run) -> Option<(Money, bool)> {
    let now = run.noted.cost_so_far?;
    let before = before(state, run, |run| run.noted.cost_so_far);
    Some(match before.last {
        Some(last) if last.currency == now.currency && last.micros <= now.micros => {
            (Money { micros: now.micros - last.micros, ..now }, before.gap)
        }
        // It went back: what it shows was spent since then at least.
        Some(_) => (now, true),
        None => {
            let may_go_on = earlier_processes(state, run).next().is_some_and(|run| {
                let last = run.noted.cost_so_far;
                last.is_none_or(|last| last.currency == now.currency && last.micros <= now.micros)
            });
            (now, before.gap || may_go_on)
        }
    })
}

/// The model that answered: as the agent says it, as it stands in its conversation, or as it was asked for.
fn model(state: &State, run: &Run) -> Option<String> {
    let session = state.sessions.get(&run.session_id);
    let in_conversation = || {
        let offer = session?.offer.as_ref();
        let generation = run.generation_id.and_then(|id| state.generations.get(&id));
        let set = generation.map(|it| it.set.as_slice()).unwrap_or_default();
        model_in_use(offer.unwrap_or(&ConversationOffer::default()), set)
    };
    let asked = || {
        let launch = session?.launch.as_ref()?;
        let option = || launch.config.iter().find(|(id, _)| id == "model").map(|(_, value)| value.clone());
        launch.wanted.model.clone().or_else(option)
    };
    run.noted.model.clone().or_else(in_conversation).or_else(asked)
}

fn cost(tokens: &Measured<TokenCounts>, model: Option<&str>, prices: &PriceTable) -> Measured<Money> {
    let (counts, measured) = match tokens {
        Measured::Measured { value } => (value, true),
        Measured::Estimated { value } => (value, false),
        Measured::Unavailable { reason } => return unavailable(reason),
    };
    let Some(model) = model else { return unavailable("the agent does not say which model it uses") };
    let Some((price, currency)) = prices.of(model) else {
        return unavailable(&format!("no price of the model `{model}` is known"));
    };
    let value = Money { currency, micros: price.of(counts) };
    known(value, measured)
}

fn unavailable<T>(reason: &str) -> Measured<T> {
    Measured::Unavailable { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_agents_say_in_mid_turn_is_kept_apart_by_kind() {
        let mut noted = UsageNoted::default();
        let update = json!({"used": 21, "size": 1_000_000, "cost": {"amount": 0.000_369_199_9, "currency": "USD"},
            "_meta": {"_claude/model": "claude-opus-4-5"}});
        assert!(note(&mut noted, &update));
        assert!(!note(&mut noted, &update), "the same once more is nothing new");
        assert_eq!(noted.context, Some(ContextFill { used: 21, size: 1_000_000 }));
        assert_eq!(noted.cost_so_far.map(|cost| cost.micros), Some(369));
        assert_eq!(noted.model.as_deref(), Some("claude-opus-4-5"));
        // What is missing or senseless takes nothing back.
        for odd in [
            json!({}),
            json!({"used": -1, "size": "many"}),
            json!({"cost": {"amount": -2.0, "currency": "USD"}}),
            json!({"cost": {"amount": 1e300, "currency": "USD"}}),
            json!({"cost": {"amount": 1.0, "currency": "credits"}}),
            json!({"_meta": {"model": ""}}),
        ] {
            assert!(!note(&mut noted, &odd), "{odd}");
        }
    }
}
