//! Who is in a room, and what each may do there.

use rallypoint_engine::state::{Room, Session, State};
use rallypoint_model::message::Speaker;
use rallypoint_model::session::SessionKind;
use rallypoint_ops::rooms::RoomMember;

/// The person, the main agent, the platform's own voice, and each sub-agent at work whose events come here.
///
/// A sub-agent only writes: what it hears of a room is what is passed on to it, and its token opens no room.
pub(crate) fn members(state: &State, room: &Room) -> Vec<RoomMember> {
    let always = state.world.as_ref().into_iter().flat_map(|world| {
        [
            (world.user_id, Speaker::User, "user", true),
            (world.main_agent_id, Speaker::MainAgent, "main", true),
            (world.system_id, Speaker::System, "system", false),
        ]
    });
    let always = always.map(|(entity_id, kind, name, may_read)| RoomMember {
        entity_id,
        kind,
        name: name.to_owned(),
        session_id: None,
        may_read,
        may_write: true,
    });
    let workers =
        state.busy_sessions().filter(|session| writes_to(session, room)).map(|session| RoomMember {
            entity_id: session.entity_id,
            kind: Speaker::SubAgent,
            name: session.launch.as_ref().map(|launch| launch.label.clone()).unwrap_or_default(),
            session_id: Some(session.id),
            may_read: false,
            may_write: !session.stopped && !session.capped,
        });
    always.chain(workers).collect()
}

fn writes_to(session: &Session, room: &Room) -> bool {
    let here = |origin: &rallypoint_model::session::FrozenOrigin| {
        origin.task_room_id == room.id || origin.swarm_rooms.iter().any(|each| each.room_id == room.id)
    };
    session.kind == SessionKind::SubAgent && session.origin.as_ref().is_some_and(here)
}
