//! Verdicts: from what was observed to what the task does.

use rallypoint_model::command::{Acceptance, Outcome};
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::{EvidenceId, TaskId};
use rallypoint_model::question::{Answer, QuestionKind, QuestionStatus};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::task::{
    Criterion, CriterionCheck, Evidence, EvidenceResult, TaskReason, TaskStatus, TaskTrigger, Verdict,
};
use rallypoint_model::time::Timestamp;

use super::Deciding;
use crate::state::{Question, TurnCause};
use crate::text::one_line;

/// What the observations of one round amount to. An empty list never passes,
/// and what was observed before the last run ended says nothing.
pub fn verdict(criteria: &[Criterion], evidence: &[Evidence], newer_than: Option<Timestamp>) -> Verdict {
    let mut needs_person = false;
    let mut cannot_tell = criteria.is_empty();
    for criterion in criteria {
        let latest = evidence
            .iter()
            .filter(|evidence| evidence.criterion_id == criterion.id)
            .filter(|evidence| newer_than.is_none_or(|end| evidence.started_at >= end))
            .max_by_key(|evidence| evidence.ended_at);
        match (latest.map(|evidence| evidence.result), &criterion.check) {
            (Some(EvidenceResult::Failed), _) => return Verdict::Failed,
            (Some(EvidenceResult::Passed), _) => {}
            (None, CriterionCheck::Human { .. }) => needs_person = true,
            (Some(EvidenceResult::Inconclusive) | None, _) => cannot_tell = true,
        }
    }
    if cannot_tell {
        Verdict::Inconclusive
    } else if needs_person {
        Verdict::NeedsPerson
    } else {
        Verdict::Passed
    }
}

impl Deciding<'_, '_> {
    /// The last run completed: the result is to be checked, or was accepted beforehand.
    pub(crate) fn completion_reported(&mut self, task_id: TaskId) {
        let Some(task) = self.state.tasks.get(&task_id) else {
            return;
        };
        let (acceptance, by) = (task.acceptance, task.requested_by.clone());
        let nothing_to_check = task.criteria.is_empty();
        if !self.move_task(task_id, TaskTrigger::CompletionReported, None) {
            return;
        }
        if acceptance == Acceptance::Unchecked && nothing_to_check {
            let scope = self.task_scope(task_id);
            self.emit(
                Aggregate::Task(task_id),
                scope,
                Event::TaskOverridden { task_id, passed: true, by, reason: "--unchecked".to_owned() },
            );
            self.move_task(task_id, TaskTrigger::HumanOverridePassed, Some(TaskReason::Unchecked));
        }
    }

    pub(crate) fn verified(&mut self, task_id: TaskId, round: u32, evidence: &[Evidence]) -> Outcome {
        let Some(task) = self.state.tasks.get(&task_id) else {
            return Outcome::Stale;
        };
        let current = task.status == TaskStatus::Validating
            && task.verification_due
            // Checked again when it goes on.
            && task.pause.is_none()
            && round == task.rounds.saturating_add(1);
        if !current {
            return Outcome::Stale;
        }
        let verdict = verdict(&task.criteria, evidence, task.last_run_ended_at);
        self.record_round(task_id, round, evidence.to_vec(), verdict);
        match verdict {
            Verdict::Passed => {
                self.move_task(task_id, TaskTrigger::ValidationPassed, Some(TaskReason::Proven));
            }
            Verdict::Failed => self.validation_failed(task_id),
            Verdict::Inconclusive => {
                self.move_task(
                    task_id,
                    TaskTrigger::AwaitingUser,
                    Some(TaskReason::VerificationInconclusive),
                );
                self.ask_acceptance(task_id);
            }
            Verdict::NeedsPerson => {
                self.move_task(task_id, TaskTrigger::AwaitingUser, Some(TaskReason::AcceptanceAsked));
                self.ask_acceptance(task_id);
            }
        }
        Outcome::Done
    }

    pub(super) fn record_round(
        &mut self,
        task_id: TaskId,
        round: u32,
        evidence: Vec<Evidence>,
        verdict: Verdict,
    ) {
        let Some(task) = self.state.tasks.get(&task_id) else {
            return;
        };
        let unmet = unmet(&task.criteria, &evidence);
        let text = round_words(&task.criteria, &evidence, verdict);
        let scope = self.task_scope(task_id);
        self.emit(
            Aggregate::Task(task_id),
            scope,
            Event::TaskVerified { task_id, round, evidence, verdict, unmet },
        );
        self.tell_task(task_id, &text, TurnCause::Verified { round });
    }

    /// Back to work while rounds are left, else a person must look.
    pub(super) fn validation_failed(&mut self, task_id: TaskId) {
        let Some(task) = self.state.tasks.get(&task_id) else {
            return;
        };
        let session_id =
            task.last_completed_run.and_then(|run| self.state.runs.get(&run)).map(|run| run.session_id);
        let rounds_left = task.corrective_rounds < task.corrective_limit && task.stop_requested_by.is_none();
        let can_go_on = session_id.is_some_and(|session_id| self.session_can_go_on(session_id));
        if rounds_left && can_go_on {
            self.move_task(task_id, TaskTrigger::ValidationFailed, None);
        } else if task.status == TaskStatus::Validating {
            self.move_task(task_id, TaskTrigger::AwaitingUser, Some(TaskReason::VerificationExhausted));
        } else {
            self.move_task(task_id, TaskTrigger::ValidationFailed, None);
            self.move_task(task_id, TaskTrigger::AwaitingUser, Some(TaskReason::VerificationExhausted));
        }
    }

    fn ask_acceptance(&mut self, task_id: TaskId) {
        let Some(task) = self.state.tasks.get(&task_id) else {
            return;
        };
        let open: Vec<String> = unmet(&task.criteria, &task.evidence);
        let text = if open.is_empty() { "accept this result".to_owned() } else { open.join("; ") };
        self.open_task_question(task_id, QuestionKind::Acceptance { text });
    }

    pub(crate) fn answer_acceptance(
        &mut self,
        question: &Question,
        answer: &Answer,
        by: &str,
    ) -> Result<(), Refusal> {
        let task_id = question.task_id;
        let task = self.state.tasks.get(&task_id).ok_or_else(|| Refusal::not_found("task", task_id))?;
        if task.status != TaskStatus::WaitingOnUser {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("the task is `{}` and waits for no acceptance", task.status.as_str()),
            ));
        }
        let (passed, why) = match answer {
            Answer::Accept { reason } => (true, reason.clone()),
            Answer::Allow => (true, String::new()),
            Answer::Decline { reason } => (false, reason.clone()),
            Answer::Option { .. } | Answer::Text { .. } | Answer::Value { .. } => {
                return Err(Refusal::new(RefusalCode::Invalid, "a result is accepted or declined")
                    .with_hint("`rally question answer ID --accept`, or `--decline REASON`"));
            }
        };
        let status = if passed { QuestionStatus::Answered } else { QuestionStatus::Declined };
        let (criteria, before, round) =
            (task.criteria.clone(), task.evidence.clone(), task.rounds.saturating_add(1));
        let machine_unsure = task.verdict == Some(Verdict::Inconclusive);
        self.close_question(question.id, status, Some(answer.clone()), by);
        if machine_unsure && passed {
            let reason = if why.is_empty() { "accepted when asked".to_owned() } else { why };
            let scope = self.task_scope(task_id);
            self.emit(
                Aggregate::Task(task_id),
                scope,
                Event::TaskOverridden { task_id, passed: true, by: by.to_owned(), reason },
            );
            self.move_task(task_id, TaskTrigger::HumanOverridePassed, Some(TaskReason::Overridden));
            self.tell_task(task_id, &format!("{by} accepts the result"), TurnCause::Moved);
            return Ok(());
        }
        let now = self.now();
        let mut evidence = before;
        for criterion in
            criteria.iter().filter(|criterion| matches!(criterion.check, CriterionCheck::Human { .. }))
        {
            evidence.push(Evidence {
                id: EvidenceId(self.context.ids.next_uuid()),
                criterion_id: criterion.id,
                result: if passed { EvidenceResult::Passed } else { EvidenceResult::Failed },
                procedure: format!("asked {by}"),
                exit_code: None,
                started_at: now,
                ended_at: now,
                detail: why.clone(),
            });
        }
        let newer_than = self.state.tasks.get(&task_id).and_then(|task| task.last_run_ended_at);
        let outcome = if passed { verdict(&criteria, &evidence, newer_than) } else { Verdict::Failed };
        self.record_round(task_id, round, evidence, outcome);
        match outcome {
            Verdict::Passed => {
                self.move_task(task_id, TaskTrigger::ValidationPassed, Some(TaskReason::Proven));
            }
            Verdict::Failed | Verdict::Inconclusive | Verdict::NeedsPerson => self.validation_failed(task_id),
        }
        Ok(())
    }
}

/// Texts of the criteria that no observation shows to hold.
pub(crate) fn unmet(criteria: &[Criterion], evidence: &[Evidence]) -> Vec<String> {
    criteria
        .iter()
        .filter(|criterion| {
            evidence
                .iter()
                .filter(|evidence| evidence.criterion_id == criterion.id)
                .max_by_key(|evidence| evidence.ended_at)
                .is_none_or(|evidence| evidence.result != EvidenceResult::Passed)
        })
        .map(|criterion| criterion.text.clone())
        .collect()
}

/// One line per observation, for a room.
pub(crate) fn evidence_lines(criteria: &[Criterion], evidence: &[Evidence]) -> Vec<String> {
    evidence
        .iter()
        .map(|evidence| {
            let criterion = criteria.iter().find(|criterion| criterion.id == evidence.criterion_id);
            let what = match criterion.map(|criterion| &criterion.check) {
                Some(CriterionCheck::Human { text }) => format!("{text} ({})", evidence.procedure),
                _ => format!("`{}`", one_line(&evidence.procedure, 120)),
            };
            let result = match evidence.result {
                EvidenceResult::Passed => "passed",
                EvidenceResult::Failed => "failed",
                EvidenceResult::Inconclusive => "could not tell",
            };
            let exit = evidence.exit_code.map(|code| format!(" (exit {code})")).unwrap_or_default();
            format!("check {what} {result}{exit}")
        })
        .collect()
}

fn round_words(criteria: &[Criterion], evidence: &[Evidence], verdict: Verdict) -> String {
    let mut lines = evidence_lines(criteria, evidence);
    if lines.is_empty() {
        lines.push(match verdict {
            Verdict::NeedsPerson => "no check can decide this; a person is asked".to_owned(),
            Verdict::Passed | Verdict::Failed | Verdict::Inconclusive => "no check was run".to_owned(),
        });
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_model::ids::CriterionId;
    use uuid::Uuid;

    fn command(number: u128) -> Criterion {
        Criterion {
            id: CriterionId(Uuid::from_u128(number)),
            text: "x".to_owned(),
            check: CriterionCheck::Command { command: "x".to_owned() },
        }
    }

    fn human(number: u128) -> Criterion {
        Criterion { check: CriterionCheck::Human { text: "ok?".to_owned() }, ..command(number) }
    }

    fn seen(number: u128, result: EvidenceResult, at: i64) -> Evidence {
        Evidence {
            id: EvidenceId(Uuid::nil()),
            criterion_id: CriterionId(Uuid::from_u128(number)),
            result,
            procedure: "x".to_owned(),
            exit_code: None,
            started_at: Timestamp(at),
            ended_at: Timestamp(at + 1),
            detail: String::new(),
        }
    }

    #[test]
    fn an_empty_list_never_passes() {
        assert_eq!(verdict(&[], &[], None), Verdict::Inconclusive);
    }

    #[test]
    fn evidence_from_before_the_last_run_ended_is_no_proof() {
        let old = [seen(1, EvidenceResult::Passed, 9)];
        assert_eq!(verdict(&[command(1)], &old, Some(Timestamp(10))), Verdict::Inconclusive);
        let fresh = [seen(1, EvidenceResult::Passed, 10)];
        assert_eq!(verdict(&[command(1)], &fresh, Some(Timestamp(10))), Verdict::Passed);
    }

    #[test]
    fn cannot_tell_is_not_a_pass_and_a_failure_beats_a_person() {
        assert_eq!(
            verdict(&[command(1)], &[seen(1, EvidenceResult::Inconclusive, 1)], None),
            Verdict::Inconclusive
        );
        assert_eq!(
            verdict(&[command(1), human(2)], &[seen(1, EvidenceResult::Failed, 1)], None),
            Verdict::Failed
        );
        assert_eq!(
            verdict(&[command(1), human(2)], &[seen(1, EvidenceResult::Passed, 1)], None),
            Verdict::NeedsPerson
        );
    }
}
