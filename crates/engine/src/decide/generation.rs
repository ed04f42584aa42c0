//! Agent processes: launched, opened, gone, cleaned.

use rallypoint_model::agent_io::AgentInput;
use rallypoint_model::command::Outcome;
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::{GenerationId, RunId};
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunStatus, RunTrigger};
use rallypoint_model::session::{GenerationEnd, GenerationStatus};

use super::Deciding;
use super::stop::outcome_of_cancel;
use crate::state::{Generation, PromptProgress};

impl Deciding<'_, '_> {
    pub(crate) fn generation_scope(
        &self,
        generation_id: GenerationId,
    ) -> Option<(Aggregate, rallypoint_model::event::Scope)> {
        let generation = self.state.generations.get(&generation_id)?;
        let mut scope = self.session_scope(generation.session_id);
        scope.run_id = self
            .state
            .sessions
            .get(&generation.session_id)
            .and_then(|session| session.open_run.or(session.last_run));
        Some((Aggregate::Session(generation.session_id), scope))
    }

    pub(crate) fn emit_for_generation(&mut self, generation_id: GenerationId, event: Event) {
        if let Some((aggregate, scope)) = self.generation_scope(generation_id) {
            self.emit(aggregate, scope, event);
        }
    }

    /// Journals something to be said to a process.
    pub(crate) fn input(&mut self, generation_id: GenerationId, input: AgentInput, run_id: Option<RunId>) {
        let Some(generation) = self.state.generations.get(&generation_id) else {
            return;
        };
        let seq = generation.next_seq();
        self.emit_for_generation(generation_id, Event::GenerationInput { generation_id, seq, input, run_id });
    }

    pub(crate) fn generation_launched(&mut self, generation_id: GenerationId) -> Outcome {
        let Some(generation) = self.state.generations.get(&generation_id) else {
            return Outcome::Stale;
        };
        if generation.status != GenerationStatus::Launching {
            return Outcome::Stale;
        }
        self.emit_for_generation(
            generation_id,
            Event::GenerationMoved { generation_id, status: GenerationStatus::Opening },
        );
        self.input(generation_id, AgentInput::Initialize, None);
        Outcome::Done
    }

    /// Wants a process ended. Ending it is an effect that is due until it is gone.
    pub(crate) fn stop_generation(&mut self, generation_id: GenerationId) {
        let status = self.state.generations.get(&generation_id).map(|generation| generation.status);
        if matches!(
            status,
            Some(GenerationStatus::Launching | GenerationStatus::Opening | GenerationStatus::Ready)
        ) {
            self.close_conversation(generation_id);
            self.emit_for_generation(
                generation_id,
                Event::GenerationMoved { generation_id, status: GenerationStatus::Stopping },
            );
        }
    }

    /// Asks an agent that knows how to close its conversation before its process is ended, so that it can store it.
    /// Nothing depends on what it does then.
    fn close_conversation(&mut self, generation_id: GenerationId) {
        let Some(generation) = self.state.generations.get(&generation_id) else { return };
        let ready = generation.status == GenerationStatus::Ready && generation.capabilities.close;
        if let Some(agent_session_id) = generation.agent_session_id.clone().filter(|_| ready) {
            self.input(generation_id, AgentInput::CloseSession { agent_session_id }, None);
        }
    }

    pub(crate) fn generation_gone(&mut self, generation_id: GenerationId, end: &GenerationEnd) -> Outcome {
        let Some(generation) = self.state.generations.get(&generation_id) else {
            return Outcome::Stale;
        };
        if !generation.is_live() {
            return Outcome::Stale;
        }
        let stderr = generation.stderr_tail.clone();
        let run_id = self.open_run_of(generation);
        if !stderr.is_empty() && run_id.is_some() {
            self.emit_for_generation(
                generation_id,
                Event::GenerationNoted {
                    generation_id,
                    note: "stderr".to_owned(),
                    count: 0,
                    detail: stderr.clone(),
                },
            );
        }
        self.emit_for_generation(generation_id, Event::GenerationEnded { generation_id, end: end.clone() });
        if let Some(run_id) = run_id {
            self.run_lost_its_process(run_id, end, &stderr);
        }
        Outcome::Done
    }

    /// The run without an outcome that this process works for.
    pub(crate) fn open_run_of(&self, generation: &Generation) -> Option<RunId> {
        let session = self.state.sessions.get(&generation.session_id)?;
        if session.generation_id != Some(generation.id) {
            return None;
        }
        // A later run may already wait for this process to be gone; its fate is another.
        let run = session.open_run.and_then(|id| self.state.runs.get(&id))?;
        (run.generation_id == Some(generation.id) || generation.run_id == run.id).then_some(run.id)
    }

    fn run_lost_its_process(&mut self, run_id: RunId, end: &GenerationEnd, stderr: &str) {
        let Some(run) = self.state.runs.get(&run_id) else {
            return;
        };
        if run.status == RunStatus::Settling {
            self.finish_answered(run_id);
            return;
        }
        if let Some(cancel) = run.cancel.clone() {
            let outcome = outcome_of_cancel(&cancel.reason, RunOutcome::Killed);
            self.finish_run(run_id, outcome, cancel.reason);
            return;
        }
        // A run that waits for an answer was asked by an agent, so an agent had its prompt.
        let provably_not_accepted = matches!(run.status, RunStatus::Starting | RunStatus::Running)
            && matches!(run.prompt, PromptProgress::NotSent | PromptProgress::Journalled);
        let attempts_left = run.attempts <= self.context.limits.crash_budget;
        match end {
            GenerationEnd::StartFailed { message } => {
                self.finish_run(
                    run_id,
                    RunOutcome::Failed,
                    OutcomeReason::StartFailed { message: message.clone() },
                );
            }
            GenerationEnd::Exited { code, signal } => {
                let junk = run.generation_id.or(self.last_generation(run.session_id));
                let junk = junk.and_then(|id| self.state.generations.get(&id));
                let junk = junk.filter(|generation| generation.agent_session_id.is_none());
                let lines = junk.map_or(0, |generation| generation.junk_lines);
                let reason = if lines > 0 && stderr.is_empty() {
                    let code = code.map(|code| format!(" with exit code {code}")).unwrap_or_default();
                    OutcomeReason::Garbled {
                        message: format!(
                            "the program printed {lines} lines that are no protocol frames and ended{code}; \
                             it does not seem to speak the Agent Client Protocol"
                        ),
                    }
                } else {
                    OutcomeReason::AgentExited {
                        code: *code,
                        signal: *signal,
                        stderr: crate::text::one_line(stderr.lines().last().unwrap_or_default(), 300),
                    }
                };
                self.finish_run(run_id, RunOutcome::Failed, reason);
            }
            GenerationEnd::EnvironmentLost { names } => {
                let message = format!(
                    "environment lost: {} was passed with the request, is never stored, and the daemon that knew it is gone",
                    names.join(", ")
                );
                self.finish_run(run_id, RunOutcome::Interrupted, OutcomeReason::Recovery { message });
            }
            GenerationEnd::Rebooted if run.prompt != PromptProgress::NotSent => {
                let message =
                    "the machine was started anew; whether the prompt had reached the agent is not known";
                self.finish_run(
                    run_id,
                    RunOutcome::Interrupted,
                    OutcomeReason::Recovery { message: message.to_owned() },
                );
            }
            GenerationEnd::NeverStarted | GenerationEnd::Lost | GenerationEnd::Rebooted
                if provably_not_accepted && attempts_left =>
            {
                // It never reached an agent, so this is still its first time.
                self.move_run(run_id, RunTrigger::Requeued);
            }
            GenerationEnd::NeverStarted | GenerationEnd::Lost | GenerationEnd::Rebooted => {
                let message = if provably_not_accepted {
                    format!("its process was lost before the prompt was accepted, {} times", run.attempts)
                } else {
                    "its agent process and shim are gone without a trace of their end; \
                     how far the work got is not known"
                        .to_owned()
                };
                self.finish_run(run_id, RunOutcome::Lost, OutcomeReason::Recovery { message });
            }
        }
    }

    /// What an agent says is kept and can't be understood by this program. Its run goes on: a newer program can read it.
    pub(crate) fn spool_unreadable(&mut self, generation_id: GenerationId, why: &str) -> Outcome {
        if !self.state.generations.get(&generation_id).is_some_and(crate::state::Generation::is_live) {
            return Outcome::Stale;
        }
        let note = "spool_unreadable".to_owned();
        self.emit_for_generation(
            generation_id,
            Event::GenerationNoted { generation_id, note, count: 1, detail: why.to_owned() },
        );
        Outcome::Done
    }

    /// The process of a session that was started last.
    fn last_generation(&self, session_id: rallypoint_model::ids::SessionId) -> Option<GenerationId> {
        self.state
            .generations_of(session_id)
            .max_by_key(|generation| (generation.started_at, generation.id))
            .map(|generation| generation.id)
    }

    pub(crate) fn generation_cleaned(
        &mut self,
        generation_id: GenerationId,
        swept: u32,
        left: u32,
    ) -> Outcome {
        let Some(generation) = self.state.generations.get(&generation_id) else {
            return Outcome::Stale;
        };
        if generation.status != GenerationStatus::Ended || generation.cleaned.is_some() {
            return Outcome::Stale;
        }
        self.emit_for_generation(generation_id, Event::GenerationCleaned { generation_id, swept, left });
        Outcome::Done
    }
}
