//! Facts of words that are given to an agent in its turn.

use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::mid_turn::MidTurnStep;

use crate::changes::{Changes, RowRef};
use crate::state::{MidTurn, State};

pub(super) fn mid_turn_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    let Event::MidTurnMoved(moved) = &record.event else { return };
    let Some(session) = state.sessions.get_mut(&moved.session_id) else { return };
    match &moved.step {
        MidTurnStep::Given { generation_id, seq, keys } => {
            let (mail, inbox) =
                std::mem::take(&mut session.inbox).into_iter().partition(|mail| keys.contains(&mail.key));
            session.inbox = inbox;
            session.mid_turn =
                Some(MidTurn { run_id: moved.run_id, generation_id: *generation_id, seq: *seq, mail });
        }
        MidTurnStep::Taken | MidTurnStep::Unknown => session.mid_turn = None,
        MidTurnStep::Returned { .. } => {
            session.not_in_turn = Some(moved.run_id);
            if let Some(given) = session.mid_turn.take() {
                // What came later stays behind it.
                let later = std::mem::replace(&mut session.inbox, given.mail);
                session.inbox.extend(later);
            }
        }
    }
    changes.touch(RowRef::Session(moved.session_id));
}
