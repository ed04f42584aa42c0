//! A limit on how often something may happen: a bucket that refills evenly.

use std::time::{Duration, Instant};

/// A bucket.
#[derive(Debug)]
pub(super) struct Pace {
    capacity: u32,
    /// Time in which one of them comes back.
    interval: Duration,
    /// When the bucket would be full again. In the past means that it is.
    full_at: Option<Instant>,
}

impl Pace {
    /// So many in this time, all of them at once if need be.
    pub(super) fn new(capacity: u32, time: Duration) -> Self {
        Self { capacity: capacity.max(1), interval: time / capacity.max(1), full_at: None }
    }

    /// Takes one, or says how long to wait for one.
    pub(super) fn pass(&mut self, now: Instant) -> Result<(), Duration> {
        let full_at = self.full_at.filter(|at| *at > now).unwrap_or(now) + self.interval;
        let limit = now + self.interval * self.capacity;
        if full_at > limit {
            return Err(full_at - limit);
        }
        self.full_at = Some(full_at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_one_an_interval() {
        let start = Instant::now();
        let mut pace = Pace::new(4, Duration::from_secs(4));
        assert!((0..4).all(|_| pace.pass(start).is_ok()));
        assert_eq!(pace.pass(start), Err(Duration::from_secs(1)));
        let later = start + Duration::from_secs(1);
        assert_eq!(pace.pass(later), Ok(()));
        assert!(pace.pass(later).is_err());
        let full = start + Duration::from_secs(100);
        assert!((0..4).all(|_| pace.pass(full).is_ok()));
        assert!(pace.pass(full).is_err());
    }
}
