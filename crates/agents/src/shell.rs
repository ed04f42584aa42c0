//! The agent that runs the commands of a prompt and says truthfully how they ended.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rallypoint_acp::agent_side::{Agent, PromptEnd, Turn};
use rallypoint_acp::rpc::RpcError;
use rallypoint_model::completion::{CompletionReport, ReportedStatus, ReportedTest};

use crate::output::{code, one_line, quoted};
use crate::tool_run::{CommandRun, run_command};
use crate::{commands, report};

/// What is asked when there is nothing to run.
const QUESTION: &str =
    "Which command should I run? Write it as a line that starts with `$ ` or in a fenced sh block.";
/// Lines of output that are shown of a command that failed.
const FAILURE_LINES: usize = 20;
/// Bytes of output that a message shows of all commands together; what goes
/// beyond is in the tool calls.
const SHOWN_BYTES: usize = 16 * 1024;
/// Characters of the last line of output that stand for it in the report.
const SUMMARY_CHARS: usize = 200;

/// The agent.
#[derive(Debug, Default)]
pub(crate) struct ShellAgent {
    /// Commands of the last prompt that had some, by session: a follow-up
    /// without commands runs them again.
    last: Mutex<BTreeMap<String, Vec<String>>>,
    calls: AtomicU64,
}

impl Agent for ShellAgent {
    fn name(&self) -> &'static str {
        "rallypoint-shell"
    }

    fn prompt(&self, turn: &Turn) -> Result<PromptEnd, RpcError> {
        let commands = self.commands(turn);
        if commands.is_empty() {
            let blocked = CompletionReport {
                status: ReportedStatus::Blocked,
                reason: QUESTION.to_owned(),
                ..CompletionReport::default()
            };
            turn.send_message_chunk(&format!(
                "There is no command in the prompt.\n\n{}",
                report::block(&blocked)
            ));
            return Ok(PromptEnd::stopped("end_turn"));
        }
        let mut runs: Vec<CommandRun> = Vec::new();
        for command in &commands {
            let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
            let run = run_command(turn, &format!("command-{call}"), command);
            let (passed, cancelled) = (run.passed(), run.ended.cancelled);
            runs.push(run);
            if cancelled || turn.cancel.is_set() {
                return Ok(PromptEnd::stopped("cancelled"));
            }
            if !passed {
                break;
            }
        }
        turn.send_message_chunk(&summary(&runs, commands.len()));
        Ok(PromptEnd::stopped("end_turn"))
    }
}

impl ShellAgent {
    fn commands(&self, turn: &Turn) -> Vec<String> {
        let found = commands::of_prompt(&turn.prompt);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_empty() {
            return last.get(&turn.session.session_id).cloned().unwrap_or_default();
        }
        last.insert(turn.session.session_id.clone(), found.clone());
        found
    }
}

fn summary(runs: &[CommandRun], asked: usize) -> String {
    let mut text = format!("Ran {}:\n\n", counted(runs.len(), asked));
    // Writing to a string does not fail.
    for run in runs {
        let _ = writeln!(text, "- {} exited with {}", code(&run.title()), run.ended.code);
    }
    let mut room = SHOWN_BYTES;
    for run in runs {
        let (heading, output) = if run.passed() {
            (format!("Output of {}:", code(&run.title())), run.output.shown())
        } else {
            let heading = format!("{} exited with {}. Its last output:", code(&run.title()), run.ended.code);
            (heading, run.output.last_lines(FAILURE_LINES))
        };
        if output.trim().is_empty() {
            continue;
        }
        // The output of a failure is always shown.
        if run.passed() && output.len() > room {
            let _ = writeln!(text, "\n{} wrote {} bytes", code(&run.title()), run.output.bytes);
            continue;
        }
        room = room.saturating_sub(output.len());
        let _ = write!(text, "\n{heading}\n\n{}", quoted(&output));
    }
    let _ = write!(text, "\n{}", report::block(&completion(runs, asked)));
    text
}

fn counted(ran: usize, asked: usize) -> String {
    match (ran, asked) {
        (1, 1) => "1 command".to_owned(),
        (ran, asked) if ran == asked => format!("{ran} commands"),
        (ran, asked) => format!("{ran} of {asked} commands"),
    }
}

fn completion(runs: &[CommandRun], asked: usize) -> CompletionReport {
    let failure = runs.iter().find(|run| !run.passed());
    let (status, reason) = match failure {
        Some(run) => {
            (ReportedStatus::Failed, format!("{} exited with {}", code(&run.title()), run.ended.code))
        }
        None => (ReportedStatus::Completed, String::new()),
    };
    let tested = |run: &CommandRun| ReportedTest {
        command: run.command.clone(),
        exit_code: run.ended.code.into(),
        summary: one_line(&run.output.last_lines(1), SUMMARY_CHARS),
    };
    CompletionReport {
        status,
        reason,
        diff_summary: format!("Ran {}", counted(runs.len(), asked)),
        test_results: runs.iter().map(tested).collect(),
        ..CompletionReport::default()
    }
}
