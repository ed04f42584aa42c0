//! Questions: opened, answered once, expired, withdrawn.

use rallypoint_model::agent_io::AgentInput;
use rallypoint_model::command::Outcome;
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::{QuestionId, RunId, SessionId, TaskId};
use rallypoint_model::question::{Answer, ApprovalOption, QuestionKind, QuestionStatus};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::run::{RunPurpose, RunTrigger};
use rallypoint_model::task::{TaskReason, TaskStatus, TaskTrigger};

use super::Deciding;
use crate::permission::option_of_kind;
use crate::prompt::FollowUpReason;
use crate::state::{Question, TurnCause};

const MINUTE_MS: i64 = 60_000;

impl Deciding<'_, '_> {
    /// Opens a question of a run.
    pub(crate) fn open_question(
        &mut self,
        run_id: RunId,
        question: QuestionKind,
        request_id: Option<String>,
        deadline_minutes: u64,
    ) {
        let Some(run) = self.state.runs.get(&run_id) else {
            return;
        };
        let (session_id, Some(task_id)) = (run.session_id, run.task_id) else {
            return;
        };
        let scope = self.run_scope(run_id);
        self.open(task_id, Some(run_id), Some(session_id), question, request_id, deadline_minutes, scope);
    }

    /// Opens a question about a task as a whole.
    pub(crate) fn open_task_question(&mut self, task_id: TaskId, question: QuestionKind) {
        let minutes = self.context.limits.question_deadline_minutes;
        let scope = self.task_scope(task_id);
        self.open(task_id, None, None, question, None, minutes, scope);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one fact")]
    fn open(
        &mut self,
        task_id: TaskId,
        run_id: Option<RunId>,
        session_id: Option<SessionId>,
        question: QuestionKind,
        request_id: Option<String>,
        deadline_minutes: u64,
        scope: rallypoint_model::event::Scope,
    ) {
        let question_id = QuestionId(self.context.ids.next_uuid());
        self.open_as(question_id, task_id, run_id, session_id, question, request_id, deadline_minutes, scope);
    }

    /// The same under an id that was chosen before.
    #[expect(clippy::too_many_arguments, reason = "the fields of one fact")]
    pub(super) fn open_as(
        &mut self,
        question_id: QuestionId,
        task_id: TaskId,
        run_id: Option<RunId>,
        session_id: Option<SessionId>,
        question: QuestionKind,
        request_id: Option<String>,
        deadline_minutes: u64,
        scope: rallypoint_model::event::Scope,
    ) {
        let wait = i64::try_from(deadline_minutes).unwrap_or(i64::MAX).saturating_mul(MINUTE_MS);
        let deadline_at = self.now().plus(wait);
        self.emit(
            Aggregate::Task(task_id),
            scope,
            Event::QuestionOpened {
                question_id,
                question,
                task_id,
                run_id,
                session_id,
                request_id,
                deadline_at,
            },
        );
    }

    pub(crate) fn close_question(
        &mut self,
        question_id: QuestionId,
        status: QuestionStatus,
        answer: Option<Answer>,
        by: &str,
    ) {
        let Some(question) = self.state.questions.get(&question_id) else {
            return;
        };
        if question.status != QuestionStatus::Open {
            return;
        }
        let question = question.clone();
        let task_id = question.task_id;
        let scope = match question.run_id {
            Some(run_id) => self.run_scope(run_id),
            None => self.task_scope(task_id),
        };
        self.emit(
            Aggregate::Task(task_id),
            scope,
            Event::QuestionClosed { question_id, status, answer: answer.clone(), by: by.to_owned() },
        );
        self.settle_form(&question, status, answer.as_ref());
        self.settle_tool_call(&question, status, answer.as_ref());
        self.settle_withdrawn(&question, status);
    }

    /// Withdraws those open questions of a task that `which` picks.
    pub(crate) fn withdraw_questions(
        &mut self,
        task_id: TaskId,
        by: &str,
        which: impl Fn(&Question) -> bool,
    ) {
        let open: Vec<QuestionId> = self
            .state
            .open_questions(task_id)
            .filter(|question| which(question))
            .map(|question| question.id)
            .collect();
        for question_id in open {
            self.close_question(question_id, QuestionStatus::Withdrawn, None, by);
        }
    }

    pub(crate) fn answer_question(
        &mut self,
        question_id: QuestionId,
        answer: &Answer,
        by: &str,
    ) -> Result<Outcome, Refusal> {
        let question = self
            .state
            .questions
            .get(&question_id)
            .ok_or_else(|| Refusal::not_found("question", question_id))?;
        if question.status != QuestionStatus::Open {
            return Err(closed_before(question));
        }
        let question = question.clone();
        match &question.question {
            QuestionKind::Approval { .. } => self.answer_approval(&question, answer, by)?,
            QuestionKind::Ask { form: Some(form), .. } => self.answer_form(&question, form, answer, by)?,
            QuestionKind::Ask { form: None, .. } => self.answer_ask(&question, answer, by)?,
            QuestionKind::Acceptance { .. } => self.answer_acceptance(&question, answer, by)?,
        }
        Ok(Outcome::Done)
    }

    fn answer_approval(&mut self, question: &Question, answer: &Answer, by: &str) -> Result<(), Refusal> {
        let QuestionKind::Approval { options, .. } = &question.question else {
            return Ok(());
        };
        let (status, option_id) = match answer {
            Answer::Option { option_id } => {
                if !options.iter().any(|option| option.option_id == *option_id) {
                    let known: Vec<&str> = options.iter().map(|option| option.option_id.as_str()).collect();
                    return Err(Refusal::new(
                        RefusalCode::Invalid,
                        format!("`{option_id}` is none of the options"),
                    )
                    .with_hint(format!("the options are: {}", known.join(", "))));
                }
                (QuestionStatus::Answered, Some(option_id.clone()))
            }
            Answer::Allow | Answer::Accept { .. } => {
                // What allows more than this one call is taken only by its name.
                match option_of_kind(options, "allow_once") {
                    Some(option) => (QuestionStatus::Answered, Some(option.option_id.clone())),
                    None => {
                        let named =
                            |option: &ApprovalOption| format!("`{}` ({})", option.option_id, option.name);
                        let offered: Vec<String> = options.iter().map(named).collect();
                        return Err(Refusal::new(
                            RefusalCode::Invalid,
                            "the agent offers no option that allows it once",
                        )
                        .with_hint(format!("take one of its options by name: {}", offered.join(", "))));
                    }
                }
            }
            Answer::Decline { .. } => (
                QuestionStatus::Declined,
                option_of_kind(options, "reject_once").map(|option| option.option_id.clone()),
            ),
            Answer::Text { .. } | Answer::Value { .. } => {
                return Err(Refusal::new(RefusalCode::Invalid, "an approval is answered with an option")
                    .with_hint("allow it, decline it, or name one of its options"));
            }
        };
        self.close_question(question.id, status, Some(answer.clone()), by);
        self.settle_approval(question, option_id);
        Ok(())
    }

    /// Tells the agent and lets its run go on.
    fn settle_approval(&mut self, question: &Question, option_id: Option<String>) {
        let Some(run_id) = question.run_id else { return };
        let Some(run) = self.state.runs.get(&run_id) else {
            return;
        };
        let generation_id = run.generation_id;
        if let (Some(generation_id), Some(request_id)) = (generation_id, question.request_id.clone()) {
            self.input(generation_id, AgentInput::AnswerPermission { request_id, option_id }, Some(run_id));
        }
        let waits_for_more = self
            .state
            .open_questions(question.task_id)
            .any(|other| other.run_id == Some(run_id) && other.id != question.id);
        if !waits_for_more && self.waits_for_a_person(run_id) {
            self.move_run(run_id, RunTrigger::Resumed);
        }
        self.unblock_task(question.task_id);
    }

    fn answer_ask(&mut self, question: &Question, answer: &Answer, by: &str) -> Result<(), Refusal> {
        let (status, message) = match answer {
            Answer::Text { text } if !text.trim().is_empty() => (QuestionStatus::Answered, text.clone()),
            Answer::Decline { reason } => {
                let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                (QuestionStatus::Declined, format!("{by} does not answer the question{why}."))
            }
            Answer::Text { .. } => return Err(Refusal::new(RefusalCode::Invalid, "the answer is empty")),
            Answer::Option { .. } | Answer::Allow | Answer::Accept { .. } | Answer::Value { .. } => {
                return Err(Refusal::new(RefusalCode::Invalid, "the question is answered with words")
                    .with_hint("`rally question answer ID --text \"…\"`"));
            }
        };
        let Some(session_id) = question.session_id else {
            return Ok(());
        };
        let can_go_on = self.session_can_go_on(session_id);
        self.close_question(question.id, status, Some(answer.clone()), by);
        self.unblock_task(question.task_id);
        if can_go_on {
            self.queue_follow_up(
                session_id,
                RunPurpose::FollowUp,
                FollowUpReason::UserMessage,
                &message,
                None,
            );
        } else {
            self.queue_goal_again(session_id, Some(&message));
        }
        Ok(())
    }

    /// A task that waits for nothing more goes on.
    pub(crate) fn unblock_task(&mut self, task_id: TaskId) {
        let waits = self.state.open_questions(task_id).next().is_some();
        let status = self.state.tasks.get(&task_id).map(|task| task.status);
        if !waits && matches!(status, Some(TaskStatus::Blocked | TaskStatus::WaitingOnUser)) {
            self.move_task(task_id, TaskTrigger::Answered, None);
        }
    }

    /// The same for the task of a run.
    pub(crate) fn unblock_task_of(&mut self, run_id: RunId) {
        if let Some(task_id) = self.state.runs.get(&run_id).and_then(|run| run.task_id)
            && !self.is_paused(task_id)
        {
            self.unblock_task(task_id);
        }
    }

    /// A question of one of its runs stops the task until it is answered.
    pub(crate) fn block_task_of(&mut self, run_id: RunId) {
        let Some(task_id) = self.state.runs.get(&run_id).and_then(|run| run.task_id) else {
            return;
        };
        if self.is_paused(task_id) {
            return;
        }
        let status = self.state.tasks.get(&task_id).map(|task| task.status);
        if matches!(status, Some(TaskStatus::Open | TaskStatus::Active | TaskStatus::WaitingOnUser)) {
            self.move_task(task_id, TaskTrigger::SessionBlocked, Some(TaskReason::QuestionAsked));
        }
    }

    /// Gives open questions back the time in which nobody could have answered them.
    pub(crate) fn extend_questions(&mut self, away_ms: i64) {
        if away_ms <= 0 {
            return;
        }
        let open: Vec<(QuestionId, TaskId, rallypoint_model::time::Timestamp)> = self
            .state
            .all_open_questions()
            .map(|question| (question.id, question.task_id, question.deadline_at.plus(away_ms)))
            .collect();
        for (question_id, task_id, deadline_at) in open {
            let scope = self.task_scope(task_id);
            self.emit(Aggregate::Task(task_id), scope, Event::QuestionExtended { question_id, deadline_at });
        }
    }

    /// Closes questions whose time is up.
    pub(crate) fn expire_questions(&mut self) {
        let now = self.now();
        let due: Vec<Question> =
            self.state.all_open_questions().filter(|question| question.deadline_at <= now).cloned().collect();
        for question in due {
            self.close_question(question.id, QuestionStatus::Expired, None, "its deadline");
            match &question.question {
                QuestionKind::Approval { options, .. } => {
                    let reject =
                        option_of_kind(options, "reject_once").map(|option| option.option_id.clone());
                    self.settle_approval(&question, reject);
                }
                QuestionKind::Ask { form: Some(_), .. } => self.go_on_after(&question),
                QuestionKind::Ask { form: None, .. } => self.ask_expired(question.task_id),
                QuestionKind::Acceptance { .. } => {}
            }
        }
    }

    /// A task that waited for this answer alone is left to a person.
    fn ask_expired(&mut self, task_id: TaskId) {
        let Some(task) = self.state.tasks.get(&task_id) else {
            return;
        };
        let waits_for_more = self.state.open_questions(task_id).next().is_some();
        if task.status != TaskStatus::Blocked || waits_for_more {
            return;
        }
        if self.state.task_has_open_run(task) {
            self.unblock_task(task_id);
            return;
        }
        self.move_task(task_id, TaskTrigger::AwaitingUser, Some(TaskReason::QuestionExpired));
        self.tell_task(task_id, "the question was not answered in time", TurnCause::Moved);
    }
}

/// What somebody is told whose answer comes too late.
fn closed_before(question: &Question) -> Refusal {
    let how = match question.status {
        QuestionStatus::Open | QuestionStatus::Answered => "answered",
        QuestionStatus::Declined => "declined",
        QuestionStatus::Expired => "ended as a no",
        QuestionStatus::Withdrawn => "taken back",
    };
    let by = question.closed_by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    let at = question.closed_at.map(|at| format!(" at {}", at.in_words())).unwrap_or_default();
    let told = match (&question.question, question.status) {
        (QuestionKind::Approval { .. }, QuestionStatus::Withdrawn) => {
            "; the agent was answered `cancelled`, and this answer is not passed on"
        }
        _ => "; this answer is not passed on",
    };
    Refusal::new(
        RefusalCode::AlreadyClosed,
        format!("the question `{}` was closed before: it was {how}{by}{at}{told}", question.id),
    )
    .with_hint(format!("`rally task show {}` shows where its task stands", question.task_id))
}
