//! Facts of conversations that an agent opened for helpers of its own.

use rallypoint_model::agent_offer::{NativeAgent, NativeAgentUpdate};
use rallypoint_model::event::{Event, EventRecord};

use crate::changes::{Changes, RowRef};
use crate::state::{Session, State};

/// Helpers of one agent that are kept in the state; the journal has all of them.
const KEPT_NATIVE_AGENTS: usize = 200;
/// State of a helper whose process is gone; no word of the protocol.
const ENDED: &str = "ended";

/// Takes in what an agent says of a helper.
pub(super) fn take(session: &mut Session, update: &NativeAgentUpdate, changes: &mut Changes) {
    let kept = session.native_agents.len();
    let known = session.native_agents.iter_mut().find(|it| it.agent_session_id == update.agent_session_id);
    match known {
        Some(known) => known.take(update),
        None if kept < KEPT_NATIVE_AGENTS => {
            let mut fresh = NativeAgent::unknown(&update.agent_session_id);
            fresh.take(update);
            session.native_agents.push(fresh);
        }
        None => return,
    }
    changes.touch(RowRef::Session(session.id));
}

/// Nothing of an agent works on once its process is gone.
pub(super) fn process_ended(session: &mut Session) {
    for helper in session.native_agents.iter_mut().filter(|helper| helper.state != "idle") {
        helper.state = ENDED.to_owned();
    }
}

/// What an agent offers, and what is wanted of it.
pub(super) fn session_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    match &record.event {
        Event::SessionOffered { session_id, generation_id, offer } => {
            if let Some(session) = state.sessions.get_mut(session_id) {
                session.offer = Some(offer.clone());
                session.offered_by = Some(*generation_id);
                changes.touch(RowRef::Session(*session_id));
            }
        }
        Event::SessionConfigured { session_id, wanted, config, .. } => {
            if let Some(session) = state.sessions.get_mut(session_id)
                && let Some(launch) = &mut session.launch
            {
                launch.wanted = wanted.clone();
                launch.config.clone_from(config);
                changes.touch(RowRef::Session(*session_id));
            }
        }
        _ => {}
    }
}
