//! The order of mail: nothing is lost, nothing is taken twice, people go first.

use proptest::prelude::*;
use rallypoint_engine::mailbox::{drain, interrupts, next_turn, wakes};
use rallypoint_engine::state::{MailboxItem, TurnCause};
use rallypoint_model::ids::{MessageId, RunId, SessionId};
use rallypoint_model::mail::{Mail, MailFrom, MailKind, MailMode};
use uuid::Uuid;

fn mail(number: usize, kind: MailKind, from: u8) -> Mail {
    let (name, session_id) = ("bob".to_owned(), SessionId(Uuid::from_u128(1)));
    let from = match from {
        0 => MailFrom::User { name: "kim".to_owned() },
        1 => MailFrom::Parent,
        2 => MailFrom::Child { name, session_id },
        3 => MailFrom::Sibling { name, session_id },
        _ => MailFrom::System,
    };
    Mail { key: number.to_string(), kind, from, text: number.to_string() }
}

fn keys(mail: &[Mail]) -> Vec<&str> {
    mail.iter().map(|mail| mail.key.as_str()).collect()
}

#[test]
fn a_turn_takes_results_of_calls_then_what_rides_along_then_one_that_asks() {
    let inbox = [
        mail(1, MailKind::Active, 2),
        mail(2, MailKind::Background, 4),
        mail(3, MailKind::Active, 2),
        mail(4, MailKind::ToolResult, 4),
        mail(5, MailKind::Background, 4),
    ];
    assert_eq!(keys(&drain(&inbox, MailMode::Followup).taken), ["4", "2", "5", "1"]);
    assert_eq!(keys(&drain(&inbox, MailMode::Collect).taken), ["4", "2", "5", "1", "3"]);
}

#[test]
fn what_rides_along_asks_for_no_turn() {
    let inbox = [mail(1, MailKind::Background, 4)];
    assert!(!wakes(&inbox));
    for mode in MailMode::ALL {
        assert_eq!(drain(&inbox, mode).taken, []);
    }
}

#[test]
fn a_person_goes_first_and_is_never_mixed_with_others_that_ask() {
    let inbox = [mail(1, MailKind::Active, 2), mail(2, MailKind::Active, 0), mail(3, MailKind::Active, 0)];
    assert_eq!(keys(&drain(&inbox, MailMode::Followup).taken), ["2"]);
    assert_eq!(keys(&drain(&inbox, MailMode::Collect).taken), ["2", "3"]);
}

#[test]
fn only_a_person_or_parent_cuts_a_turn_and_what_is_given_up_is_named() {
    for (from, expected) in [(0, true), (1, true), (2, false), (3, false), (4, false)] {
        assert_eq!(interrupts(MailMode::Interrupt, &mail(1, MailKind::Active, from)), expected);
        assert!(!interrupts(MailMode::Collect, &mail(1, MailKind::Active, from)));
    }
    let inbox = [mail(1, MailKind::Active, 1), mail(2, MailKind::Active, 2), mail(3, MailKind::Active, 1)];
    let found = drain(&inbox, MailMode::Interrupt);
    assert_eq!((keys(&found.taken), keys(&found.dropped)), (vec!["3"], vec!["1"]));
}

#[test]
fn a_persons_request_is_looked_at_before_what_has_happened() {
    let item = |number: u128, cause: TurnCause| MailboxItem {
        message_id: MessageId(Uuid::from_u128(number)),
        task_id: None,
        cause,
    };
    let run_id = RunId(Uuid::from_u128(9));
    let items = [
        item(1, TurnCause::Boundary { run_id }),
        item(2, TurnCause::TaskRequested),
        item(3, TurnCause::Moved),
    ];
    assert_eq!(next_turn(&items).map(|item| item.message_id), Some(MessageId(Uuid::from_u128(2))));
    assert_eq!(next_turn(&items[..1]).map(|item| item.message_id), Some(MessageId(Uuid::from_u128(1))));
    assert_eq!(next_turn(&[]), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn turn_after_turn_all_that_asks_is_taken_or_given_up_once_and_keeps_its_order(
        pieces in prop::collection::vec((0..3_u8, 0..5_u8), 0..20), mode in 0..4_usize,
    ) {
        let mode = MailMode::ALL[mode];
        let kinds = [MailKind::ToolResult, MailKind::Background, MailKind::Active];
        let mut inbox: Vec<Mail> = pieces
            .iter()
            .enumerate()
            .map(|(number, (kind, from))| mail(number, kinds[usize::from(*kind)], *from))
            .collect();
        let all = inbox.len();
        let mut gone: Vec<String> = Vec::new();
        while wakes(&inbox) {
            let found = drain(&inbox, mode);
            prop_assert!(!found.taken.is_empty());
            prop_assert!(found.taken.is_sorted_by_key(|mail| mail.kind));
            for mail in found.taken.iter().chain(&found.dropped) {
                prop_assert!(!gone.contains(&mail.key), "taken twice");
                gone.push(mail.key.clone());
                inbox.retain(|kept| kept.key != mail.key);
            }
        }
        prop_assert_eq!(gone.len() + inbox.len(), all);
        prop_assert!(inbox.iter().all(|mail| mail.kind == MailKind::Background));
    }
}
