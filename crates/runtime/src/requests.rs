//! Requests that came with a key are carried out once, over any crash.
//!
//! Each decision of such a request is kept in the transaction that it makes, and looked up before it would be made
//! again. So a repeat finds either what was decided or nothing of it, never half; the answer is kept after it, and
//! where a crash took it, it is made anew from what was decided.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rallypoint_engine::changes::Changes;
use rallypoint_model::command::Outcome;
use rallypoint_model::limits::Limits;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::request::{ANSWER, RequestRow};
use rallypoint_model::time::Timestamp;
use rallypoint_ops::Problem;
use rallypoint_store::JournalStore;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::daemon::Shared;
use crate::funnel::clean_value;
use crate::sources::SystemClock;

/// Longest key in bytes.
const KEY_BYTES: usize = 255;
/// A larger answer is not kept; a repeat is then answered with the state of things at that time.
const ANSWER_BYTES: usize = 1024 * 1024;
const HOUR_MS: i64 = 3_600_000;

/// A request under its key, and how many of its decisions were asked for.
#[derive(Debug)]
pub(crate) struct KeyedRequest {
    key: String,
    digest: String,
    next_part: AtomicI64,
}

/// One decision of it.
#[derive(Clone, Debug)]
pub(crate) struct DecisionKey {
    pub(crate) key: String,
    pub(crate) digest: String,
    pub(crate) part: i64,
}

impl KeyedRequest {
    /// Handlers ask for the decisions of a request one after another, so their number names them.
    pub(crate) fn next(&self) -> DecisionKey {
        DecisionKey {
            key: self.key.clone(),
            digest: self.digest.clone(),
            part: self.next_part.fetch_add(1, Ordering::Relaxed),
        }
    }
}

/// Carries out an operation unless this caller's key did so before.
pub(crate) async fn call_once(
    shared: &Shared,
    caller: &str,
    key: &str,
    operation: &str,
    input: Value,
) -> Result<Value, Problem> {
    check_key(key)?;
    let (key, digest) = (format!("{caller}|{key}"), digest_of(operation, &input));
    let oldest = oldest(&shared.config.limits, SystemClock.now());
    let known = {
        let key = key.clone();
        shared.readers.read(move |reader| reader.request(&key, ANSWER)).await?
    };
    if let Some(row) = known.filter(|row| row.at >= oldest) {
        if row.digest != digest {
            return Err(reused().into());
        }
        return serde_json::from_str(&row.doc)
            .map_err(|error| Problem::internal(format!("the answer of before can't be read: {error}")));
    }
    let request = Arc::new(KeyedRequest { key, digest, next_part: AtomicI64::new(0) });
    let answer = crate::handlers::call(&shared.under(Arc::clone(&request)), operation, input).await?;
    keep_answer(shared, &request, answer).await
}

/// Keeps the answer, and gives the one that was kept first.
async fn keep_answer(shared: &Shared, request: &KeyedRequest, mut answer: Value) -> Result<Value, Problem> {
    clean_value(&mut answer, &shared.redactor.current());
    let doc = answer.to_string();
    if doc.len() > ANSWER_BYTES {
        return Ok(answer);
    }
    let row = RequestRow {
        key: request.key.clone(),
        part: ANSWER,
        digest: request.digest.clone(),
        at: SystemClock.now(),
        doc,
    };
    shared.decider.keep(row).await?;
    Ok(answer)
}

fn check_key(key: &str) -> Result<(), Problem> {
    let fits =
        !key.is_empty() && key.len() <= KEY_BYTES && key.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
    if fits {
        return Ok(());
    }
    Err(Refusal::new(
        RefusalCode::Invalid,
        format!("`Idempotency-Key` must be 1 to {KEY_BYTES} visible ASCII characters"),
    )
    .with_hint("a UUID does well")
    .into())
}

/// The order of fields says nothing, so it makes no other request.
fn digest_of(operation: &str, input: &Value) -> String {
    let mut ordered = input.clone();
    ordered.sort_all_objects();
    let text = format!("{operation}\n{ordered}");
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What was decided before this time counts no more.
pub(crate) fn oldest(limits: &Limits, now: Timestamp) -> Timestamp {
    let hours = i64::try_from(limits.idempotency_hours).unwrap_or(i64::MAX);
    now.plus(hours.saturating_mul(HOUR_MS).saturating_neg())
}

pub(crate) fn reused() -> Refusal {
    Refusal::new(RefusalCode::KeyReused, "this `Idempotency-Key` came with another request before")
        .with_hint("use a new key for a new request")
}

/// What this decision came to, when it was made before: in this batch, or in one that was committed.
pub(crate) fn decided(
    store: &dyn JournalStore,
    changes: &Changes,
    asked: &DecisionKey,
    oldest: Timestamp,
) -> Result<Option<Result<Outcome, Refusal>>, Refusal> {
    let in_batch =
        changes.requests.iter().find(|row| row.key == asked.key && row.part == asked.part).cloned();
    let row = match in_batch {
        Some(row) => Some(row),
        None => store.request(&asked.key, asked.part).map_err(|error| unread(&error.to_string()))?,
    };
    let Some(row) = row.filter(|row| row.at >= oldest) else { return Ok(None) };
    if row.digest != asked.digest {
        return Err(reused());
    }
    serde_json::from_str(&row.doc).map(Some).map_err(|error| unread(&error.to_string()))
}

fn unread(why: &str) -> Refusal {
    Refusal {
        code: RefusalCode::Internal,
        message: format!("what was decided under this key can't be read: {why}"),
        hint: Some("look whether it was carried out before you try again under another key".to_owned()),
        retryable: false,
    }
}

/// The row of a decision. One that may come out otherwise when it is tried again is not kept.
pub(crate) fn row_of(
    asked: &DecisionKey,
    answer: &Result<Outcome, Refusal>,
    at: Timestamp,
) -> Option<RequestRow> {
    if answer.as_ref().is_err_and(|refusal| refusal.retryable) {
        return None;
    }
    let doc = serde_json::to_string(answer).ok()?;
    Some(RequestRow { key: asked.key.clone(), part: asked.part, digest: asked.digest.clone(), at, doc })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_fields_makes_no_other_request() {
        let (first, second) =
            (json!({"a": {"x": 1, "y": 2}, "b": 2}), json!({"b": 2, "a": {"y": 2, "x": 1}}));
        assert_eq!(digest_of("task.stop", &first), digest_of("task.stop", &second));
        assert_ne!(digest_of("task.stop", &first), digest_of("task.retry", &first));
        assert_ne!(digest_of("task.stop", &first), digest_of("task.stop", &json!({"a": 1})));
    }

    #[test]
    fn a_key_is_visible_ascii_of_bounded_length() {
        assert!(check_key("0198aa01-7000").is_ok());
        for key in ["", "a b", "ü", &"k".repeat(256)] {
            assert!(check_key(key).is_err(), "{key}");
        }
    }
}
