//! What an agent's frames mean for its run.

use rallypoint_model::agent_io::{AgentInput, AgentItem, AgentOutput, AgentReport};
use rallypoint_model::agent_offer::AgentCapabilities;
use rallypoint_model::command::Outcome;
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::{GenerationId, RunId};
use rallypoint_model::question::QuestionStatus;
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunTrigger};
use rallypoint_model::session::{GenerationEnd, GenerationStatus};
use rallypoint_model::usage::TokenCounts;

use super::Deciding;
use super::session::{Restoring, way_to_restore};
use super::stop::outcome_of_cancel;
use crate::apply::apply_cursor;
use crate::login::asks_for_login;
use crate::state::InputKind;

/// JSON-RPC code of a request that was cancelled.
const REQUEST_CANCELLED: i64 = -32800;
/// Bytes of error output that are kept.
const STDERR_TAIL_BYTES: usize = 4096;

impl Deciding<'_, '_> {
    pub(crate) fn agent_reported(&mut self, generation_id: GenerationId, report: &AgentReport) -> Outcome {
        let Some(generation) = self.state.generations.get(&generation_id) else {
            return Outcome::Stale;
        };
        if report.cursor < generation.cursor {
            return Outcome::Stale;
        }
        let understood = generation.cursor.frames;
        if !report.items.is_empty() {
            self.reassure(generation_id);
        }
        for item in &report.items {
            // Lines without a frame's meaning are numbered too: no new number, no new junk.
            let repeated = matches!(item, AgentItem::Junk { .. }) && report.cursor.frames <= understood;
            if !repeated {
                self.agent_item(generation_id, item, understood);
            }
        }
        apply_cursor(self.state, generation_id, report.cursor, self.context.now, self.changes);
        Outcome::Done
    }

    /// A sign of life ends the suspicion of a stall.
    fn reassure(&mut self, generation_id: GenerationId) {
        let run_id = self.state.generations.get(&generation_id).and_then(|it| self.open_run_of(it));
        let Some(run_id) = run_id else { return };
        if self.state.runs.get(&run_id).is_some_and(|run| run.detecting_since.is_some())
            && let Some(aggregate) = self.run_aggregate(run_id)
        {
            let scope = self.run_scope(run_id);
            self.emit(aggregate, scope, Event::RunReassured { run_id });
        }
    }

    fn agent_item(&mut self, generation_id: GenerationId, item: &AgentItem, understood: u64) {
        match item {
            AgentItem::InputAccepted { seq } => {
                let fresh = self
                    .state
                    .generations
                    .get(&generation_id)
                    .and_then(|generation| generation.input(*seq))
                    .is_some_and(|entry| !entry.accepted);
                if fresh {
                    self.emit_for_generation(
                        generation_id,
                        Event::GenerationInputAccepted { generation_id, seq: *seq },
                    );
                }
            }
            AgentItem::Initialized { agent, capabilities } => {
                self.agent_initialized(generation_id, agent, capabilities);
            }
            AgentItem::Offered { frame, agent_session_id, change } => {
                if *frame > understood {
                    self.offered(generation_id, agent_session_id.as_deref(), change);
                }
            }
            AgentItem::SessionOpened { agent_session_id, .. } => {
                let opening = self
                    .state
                    .generations
                    .get(&generation_id)
                    .is_some_and(|generation| generation.status == GenerationStatus::Opening);
                if opening {
                    self.emit_for_generation(
                        generation_id,
                        Event::GenerationOpened { generation_id, agent_session_id: agent_session_id.clone() },
                    );
                }
            }
            AgentItem::SessionLoaded { .. } => self.session_loaded(generation_id),
            AgentItem::Output { first_frame, last_frame, output, agent_session_id } => {
                if *last_frame > understood {
                    self.agent_output(
                        generation_id,
                        *first_frame,
                        *last_frame,
                        agent_session_id.as_deref(),
                        output,
                    );
                }
            }
            AgentItem::PermissionAsked { request_id, call, options, .. } => {
                self.permission_asked(generation_id, request_id, call, options);
            }
            AgentItem::ElicitationAsked { request_id, text, form, .. } => {
                self.elicitation_asked(generation_id, request_id, text, form);
            }
            AgentItem::PromptAnswered { seq, frame, stop_reason, usage } => {
                self.prompt_answered(generation_id, *seq, *frame, stop_reason, usage.clone());
            }
            AgentItem::TokensUsed { frame, answers, tokens } => {
                if *frame > understood {
                    self.tokens_used(generation_id, *answers, tokens);
                }
            }
            AgentItem::RequestFailed { seq, code, message, .. } => {
                self.request_failed(generation_id, *seq, *code, message);
            }
            AgentItem::RequestAnswered { seq, .. } => {
                self.option_answered(generation_id, *seq, None);
                self.authenticated(generation_id, *seq);
            }
            AgentItem::FileAsked { request_id, ask, .. } => self.file_asked(generation_id, request_id, ask),
            AgentItem::Started { .. } => {}
            AgentItem::UnknownRequest { request_id, method, .. } => {
                self.refuse_method(generation_id, request_id, method);
            }
            AgentItem::Junk { count, bytes, sample } => {
                self.emit_for_generation(
                    generation_id,
                    Event::GenerationNoted {
                        generation_id,
                        note: "junk".to_owned(),
                        count: *count,
                        detail: format!(
                            "{bytes} bytes that are no protocol frames, beginning with: {sample}"
                        ),
                    },
                );
                self.give_up_on_garbage(generation_id);
            }
            AgentItem::Oversized { bytes, may_be_answer } => {
                self.emit_for_generation(
                    generation_id,
                    Event::GenerationNoted {
                        generation_id,
                        note: "oversized".to_owned(),
                        count: 1,
                        detail: format!("a line of {bytes} bytes was thrown away"),
                    },
                );
                if *may_be_answer {
                    let limit = self.context.limits.line_bytes;
                    self.end_open_run(
                        generation_id,
                        RunOutcome::Failed,
                        &OutcomeReason::Garbled {
                            message: format!(
                                "the agent sent a line of {bytes} bytes, the limit `lineBytes` is {limit}, \
                                 and it may have been its answer"
                            ),
                        },
                    );
                    self.stop_generation(generation_id);
                }
            }
            AgentItem::Stderr { text } => {
                if let Some(generation) = self.state.generations.get_mut(&generation_id) {
                    generation.stderr_tail.push_str(text);
                    keep_tail(&mut generation.stderr_tail, STDERR_TAIL_BYTES);
                }
            }
            AgentItem::Exited { code, signal } => {
                self.generation_gone(generation_id, &GenerationEnd::Exited { code: *code, signal: *signal });
            }
        }
    }

    fn agent_initialized(
        &mut self,
        generation_id: GenerationId,
        agent: &str,
        capabilities: &AgentCapabilities,
    ) {
        let Some(generation) = self.state.generations.get(&generation_id) else { return };
        let asked = generation.inputs.iter().any(|entry| {
            matches!(entry.kind, InputKind::Authenticate | InputKind::NewSession | InputKind::LoadSession)
        });
        if asked || generation.status != GenerationStatus::Opening {
            return;
        }
        let session_id = generation.session_id;
        let launch = self.state.sessions.get(&session_id).and_then(|session| session.launch.as_ref());
        let method = launch.and_then(|launch| launch.auth_method.clone());
        let method = method.filter(|id| capabilities.auth_methods.iter().any(|named| named.id == *id));
        self.emit_for_generation(
            generation_id,
            Event::GenerationInitialized {
                generation_id,
                agent: agent.to_owned(),
                load_session: capabilities.load,
                capabilities: capabilities.clone(),
            },
        );
        match method {
            Some(method_id) => self.input(generation_id, AgentInput::Authenticate { method_id }, None),
            None => self.open_conversation(generation_id),
        }
    }

    /// Goes on after a login that the agent took.
    fn authenticated(&mut self, generation_id: GenerationId, seq: u64) {
        let Some(generation) = self.state.generations.get(&generation_id) else { return };
        let login = generation.input(seq).is_some_and(|entry| entry.kind == InputKind::Authenticate);
        let opened = generation
            .inputs
            .iter()
            .any(|entry| matches!(entry.kind, InputKind::NewSession | InputKind::LoadSession));
        if login && !opened && generation.status == GenerationStatus::Opening {
            self.open_conversation(generation_id);
        }
    }

    /// Opens the conversation of the session, an earlier one where that can be trusted.
    fn open_conversation(&mut self, generation_id: GenerationId) {
        let Some(generation) = self.state.generations.get(&generation_id) else { return };
        let session_id = generation.session_id;
        let cwd = self
            .state
            .sessions
            .get(&session_id)
            .and_then(|session| session.task_id)
            .and_then(|task_id| self.state.tasks.get(&task_id))
            .map(|task| task.cwd.clone());
        let Some(cwd) = cwd else { return };
        let session = self.state.sessions.get(&session_id);
        let tools = session.and_then(|it| it.launch.as_ref()).is_some_and(|launch| launch.tools);
        let earlier = session.and_then(|session| {
            let agent_session_id = session.agent_session_id.clone()?;
            let cwd = cwd.clone();
            Some(match way_to_restore(session)? {
                Restoring::Resume => AgentInput::ResumeSession { agent_session_id, cwd, tools },
                Restoring::Load => AgentInput::LoadSession { agent_session_id, cwd, tools },
            })
        });
        let input = earlier.unwrap_or(AgentInput::NewSession { cwd, tools });
        self.input(generation_id, input, None);
    }

    /// Refuses a request that is not served, once.
    pub(crate) fn refuse_method(&mut self, generation_id: GenerationId, request_id: &str, method: &str) {
        let generation = self.state.generations.get(&generation_id);
        if generation.is_none_or(|generation| generation.seen_requests.contains(request_id)) {
            return;
        }
        self.emit_for_generation(
            generation_id,
            Event::GenerationNoted {
                generation_id,
                note: "refused_method".to_owned(),
                count: 1,
                detail: method.to_owned(),
            },
        );
        self.input(
            generation_id,
            AgentInput::RefuseMethod { request_id: request_id.to_owned(), method: method.to_owned() },
            None,
        );
    }

    fn session_loaded(&mut self, generation_id: GenerationId) {
        let Some(generation) = self.state.generations.get(&generation_id) else { return };
        if generation.status != GenerationStatus::Opening {
            return;
        }
        let earlier =
            self.state.sessions.get(&generation.session_id).and_then(|it| it.agent_session_id.clone());
        if let Some(agent_session_id) = earlier {
            self.emit_for_generation(
                generation_id,
                Event::GenerationOpened { generation_id, agent_session_id },
            );
        }
    }

    fn agent_output(
        &mut self,
        generation_id: GenerationId,
        first_frame: u64,
        last_frame: u64,
        agent_session_id: Option<&str>,
        output: &AgentOutput,
    ) {
        let Some(generation) = self.state.generations.get(&generation_id) else { return };
        let session_id = generation.session_id;
        // What an agent repeats while it opens a conversation again is history, told long ago.
        let loads = generation.inputs.iter().any(|entry| entry.kind == InputKind::LoadSession);
        let replay = loads && generation.status == GenerationStatus::Opening;
        let foreign_session = agent_session_id
            .filter(|id| generation.agent_session_id.as_deref().is_some_and(|own| own != *id))
            .map(str::to_owned);
        let open = self.open_run_of(generation).and_then(|id| self.state.runs.get(&id)).filter(|run| {
            // Before its prompt is in, output belongs to whatever came before.
            run.generation_id == Some(generation_id) && run.input_seq.is_some()
        });
        let open_run = open.map(|run| run.id);
        // Words are whole when a tool follows them; what others of the agent's own say is no part of it.
        if let (Some(run_id), None, AgentOutput::ToolCall { .. } | AgentOutput::ToolCallUpdate { .. }) =
            (open_run, &foreign_session, output)
        {
            self.stretch_said(run_id);
        }
        let open = open_run.and_then(|id| self.state.runs.get(&id));
        let mut scope = self.session_scope(session_id);
        let late = open.is_none();
        scope.run_id = match open {
            Some(run) => Some(run.id),
            None => self.state.sessions.get(&session_id).and_then(|session| session.last_run),
        };
        self.emit(
            Aggregate::Session(session_id),
            scope,
            Event::AgentOutput {
                generation_id,
                first_frame,
                last_frame,
                late,
                replay,
                foreign_session,
                output: output.clone(),
            },
        );
    }

    fn prompt_answered(
        &mut self,
        generation_id: GenerationId,
        seq: u64,
        frame: u64,
        stop_reason: &str,
        usage: Option<TokenCounts>,
    ) {
        let Some(run_id) = self.run_of_input(generation_id, seq) else {
            self.mid_turn_taken(generation_id, seq);
            return;
        };
        self.withdraw_run_questions(run_id, "the end of its prompt");
        self.unblock_task_of(run_id);
        let Some(aggregate) = self.run_aggregate(run_id) else {
            return;
        };
        let scope = self.run_scope(run_id);
        // What its calls used one by one is what the turn used.
        let usage = usage.or_else(|| self.state.runs.get(&run_id).and_then(|run| run.noted.tokens.clone()));
        self.emit(
            aggregate,
            scope,
            Event::RunAnswered { run_id, stop_reason: stop_reason.to_owned(), frame, usage },
        );
        self.move_run(run_id, RunTrigger::Answered);
    }

    /// The open run that this input was the prompt of, if the process has not answered it yet.
    pub(crate) fn run_of_input(&self, generation_id: GenerationId, seq: u64) -> Option<RunId> {
        let run_id = self.state.generations.get(&generation_id)?.input(seq)?.run_id?;
        let run = self.state.runs.get(&run_id)?;
        let current = run.generation_id == Some(generation_id) && run.input_seq == Some(seq);
        (current && run.is_open() && run.answer.is_none()).then_some(run_id)
    }

    fn request_failed(&mut self, generation_id: GenerationId, seq: u64, code: i64, message: &str) {
        let kind = self
            .state
            .generations
            .get(&generation_id)
            .and_then(|generation| generation.input(seq))
            .map(|entry| entry.kind);
        let reason = if asks_for_login(code, message) {
            OutcomeReason::LoginNeeded { hint: self.login_hint(generation_id, message) }
        } else {
            OutcomeReason::AgentError { code, message: message.to_owned() }
        };
        match kind {
            Some(InputKind::LoadSession) => {
                self.emit_for_generation(
                    generation_id,
                    Event::GenerationLoadFailed { generation_id, message: message.to_owned() },
                );
                let reason = OutcomeReason::Recovery {
                    message: format!("the agent could not open its earlier conversation again: {message}"),
                };
                self.end_open_run(generation_id, RunOutcome::Interrupted, &reason);
                self.stop_generation(generation_id);
            }
            Some(InputKind::Authenticate) => {
                let hint = self.login_hint(generation_id, message);
                self.end_open_run(generation_id, RunOutcome::Failed, &OutcomeReason::LoginNeeded { hint });
                self.stop_generation(generation_id);
            }
            Some(InputKind::Initialize | InputKind::NewSession) => {
                self.end_open_run(generation_id, RunOutcome::Failed, &reason);
                self.stop_generation(generation_id);
            }
            Some(InputKind::Prompt) => {
                let Some(run_id) = self.run_of_input(generation_id, seq) else {
                    return;
                };
                let cancel = self.state.runs.get(&run_id).and_then(|run| run.cancel.clone());
                match cancel {
                    Some(cancel) if code == REQUEST_CANCELLED => {
                        let outcome = outcome_of_cancel(&cancel.reason, RunOutcome::Cancelled);
                        self.finish_run(run_id, outcome, cancel.reason);
                    }
                    _ => self.finish_run(run_id, RunOutcome::Failed, reason),
                }
            }
            Some(InputKind::Steer) => {
                self.mid_turn_refused(generation_id, seq, &format!("{code}: {message}"));
            }
            Some(InputKind::Option) => {
                self.option_answered(generation_id, seq, Some(format!("{code}: {message}")));
            }
            Some(InputKind::Other | InputKind::Close) | None => {
                self.emit_for_generation(
                    generation_id,
                    Event::GenerationNoted {
                        generation_id,
                        note: "request_failed".to_owned(),
                        count: 1,
                        detail: format!("input {seq} was answered with {code}: {message}"),
                    },
                );
            }
        }
    }

    fn login_hint(&self, generation_id: GenerationId, message: &str) -> String {
        let hint = self
            .state
            .generations
            .get(&generation_id)
            .and_then(|generation| self.state.sessions.get(&generation.session_id))
            .and_then(|session| session.launch.as_ref())
            .map(|launch| launch.login_hint.clone())
            .unwrap_or_default();
        let named =
            self.state.generations.get(&generation_id).map(|it| it.capabilities.auth_methods.as_slice());
        let named: Vec<&str> = named.unwrap_or_default().iter().map(|method| method.name.as_str()).collect();
        match (hint.is_empty(), named.is_empty()) {
            (false, _) => format!("{message}; {hint}"),
            (true, false) => format!("{message}; the agent names these ways to log in: {}", named.join(", ")),
            (true, true) => message.to_owned(),
        }
    }

    fn give_up_on_garbage(&mut self, generation_id: GenerationId) {
        let limit = self.context.limits.junk_lines;
        let Some(generation) = self.state.generations.get(&generation_id) else {
            return;
        };
        let lines = generation.junk_lines;
        let never_spoke = generation.agent_session_id.is_none();
        if lines > limit && never_spoke && generation.status != GenerationStatus::Stopping {
            self.end_open_run(
                generation_id,
                RunOutcome::Failed,
                &OutcomeReason::Garbled {
                    message: format!(
                        "the program printed {lines} lines that are no protocol frames; it does not seem to speak the Agent Client Protocol"
                    ),
                },
            );
            self.stop_generation(generation_id);
        }
    }

    /// Ends the run that a process works for, if there is one.
    pub(crate) fn end_open_run(
        &mut self,
        generation_id: GenerationId,
        outcome: RunOutcome,
        reason: &OutcomeReason,
    ) {
        let run_id =
            self.state.generations.get(&generation_id).and_then(|generation| self.open_run_of(generation));
        if let Some(run_id) = run_id {
            self.finish_run(run_id, outcome, reason.clone());
        }
    }

    /// Withdraws what a run still asks.
    pub(crate) fn withdraw_run_questions(&mut self, run_id: RunId, by: &str) {
        let open: Vec<_> = self
            .state
            .all_open_questions()
            .filter(|question| question.run_id == Some(run_id))
            .map(|question| question.id)
            .collect();
        for question_id in open {
            self.close_question(question_id, QuestionStatus::Withdrawn, None, by);
        }
    }
}

fn keep_tail(text: &mut String, bytes: usize) {
    if text.len() <= bytes {
        return;
    }
    let mut cut = text.len() - bytes;
    while cut < text.len() && !text.is_char_boundary(cut) {
        cut += 1;
    }
    text.drain(..cut);
}
