//! Sums of use in words: what is known, and how much is not.

use rallypoint_model::money::Money;
use rallypoint_model::usage::{Measured, Quality, RunUsage};
use rallypoint_ops::types::UsageTotals;

/// Tokens and money of some runs in one line.
pub(crate) fn tokens(totals: &UsageTotals) -> String {
    if totals.runs == 0 {
        return "nothing yet".to_owned();
    }
    let mut parts = vec![known_tokens(totals), known_cost(totals)];
    if totals.agent_cost_runs > 0 {
        parts.push(format!("of {} runs by the agent's own account", totals.agent_cost_runs));
    }
    parts.join(", ")
}

fn known_tokens(totals: &UsageTotals) -> String {
    if totals.unknown_runs == totals.runs {
        return "tokens unknown".to_owned();
    }
    let count = token_count(totals.tokens.total(), totals.estimated_runs > 0);
    match totals.unknown_runs {
        0 => format!("{count} tokens"),
        unknown => format!("at least {count} tokens, unknown for {unknown} of {} runs", totals.runs),
    }
}

fn known_cost(totals: &UsageTotals) -> String {
    if totals.unknown_cost_runs == totals.runs {
        return "cost unknown".to_owned();
    }
    let cost = money(&totals.cost, totals.estimated_cost_runs > 0);
    match totals.unknown_cost_runs {
        0 => cost,
        unknown => format!("at least {cost}, unknown for {unknown} of {} runs", totals.runs),
    }
}

/// A number of tokens, marked where it is a guess.
pub(crate) fn token_count(count: u64, estimated: bool) -> String {
    format!("{}{count}", mark(estimated))
}

/// Amounts of several currencies, each marked where it is a guess; `-` when there is none.
pub(crate) fn money(amounts: &[Money], estimated: bool) -> String {
    if amounts.is_empty() {
        return "-".to_owned();
    }
    amounts.iter().map(|amount| format!("{}{amount}", mark(estimated))).collect::<Vec<_>>().join(" + ")
}

/// What one run used, as far as anything is known of it.
pub(crate) fn run(usage: &RunUsage) -> Option<String> {
    let tokens = match &usage.tokens {
        Measured::Measured { value } => Some(token_count(value.total(), false)),
        Measured::Estimated { value } => Some(token_count(value.total(), true)),
        Measured::Unavailable { .. } => None,
    };
    let tokens = tokens.map(|count| format!("{count} tokens"));
    let cost = usage.known_cost().map(|cost| money(&[cost], usage.cost_quality() == Quality::Estimated));
    let parts: Vec<String> = tokens.into_iter().chain(cost).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn mark(estimated: bool) -> &'static str {
    if estimated { "~" } else { "" }
}

#[cfg(test)]
mod tests {
    use rallypoint_model::usage::TokenCounts;

    use super::*;

    fn totals(runs: u64, unknown_runs: u64, unknown_cost_runs: u64) -> UsageTotals {
        UsageTotals {
            runs,
            unknown_runs,
            unknown_cost_runs,
            tokens: TokenCounts { input: 100, output: 20, ..TokenCounts::default() },
            cost: vec!["1.5".parse().unwrap()],
            ..UsageTotals::default()
        }
    }

    #[test]
    fn what_is_not_known_is_said_and_is_no_zero() {
        for (totals, words) in [
            (totals(0, 0, 0), "nothing yet"),
            (totals(2, 0, 0), "120 tokens, 1.50 USD"),
            (
                totals(3, 1, 2),
                "at least 120 tokens, unknown for 1 of 3 runs, at least 1.50 USD, unknown for 2 of 3 runs",
            ),
            (totals(2, 2, 2), "tokens unknown, cost unknown"),
            (UsageTotals { estimated_runs: 1, ..totals(2, 0, 0) }, "~120 tokens, 1.50 USD"),
            (
                UsageTotals { estimated_runs: 1, estimated_cost_runs: 1, ..totals(3, 1, 1) },
                "at least ~120 tokens, unknown for 1 of 3 runs, at least ~1.50 USD, unknown for 1 of 3 runs",
            ),
            (
                UsageTotals { agent_cost_runs: 1, ..totals(2, 0, 0) },
                "120 tokens, 1.50 USD, of 1 runs by the agent's own account",
            ),
        ] {
            assert_eq!(tokens(&totals), words);
        }
    }
}
