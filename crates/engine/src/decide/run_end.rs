//! How a run ends: its one outcome, what its room is told, what its task does.

use rallypoint_model::completion::{CompletionReport, ReportedStatus};
use rallypoint_model::event::{Event, ResultRef};
use rallypoint_model::ids::{RunId, SessionId, TaskId};
use rallypoint_model::question::QuestionKind;
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunPurpose, RunStatus};
use rallypoint_model::task::{TaskReason, TaskStatus, TaskTrigger};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::conversation::LastWords;
use super::mail::attributed;
use super::room::Rerouted;
use super::route::ByCall;
use super::stop::outcome_of_cancel;
use super::{Deciding, Post, Voice};
use crate::changes::NewBlob;
use crate::completion::{Found, parse};
use crate::consequences::{Boundary, boundary_of_outcome, needs_login};
use crate::prompt::FollowUpReason;
use crate::router::{RoutingKind, delivery_key, kind_of_banner, without_banner};
use crate::run_machine::{CancelAsked, outcome_of_stop};
use crate::state::{PromptProgress, Run, TurnCause};
use crate::text;

/// Told of a turn whose words were all passed on before.
const ENDED_SILENTLY: &str = "has ended its turn.";

/// Characters of a run's last words that are kept beside it.
const SUMMARY_CHARS: usize = 2000;

impl Deciding<'_, '_> {
    /// Ends a run whose agent has answered, by its stop reason.
    pub(crate) fn finish_answered(&mut self, run_id: RunId) {
        let Some(run) = self.state.runs.get(&run_id) else {
            return;
        };
        let Some(answer) = &run.answer else { return };
        let report = claim_of(run);
        let cancel = if run.cancel.is_some() { CancelAsked::Yes } else { CancelAsked::No };
        let said = match &run.reported {
            // A report by call is something said, though not in words.
            Some(reported) if run.said.text.trim().is_empty() => &reported.diff_summary,
            _ => &run.said.text,
        };
        let (outcome, reason) = outcome_of_stop(&answer.stop_reason, said, report.as_ref(), cancel);
        let reason = match (&run.cancel, outcome) {
            (Some(cancel), RunOutcome::Cancelled) => cancel.reason.clone(),
            _ => reason,
        };
        let outcome = match outcome {
            RunOutcome::Cancelled => outcome_of_cancel(&reason, outcome),
            _ => outcome,
        };
        self.finish_run(run_id, outcome, reason);
    }

    /// Gives a run its one outcome. A run that has one keeps it.
    pub(crate) fn finish_run(&mut self, run_id: RunId, outcome: RunOutcome, reason: OutcomeReason) {
        let Some(run) = self.state.runs.get(&run_id) else {
            return;
        };
        if run.status == RunStatus::Terminal {
            return;
        }
        let (session_id, task_id, said) = (run.session_id, run.task_id, run.said.clone());
        let last_frame = said.last_frame;
        let claim = claim_of(run);
        let words = without_report(said.last_words());
        let words = match &run.reported {
            Some(reported) if words.is_empty() => reported.diff_summary.clone(),
            _ => words,
        };
        let summary: String = words.chars().take(SUMMARY_CHARS).collect();
        // What stands before the last tool call was passed on when it was said.
        let spoken = without_report(said.text.get(said.last_stretch..).unwrap_or_default());
        let result = (!said.text.is_empty()).then(|| {
            let digest: String =
                Sha256::digest(said.text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            let bytes = said.text.into_bytes();
            let reference = ResultRef { digest: digest.clone(), bytes: bytes.len() as u64 };
            self.changes.blobs.push(NewBlob { digest, bytes });
            reference
        });
        self.withdraw_run_questions(run_id, "the end of its run");
        self.settle_calls_of(run_id);
        self.settle_mid_turn(run_id);
        let Some(aggregate) = self.run_aggregate(run_id) else {
            return;
        };
        let scope = self.run_scope(run_id);
        self.emit(
            aggregate,
            scope,
            Event::RunEnded {
                run_id,
                outcome,
                reason: reason.clone(),
                result,
                claim: claim.clone(),
                summary: summary.clone(),
                last_frame,
            },
        );
        self.account_for(run_id);
        if let Some(task_id) = task_id {
            self.tell_end(run_id, session_id, task_id, outcome, &reason, claim.as_ref(), &summary, &spoken);
        }
    }

    /// States what a run used by the prices of today; later ones don't change it.
    fn account_for(&mut self, run_id: RunId) {
        let Some(run) = self.state.runs.get(&run_id).filter(|run| run.purpose != RunPurpose::Turn) else {
            return;
        };
        let Some(usage) = crate::usage::used(self.state, run, self.context.prices) else { return };
        if let Some(aggregate) = self.run_aggregate(run_id) {
            let scope = self.run_scope(run_id);
            self.emit(aggregate, scope, Event::RunUsed { run_id, usage });
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one fact with all that is told of it")]
    fn tell_end(
        &mut self,
        run_id: RunId,
        session_id: SessionId,
        task_id: TaskId,
        outcome: RunOutcome,
        reason: &OutcomeReason,
        claim: Option<&CompletionReport>,
        summary: &str,
        spoken: &str,
    ) {
        let reported = claim.is_some_and(|report| report.status == ReportedStatus::Blocked);
        // Words that begin with the banner ask as well; a report says more, and is looked at first.
        let banner = claim.is_none() && kind_of_banner(summary) == Some(RoutingKind::QuestionForTaskCreator);
        let blocked_by_itself = outcome == RunOutcome::Completed && (reported || banner);
        let question = match claim {
            Some(report) => Some(report.reason.clone()),
            None => banner.then(|| without_banner(summary).to_owned()),
        };
        let question = question.filter(|question| !question.is_empty());
        let boundary = if blocked_by_itself || needs_login(reason) {
            Some(Boundary::Blocked)
        } else {
            boundary_of_outcome(outcome)
        };
        let body = match (boundary, outcome) {
            // The router takes the banner off and says that there was one.
            (Some(Boundary::Blocked), _) if blocked_by_itself && banner => summary.to_owned(),
            (Some(Boundary::Blocked), _) if blocked_by_itself => {
                question.clone().unwrap_or_else(|| summary.to_owned())
            }
            (Some(Boundary::TaskComplete), _) => summary.to_owned(),
            _ if summary.is_empty() => reason.words(),
            _ => format!("{}\n\n{summary}", reason.words()),
        };
        let talks = self.talks(session_id) && outcome == RunOutcome::Completed;
        let words = if spoken.is_empty() { ENDED_SILENTLY } else { spoken };
        let told_as = talks.then(|| {
            let head = text::head(&text::defuse(words), self.context.limits.message_head_bytes);
            attributed(&self.label_of(run_id), &head)
        });
        match boundary {
            Some(boundary) if talks => {
                self.route_as(run_id, boundary, &body, "end", ByCall::No, told_as.as_deref());
            }
            Some(boundary) => self.route(run_id, boundary, &body, "end", ByCall::No),
            None => self.tell_stopped(run_id, session_id, task_id, outcome, reason),
        }
        // What is told as words of a conversation is not told as a result too.
        if talks {
            self.tell_parent(session_id, run_id, words, &format!("{run_id}:end"), LastWords::Yes);
        } else if !blocked_by_itself && !matches!(reason, OutcomeReason::Paused { .. }) {
            self.bring_up(run_id);
        }
        self.speak(session_id, spoken, &format!("{run_id}:end"));
        // Turns that follow are there before the task looks whether anything is left to do.
        while self.deliver_mail() {}
        let stop_asked = self.state.tasks.get(&task_id).is_some_and(|task| task.stop_requested_by.is_some());
        if blocked_by_itself && !stop_asked {
            let text = question.unwrap_or_else(|| summary.to_owned());
            let minutes = self.context.limits.question_deadline_minutes;
            self.open_question(run_id, QuestionKind::Ask { text, form: None }, None, minutes);
        }
        self.move_task_after_run(run_id, task_id, outcome, reason, blocked_by_itself);
    }

    fn tell_stopped(
        &mut self,
        run_id: RunId,
        session_id: SessionId,
        task_id: TaskId,
        outcome: RunOutcome,
        reason: &OutcomeReason,
    ) {
        if self.is_told_with_its_tree(session_id) {
            return;
        }
        let Some(origin) = self.state.sessions.get(&session_id).and_then(|session| session.origin.clone())
        else {
            return;
        };
        let (rerouted, way) = self.reroute(run_id, session_id, true);
        if rerouted == Rerouted::ToSession {
            return;
        }
        let hops = way.or_else(|| self.way_up(session_id).map(|way| json!(way.hops)));
        let label = self
            .state
            .sessions
            .get(&session_id)
            .and_then(|session| session.launch.as_ref())
            .map(|launch| launch.label.clone())
            .unwrap_or_default();
        let how = if outcome == RunOutcome::Killed { "had to be ended by force" } else { "was cancelled" };
        let partial = self.state.runs.get(&run_id).is_some_and(|run| run.result.is_some());
        let kept = if partial {
            format!("; what it said is kept: `rally result get {run_id}`")
        } else {
            String::new()
        };
        self.post(Post {
            room_id: origin.task_room_id,
            speaker: Voice::System,
            text: format!("{label} {how} ({}){kept}", reason.words()),
            source: "system".to_owned(),
            in_reply_to: Some(origin.message_id),
            task_id: Some(task_id),
            metadata: match hops {
                Some(hops) => json!({ "taskId": task_id, "runId": run_id, "deliveryHops": hops }),
                None => json!({ "taskId": task_id, "runId": run_id }),
            },
            delivery_key: Some(delivery_key(
                session_id,
                &format!("{run_id}:end"),
                "stopped",
                origin.task_room_id,
            )),
            turn: None,
        });
    }

    /// What the last run without an outcome does to its task.
    pub(crate) fn move_task_after_run(
        &mut self,
        run_id: RunId,
        task_id: TaskId,
        outcome: RunOutcome,
        reason: &OutcomeReason,
        blocked_by_itself: bool,
    ) {
        let Some(task) = self.state.tasks.get(&task_id) else {
            return;
        };
        if task.status.is_terminal() || task.pause.is_some() {
            // Of a paused task, what follows waits until it goes on.
            return;
        }
        if self.state.task_has_open_run(task) {
            // Its question went with it; the others work on.
            if task.status == TaskStatus::Blocked {
                self.unblock_task(task_id);
            }
            return;
        }
        let stop_asked = task.stop_requested_by.is_some();
        let asked = self
            .state
            .open_questions(task_id)
            .any(|question| matches!(question.question, QuestionKind::Ask { .. }));
        if (blocked_by_itself || asked) && !stop_asked {
            self.move_task(task_id, TaskTrigger::SessionBlocked, Some(TaskReason::QuestionAsked));
            return;
        }
        if self.continues_after_cut(run_id, task_id, outcome, reason) {
            return;
        }
        match outcome {
            RunOutcome::Completed if blocked_by_itself => {
                // Nobody wants the answer any more, and nothing was completed.
                self.move_task(task_id, TaskTrigger::Interrupted, Some(TaskReason::Stopped));
                self.tell_task(task_id, "the work was stopped", TurnCause::Moved);
            }
            RunOutcome::Completed => self.completion_reported(task_id),
            RunOutcome::CompletedEmpty | RunOutcome::Incomplete => self.continue_or_wait(run_id, task_id),
            RunOutcome::Failed if needs_login(reason) => {
                self.move_task(task_id, TaskTrigger::AwaitingUser, Some(TaskReason::LoginNeeded));
            }
            RunOutcome::Failed => {
                self.move_task(task_id, TaskTrigger::Unrecoverable, Some(TaskReason::RunFailed));
            }
            RunOutcome::TimedOut => {
                self.move_task(task_id, TaskTrigger::Unrecoverable, Some(TaskReason::TimedOut));
            }
            RunOutcome::Interrupted | RunOutcome::Lost => {
                self.move_task(task_id, TaskTrigger::Interrupted, Some(TaskReason::Cut));
            }
            RunOutcome::Cancelled | RunOutcome::Killed => {
                self.move_task(task_id, TaskTrigger::Interrupted, Some(TaskReason::Stopped));
                self.tell_task(task_id, "the work was stopped", TurnCause::Moved);
            }
            RunOutcome::Capped => {
                self.move_task(task_id, TaskTrigger::AwaitingUser, Some(TaskReason::Capped));
            }
        }
    }

    /// A run whose process was cut goes on in the restored conversation, where
    /// restoring is trusted: "continue or report", never the prompt again.
    fn continues_after_cut(
        &mut self,
        run_id: RunId,
        task_id: TaskId,
        outcome: RunOutcome,
        reason: &OutcomeReason,
    ) -> bool {
        let cut = match outcome {
            RunOutcome::Failed => matches!(reason, OutcomeReason::AgentExited { .. }),
            RunOutcome::Lost | RunOutcome::Interrupted => true,
            RunOutcome::Completed
            | RunOutcome::CompletedEmpty
            | RunOutcome::Incomplete
            | RunOutcome::TimedOut
            | RunOutcome::Cancelled
            | RunOutcome::Killed
            | RunOutcome::Capped => false,
        };
        let Some(run) = self.state.runs.get(&run_id) else { return false };
        let Some(task) = self.state.tasks.get(&task_id) else { return false };
        let had_its_prompt = matches!(run.prompt, PromptProgress::Accepted | PromptProgress::Seen);
        let session_id = run.session_id;
        let used = self.continuing_in_a_row(run_id);
        if !cut
            || !had_its_prompt
            || task.stop_requested_by.is_some()
            || used >= self.context.limits.crash_budget
            || !self.can_be_restored(session_id)
        {
            return false;
        }
        if task.status != TaskStatus::Active {
            self.move_task(task_id, TaskTrigger::Retrying, None);
        }
        self.queue_follow_up(
            session_id,
            RunPurpose::Continuing,
            FollowUpReason::Resume,
            "Continue where the work was cut, or report how far it got.",
            None,
        );
        true
    }

    /// Continuing prompts that led to this run, without another one between.
    fn continuing_in_a_row(&self, run_id: RunId) -> u32 {
        let mut count = 0;
        let mut at = self.state.runs.get(&run_id);
        while let Some(run) = at.filter(|run| run.purpose == RunPurpose::Continuing) {
            count += 1;
            at = run.predecessor.and_then(|id| self.state.runs.get(&id));
        }
        count
    }

    fn continue_or_wait(&mut self, run_id: RunId, task_id: TaskId) {
        let Some(task) = self.state.tasks.get(&task_id) else {
            return;
        };
        let Some(session_id) = self.state.runs.get(&run_id).map(|run| run.session_id) else {
            return;
        };
        let budget_left = self.continuing_in_a_row(run_id) < self.context.limits.crash_budget;
        if budget_left && task.stop_requested_by.is_none() && self.session_can_go_on(session_id) {
            if task.status != TaskStatus::Active {
                self.move_task(task_id, TaskTrigger::Retrying, None);
            }
            self.queue_follow_up(
                session_id,
                RunPurpose::Continuing,
                FollowUpReason::IncompleteCompletion,
                "Continue, or report what keeps you from it.",
                None,
            );
        } else {
            self.move_task(task_id, TaskTrigger::AwaitingUser, Some(TaskReason::NoUsableResult));
        }
    }
}

/// What the worker says of its work: with a tool call, or else in its last words.
fn claim_of(run: &Run) -> Option<CompletionReport> {
    run.reported.clone().or_else(|| match parse(run.said.last_words()) {
        Found::Report(report) => Some(report),
        Found::Absent | Found::Invalid(_) => None,
    })
}

/// Words without the report's fenced block, for people.
pub(crate) fn without_report(text: &str) -> String {
    let mut kept = Vec::new();
    let mut fence: Option<Vec<&str>> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        match &mut fence {
            None if trimmed.starts_with("```") && trimmed.trim_start_matches('`').trim() == "json" => {
                fence = Some(vec![line]);
            }
            None => kept.push(line),
            Some(block) => {
                block.push(line);
                if trimmed == "```" {
                    let is_report = block.iter().any(|line| line.contains("\"diffSummary\""));
                    if !is_report {
                        kept.append(block);
                    }
                    fence = None;
                }
            }
        }
    }
    if let Some(block) = fence {
        kept.extend(block);
    }
    kept.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::without_report;

    #[test]
    fn a_report_is_taken_out_and_other_json_stays() {
        let text = "All good.\n```json\n{\"a\":1}\n```\nBye\n```json\n{\"diffSummary\":\"x\"}\n```\n";
        assert_eq!(without_report(text), "All good.\n```json\n{\"a\":1}\n```\nBye");
    }
}
