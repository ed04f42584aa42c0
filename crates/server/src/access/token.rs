//! The access token: made at the first start, kept in a file that only its owner can read.

use std::fmt::{Debug, Formatter};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::random;

/// Name of the token's file in the data folder.
pub const TOKEN_FILE: &str = "access-token";

/// Characters that a token at least has: one that somebody shortened to something guessable is not taken.
const LENGTH_MIN: usize = 32;
/// Most of the file that is read.
const LENGTH_MAX: u64 = 4096;

/// The token. It is never shown, not even for debugging.
pub(crate) struct Token(String);

impl Debug for Token {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(…)")
    }
}

impl Token {
    /// Reads the token of this folder; makes one when there is none.
    pub(super) fn open(data_folder: &Path) -> io::Result<Self> {
        let path = data_folder.join(TOKEN_FILE);
        match File::open(&path) {
            Ok(file) => read(file, &path),
            Err(error) if error.kind() == ErrorKind::NotFound => make(data_folder, &path),
            Err(error) => Err(error),
        }
    }

    /// Whether this is the token, in a time that does not depend on how much of it is right.
    pub(super) fn is(&self, presented: &str) -> bool {
        let seal = self.seal(&["token", presented]);
        self.seal_holds(&["token", &self.0], &seal)
    }

    /// What only the holder of the token can put under these words.
    pub(super) fn seal(&self, words: &[&str]) -> Vec<u8> {
        self.sealing(words).map(|mac| mac.finalize().into_bytes().to_vec()).unwrap_or_default()
    }

    /// Whether a seal belongs to these words.
    pub(super) fn seal_holds(&self, words: &[&str], seal: &[u8]) -> bool {
        self.sealing(words).is_some_and(|mac| mac.verify_slice(seal).is_ok())
    }

    fn sealing(&self, words: &[&str]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).ok()?;
        for word in words {
            // The length goes first, so that no two lists of words are the same bytes.
            mac.update(&(word.len() as u64).to_be_bytes());
            mac.update(word.as_bytes());
        }
        Some(mac)
    }
}

fn read(file: File, path: &Path) -> io::Result<Token> {
    // A file that others could read is closed to them before it is trusted; what they read of it is not known.
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        tracing::warn!("`{}` could be read by others; remove it to get a new token", path.display());
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    let mut text = String::new();
    file.take(LENGTH_MAX).read_to_string(&mut text)?;
    let token = text.trim();
    if token.len() < LENGTH_MIN {
        let message = format!(
            "`{}` holds no token of at least {LENGTH_MIN} characters; remove it and a new one is made",
            path.display()
        );
        return Err(io::Error::new(ErrorKind::InvalidData, message));
    }
    Ok(Token(token.to_owned()))
}

fn make(data_folder: &Path, path: &Path) -> io::Result<Token> {
    let token = random::secret()?;
    // Written whole under another name first: a token that a crash cut short would lock everybody out.
    let unfinished = data_folder.join(format!("{TOKEN_FILE}.new"));
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(format!("{token}\n").as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    File::open(data_folder)?.sync_all()?;
    Ok(Token(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = Token::open(folder.path()).unwrap();
        let path = folder.path().join(TOKEN_FILE);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(first.is(text.trim()));
        let second = Token::open(folder.path()).unwrap();
        assert!(second.is(text.trim()));
        for wrong in ["", "x", &text[..63], &format!("{}0", text.trim())] {
            assert!(!first.is(wrong), "{wrong}");
        }
        assert!(!format!("{first:?}").contains(text.trim()));
    }

    #[test]
    fn an_open_file_is_closed_and_a_short_token_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TOKEN_FILE);
        std::fs::write(&path, "a".repeat(40)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Token::open(folder.path()).unwrap().is(&"a".repeat(40)));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "secret").unwrap();
        assert_eq!(Token::open(folder.path()).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
