//! Runs a round of checks and hands in what was seen.

use std::path::Path;
use std::time::Duration;

use rallypoint_engine::due::Verification;
use rallypoint_model::command::Command;
use rallypoint_model::ids::EvidenceId;
use rallypoint_process::fault_point::pass;
use rallypoint_process::sweep::{RUN_MARKER_VARIABLE, sweep};
use rallypoint_verify::{VerifyContext, verify_all};
use uuid::Uuid;

use crate::attendant::{Attending, submit};
use crate::sources::SystemClock;

/// Ends checks that outlived a daemon which was killed. Nobody waits for what they find, and the round is run again:
/// two of one check at once would work against each other in the same folder.
pub(crate) async fn end_leftovers(shared: &Attending) {
    if shared.faults.no_sweep {
        return;
    }
    let report = sweep(&shared.folders.check_marker(), Duration::ZERO).await;
    if !report.found.is_empty() {
        tracing::warn!(
            found = report.found.len(),
            "processes of checks outlived their daemon and were ended"
        );
    }
}

/// Runs the checks of one round.
pub(crate) async fn verify(shared: &Attending, round: Verification) {
    let redactor = shared.redactor.current();
    let redact = |text: &str| redactor.redact(text).into_owned();
    let mut environment = round.environment.clone();
    environment.push((RUN_MARKER_VARIABLE.to_owned(), shared.folders.check_marker()));
    let context = VerifyContext {
        cwd: Path::new(&round.cwd),
        env: &environment,
        timeout: Duration::from_millis(u64::try_from(shared.limits.verify_timeout_ms).unwrap_or(0)),
        now: &|| SystemClock.now(),
        new_id: &|| EvidenceId(Uuid::now_v7()),
        redact: &redact,
    };
    pass("checks:begin");
    let evidence = verify_all(&round.criteria, &context).await;
    pass("checks:run");
    submit(shared, Command::Verified { task_id: round.task_id, round: round.round, evidence }).await;
}
