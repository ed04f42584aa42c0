//! The cookie of a browser: how long it holds, and a seal that only this data folder's token makes.
//!
//! Nothing of it is kept, so it outlives restarts; a new token ends every cookie.

use std::io;
use std::time::Duration;

use super::random;
use super::token::Token;

/// Its name.
pub(crate) const COOKIE_NAME: &str = "rally_access";

/// A cookie from now on, with its attributes: `Set-Cookie`'s value.
pub(super) fn made(token: &Token, now_seconds: u64, lifetime: Duration) -> io::Result<String> {
    let until = now_seconds.saturating_add(lifetime.as_secs()).to_string();
    let salt = random::secret()?;
    let seal = random::hexadecimal(&token.seal(&["cookie", &until, &salt]));
    Ok(format!(
        "{COOKIE_NAME}={until}.{salt}.{seal}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict",
        lifetime.as_secs()
    ))
}

/// Whether a cookie's value was made here and holds still.
pub(super) fn holds(token: &Token, value: &str, now_seconds: u64) -> bool {
    let mut parts = value.split('.');
    let (Some(until), Some(salt), Some(seal), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let Some(seal) = bytes_of(seal) else { return false };
    token.seal_holds(&["cookie", until, salt], &seal)
        && until.parse::<u64>().is_ok_and(|until| now_seconds < until)
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len())
        .step_by(2)
        .map(|place| u8::from_str_radix(digits.get(place..place + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_holds_until_its_time_and_only_as_it_was_made() {
        let folder = tempfile::tempdir().unwrap();
        let token = Token::open(folder.path()).unwrap();
        let made = made(&token, 1_000, Duration::from_secs(60)).unwrap();
        assert!(made.ends_with("; Path=/; Max-Age=60; HttpOnly; SameSite=Strict"), "{made}");
        let value = made.split(';').next().unwrap().strip_prefix("rally_access=").unwrap();
        assert!(holds(&token, value, 1_059));
        assert!(!holds(&token, value, 1_060));
        let later = value.replacen("1060", "9060", 1);
        for wrong in
            [later.as_str(), "", "..", "1060", &value[..value.len() - 1], &format!("{value}.x"), "9.ü.z"]
        {
            assert!(!holds(&token, wrong, 1_000), "{wrong}");
        }
        let other = tempfile::tempdir().unwrap();
        assert!(!holds(&Token::open(other.path()).unwrap(), value, 1_000));
    }
}
