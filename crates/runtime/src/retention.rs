//! What is kept, where, and for how long.
//!
//! [`exporter`] writes transcripts and removes what a purge leaves, as an effect of committed state. [`sweeper`]
//! removes what has been kept long enough. Both only touch [`places`] inside the data folder and follow no links;
//! what they can't remove is remembered in the state, shown, and tried again.

pub(crate) mod exporter;
pub(crate) mod places;
pub(crate) mod sweeper;

use rallypoint_model::command::Command;
use rallypoint_model::retention::Retention;

use crate::decider::Decider;
use crate::folders::Folders;

/// Time between two rounds of the sweeper where the configuration names none.
const SWEEP_MS: i64 = 10 * 60 * 1000;
/// Shortest such time.
const SWEEP_FLOOR_MS: i64 = 100;

/// Milliseconds between two rounds of the sweeper; failed removals pause for as long at first.
pub(crate) fn pause_ms(retention: &Retention) -> i64 {
    retention.sweep_minutes.unless_off().unwrap_or(SWEEP_MS).max(SWEEP_FLOOR_MS)
}

/// Removes one thing; what can't be removed is kept in mind. True when it is gone.
pub(crate) async fn remove(decider: &Decider, folders: &Folders, path: &str, pause_ms: i64) -> bool {
    let (root, relative) = (folders.root().to_owned(), path.to_owned());
    let removed = tokio::task::spawn_blocking(move || places::remove(&root, &relative)).await;
    let reason = match removed {
        Ok(Ok(())) => {
            settle(decider, path).await;
            return true;
        }
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    tracing::warn!(path, reason, "something can't be removed; it will be tried again");
    let command = Command::DeleteFailed { path: path.to_owned(), reason, pause_ms };
    if let Err(refusal) = decider.decide(command).await {
        tracing::warn!(%refusal, path, "a failed removal could not be noted");
    }
    false
}

/// Forgets that something could not be removed.
pub(crate) async fn settle(decider: &Decider, path: &str) {
    let command = Command::DeleteSettled { path: path.to_owned() };
    if let Err(refusal) = decider.decide(command).await {
        tracing::warn!(%refusal, path, "a removal could not be noted");
    }
}
