//! Runs a check command in the work folder and reads its end.

use std::time::Duration;

use rallypoint_model::task::EvidenceResult;
use rallypoint_process::command::{CommandSpec, Finished, OutputMode, run_captured};

use crate::context::VerifyContext;
use crate::excerpt::excerpt;

/// Given by its path: what the work folder or `PATH` offers under the name `sh` must not judge.
const SHELL: &str = "/bin/sh";

/// Bytes kept of each stream while the command runs. Far more than is shown, so that the place where the stream was
/// cut, and half a secret at it, lies outside of what is shown.
const KEPT_BYTES: usize = 64 * 1024;

/// Signals by which somebody ends a process from outside (hangup, interrupt, kill, terminate). They say nothing about
/// the work; the out-of-memory killer uses one of them.
const SIGNALS_FROM_OUTSIDE: [i32; 4] = [1, 2, 9, 15];

/// Codes by which a shell says that it could not run the command at all.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// What a command showed.
pub(crate) struct Observed {
    pub(crate) result: EvidenceResult,
    /// None unless the command ended by itself.
    pub(crate) exit_code: Option<i32>,
    pub(crate) detail: String,
}

/// Only exit code 0 is a pass. A command that did not come to its own end cannot tell.
pub(crate) async fn check_command(command: &str, context: &VerifyContext<'_>) -> Observed {
    // The shell ends an empty command with 0, which would prove anything.
    if command.trim().is_empty() {
        return cannot_tell("the check command is empty".to_owned());
    }
    let spec = CommandSpec {
        argv: vec![SHELL.to_owned(), "-c".to_owned(), command.to_owned()],
        cwd: context.cwd.to_owned(),
        env: context.env.to_vec(),
        timeout: context.timeout,
        keep_bytes: KEPT_BYTES,
        stdin: None,
        output: OutputMode::Separate,
    };
    match run_captured(spec).await {
        Ok(finished) => read(&finished, context),
        Err(error) => cannot_tell(format!("the check command could not be run: {error}")),
    }
}

fn cannot_tell(reason: String) -> Observed {
    Observed { result: EvidenceResult::Inconclusive, exit_code: None, detail: reason }
}

fn read(finished: &Finished, context: &VerifyContext<'_>) -> Observed {
    let (result, exit_code, reason) = judge(finished, context.timeout);
    let mut parts = vec![reason];
    for (name, captured) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
        let shown = excerpt(captured, &context.redact);
        if !shown.is_empty() {
            parts.push(format!("{name}:\n{}", shown.trim_end_matches('\n')));
        }
    }
    Observed { result, exit_code, detail: parts.join("\n") }
}

fn judge(finished: &Finished, timeout: Duration) -> (EvidenceResult, Option<i32>, String) {
    if finished.timed_out {
        let limit = timeout.as_millis();
        let reason = format!("the check command was ended at its time limit of {limit} ms (timed out)");
        return (EvidenceResult::Inconclusive, None, reason);
    }
    match (finished.exit.code, finished.exit.signal) {
        (Some(0), _) => (EvidenceResult::Passed, Some(0), "exit code 0".to_owned()),
        (Some(code), _) => (EvidenceResult::Failed, Some(code), failure(code)),
        (None, Some(signal)) if SIGNALS_FROM_OUTSIDE.contains(&signal) => {
            let reason = format!("the check command was ended from outside by signal {signal}");
            (EvidenceResult::Inconclusive, None, reason)
        }
        (None, Some(signal)) => {
            (EvidenceResult::Failed, None, format!("the check command crashed with signal {signal}"))
        }
        (None, None) => {
            let reason = "how the check command ended is unknown".to_owned();
            (EvidenceResult::Inconclusive, None, reason)
        }
    }
}

fn failure(code: i32) -> String {
    match code {
        NOT_FOUND => format!("check command not found (exit code {code})"),
        NOT_EXECUTABLE => format!("check command not executable (exit code {code})"),
        _ => format!("exit code {code}"),
    }
}
