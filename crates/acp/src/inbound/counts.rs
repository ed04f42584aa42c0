//! Token numbers in the forms that agents report them.
//!
//! Besides the protocol's own `usage` there are `_meta.quota.token_count`
//! (codex-acp, claude-agent-acp, Gemini CLI) and `_meta.usage` (Qwen Code, on a
//! message chunk, once per model call). Names differ as well.

use serde_json::{Map, Value};

use rallypoint_model::usage::TokenCounts;

use super::lenient;

const INPUT: &[&str] = &["inputTokens", "input_tokens", "promptTokens", "prompt_tokens"];
const OUTPUT: &[&str] = &["outputTokens", "output_tokens", "completionTokens", "completion_tokens"];
const REASONING: &[&str] = &["thoughtTokens", "thought_tokens", "thoughtsTokens", "reasoningTokens"];
/// In the naming of this provider's interface, reasoning is a part of the output.
const REASONING_WITHIN_OUTPUT: &[&str] = &["reasoningOutputTokens", "reasoning_output_tokens"];
const CACHE_READ: &[&str] = &[
    "cachedReadTokens",
    "cached_read_tokens",
    "cachedInputTokens",
    "cached_input_tokens",
    "cachedTokens",
    "cached_tokens",
];
const CACHE_WRITE: &[&str] = &["cachedWriteTokens", "cached_write_tokens"];
const TOTAL: &[&str] = &["totalTokens", "total_tokens"];

/// The tokens in an answer to a prompt.
pub(super) fn of_answer(result: &Value) -> Option<TokenCounts> {
    let meta = result.get("_meta");
    let quota = meta.and_then(|meta| meta.get("quota"));
    result
        .get("usage")
        .and_then(of_object)
        .or_else(|| quota.and_then(|quota| quota.get("token_count")).and_then(of_object))
        .or_else(|| of_meta_usage(meta))
}

/// The tokens in an update's `_meta.usage`.
pub(super) fn of_meta_usage(meta: Option<&Value>) -> Option<TokenCounts> {
    meta.and_then(|meta| meta.get("usage")).and_then(of_object)
}

/// The tokens in an error: beside its words, or in the data that go with it.
pub(super) fn of_error(error: &Value) -> Option<TokenCounts> {
    error.get("data").and_then(of_answer).or_else(|| of_answer(error))
}

fn of_object(value: &Value) -> Option<TokenCounts> {
    let object = value.as_object()?;
    let input = first(object, INPUT);
    let output = first(object, OUTPUT);
    if input.is_none() && output.is_none() {
        return None;
    }
    let within = first(object, REASONING_WITHIN_OUTPUT);
    let mut counts = TokenCounts {
        input: input.unwrap_or(0),
        output: output.unwrap_or(0),
        reasoning: within.or_else(|| first(object, REASONING)).unwrap_or(0),
        cache_read: first(object, CACHE_READ).unwrap_or(0),
        cache_write: first(object, CACHE_WRITE).unwrap_or(0),
    };
    // Whether the input holds what came from the cache, and the output what was thought, is for the total to say: names
    // don't tell. A part that is larger than its whole is none.
    let total = first(object, TOTAL);
    let plain = counts.input.saturating_add(counts.output);
    let cached_within = counts.cache_read <= counts.input
        && total.is_some_and(|total| total == plain || total == plain.saturating_add(counts.reasoning));
    if cached_within {
        counts.input -= counts.cache_read;
    }
    let thought_within = within.is_some() || total.is_some_and(|total| total == plain);
    if thought_within && counts.reasoning <= counts.output {
        counts.output -= counts.reasoning;
    }
    Some(counts)
}

fn first(object: &Map<String, Value>, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| object.get(*name).and_then(lenient::count))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_protocols_own_usage_comes_first() {
        let result = json!({"stopReason": "end_turn",
            "usage": {"inputTokens": 11, "outputTokens": 7, "cachedReadTokens": 3, "cachedWriteTokens": 2, "totalTokens": 23},
            "_meta": {"quota": {"token_count": {"inputTokens": 99, "outputTokens": 99}}}});
        let expected = TokenCounts { input: 11, output: 7, reasoning: 0, cache_read: 3, cache_write: 2 };
        assert_eq!(of_answer(&result), Some(expected));
    }

    #[test]
    fn quota_and_meta_usage_are_read() {
        let quota = json!({"_meta": {"quota": {"token_count": {"input_tokens": 22, "output_tokens": 14}}}});
        assert_eq!(of_answer(&quota).map(|counts| (counts.input, counts.output)), Some((22, 14)));
        let meta = json!({"usage": null, "_meta": {"usage": {"promptTokens": 5.0, "completionTokens": 6}}});
        assert_eq!(of_answer(&meta).map(|counts| (counts.input, counts.output)), Some((5, 6)));
    }

    #[test]
    fn reasoning_is_counted_once() {
        let apart =
            json!({"usage": {"inputTokens": 10, "outputTokens": 5, "thoughtTokens": 3, "totalTokens": 18}});
        assert_eq!(of_answer(&apart).map(|counts| counts.total()), Some(18));
        let within = json!({"usage": {"inputTokens": 10, "outputTokens": 5, "reasoningOutputTokens": 3}});
        assert_eq!(of_answer(&within).map(|counts| counts.total()), Some(15));
        let within =
            json!({"usage": {"inputTokens": 10, "outputTokens": 5, "thoughtTokens": 3, "totalTokens": 15}});
        assert_eq!(of_answer(&within).map(|counts| (counts.output, counts.total())), Some((2, 15)));
    }

    #[test]
    fn tokens_from_the_cache_are_counted_once() {
        for (raw, input) in [
            (json!({"inputTokens": 11, "outputTokens": 7, "totalTokens": 21, "cachedReadTokens": 3}), 11),
            (json!({"inputTokens": 11, "outputTokens": 7, "totalTokens": 18, "cachedReadTokens": 3}), 8),
            (
                json!({"inputTokens": 11, "outputTokens": 7, "totalTokens": 20, "thoughtTokens": 2, "cachedReadTokens": 3}),
                8,
            ),
            (
                json!({"input_tokens": 11, "output_tokens": 7, "cached_input_tokens": 3, "total_tokens": 18}),
                8,
            ),
            // Without a total nothing says that they are a part of the input.
            (json!({"input_tokens": 11, "output_tokens": 7, "cached_input_tokens": 3}), 11),
            (json!({"inputTokens": 11, "outputTokens": 7, "cachedReadTokens": 3}), 11),
        ] {
            let counts = of_answer(&json!({ "usage": raw })).unwrap();
            assert_eq!((counts.input, counts.cache_read), (input, 3), "{raw}");
        }
    }

    #[test]
    fn a_part_that_is_larger_than_its_whole_takes_nothing_away() {
        let cached = json!({"usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12, "cachedInputTokens": 50}});
        let counts = of_answer(&cached).unwrap();
        assert_eq!((counts.input, counts.cache_read), (5, 50));
        let thought = json!({"usage": {"inputTokens": 5, "outputTokens": 7, "reasoningOutputTokens": 70}});
        let counts = of_answer(&thought).unwrap();
        assert_eq!((counts.output, counts.reasoning), (7, 70));
    }

    #[test]
    fn nothing_known_is_nothing_and_never_zero() {
        for raw in
            [json!({}), json!({"usage": {}}), json!({"usage": "many"}), json!({"usage": {"inputTokens": -4}})]
        {
            assert_eq!(of_answer(&raw), None, "{raw}");
        }
    }
}
