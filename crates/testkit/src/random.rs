//! Random numbers that a seed repeats.

/// A xorshift generator. Good enough to spread moments and sizes, and it needs no dependency.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds would otherwise begin alike, and the state must never be zero.
        let mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self { state: (mixed ^ (mixed >> 31)) | 1 }
    }

    /// The next number.
    pub fn next_number(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// A number from `from` up to and without `to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        // The low bits of a xorshift are its weakest.
        from + (self.next_number() >> 11) % to.saturating_sub(from).max(1)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.between(0, 100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_its_neighbour_differs() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..8).map(|_| random.between(0, 400)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(0).iter().all(|number| *number < 400));
    }
}
