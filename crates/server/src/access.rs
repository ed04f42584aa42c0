//! Who may call over TCP: whoever shows the access token of the data folder, or the cookie that a one-time link gave.
//!
//! Over the Unix socket the peer's user id says enough. On a loopback port every user of the machine can connect, and
//! every web page can make a browser connect, so there a secret is needed for all but the health of the daemon.

mod cookie;
mod gate;
mod links;
mod pace;
mod random;
mod token;

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rallypoint_model::limits::Limits;

use links::Links;
use pace::Pace;
use token::Token;

pub(crate) use cookie::COOKIE_NAME;
pub(crate) use gate::{bearer, guarded};
pub use token::TOKEN_FILE;

/// One minute, over which failed logins are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// What is needed to tell callers apart.
#[derive(Debug)]
pub(crate) struct Access {
    token: Token,
    links: Mutex<Links>,
    calls: Mutex<Pace>,
    failures: Mutex<Pace>,
    cookie_lifetime: Duration,
}

impl Access {
    /// Reads the data folder's token, or makes it.
    pub(crate) fn open(data_folder: &Path, limits: &Limits) -> io::Result<Self> {
        Ok(Self {
            token: Token::open(data_folder)?,
            links: Mutex::new(Links::new(limits.access_link_minutes.saturating_mul(60))),
            calls: Mutex::new(Pace::new(limits.requests_per_second, Duration::from_secs(1))),
            failures: Mutex::new(Pace::new(limits.failed_logins_per_minute, MINUTE)),
            cookie_lifetime: Duration::from_secs(limits.access_cookie_days.saturating_mul(24 * 60 * 60)),
        })
    }

    /// A code that opens the console once, within minutes.
    pub(crate) fn new_link(&self) -> io::Result<String> {
        held(&self.links).make(Instant::now())
    }

    /// Uses a code up. `Some` is the cookie that it is worth.
    pub(crate) fn redeem(&self, code: &str) -> Option<io::Result<String>> {
        held(&self.links)
            .take(code, Instant::now())
            .then(|| cookie::made(&self.token, seconds_now(), self.cookie_lifetime))
    }

    fn takes_token(&self, presented: &str) -> bool {
        self.token.is(presented)
    }

    fn takes_cookie(&self, value: &str) -> bool {
        cookie::holds(&self.token, value, seconds_now())
    }

    /// Whether one more call may pass now; else how long to wait.
    fn pace_of_calls(&self) -> Result<(), Duration> {
        held(&self.calls).pass(Instant::now())
    }

    /// The same for a login that failed.
    pub(crate) fn pace_of_failures(&self) -> Result<(), Duration> {
        held(&self.failures).pass(Instant::now())
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
