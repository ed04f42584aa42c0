//! Mode, model, thought level and options of a session: taken from what its agent offers, set before a prompt.

use rallypoint_model::agent_offer::{ConversationOffer, OfferChange, Wanted};
use rallypoint_model::command::Outcome;
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::{GenerationId, RunId, SessionId};
use rallypoint_model::permission::MODE_OPTION;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::run::{OutcomeReason, RunOutcome};

use super::Deciding;
use crate::permission::holding::may_take;
use crate::settings::{check, is_needed, next_setting};
use crate::state::InputKind;

/// How a conversation stands to what is wanted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// A prompt can be given.
    Ready,
    /// The agent has yet to answer.
    Waits,
    /// Something was said to the agent, or the run has ended.
    Moved,
}

impl Deciding<'_, '_> {
    /// Keeps what an agent offers in the conversation of its session. What belongs to another conversation, and what
    /// changes nothing, is left.
    pub(crate) fn offered(
        &mut self,
        generation_id: GenerationId,
        agent_session_id: Option<&str>,
        change: &OfferChange,
    ) {
        let Some(generation) = self.state.generations.get(&generation_id) else { return };
        let own = generation.agent_session_id.as_deref();
        if own.is_some() && agent_session_id.is_some() && own != agent_session_id {
            return;
        }
        let session_id = generation.session_id;
        let Some(session) = self.state.sessions.get(&session_id) else { return };
        let known = session.offer.clone();
        let offer = known.clone().unwrap_or_default().changed(change);
        let told = session.offered_by == Some(generation_id) && known.as_ref() == Some(&offer);
        if told || known.is_none() && offer == ConversationOffer::default() {
            return;
        }
        let scope = self.session_scope(session_id);
        self.emit(
            Aggregate::Session(session_id),
            scope,
            Event::SessionOffered { session_id, generation_id, offer },
        );
    }

    /// Says the next thing that is wanted of the conversation, or ends the run where it is not offered.
    pub(crate) fn settle_settings(
        &mut self,
        generation_id: GenerationId,
        session_id: SessionId,
        run_id: RunId,
    ) -> Settled {
        let generation = self.state.generations.get(&generation_id);
        let session = self.state.sessions.get(&session_id);
        let (Some(generation), Some(session)) = (generation, session) else { return Settled::Ready };
        if generation.inputs.iter().any(|entry| entry.kind == InputKind::Option && !entry.answered) {
            return Settled::Waits;
        }
        let (Some(launch), Some(agent_session_id)) = (&session.launch, generation.agent_session_id.clone())
        else {
            return Settled::Ready;
        };
        let mut offer = session.offer.clone().unwrap_or_default();
        if session.offered_by != Some(generation_id) {
            // What held in an earlier process need not hold in this one.
            offer.forget_current();
        }
        match next_setting(&launch.wanted, &launch.config, &offer, &generation.set) {
            Ok(None) => Settled::Ready,
            Ok(Some(setting)) => {
                self.input(generation_id, setting.input(agent_session_id), None);
                Settled::Moved
            }
            Err(message) => {
                self.finish_run(run_id, RunOutcome::Failed, OutcomeReason::NotOffered { message });
                Settled::Moved
            }
        }
    }

    /// The agent answered a request that sets something; one that a run can't do without ends it when refused.
    pub(crate) fn option_answered(&mut self, generation_id: GenerationId, seq: u64, problem: Option<String>) {
        let Some(generation) = self.state.generations.get(&generation_id) else { return };
        let Some(entry) = generation.input(seq) else { return };
        if entry.kind != InputKind::Option || entry.answered {
            return;
        }
        let needed = self.state.sessions.get(&generation.session_id).is_some_and(|session| {
            let offer = session.offer.clone().unwrap_or_default();
            let key = entry.setting_id.as_deref().unwrap_or_default();
            session.launch.as_ref().is_some_and(|launch| is_needed(&launch.wanted, &offer, key))
        });
        let what = entry.setting_id.clone().unwrap_or_default();
        self.emit_for_generation(
            generation_id,
            Event::GenerationOptionSet { generation_id, seq, problem: problem.clone() },
        );
        if let Some(problem) = problem.filter(|_| needed) {
            let message = format!("the agent does not take the {what} that is wanted: {problem}");
            self.end_open_run(generation_id, RunOutcome::Failed, &OutcomeReason::NotOffered { message });
        }
    }

    /// Wants something else of a session from its next prompt on.
    pub(crate) fn configure_session(
        &mut self,
        session_id: SessionId,
        wanted: &Wanted,
        config: &[(String, String)],
        by: &str,
    ) -> Result<Outcome, Refusal> {
        let session =
            self.state.sessions.get(&session_id).ok_or_else(|| Refusal::not_found("session", session_id))?;
        let Some(launch) = &session.launch else {
            return Err(Refusal::new(RefusalCode::Invalid, "a room's own session has no agent to be set"));
        };
        if wanted.is_empty() && config.is_empty() {
            return Err(Refusal::new(RefusalCode::Invalid, "nothing is to be set"));
        }
        if session.stopped || session.capped {
            let message = format!("the session `{session_id}` has ended");
            return Err(Refusal::new(RefusalCode::Conflict, message));
        }
        let mode = config.iter().find(|(id, _)| id == MODE_OPTION).map(|(_, value)| value);
        for mode in wanted.mode.iter().chain(mode) {
            may_take(launch, mode)?;
        }
        // What it offers is not known before its conversation is open; its run is then held against it.
        if let Some(offer) = &session.offer {
            check(wanted, config, offer).map_err(|message| Refusal::new(RefusalCode::Invalid, message))?;
        }
        let wanted = launch.wanted.overlaid(wanted);
        let mut merged = launch.config.clone();
        for (id, value) in config {
            match merged.iter_mut().find(|(known, _)| known == id) {
                Some(entry) => entry.1.clone_from(value),
                None => merged.push((id.clone(), value.clone())),
            }
        }
        let scope = self.session_scope(session_id);
        self.emit(
            Aggregate::Session(session_id),
            scope,
            Event::SessionConfigured { session_id, wanted, config: merged, by: by.to_owned() },
        );
        Ok(Outcome::Done)
    }
}
