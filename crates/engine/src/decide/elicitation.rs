//! What an agent asks a person in the middle of its turn: a form to fill in, or an address to visit.
//!
//! The question is durable and the agent's request stays open until it is closed. However it is closed, the agent is
//! answered: with the values, with a no, or with `cancel` where its turn is being ended.

use rallypoint_model::agent_io::{AgentInput, ElicitationAction};
use rallypoint_model::ids::{GenerationId, RunId};
use rallypoint_model::question::{Answer, AskForm, QuestionKind, QuestionStatus};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::run::{RunStatus, RunTrigger};
use rallypoint_model::session::GenerationStatus;

use super::Deciding;
use super::route::ByCall;
use crate::consequences::Boundary;
use crate::form::{content_of, how_to_answer};
use crate::state::{Question, Run};

impl Deciding<'_, '_> {
    pub(crate) fn elicitation_asked(
        &mut self,
        generation_id: GenerationId,
        request_id: &str,
        text: &str,
        form: &AskForm,
    ) {
        let Some(generation) = self.state.generations.get(&generation_id) else { return };
        let asked_before =
            generation.seen_requests.contains(request_id) || self.state.has_asked(generation, request_id);
        if asked_before {
            return;
        }
        let run_id = self.open_run_of(generation);
        let answerable = run_id.and_then(|id| self.state.runs.get(&id)).is_some_and(|run| {
            run.cancel.is_none()
                && run.task_id.is_some()
                && matches!(
                    run.status,
                    RunStatus::Running
                        | RunStatus::WaitingApproval
                        | RunStatus::WaitingQuestion
                        | RunStatus::WaitingChildren
                )
        });
        let Some(run_id) = run_id.filter(|_| answerable) else {
            // Nobody is left who could be asked for.
            let input = AgentInput::AnswerElicitation {
                request_id: request_id.to_owned(),
                action: ElicitationAction::Cancel,
            };
            self.input(generation_id, input, run_id);
            return;
        };
        let minutes = self.context.limits.question_deadline_minutes;
        self.open_question(
            run_id,
            QuestionKind::Ask { text: text.to_owned(), form: Some(form.clone()) },
            Some(request_id.to_owned()),
            minutes,
        );
        if self.state.runs.get(&run_id).is_some_and(|run| run.status == RunStatus::Running) {
            self.move_run(run_id, RunTrigger::QuestionAsked);
        }
        self.route(run_id, Boundary::Blocked, &format!("asks: {text}"), request_id, ByCall::Yes);
        // Telling it may have ended the run by its cap.
        if self.state.runs.get(&run_id).is_some_and(Run::is_open) {
            self.block_task_of(run_id);
        }
    }

    /// Takes a person's answer to a form.
    pub(crate) fn answer_form(
        &mut self,
        question: &Question,
        form: &AskForm,
        answer: &Answer,
        by: &str,
    ) -> Result<(), Refusal> {
        if let Answer::Decline { .. } = answer {
            self.close_question(question.id, QuestionStatus::Declined, Some(answer.clone()), by);
            self.go_on_after(question);
            return Ok(());
        }
        let content = content_of(form, answer).map_err(|message| {
            Refusal::new(RefusalCode::Invalid, message)
                .with_hint(how_to_answer(form, &question.id.to_string()))
        })?;
        let answer = Answer::Value { value: serde_json::Value::Object(content) };
        self.close_question(question.id, QuestionStatus::Answered, Some(answer), by);
        self.go_on_after(question);
        Ok(())
    }

    /// Lets a run go on that waited for this question alone.
    pub(crate) fn go_on_after(&mut self, question: &Question) {
        if let Some(run_id) = question.run_id {
            let waits_for_more = self
                .state
                .open_questions(question.task_id)
                .any(|other| other.run_id == Some(run_id) && other.id != question.id);
            if !waits_for_more && self.waits_for_a_person(run_id) {
                self.move_run(run_id, RunTrigger::Resumed);
            }
        }
        self.unblock_task(question.task_id);
    }

    pub(crate) fn waits_for_a_person(&self, run_id: RunId) -> bool {
        self.state
            .runs
            .get(&run_id)
            .is_some_and(|run| matches!(run.status, RunStatus::WaitingApproval | RunStatus::WaitingQuestion))
    }

    /// Tells the agent how its question was closed.
    pub(crate) fn settle_form(
        &mut self,
        question: &Question,
        status: QuestionStatus,
        answer: Option<&Answer>,
    ) {
        let QuestionKind::Ask { form: Some(form), .. } = &question.question else { return };
        let (Some(run_id), Some(request_id)) = (question.run_id, question.request_id.clone()) else { return };
        let generation = self.state.runs.get(&run_id).and_then(|run| run.generation_id);
        let generation = generation.and_then(|id| self.state.generations.get(&id));
        let Some(generation_id) =
            generation.filter(|it| it.status == GenerationStatus::Ready).map(|generation| generation.id)
        else {
            return;
        };
        let action = match status {
            QuestionStatus::Answered => ElicitationAction::Accept {
                content: match answer {
                    Some(Answer::Value { value: serde_json::Value::Object(content) })
                        if !form.fields.is_empty() =>
                    {
                        Some(content.clone())
                    }
                    _ => None,
                },
            },
            QuestionStatus::Declined | QuestionStatus::Expired => ElicitationAction::Decline,
            QuestionStatus::Withdrawn | QuestionStatus::Open => ElicitationAction::Cancel,
        };
        self.input(generation_id, AgentInput::AnswerElicitation { request_id, action }, Some(run_id));
    }
}
