//! Tokens of agent processes, for the tool servers that are started in their sessions.
//!
//! A token is made of the generation's id and a seal under it, so it is stored nowhere, is the same after a restart of
//! the daemon, and says whose it is. It opens what its own session may do, and nothing once its generation has ended.

use std::fmt::{Debug, Formatter};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use rallypoint_model::ids::GenerationId;
use sha2::Sha256;

/// File of the key in the data folder.
const KEY_FILE: &str = "session-key";
/// Bytes of the key.
const KEY_BYTES: usize = 32;
/// Begins every token, so that one is told from the data folder's access token.
const PREFIX: &str = "session.";

/// Whether a text that a caller shows is meant as a token of an agent process.
pub fn is_session_token(presented: &str) -> bool {
    presented.starts_with(PREFIX)
}

/// Makes and knows tokens. Cheap to clone; the key is never shown.
#[derive(Clone)]
pub(crate) struct SessionTokens {
    key: Arc<[u8; KEY_BYTES]>,
}

impl Debug for SessionTokens {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SessionTokens(…)")
    }
}

impl SessionTokens {
    /// Reads the key of this data folder; makes one when there is none.
    pub(crate) fn open(data_folder: &Path) -> io::Result<Self> {
        let path = data_folder.join(KEY_FILE);
        let key = match File::open(&path) {
            Ok(mut file) => {
                let mut key = [0; KEY_BYTES];
                file.read_exact(&mut key)?;
                key
            }
            Err(error) if error.kind() == ErrorKind::NotFound => make(data_folder, &path)?,
            Err(error) => return Err(error),
        };
        Ok(Self { key: Arc::new(key) })
    }

    /// The token of a generation.
    pub(crate) fn of(&self, generation_id: GenerationId) -> String {
        format!("{PREFIX}{generation_id}.{}", self.seal(generation_id))
    }

    /// The part of the token that is secret.
    pub(crate) fn seal(&self, generation_id: GenerationId) -> String {
        self.sealing(generation_id)
            .map(|mac| mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect())
            .unwrap_or_default()
    }

    /// Whose token this is, whether its process lives or not.
    pub(crate) fn holder(&self, presented: &str) -> Option<GenerationId> {
        let (id, seal) = presented.strip_prefix(PREFIX)?.split_once('.')?;
        let generation_id: GenerationId = id.parse().ok()?;
        let digits = seal.as_bytes().chunks(2).map(|pair| {
            let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
            u8::from_str_radix(text, 16).ok()
        });
        let seal: Vec<u8> = digits.collect::<Option<_>>()?;
        self.sealing(generation_id)?.verify_slice(&seal).ok()?;
        Some(generation_id)
    }

    fn sealing(&self, generation_id: GenerationId) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.as_slice()).ok()?;
        mac.update(generation_id.0.as_bytes());
        Some(mac)
    }
}

fn make(data_folder: &Path, path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| io::Error::other(format!("no randomness: {error}")))?;
    // Whole under another name first: a key that a crash cut short could never be read again.
    let unfinished = data_folder.join(format!("{KEY_FILE}.new"));
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(&key)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    File::open(data_folder)?.sync_all()?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_token_names_its_generation_over_restarts_and_nothing_else_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = SessionTokens::open(folder.path()).unwrap();
        let mode = folder.path().join(KEY_FILE).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (one, other) = (GenerationId(Uuid::from_u128(1)), GenerationId(Uuid::from_u128(2)));
        let token = tokens.of(one);
        let again = SessionTokens::open(folder.path()).unwrap();
        assert_eq!(again.holder(&token), Some(one));
        let forged = token.replace(&one.to_string(), &other.to_string());
        let shorter = &token[..token.len() - 2];
        let elsewhere = SessionTokens::open(tempfile::tempdir().unwrap().path()).unwrap();
        assert_eq!(elsewhere.holder(&token), None);
        for wrong in ["", "session.", "session.x.y", &forged, shorter, &format!("{token}é"), &token[8..]] {
            assert_eq!(again.holder(wrong), None, "{wrong}");
        }
        assert!(!format!("{tokens:?}").contains(&token));
    }
}
