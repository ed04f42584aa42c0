//! An agent that gives account of what it uses, as a count of its whole conversation.

use std::sync::atomic::{AtomicU64, Ordering};

use rallypoint_acp::agent_side::{PromptEnd, Turn};
use serde_json::{Map, Value, json};

/// Tokens of one prompt.
const INPUT: u64 = 100;
const OUTPUT: u64 = 10;
/// What one prompt costs by its own account, in the unit of the currency.
const COST: f64 = 0.25;

/// How many prompts its process has had.
#[derive(Debug)]
pub(super) struct Accounts {
    model: String,
    prompts: AtomicU64,
}

impl Accounts {
    pub(super) fn new(model: String) -> Self {
        Self { model, prompts: AtomicU64::new(0) }
    }

    pub(super) fn prompt(&self, turn: &Turn) -> PromptEnd {
        let prompts = self.prompts.fetch_add(1, Ordering::SeqCst) + 1;
        turn.send_message_chunk("accounted for");
        // Told twice, as agents do.
        for _ in 0..2 {
            turn.send_update(json!({
                "sessionUpdate": "usage_update", "used": prompts * INPUT, "size": 1_000,
                "cost": {"amount": prompts as f64 * COST, "currency": "USD"},
                "_meta": {"scenario/model": self.model},
            }));
        }
        let usage = json!({"inputTokens": prompts * INPUT, "outputTokens": prompts * OUTPUT});
        let extra: Map<String, Value> = [("usage".to_owned(), usage)].into_iter().collect();
        PromptEnd::Stopped { stop_reason: "end_turn".to_owned(), extra }
    }
}
