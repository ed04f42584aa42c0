//! Questions of one agent that another one answers: the main agent of the room, or a session above.
//!
//! An agent answers within what it may do itself. It gives no permission that it would have to ask for, none for more
//! than one call, and takes no result in a person's name.

use rallypoint_model::command::Outcome;
use rallypoint_model::ids::QuestionId;
use rallypoint_model::question::{Answer, AnsweringAgent, QuestionKind, QuestionStatus};
use rallypoint_model::refusal::{Refusal, RefusalCode};

use super::Deciding;
use crate::state::Question;
use crate::tree;

impl Deciding<'_, '_> {
    pub(crate) fn answer_as_agent(
        &mut self,
        question_id: QuestionId,
        answer: &Answer,
        agent: AnsweringAgent,
    ) -> Result<Outcome, Refusal> {
        let question = self
            .state
            .questions
            .get(&question_id)
            .ok_or_else(|| Refusal::not_found("question", question_id))?;
        let by = match agent {
            AnsweringAgent::MainAgent => "the main agent".to_owned(),
            AnsweringAgent::Session { session_id } => {
                let name = self
                    .state
                    .sessions
                    .get(&session_id)
                    .and_then(|session| session.launch.as_ref())
                    .map(|launch| launch.label.clone())
                    .ok_or_else(|| Refusal::not_found("sub-agent", session_id))?;
                format!("`{name}`")
            }
        };
        // One that is closed already is told so, whoever answers.
        if question.status == QuestionStatus::Open {
            self.may_answer(question, answer, agent, &by)?;
        }
        self.answer_question(question_id, answer, &by)
    }

    fn may_answer(
        &self,
        question: &Question,
        answer: &Answer,
        agent: AnsweringAgent,
        by: &str,
    ) -> Result<(), Refusal> {
        let for_a_person = |what: String| {
            Refusal::new(RefusalCode::Forbidden, what)
                .with_hint(format!("a person answers with `rally question answer {}`", question.id))
        };
        let above = match agent {
            AnsweringAgent::MainAgent => None,
            AnsweringAgent::Session { session_id } => {
                let asker = question.session_id.and_then(|id| self.state.sessions.get(&id));
                if !asker.is_some_and(|asker| tree::ancestors(self.state, asker).contains(&session_id)) {
                    return Err(for_a_person(format!(
                        "{by} does not stand above the sub-agent that asks, so it can't answer"
                    )));
                }
                Some(session_id)
            }
        };
        let QuestionKind::Approval { options, because, .. } = &question.question else {
            return match &question.question {
                QuestionKind::Acceptance { .. } => {
                    Err(for_a_person("whether a result is accepted is said by a person only".to_owned()))
                }
                QuestionKind::Ask { .. } | QuestionKind::Approval { .. } => Ok(()),
            };
        };
        let kind = match answer {
            Answer::Option { option_id } => {
                options.iter().find(|option| option.option_id == *option_id).map(|option| &*option.kind)
            }
            Answer::Allow | Answer::Accept { .. } => Some("allow_once"),
            Answer::Decline { .. } | Answer::Text { .. } | Answer::Value { .. } => None,
        };
        match kind {
            // What is none of the options is refused with those that are.
            None | Some("reject_once") => Ok(()),
            Some("allow_once") => {
                let own = because.as_ref().is_some_and(|because| because.inherited_from.is_none());
                if above.is_none() || own {
                    return Ok(());
                }
                Err(for_a_person(format!("{by} would have to ask for this itself, so it can't allow it")))
            }
            Some(other) => Err(for_a_person(format!(
                "`{other}` decides about more than this one call, and an agent may not"
            ))),
        }
    }
}
