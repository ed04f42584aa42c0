//! The table of a delivery to an agent or a channel.
//!
//! Into a room of ours the message row is the delivery and needs no table. An
//! input of an agent is `offered` once it is journalled and sent, `consumed`
//! with the agent's first frame after its acceptance.

pub use rallypoint_model::delivery::{DeliveryStatus, DeliveryTrigger};

/// Where `trigger` leads from `status`; `None` where it is not legal.
pub fn next(status: DeliveryStatus, trigger: DeliveryTrigger) -> Option<DeliveryStatus> {
    use DeliveryStatus as S;
    use DeliveryTrigger as T;
    match (status, trigger) {
        (S::Pending, T::Offer) => Some(S::Offered),
        (S::Offered, T::Consume) => Some(S::Consumed),
        (S::Offered, T::Returned) => Some(S::Pending),
        (S::Offered, T::LoseTrack) => Some(S::Ambiguous),
        (S::Pending | S::Offered, T::Fail) => Some(S::Failed),
        (S::Pending | S::Suspended, T::Expire) => Some(S::Expired),
        (S::Pending, T::Suspend) => Some(S::Suspended),
        (S::Suspended, T::Resume) => Some(S::Pending),
        // A late receipt settles what could not be told before.
        (S::Ambiguous, T::Consume) => Some(S::Consumed),
        (S::Pending | S::Suspended | S::Ambiguous, T::Discard) => Some(S::Discarded),
        (
            S::Pending
            | S::Offered
            | S::Consumed
            | S::Failed
            | S::Expired
            | S::Suspended
            | S::Ambiguous
            | S::Discarded,
            _,
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ambiguous_delivery_is_never_offered_again() {
        for trigger in DeliveryTrigger::ALL {
            let to = next(DeliveryStatus::Ambiguous, trigger);
            assert!(!matches!(to, Some(DeliveryStatus::Pending | DeliveryStatus::Offered)));
        }
    }

    #[test]
    fn every_pair_of_the_delivery_table_is_as_specified() {
        let mut text = String::new();
        for trigger in DeliveryTrigger::ALL {
            let cells: Vec<String> = DeliveryStatus::ALL
                .iter()
                .map(|status| next(*status, trigger).map_or("-".to_owned(), |to| format!("{to:?}")))
                .collect();
            text.push_str(&format!("{trigger:?}: {}\n", cells.join(" ")));
        }
        insta::assert_snapshot!(text, @r"
        Offer: Offered - - - - - - -
        Consume: - Consumed - - - - Consumed -
        Returned: - Pending - - - - - -
        Fail: Failed Failed - - - - - -
        Expire: Expired - - - - Expired - -
        Suspend: Suspended - - - - - - -
        Resume: - - - - - Pending - -
        LoseTrack: - Ambiguous - - - - - -
        Discard: Discarded - - - - Discarded Discarded -
        ");
    }
}
