//! One-time links: codes that are worth one cookie, for a few minutes.

use std::io;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::random;

/// Codes that may be open at once; the oldest gives way.
const OPEN_MAX: usize = 32;

/// The codes that are open, as digests: whoever reads our memory later finds none.
#[derive(Debug)]
pub(super) struct Links {
    lifetime: Duration,
    open: Vec<(Vec<u8>, Instant)>,
}

impl Links {
    pub(super) fn new(lifetime_seconds: u64) -> Self {
        Self { lifetime: Duration::from_secs(lifetime_seconds), open: Vec::new() }
    }

    /// A new code.
    pub(super) fn make(&mut self, now: Instant) -> io::Result<String> {
        let code = random::secret()?;
        self.forget(now);
        if self.open.len() >= OPEN_MAX {
            self.open.remove(0);
        }
        self.open.push((digest(&code), now));
        Ok(code)
    }

    /// Whether the code is open; it is not from then on.
    pub(super) fn take(&mut self, code: &str, now: Instant) -> bool {
        self.forget(now);
        let presented = digest(code);
        let before = self.open.len();
        self.open.retain(|(open, _)| *open != presented);
        self.open.len() < before
    }

    fn forget(&mut self, now: Instant) {
        let lifetime = self.lifetime;
        self.open.retain(|(_, made)| now.saturating_duration_since(*made) < lifetime);
    }
}

fn digest(code: &str) -> Vec<u8> {
    Sha256::digest(code.as_bytes()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_works_once_and_not_after_its_time() {
        let now = Instant::now();
        let mut links = Links::new(60);
        let code = links.make(now).unwrap();
        assert!(!links.take("guessed", now));
        assert!(links.take(&code, now));
        assert!(!links.take(&code, now));
        let late = links.make(now).unwrap();
        assert!(!links.take(&late, now + Duration::from_secs(60)));
    }

    #[test]
    fn the_oldest_of_too_many_codes_gives_way() {
        let now = Instant::now();
        let mut links = Links::new(60);
        let codes: Vec<String> = (0..=OPEN_MAX).map(|_| links.make(now).unwrap()).collect();
        assert!(!links.take(&codes[0], now));
        assert!(codes[1..].iter().all(|code| links.take(code, now)));
    }
}
