//! The suite that every implementation passes, and proof that it notices what must not be.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::State;
use rallypoint_model::event::EventRecord;
use rallypoint_model::request::RequestRow;
use rallypoint_model::time::Timestamp;
use rallypoint_store::{JournalStore, KeyEnforcement, ReaderSource, StoreError};

use crate::place::{Place, SqliteFolder};
use crate::{commits, deliveries, faults, opening, pages, purge, requests, words};

/// One more implementation joins by one line: its name, and the place that it brings.
macro_rules! conformance {
    ($name:ident: $place:ty) => {
        conformance! { @ $name: $place,
            opening::the_term_rises_with_every_opening_and_a_refused_one_does_not_count,
            opening::a_new_store_is_empty,
            opening::when_a_daemon_was_up_is_kept_over_openings,
            commits::a_loaded_state_is_the_one_that_was_committed,
            commits::words_of_an_open_run_are_rebuilt_from_the_journal,
            commits::the_journal_is_stored_as_it_was_decided_and_numbered_without_a_hole,
            commits::a_rebuild_from_the_journal_gives_the_stored_rows,
            commits::a_full_output_is_kept_under_its_digest_and_an_unknown_digest_is_none,
            commits::a_reader_sees_a_commit_as_soon_as_it_is_made,
            pages::events_are_paged_by_task_and_room_after_a_number,
            pages::messages_of_a_room_are_paged_backwards_without_a_gap,
            deliveries::deliveries_and_a_reset_room_are_loaded_as_they_were_and_as_the_journal_says,
            words::messages_are_found_by_their_words_newest_first,
            words::signs_of_a_query_language_are_plain_text,
            words::words_of_a_script_without_spaces_are_found_in_the_middle,
            words::tasks_and_messages_are_told_apart_and_a_purged_task_is_found_no_more,
            faults::a_key_is_unique_in_the_database_even_when_the_engine_does_not_look,
            faults::without_the_unique_index_the_same_request_is_stored_twice,
            faults::numbers_of_a_failed_transaction_are_given_to_the_next_one,
            faults::a_version_that_is_taken_is_refused_by_the_database,
            purge::what_is_left_is_loaded_as_it_was_and_the_journal_gives_the_stored_rows,
            purge::outputs_of_a_purged_task_are_gone_and_those_of_another_stay,
            purge::a_preserved_task_keeps_every_row,
            purge::events_of_a_session_are_its_own_in_order,
            purge::failed_removals_are_kept_over_a_restart_until_they_are_settled,
            requests::a_request_is_kept_over_openings_until_its_time_is_over,
        }
    };
    (@ $name:ident: $place:ty, $($part:ident::$case:ident,)*) => {
        mod $name {
            use super::*;

            $(#[test]
            fn $case() {
                super::$part::$case::<$place>();
            })*
        }

        /// Every case by its name, for a place.
        fn cases<P: Place>() -> Vec<(&'static str, fn())> {
            vec![$((stringify!($case), $part::$case::<P> as fn()),)*]
        }
    };
}

conformance!(sqlite: SqliteFolder);

/// What a broken store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Forgets how far spools were understood.
    LosesCursors,
    /// Lets a key be used twice.
    DoublesKeys,
    /// Writes the journal and leaves out the rows.
    CommitsHalf,
    /// Says that a transaction failed and keeps it.
    KeepsWhatFailed,
    /// Begins each term with the same number.
    RepeatsTerms,
}

#[derive(Debug)]
struct Broken {
    store: Box<dyn JournalStore>,
    fault: Fault,
}

impl JournalStore for Broken {
    fn epoch(&self) -> u64 {
        if self.fault == Fault::RepeatsTerms { 1 } else { self.store.epoch() }
    }

    fn commit(&mut self, changes: &mut Changes, state: &State) -> Result<(), StoreError> {
        match self.fault {
            Fault::LosesCursors => changes.cursors.clear(),
            Fault::CommitsHalf => changes.touched.clear(),
            Fault::DoublesKeys | Fault::KeepsWhatFailed | Fault::RepeatsTerms => {}
        }
        let done = self.store.commit(changes, state);
        if done.is_err() && self.fault == Fault::KeepsWhatFailed {
            let mut rest = Changes { touched: changes.touched.clone(), ..Changes::default() };
            self.store.commit(&mut rest, state).expect("rows alone");
        }
        done
    }

    fn rewrite(&mut self) -> Result<(), StoreError> {
        self.store.rewrite()
    }

    fn load(&self) -> Result<State, StoreError> {
        self.store.load()
    }

    fn journal(&self) -> Result<Vec<EventRecord>, StoreError> {
        self.store.journal()
    }

    fn last_seq(&self) -> Result<i64, StoreError> {
        self.store.last_seq()
    }

    fn note_alive(&self, now: Timestamp) -> Result<(), StoreError> {
        self.store.note_alive(now)
    }

    fn last_alive(&self) -> Result<Option<Timestamp>, StoreError> {
        self.store.last_alive()
    }

    fn request(&self, key: &str, part: i64) -> Result<Option<RequestRow>, StoreError> {
        self.store.request(key, part)
    }

    fn forget_requests(&self, before: Timestamp) -> Result<(), StoreError> {
        self.store.forget_requests(before)
    }

    fn make_full(&self, full: bool) -> Result<(), StoreError> {
        self.store.make_full(full)
    }

    fn readers(&self) -> ReaderSource {
        self.store.readers()
    }
}

/// A place whose store has one fault, by its number in [`FAULTS`].
struct BrokenPlace<const FAULT: usize>(SqliteFolder);

const FAULTS: [Fault; 5] = [
    Fault::LosesCursors,
    Fault::DoublesKeys,
    Fault::CommitsHalf,
    Fault::KeepsWhatFailed,
    Fault::RepeatsTerms,
];

impl<const FAULT: usize> Place for BrokenPlace<FAULT> {
    fn empty() -> Self {
        Self(SqliteFolder::empty())
    }

    fn open(&self, keys: KeyEnforcement) -> Result<Box<dyn JournalStore>, StoreError> {
        let fault = FAULTS[FAULT];
        let keys = if fault == Fault::DoublesKeys { KeyEnforcement::Dropped } else { keys };
        Ok(Box::new(Broken { store: self.0.open(keys)?, fault }))
    }
}

/// The first case that notices the fault.
fn noticed<const FAULT: usize>() -> Option<&'static str> {
    let mut cases = cases::<BrokenPlace<FAULT>>().into_iter();
    cases.find(|(_, case)| catch_unwind(AssertUnwindSafe(case)).is_err()).map(|(name, _)| name)
}

#[test]
fn the_suite_turns_red_for_a_store_that_breaks_a_promise() {
    let found = [noticed::<0>(), noticed::<1>(), noticed::<2>(), noticed::<3>(), noticed::<4>()];
    for (fault, red) in FAULTS.iter().zip(found) {
        let red = red.unwrap_or_else(|| panic!("no case notices a store that is {fault:?}"));
        println!("{fault:?} is noticed by {red}");
    }
}
