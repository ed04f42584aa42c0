//! Sums of use in words: what is known, and how much is not.

use rallypoint_model::money::Money;
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
    let count = totals.tokens.total();
    let about = if totals.estimated_runs > 0 { "about " } else { "" };
    match totals.unknown_runs {
        0 => format!("{about}{count} tokens"),
        unknown => format!("at least {count} tokens, unknown for {unknown} of {} runs", totals.runs),
    }
}

fn known_cost(totals: &UsageTotals) -> String {
    if totals.unknown_cost_runs == totals.runs {
        return "cost unknown".to_owned();
    }
    match totals.unknown_cost_runs {
        0 => money(&totals.cost),
        unknown => format!("at least {}, unknown for {unknown} of {} runs", money(&totals.cost), totals.runs),
    }
}

/// Amounts of several currencies; `-` when there is none.
pub(crate) fn money(amounts: &[Money]) -> String {
    if amounts.is_empty() {
        return "-".to_owned();
    }
    amounts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ")
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
            (UsageTotals { estimated_runs: 1, ..totals(2, 0, 0) }, "about 120 tokens, 1.50 USD"),
            (
                UsageTotals { agent_cost_runs: 1, ..totals(2, 0, 0) },
                "120 tokens, 1.50 USD, of 1 runs by the agent's own account",
            ),
        ] {
            assert_eq!(tokens(&totals), words);
        }
    }
}
