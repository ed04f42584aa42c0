//! What a run used, from what its agent reported and how that agent counts.
//!
//! The numbers alone don't tell whether they are of this turn, of the last
//! model call or of the whole conversation, so the profile says. What can't be
//! known is said to be unknown, with the reason, and is never a zero.

use rallypoint_model::money::{Money, PriceTable};
use rallypoint_model::usage::{ContextFill, Measured, RunUsage, TokenCounts, UsageKind, UsageNoted};
use serde_json::Value;

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

/// What an ended run used. Nothing for one whose agent never got its prompt: that cost nothing.
pub fn used(state: &State, run: &Run, prices: &PriceTable) -> Option<RunUsage> {
    run.started_at?;
    let tokens = tokens(state, run);
    let model = model(state, run);
    let cost = cost(&tokens, model.as_deref(), prices);
    Some(RunUsage { tokens, model, cost, agent_cost: agent_cost(state, run) })
}

/// Tokens of this run alone.
fn tokens(state: &State, run: &Run) -> Measured<TokenCounts> {
    let launch = state.sessions.get(&run.session_id).and_then(|session| session.launch.as_ref());
    let kind = launch.map_or(UsageKind::None, |launch| launch.usage_kind);
    let reported = match (kind, &run.usage) {
        (UsageKind::None, _) => return unavailable("this agent reports no tokens"),
        (_, None) => return unavailable("the agent reported no tokens for this run"),
        (_, Some(reported)) => reported.clone(),
    };
    match kind {
        UsageKind::PerTurn | UsageKind::None => Measured::Measured { value: reported },
        // It is a part of the turn at least.
        UsageKind::LastCall => Measured::Estimated { value: reported },
        UsageKind::Cumulative => {
            let before =
                earlier(state, run).find_map(|(run, same)| run.usage.as_ref().map(|usage| (usage, same)));
            match before {
                None => Measured::Measured { value: reported },
                Some((before, same_process)) => match (reported.since(before), same_process) {
                    (Some(value), true) => Measured::Measured { value },
                    (None, true) => unavailable("the agent's counter went back between two turns"),
                    // A new process may go on counting or begin anew; a number that is not smaller does not tell.
                    (Some(value), false) => Measured::Estimated { value },
                    (None, false) => Measured::Measured { value: reported },
                },
            }
        }
    }
}

/// Earlier runs in the same conversation with the agent, the latest first, and whether the same process had them.
fn earlier<'a>(state: &'a State, run: &'a Run) -> impl Iterator<Item = (&'a Run, bool)> {
    let conversation = |run: &Run| {
        run.generation_id
            .and_then(|id| state.generations.get(&id))
            .and_then(|it: &Generation| it.agent_session_id.clone())
    };
    let own = conversation(run);
    let task_runs =
        run.task_id.and_then(|id| state.tasks.get(&id)).map(|task| task.runs.as_slice()).unwrap_or_default();
    let before = task_runs.iter().take_while(move |id| **id != run.id).filter_map(|id| state.runs.get(id));
    before
        .filter(move |earlier| earlier.session_id == run.session_id)
        .filter(move |earlier| own.is_some() && conversation(earlier) == own)
        .map(|earlier| (earlier, earlier.generation_id == run.generation_id))
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
}

/// The agent's own account of this run: what its conversation has cost since the run before.
fn agent_cost(state: &State, run: &Run) -> Option<Money> {
    let now = run.noted.cost_so_far?;
    let before = earlier(state, run).find_map(|(run, _)| run.noted.cost_so_far);
    match before.filter(|before| before.currency == now.currency) {
        // A smaller number is a count that began anew.
        Some(before) => {
            Some(Money { micros: now.micros.checked_sub(before.micros).unwrap_or(now.micros), ..now })
        }
        None => Some(now),
    }
}

/// The model that answered, as the agent says or as it was asked for.
fn model(state: &State, run: &Run) -> Option<String> {
    let asked = || {
        let launch = state.sessions.get(&run.session_id)?.launch.as_ref()?;
        launch.config.iter().find(|(id, _)| id == "model").map(|(_, value)| value.clone())
    };
    run.noted.model.clone().or_else(asked)
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
    if measured { Measured::Measured { value } } else { Measured::Estimated { value } }
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
