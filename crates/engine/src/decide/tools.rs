//! Our tools in the hands of agents: reports, questions, words to others.
//!
//! A call is a fact with a name; what comes again under its name changes nothing and gets the same answer. It is
//! decided in the transaction that takes it in, but for a question, which is answered when its question is closed.

use rallypoint_model::command::Outcome;
use rallypoint_model::event::Event;
use rallypoint_model::ids::{GenerationId, QuestionId, RunId, SessionId};
use rallypoint_model::mail::{Mail, MailFrom, MailKind};
use rallypoint_model::question::{Answer, AskField, AskForm, QuestionKind, QuestionStatus};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::run::{RunStatus, RunTrigger};
use rallypoint_model::tool_call::{ToolAnswer, ToolCall, ToolRequest};
use serde_json::{Value, json};

use super::conversation::{Called, LastWords, answer_to};
use super::mail::attributed;
use super::route::ByCall;
use super::spawn::label_of;
use super::{Deciding, Post, Voice};
use crate::consequences::Boundary;
use crate::state::{Question, Run};
use crate::text;

/// How calls come.
const SOURCE: &str = "mcp";
/// Field of the form that a question of a call is.
const ANSWER_FIELD: &str = "answer";
/// What a call is told whose question nobody may answer any more.
const WITHDRAWN: &str = "the question was withdrawn";

/// Which call this is.
#[derive(Clone, Copy)]
struct Named<'a> {
    generation_id: GenerationId,
    session_id: SessionId,
    process: &'a str,
    request_id: &'a str,
}

impl Named<'_> {
    /// Unique key of what the call brings about.
    fn key(&self) -> String {
        format!("{SOURCE}:{}:{}:{}", self.generation_id, self.process, self.request_id)
    }
}

impl Deciding<'_, '_> {
    /// The tool server of a process said hello. The same hello again is no news.
    pub(crate) fn tools_connected(
        &mut self,
        generation_id: GenerationId,
        process: &str,
        client: &str,
    ) -> Result<Outcome, Refusal> {
        let generation = self.state.generations.get(&generation_id).filter(|it| it.is_live());
        let generation = generation.ok_or_else(ended)?;
        if generation.tools.as_ref().is_none_or(|tools| tools.process != process) {
            let (process, client) = (process.to_owned(), client.to_owned());
            self.emit_for_generation(
                generation_id,
                Event::GenerationToolsConnected { generation_id, process, client },
            );
        }
        Ok(Outcome::Done)
    }

    /// Takes a call in, once for each name.
    pub(crate) fn tool_called(
        &mut self,
        generation_id: GenerationId,
        process: &str,
        request_id: &str,
        request: &ToolRequest,
    ) -> Result<Outcome, Refusal> {
        let generation = self.state.generations.get(&generation_id).filter(|it| it.is_live());
        let generation = generation.ok_or_else(ended)?;
        let named = Named { generation_id, session_id: generation.session_id, process, request_id };
        if let Some(before) = generation.tool_call(process, request_id) {
            if before.request == self.as_stored(&named, request) {
                return Ok(Outcome::ToolCall { answer: before.answer.clone() });
            }
            return Err(Refusal::new(
                RefusalCode::KeyReused,
                format!("the call `{request_id}` came before and asked for something else"),
            ));
        }
        let (count, limit) = (generation.tool_calls.len(), self.context.limits.tool_calls);
        if count >= limit as usize {
            return Err(Refusal::new(
                RefusalCode::Limit,
                format!("this agent process has made {count}/{limit} tool calls; the limit is `toolCalls`"),
            ));
        }
        let run_id = self.open_run_of(generation).filter(|id| self.is_in_turn(*id));
        match (run_id, request) {
            (Some(run_id), ToolRequest::AskUser { question, options }) if !question.trim().is_empty() => {
                self.ask_by_call(&named, run_id, request, question, options);
            }
            (run_id, request) => {
                self.note_call(&named, request, None);
                let answer = match run_id {
                    Some(run_id) => self.carry_out_call(&named, run_id, request),
                    None => failed("no turn is open, so nothing was done"),
                };
                self.answer_call(&named, answer);
            }
        }
        let generation = self.state.generations.get(&generation_id);
        let answer =
            generation.and_then(|it| it.tool_call(process, request_id)).and_then(|it| it.answer.clone());
        Ok(Outcome::ToolCall { answer })
    }

    /// An agent no longer waits for a call: what it asks is withdrawn.
    pub(crate) fn tool_call_cancelled(
        &mut self,
        generation_id: GenerationId,
        process: &str,
        request_id: &str,
    ) -> Outcome {
        let call =
            self.state.generations.get(&generation_id).and_then(|it| it.tool_call(process, request_id));
        let question_id = call.filter(|call| call.answer.is_none()).and_then(|call| call.question_id);
        let question = question_id.and_then(|id| self.state.questions.get(&id)).cloned();
        let Some(question) = question.filter(|question| question.status == QuestionStatus::Open) else {
            return Outcome::Stale;
        };
        self.close_question(question.id, QuestionStatus::Withdrawn, None, "the agent");
        self.go_on_after(&question);
        Outcome::Done
    }

    /// Answers the call that a question was asked by.
    ///
    /// A turn that is being cancelled gets no answer to it: the cancel goes another way, and an agent that heard of the
    /// withdrawal first would go on and end its turn well. [`Self::settle_calls_of`] answers it when the turn has ended.
    pub(super) fn settle_tool_call(
        &mut self,
        question: &Question,
        status: QuestionStatus,
        answer: Option<&Answer>,
    ) {
        let (Some(session_id), Some(run_id)) = (question.session_id, question.run_id) else { return };
        let Some(run) = self.state.runs.get(&run_id) else { return };
        if status == QuestionStatus::Withdrawn && run.cancel.is_some() && run.is_open() {
            return;
        }
        let waiting = run.generation_id.and_then(|id| self.state.generations.get(&id)).and_then(|it| {
            let call = it.tool_calls.iter().find(|call| call.question_id == Some(question.id))?;
            call.answer.is_none().then(|| (it.id, call.process.clone(), call.request_id.clone()))
        });
        let Some((generation_id, process, request_id)) = waiting else { return };
        let named = Named { generation_id, session_id, process: &process, request_id: &request_id };
        let answer = match status {
            QuestionStatus::Answered => done(answered_words(answer)),
            QuestionStatus::Declined => done(match answer {
                Some(Answer::Decline { reason }) if !reason.is_empty() => {
                    format!("The question was declined: {reason}")
                }
                _ => "The question was declined.".to_owned(),
            }),
            QuestionStatus::Expired => {
                done("Nobody answered in time. Take it as declined and go on as well as you can.")
            }
            QuestionStatus::Withdrawn | QuestionStatus::Open => failed(WITHDRAWN),
        };
        self.answer_call(&named, answer);
    }

    /// Answers the calls that a run which has ended left open.
    pub(super) fn settle_calls_of(&mut self, run_id: RunId) {
        let Some(run) = self.state.runs.get(&run_id) else { return };
        let session_id = run.session_id;
        let Some(generation) = run.generation_id.and_then(|id| self.state.generations.get(&id)) else {
            return;
        };
        let generation_id = generation.id;
        let open = generation.tool_calls.iter().filter(|call| call.answer.is_none());
        let open: Vec<_> = open.map(|call| (call.process.clone(), call.request_id.clone())).collect();
        for (process, request_id) in open {
            let named = Named { generation_id, session_id, process: &process, request_id: &request_id };
            self.answer_call(&named, failed(WITHDRAWN));
        }
    }

    fn is_in_turn(&self, run_id: RunId) -> bool {
        self.state.runs.get(&run_id).is_some_and(|run| {
            run.cancel.is_none()
                && run.task_id.is_some()
                && matches!(
                    run.status,
                    RunStatus::Running
                        | RunStatus::WaitingApproval
                        | RunStatus::WaitingQuestion
                        | RunStatus::WaitingChildren
                )
        })
    }

    fn call_event(named: &Named<'_>, request: &ToolRequest, question_id: Option<QuestionId>) -> Event {
        Event::SessionToolCalled {
            session_id: named.session_id,
            generation_id: named.generation_id,
            source: SOURCE.to_owned(),
            call: ToolCall {
                process: named.process.to_owned(),
                request_id: named.request_id.to_owned(),
                request: request.clone(),
                question_id,
                answer: None,
            },
        }
    }

    /// A request as the journal has it, without secrets, so that it can be compared with what came before.
    fn as_stored(&self, named: &Named<'_>, request: &ToolRequest) -> ToolRequest {
        match self.context.funnel.clean(Self::call_event(named, request, None)) {
            Event::SessionToolCalled { call, .. } => call.request,
            _ => request.clone(),
        }
    }

    fn note_call(&mut self, named: &Named<'_>, request: &ToolRequest, question_id: Option<QuestionId>) {
        let event = Self::call_event(named, request, question_id);
        self.emit_for_generation(named.generation_id, event);
    }

    fn answer_call(&mut self, named: &Named<'_>, answer: ToolAnswer) {
        self.emit_for_generation(
            named.generation_id,
            Event::SessionToolAnswered {
                session_id: named.session_id,
                generation_id: named.generation_id,
                process: named.process.to_owned(),
                request_id: named.request_id.to_owned(),
                answer,
            },
        );
    }

    fn ask_by_call(
        &mut self,
        named: &Named<'_>,
        run_id: RunId,
        request: &ToolRequest,
        question: &str,
        options: &[String],
    ) {
        let Some(task_id) = self.state.runs.get(&run_id).and_then(|run| run.task_id) else { return };
        let question_id = QuestionId(self.context.ids.next_uuid());
        self.note_call(named, request, Some(question_id));
        let field = AskField {
            name: ANSWER_FIELD.to_owned(),
            required: true,
            kind: "string".to_owned(),
            values: options.to_vec(),
            ..AskField::default()
        };
        let form = AskForm { fields: vec![field], url: None };
        let minutes = self.context.limits.question_deadline_minutes;
        let scope = self.run_scope(run_id);
        self.open_as(
            question_id,
            task_id,
            Some(run_id),
            Some(named.session_id),
            QuestionKind::Ask { text: question.to_owned(), form: Some(form) },
            None,
            minutes,
            scope,
        );
        if self.state.runs.get(&run_id).is_some_and(|run| run.status == RunStatus::Running) {
            self.move_run(run_id, RunTrigger::QuestionAsked);
        }
        let mut words = question.to_owned();
        if !options.is_empty() {
            words.push_str(&format!("\n\nOne of: {}", options.join(", ")));
        }
        self.route(run_id, Boundary::QuestionForTaskCreator, &words, &named.key(), ByCall::Yes);
        // Telling it may have ended the run by its cap.
        if self.state.runs.get(&run_id).is_some_and(Run::is_open) {
            self.block_task_of(run_id);
        }
    }

    /// Does what a call asks for, if it does not have to wait.
    fn carry_out_call(&mut self, named: &Named<'_>, run_id: RunId, request: &ToolRequest) -> ToolAnswer {
        match request {
            ToolRequest::ReportCompletion { .. } => done(
                "The report is taken. End your turn when nothing is left to do; what it says is checked then.",
            ),
            ToolRequest::AskUser { .. } => failed("the question is empty"),
            ToolRequest::Coordinate { text } if text.trim().is_empty() => failed("`text` is empty"),
            ToolRequest::Coordinate { text } => {
                let kept = |it: &Self| it.state.sessions.get(&named.session_id).map(|it| it.kept_events);
                let before = kept(self);
                self.route(run_id, Boundary::AgentCoordination, text, &named.key(), ByCall::Yes);
                if kept(self) == before {
                    done("Posted.")
                } else {
                    failed("it is in the journal and was told in no room")
                }
            }
            ToolRequest::Send { text, .. } if text.trim().is_empty() => failed("`text` is empty"),
            ToolRequest::Send { recipient, text } => self.send_by_call(named, run_id, recipient.trim(), text),
            ToolRequest::Unfit { problem, .. } => failed(problem),
        }
    }

    fn send_by_call(&mut self, named: &Named<'_>, run_id: RunId, to: &str, words: &str) -> ToolAnswer {
        match to {
            "parent" => self.send_to_parent(named, run_id, words),
            "room" => self.send_to_room(named, run_id, words),
            name => self.send_to_name(named, name, words),
        }
    }

    fn send_to_parent(&mut self, named: &Named<'_>, run_id: RunId, words: &str) -> ToolAnswer {
        let has_parent =
            self.state.sessions.get(&named.session_id).is_some_and(|it| it.parent_session_id.is_some());
        let reached = self.way_up(named.session_id).and_then(|way| way.recipient);
        if has_parent && reached.is_none() {
            return failed("the parent has ended and did not get this");
        }
        self.tell_parent(named.session_id, run_id, words, &named.key(), LastWords::No);
        done("Sent to the parent.")
    }

    fn send_to_room(&mut self, named: &Named<'_>, run_id: RunId, words: &str) -> ToolAnswer {
        let Some(session) = self.state.sessions.get(&named.session_id) else {
            return failed("the session is gone");
        };
        let Some(origin) = session.origin.clone() else { return failed("this session has no room") };
        let (name, task_id) = (label_of(session), session.task_id);
        let head = text::head(&text::defuse(words), self.context.limits.message_head_bytes);
        self.post(Post {
            room_id: origin.task_room_id,
            speaker: Voice::SubAgent(named.session_id),
            text: attributed(&name, &head),
            source: "sub_agent".to_owned(),
            in_reply_to: Some(origin.message_id),
            task_id,
            metadata: json!({
                "conversation": true, "sessionId": named.session_id, "runId": run_id, "taskId": task_id,
            }),
            delivery_key: Some(format!("said|{}|{}", named.session_id, named.key())),
            turn: None,
        });
        done("Said in the room.")
    }

    /// To one of its own sub-agents, or to a sibling where the task allows it.
    fn send_to_name(&mut self, named: &Named<'_>, name: &str, words: &str) -> ToolAnswer {
        let Some(session) = self.state.sessions.get(&named.session_id) else {
            return failed("the session is gone");
        };
        let (own, parent) = (label_of(session), session.parent_session_id);
        let Some(task_id) = session.task_id else { return failed("this session has no task") };
        let may = session.launch.as_ref().and_then(|it| it.conversation).is_some_and(|it| it.siblings);
        let children = self.sub_agents_of(task_id, Some(named.session_id), named.session_id);
        let siblings = self.sub_agents_of(task_id, parent, named.session_id);
        let key = |to: SessionId| format!("spoke|{}|{}|{to}", named.session_id, named.key());
        match (self.called(name, &children), self.called(name, &siblings)) {
            (Called::One(to), _) => {
                let (key, text) = (key(to), words.to_owned());
                self.mail(to, Mail { key, kind: MailKind::Active, from: MailFrom::Parent, text });
                done(format!("Sent to {name}."))
            }
            (Called::Nobody, Called::Nobody) => {
                failed(format!("nobody here is called `{name}`; `parent` and `room` always are"))
            }
            (Called::Nobody, _) if !may => failed(
                "this task does not let its sub-agents talk among themselves; use `coordinate` or `parent`",
            ),
            (Called::Nobody, Called::One(to)) => {
                let limit = self.context.limits.hops_per_trace;
                let left = self.state.tasks.get(&task_id).is_some_and(|task| task.hops < limit);
                self.hop(task_id, named.session_id, &own, to, key(to), words);
                if left {
                    done(format!("Sent to {name}."))
                } else {
                    failed(format!(
                        "sub-agents have sent {limit}/{limit} messages to one another; the limit is `hopsPerTrace`"
                    ))
                }
            }
            (Called::Nobody, other) | (other, _) => failed(answer_to(name, &other)),
        }
    }
}

/// The value that a person gave.
fn answered_words(answer: Option<&Answer>) -> String {
    match answer {
        Some(Answer::Value { value }) => match value.get(ANSWER_FIELD) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => value.to_string(),
        },
        Some(Answer::Text { text }) => text.clone(),
        Some(Answer::Option { option_id }) => option_id.clone(),
        Some(Answer::Accept { .. } | Answer::Allow) => "yes".to_owned(),
        Some(Answer::Decline { .. }) | None => String::new(),
    }
}

fn done(text: impl Into<String>) -> ToolAnswer {
    ToolAnswer { text: text.into(), failed: false }
}

fn failed(text: impl Into<String>) -> ToolAnswer {
    ToolAnswer { text: text.into(), failed: true }
}

fn ended() -> Refusal {
    Refusal::new(RefusalCode::Conflict, "the agent process that this tool server belongs to has ended")
}
