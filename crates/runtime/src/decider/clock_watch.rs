//! Notices that the clock of the machine was set, that the machine slept, or that the decider did not run for a while.

use std::time::{Duration, Instant};

use rallypoint_model::time::ClockAnchor;

/// Smaller differences are the ordinary drift of clocks and the load of the machine.
const NOTICED_MS: i64 = 2_000;

/// What has to be made good.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shift {
    /// By how many milliseconds the clocks of what is under way have to be moved.
    pub(super) by_ms: i64,
    /// How the clock stands now, where the one that is known does not hold any more.
    pub(super) anchor: Option<ClockAnchor>,
}

/// By how much the clock was set since it stood as is known, in this life of the machine. How it was set in another one
/// can't be told.
pub(super) fn step(known: Option<&ClockAnchor>, now: ClockAnchor) -> Shift {
    match known {
        Some(known) if known.boot == now.boot => {
            let by_ms = now.offset_ms.saturating_sub(known.offset_ms);
            if by_ms.saturating_abs() < NOTICED_MS {
                Shift::default()
            } else {
                Shift { by_ms, anchor: Some(now) }
            }
        }
        Some(_) | None => Shift { by_ms: 0, anchor: Some(now) },
    }
}

/// Time by which the decider slept longer than it meant to: it was stopped, or the machine was overloaded.
#[derive(Debug, Default)]
pub(super) struct Sleep {
    since: Option<Instant>,
}

impl Sleep {
    /// It waits from now on.
    pub(super) fn begins(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// It waits no longer. Milliseconds that nobody could decide in; 0 for an ordinary wait.
    pub(super) fn ends(&mut self, now: Instant, patience: Duration) -> i64 {
        let Some(since) = self.since.take() else { return 0 };
        let over = now.saturating_duration_since(since).saturating_sub(patience);
        let over = i64::try_from(over.as_millis()).unwrap_or(i64::MAX);
        if over < NOTICED_MS { 0 } else { over }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(boot: &str, offset_ms: i64) -> ClockAnchor {
        ClockAnchor { boot: boot.to_owned(), offset_ms }
    }

    #[test]
    fn steps_of_the_clock_are_told_from_its_drift_and_from_another_boot() {
        const HOUR: i64 = 3_600_000;
        let known = anchor("a", 1_000_000);
        for (what, now, by_ms) in [
            ("set forward, or the machine slept", anchor("a", 1_000_000 + 6 * HOUR), Some(6 * HOUR)),
            ("set back", anchor("a", 1_000_000 - 6 * HOUR), Some(-6 * HOUR)),
            ("drift", anchor("a", 1_001_999), None),
            ("another boot", anchor("b", 9 * HOUR), Some(0)),
        ] {
            let expected =
                by_ms.map_or_else(Shift::default, |by_ms| Shift { by_ms, anchor: Some(now.clone()) });
            assert_eq!(step(Some(&known), now), expected, "{what}");
        }
        assert_eq!(step(None, known.clone()), Shift { by_ms: 0, anchor: Some(known) });
    }

    #[test]
    fn only_a_wait_that_is_much_longer_than_meant_counts() {
        let start = Instant::now();
        let patience = Duration::from_secs(1);
        for (slept_ms, over_ms) in [(10, 0), (1_000, 0), (2_900, 0), (61_000, 60_000)] {
            let mut sleep = Sleep::default();
            assert_eq!(sleep.ends(start, patience), 0, "it never began");
            sleep.begins(start);
            assert_eq!(sleep.ends(start + Duration::from_millis(slept_ms), patience), over_ms);
        }
    }
}
