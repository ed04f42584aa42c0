//! Failures that a plain reading of the protocol misses.
//!
//! Some agents end a turn with `end_turn` and an apology although their provider answered with an error. The AIR
//! extension (`_meta.jetbrains.air`, spoken by claude-agent-acp and codex-acp) names such a failure beside the stop
//! reason, to a client that says in its hello that it reads it.

use agent_client_protocol_schema::v1::Meta;
use serde_json::{Value, json};

use crate::rpc;

const VENDOR: &str = "jetbrains";
const EXTENSION: &str = "air";
const VERSION: u64 = 1;
const FAILURE: &str = "sessionFailure";

/// The failure of a turn that has a stop reason all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TurnFailure {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// What the hello says so that failures are named.
pub(crate) fn capability() -> Meta {
    let mut meta = Meta::new();
    let extension = json!({ "version": VERSION, "capabilities": [FAILURE] });
    meta.insert(VENDOR.to_owned(), json!({ EXTENSION: extension }));
    meta
}

/// The failure in the answer to a prompt. Warnings and advice are none.
pub(crate) fn of_answer(result: &Value) -> Option<TurnFailure> {
    let failure = result.get("_meta")?.get(VENDOR)?.get(EXTENSION)?.get(FAILURE)?;
    let text = |name: &str| failure.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if text("severity") != Some("error") {
        return None;
    }
    let title = text("title").unwrap_or("the agent named a failure without words");
    let message = match text("details").filter(|details| !title.contains(details)) {
        Some(details) => format!("{title}: {details}"),
        None => title.to_owned(),
    };
    // It becomes a part of a sentence.
    let message = message.trim_end_matches('.').to_owned();
    let actions = failure.get("actions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let login = actions.iter().any(|action| action == "login");
    Some(TurnFailure { code: if login { rpc::AUTH_REQUIRED } else { rpc::INTERNAL_ERROR }, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(failure: Value) -> Value {
        json!({ "stopReason": "end_turn", "_meta": { "jetbrains": { "air": { "version": 1, "sessionFailure": failure } } } })
    }

    #[test]
    fn a_named_failure_is_one_and_a_warning_is_none() {
        let failure = |value| of_answer(&answer(value)).map(|failure| (failure.code, failure.message));
        assert_eq!(
            failure(json!({ "severity": "error", "title": "High demand", "actions": ["retry"] })),
            Some((rpc::INTERNAL_ERROR, "High demand".to_owned()))
        );
        assert_eq!(
            failure(
                json!({ "severity": "error", "title": "Sign in", "details": "no key", "actions": ["login"] })
            ),
            Some((rpc::AUTH_REQUIRED, "Sign in: no key".to_owned()))
        );
        assert_eq!(failure(json!({ "severity": "warning", "title": "Retrying" })), None);
        assert_eq!(failure(json!("broken")), None);
        assert_eq!(of_answer(&json!({ "stopReason": "end_turn", "_meta": null })), None);
    }
}
