//! Runs a round of checks and hands in what was seen.

use std::path::Path;
use std::time::Duration;

use rallypoint_engine::due::Verification;
use rallypoint_model::command::Command;
use rallypoint_model::ids::EvidenceId;
use rallypoint_verify::{VerifyContext, verify_all};
use uuid::Uuid;

use crate::attendant::{Attending, submit};
use crate::sources::SystemClock;

/// Runs the checks of one round.
pub(crate) async fn verify(shared: &Attending, round: Verification) {
    let redactor = shared.redactor.current();
    let redact = |text: &str| redactor.redact(text).into_owned();
    let context = VerifyContext {
        cwd: Path::new(&round.cwd),
        env: &round.environment,
        timeout: Duration::from_millis(u64::try_from(shared.limits.verify_timeout_ms).unwrap_or(0)),
        now: &|| SystemClock.now(),
        new_id: &|| EvidenceId(Uuid::now_v7()),
        redact: &redact,
    };
    let evidence = verify_all(&round.criteria, &context).await;
    submit(shared, Command::Verified { task_id: round.task_id, round: round.round, evidence }).await;
}
