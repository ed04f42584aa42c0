//! Pages of events and messages.

use rallypoint_model::ids::{RoomId, TaskId};
use rallypoint_store::query::EventFilter;
use uuid::Uuid;

use crate::place::Place;
use crate::recorded::busy;
use crate::world::MAIN_ROOM;

const ADA: TaskId = TaskId(Uuid::from_u128(0x101));

pub(crate) fn events_are_paged_by_task_and_room_after_a_number<P: Place>() {
    let recorded = busy::<P>();
    let reader = recorded.store.borrow().reader().expect("a reader");
    let filters = [
        EventFilter::default(),
        EventFilter { task_id: Some(ADA), room_id: None },
        EventFilter { task_id: None, room_id: Some(MAIN_ROOM) },
        EventFilter { task_id: Some(ADA), room_id: Some(MAIN_ROOM) },
        EventFilter { task_id: None, room_id: Some(RoomId(Uuid::nil())) },
    ];
    for filter in filters {
        let expected: Vec<i64> = recorded
            .world
            .journal
            .iter()
            .filter(|record| filter.task_id.is_none_or(|id| record.scope.task_id == Some(id)))
            .filter(|record| filter.room_id.is_none_or(|id| record.scope.room_id == Some(id)))
            .map(|record| record.seq)
            .collect();
        let mut paged = Vec::new();
        loop {
            let after = paged.last().copied().unwrap_or(0);
            let page = reader.events(filter, after, 7).expect("a page");
            assert!(page.len() <= 7);
            if page.is_empty() {
                break;
            }
            paged.extend(page.iter().map(|record| record.seq));
        }
        assert_eq!(paged, expected, "{filter:?}");
    }
}

pub(crate) fn messages_of_a_room_are_paged_backwards_without_a_gap<P: Place>() {
    let recorded = busy::<P>();
    let reader = recorded.store.borrow().reader().expect("a reader");
    let posted: Vec<_> = recorded.world.messages().into_iter().cloned().collect();
    for task_id in [None, Some(ADA)] {
        let expected: Vec<_> =
            posted.iter().rev().filter(|one| task_id.is_none() || one.task_id == task_id).cloned().collect();
        let mut paged = Vec::new();
        let mut before = None;
        loop {
            let page = reader.messages(MAIN_ROOM, task_id, before, 3).expect("a page");
            assert!(page.len() <= 3);
            let Some((position, _)) = page.last() else { break };
            before = Some(*position);
            paged.extend(page.into_iter().map(|(_, message)| message));
        }
        assert_eq!(paged, expected);
    }
    let elsewhere = reader.messages(RoomId(Uuid::nil()), None, None, 3).expect("a page");
    assert_eq!(elsewhere, []);
}
