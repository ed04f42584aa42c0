//! A person's word on a result, and checks that are run once more.

use rallypoint_model::command::Outcome;
use rallypoint_model::ids::{EvidenceId, TaskId};
use rallypoint_model::question::QuestionKind;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::steering::ValidateTask;
use rallypoint_model::task::{
    Criterion, CriterionCheck, Evidence, EvidenceResult, TaskReason, TaskStatus, TaskTrigger, Verdict,
};

use super::super::Deciding;
use super::super::verification::verdict;
use crate::state::Task;

impl Deciding<'_, '_> {
    /// Takes a person's word where a person is to decide. It takes the place of no check: what a machine can check must
    /// have passed, or an override by name and reason says otherwise.
    pub(crate) fn validate_task(&mut self, validate: &ValidateTask) -> Result<Outcome, Refusal> {
        let task_id = validate.task_id;
        let task = self.kept_task(task_id)?;
        if validate.evidence.trim().is_empty() || validate.by.trim().is_empty() {
            return Err(Refusal::new(
                RefusalCode::Invalid,
                "a word on a result needs a name and what shows it",
            ));
        }
        self.check_has_result(task)?;
        let now = self.now();
        let (criteria, round) = (task.criteria.clone(), task.rounds.saturating_add(1));
        let newer_than = task.last_run_ended_at;
        let mut evidence = task.evidence.clone();
        let of_person = |criterion: &&Criterion| matches!(criterion.check, CriterionCheck::Human { .. });
        let any = criteria.iter().any(|criterion| of_person(&criterion));
        for criterion in criteria.iter().filter(|each| !any || of_person(each)) {
            if !any && validate.passed {
                break;
            }
            evidence.push(Evidence {
                id: EvidenceId(self.context.ids.next_uuid()),
                criterion_id: criterion.id,
                result: if validate.passed { EvidenceResult::Passed } else { EvidenceResult::Failed },
                procedure: format!("asked {}", validate.by),
                exit_code: None,
                started_at: now,
                ended_at: now,
                detail: validate.evidence.clone(),
            });
        }
        let outcome =
            if validate.passed { verdict(&criteria, &evidence, newer_than) } else { Verdict::Failed };
        if validate.passed && outcome != Verdict::Passed {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                "checks that a machine can run have not passed since the last run ended",
            )
            .with_hint(format!(
                "`rally task check {task_id}` runs them again, `rally task override {task_id} --accept` takes the result without them"
            )));
        }
        self.withdraw_questions(task_id, &validate.by, |question| {
            matches!(question.question, QuestionKind::Acceptance { .. })
        });
        self.record_round(task_id, round, evidence, outcome);
        if validate.passed {
            self.move_task(task_id, TaskTrigger::ValidationPassed, Some(TaskReason::Proven));
        } else {
            self.validation_failed(task_id);
        }
        Ok(Outcome::Done)
    }

    /// Runs the checks of a result once more.
    pub(crate) fn check_again(&mut self, task_id: TaskId, by: &str) -> Result<Outcome, Refusal> {
        let task = self.kept_task(task_id)?;
        Self::check_not_paused(task)?;
        self.check_has_result(task)?;
        if task.criteria.is_empty() {
            return Err(Refusal::new(RefusalCode::Invalid, "the task has no criteria to check")
                .with_hint(format!("`rally task edit {task_id} --check CMD` names one")));
        }
        if task.status == TaskStatus::Validating {
            // They are under way.
            return Ok(Outcome::Done);
        }
        self.withdraw_questions(task_id, by, |question| {
            matches!(question.question, QuestionKind::Acceptance { .. })
        });
        self.move_task(task_id, TaskTrigger::CompletionReported, None);
        Ok(Outcome::Done)
    }

    fn check_has_result(&self, task: &Task) -> Result<(), Refusal> {
        let waits = matches!(task.status, TaskStatus::Validating | TaskStatus::WaitingOnUser);
        if waits && task.last_completed_run.is_some() && !self.state.task_has_open_run(task) {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalCode::Conflict,
            format!(
                "the task is `{}`; there is no result of it that waits for a verdict",
                task.status.as_str()
            ),
        )
        .with_hint(format!("`rally task show {}` says what it waits for", task.id)))
    }
}
