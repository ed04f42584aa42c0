//! Requests for permission: the policy first, then a person or parent.

use rallypoint_model::agent_io::{AgentInput, ToolCallView};
use rallypoint_model::event::Event;
use rallypoint_model::ids::{GenerationId, RunId, SessionId, TaskId};
use rallypoint_model::permission::PermissionDecision;
use rallypoint_model::question::{ApprovalOption, PolicyReason, QuestionKind, QuestionStatus};
use rallypoint_model::run::{RunStatus, RunTrigger};
use rallypoint_model::session::GenerationStatus;
use rallypoint_model::task::CriterionCheck;

use super::Deciding;
use crate::permission::{Request, Verdict, decide, option_of_kind};
use crate::state::{Question, Run};

/// Kind of the option that allows this one call. `allow_always` is for persons only.
const ALLOW_ONCE: &str = "allow_once";
/// Kind of the option that rejects this one call.
const REJECT_ONCE: &str = "reject_once";

impl Deciding<'_, '_> {
    pub(super) fn permission_asked(
        &mut self,
        generation_id: GenerationId,
        request_id: &str,
        call: &ToolCallView,
        options: &[ApprovalOption],
    ) {
        let Some(generation) = self.state.generations.get(&generation_id) else {
            return;
        };
        let session_id = generation.session_id;
        let asked_before =
            generation.seen_requests.contains(request_id) || self.state.has_asked(generation, request_id);
        if asked_before {
            return;
        }
        let run_id = self.open_run_of(generation);
        let run = run_id.and_then(|id| self.state.runs.get(&id));
        let task_id = self.state.sessions.get(&session_id).and_then(|session| session.task_id);
        let (Some(run_id), Some(run), Some(task_id)) = (run_id, run, task_id) else {
            // Nobody is left who could be asked for.
            self.answer_permission(generation_id, request_id, None, None);
            return;
        };
        // An agent that waits for its children may still want to use a tool.
        let answerable = matches!(
            run.status,
            RunStatus::Running
                | RunStatus::WaitingApproval
                | RunStatus::WaitingQuestion
                | RunStatus::WaitingChildren
        );
        if run.cancel.is_some() || !answerable {
            self.answer_permission(generation_id, request_id, None, Some(run_id));
            return;
        }
        let mut verdict = self.permission_verdict(session_id, task_id, call);
        // An agent may offer no way to allow this once. A person may still take another one.
        if verdict.decision == PermissionDecision::Allow
            && option_of_kind(options, ALLOW_ONCE).is_none()
            && !options.is_empty()
            && !self.never_asks(run_id)
        {
            verdict.decision = PermissionDecision::Ask;
            verdict.rule = format!("{}; no option that allows it once is offered", verdict.rule);
        }
        if verdict.decision == PermissionDecision::Ask && options.is_empty() {
            verdict.decision = PermissionDecision::Reject;
            verdict.rule = format!("{}; nobody can choose where no option is offered", verdict.rule);
        }
        let kind = match verdict.decision {
            PermissionDecision::Allow => Some(ALLOW_ONCE),
            PermissionDecision::Reject => Some(REJECT_ONCE),
            PermissionDecision::Ask => None,
        };
        let option = kind.and_then(|kind| option_of_kind(options, kind));
        let tool_kind = call.tool_kind.clone().unwrap_or_else(|| "other".to_owned());
        let title = call.title.clone().unwrap_or_else(|| tool_kind.clone());
        self.emit_permission(generation_id, run_id, request_id, &verdict, &tool_kind, &title, option);
        match kind {
            Some(_) => {
                let option_id = option.map(|option| option.option_id.clone());
                self.answer_permission(generation_id, request_id, option_id, Some(run_id));
            }
            None => {
                let Verdict { layer, rule, inherited_from, .. } = verdict;
                let because = Some(PolicyReason { layer, rule, inherited_from });
                let options = options.to_vec();
                let question = QuestionKind::Approval { title: title.clone(), tool_kind, options, because };
                self.ask_approval(run_id, request_id, question, &title);
            }
        }
    }

    /// What the layers of a session's agent say.
    pub(super) fn permission_verdict(
        &self,
        session_id: SessionId,
        task_id: TaskId,
        call: &ToolCallView,
    ) -> Verdict {
        let task = self.state.tasks.get(&task_id);
        let workdir = task.map(|task| task.cwd.clone()).unwrap_or_default();
        let checks = task.into_iter().flat_map(|task| &task.criteria).filter_map(|it| match &it.check {
            CriterionCheck::Command { command } => Some(command.clone()),
            CriterionCheck::File { .. } | CriterionCheck::Human { .. } => None,
        });
        let request = Request::of_call(call, &workdir).with_checks(checks.collect());
        let launch = self.state.sessions.get(&session_id).and_then(|session| session.launch.as_ref());
        decide(&launch.map(|launch| launch.permissions.clone()).unwrap_or_default(), &request)
    }

    fn never_asks(&self, run_id: RunId) -> bool {
        let run = self.state.runs.get(&run_id);
        let session = run.and_then(|run| self.state.sessions.get(&run.session_id));
        let launch = session.and_then(|session| session.launch.as_ref());
        launch.is_some_and(|launch| launch.permissions.layers.iter().any(|layer| layer.preset.never_asks()))
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one fact")]
    fn emit_permission(
        &mut self,
        generation_id: GenerationId,
        run_id: RunId,
        request_id: &str,
        verdict: &Verdict,
        tool_kind: &str,
        title: &str,
        option: Option<&ApprovalOption>,
    ) {
        let Some(aggregate) = self.run_aggregate(run_id) else { return };
        let scope = self.run_scope(run_id);
        self.emit(
            aggregate,
            scope,
            Event::PermissionDecided {
                generation_id,
                run_id,
                request_id: request_id.to_owned(),
                tool_kind: tool_kind.to_owned(),
                title: title.to_owned(),
                decision: verdict.decision,
                layer: verdict.layer.clone(),
                rule: verdict.rule.clone(),
                option_kind: option.map(|option| option.kind.clone()),
            },
        );
    }

    /// Answers a request; `cancelled` without an option.
    fn answer_permission(
        &mut self,
        generation_id: GenerationId,
        request_id: &str,
        option_id: Option<String>,
        run_id: Option<RunId>,
    ) {
        let input = AgentInput::AnswerPermission { request_id: request_id.to_owned(), option_id };
        self.input(generation_id, input, run_id);
    }

    /// An open request that nobody will answer any more is answered `cancelled`: some agents end a cancelled prompt
    /// only then, and others hold their next one back.
    pub(crate) fn settle_withdrawn(&mut self, question: &Question, status: QuestionStatus) {
        let (QuestionKind::Approval { .. }, QuestionStatus::Withdrawn) = (&question.question, status) else {
            return;
        };
        let (Some(run_id), Some(request_id)) = (question.run_id, question.request_id.as_ref()) else {
            return;
        };
        let generation_id = self.state.runs.get(&run_id).and_then(|run| run.generation_id);
        let generation = generation_id.and_then(|id| self.state.generations.get(&id));
        let reachable = generation.filter(|generation| generation.status == GenerationStatus::Ready);
        if let Some(generation_id) = reachable.map(|generation| generation.id) {
            self.answer_permission(generation_id, request_id, None, Some(run_id));
        }
    }

    fn ask_approval(&mut self, run_id: RunId, request_id: &str, question: QuestionKind, title: &str) {
        let minutes = self.context.limits.permission_deadline_minutes;
        self.open_question(run_id, question, Some(request_id.to_owned()), minutes);
        if self.state.runs.get(&run_id).is_some_and(|run| run.status == RunStatus::Running) {
            self.move_run(run_id, RunTrigger::ApprovalAsked);
        }
        self.route(
            run_id,
            crate::consequences::Boundary::Blocked,
            &format!("asks for permission: {title}"),
            request_id,
            super::route::ByCall::No,
        );
        // Telling it may have ended the run by its cap.
        if self.state.runs.get(&run_id).is_some_and(Run::is_open) {
            self.block_task_of(run_id);
        }
    }
}
