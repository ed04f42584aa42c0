//! The order in which mail is taken: results of the turn's own calls, what
//! rides along, then what asks for a turn; a person's words before all others'.
//!
//! Queue modes: OpenClaw `messages.queue`; order and idle-wake: Anima's drain.

use rallypoint_model::mail::{Mail, MailFrom, MailKind, MailMode};

use crate::state::{MailboxItem, TurnCause};

/// What one turn takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drain {
    /// What it brings, in order.
    pub taken: Vec<Mail>,
    /// What is given up for it.
    pub dropped: Vec<Mail>,
}

/// Whether something waits that asks for a turn. What rides along waits for another's turn.
pub fn wakes(inbox: &[Mail]) -> bool {
    inbox.iter().any(|mail| mail.kind != MailKind::Background)
}

/// Whether this piece of mail ends the turn at work. A child's words never do:
/// it has no say over its parent's turn.
pub fn interrupts(mode: MailMode, mail: &Mail) -> bool {
    let has_say = match mail.from {
        MailFrom::User { .. } | MailFrom::Parent => true,
        MailFrom::Child { .. } | MailFrom::Sibling { .. } | MailFrom::System => false,
    };
    mode == MailMode::Interrupt && mail.kind == MailKind::Active && has_say
}

/// What the next turn takes; empty when nothing asks for one.
pub fn drain(inbox: &[Mail], mode: MailMode) -> Drain {
    if !wakes(inbox) {
        return Drain::default();
    }
    let of_kind = |kind: MailKind| inbox.iter().filter(move |mail| mail.kind == kind);
    let mut drain = Drain {
        taken: of_kind(MailKind::ToolResult).chain(of_kind(MailKind::Background)).cloned().collect(),
        dropped: Vec::new(),
    };
    let is_user = |mail: &&Mail| matches!(mail.from, MailFrom::User { .. });
    let users: Vec<&Mail> = of_kind(MailKind::Active).filter(is_user).collect();
    // A turn that answers a person is about nothing else.
    let active: Vec<&Mail> = if users.is_empty() { of_kind(MailKind::Active).collect() } else { users };
    match mode {
        MailMode::Collect => drain.taken.extend(active.into_iter().cloned()),
        MailMode::Followup | MailMode::Steer => drain.taken.extend(active.into_iter().take(1).cloned()),
        MailMode::Interrupt => {
            let newest = active.iter().rposition(|mail| interrupts(mode, mail));
            match newest {
                Some(newest) => {
                    drain.taken.extend(active.get(newest).map(|mail| (*mail).clone()));
                    let older = active.iter().take(newest).filter(|mail| interrupts(mode, mail));
                    drain.dropped.extend(older.map(|mail| (*mail).clone()));
                }
                None => drain.taken.extend(active.into_iter().take(1).cloned()),
            }
        }
    }
    drain
}

/// The item of a room that its main agent looks at next: a person's request, else the oldest.
pub fn next_turn(items: &[MailboxItem]) -> Option<&MailboxItem> {
    items.iter().find(|item| item.cause == TurnCause::TaskRequested).or_else(|| items.first())
}
