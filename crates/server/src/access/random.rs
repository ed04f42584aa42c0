//! Secrets from the system's source of randomness.

use std::io;

/// Bytes of a secret. 256 bits, so that guessing is no way in.
const SECRET_BYTES: usize = 32;

/// A new secret as hexadecimal digits.
pub(super) fn secret() -> io::Result<String> {
    let mut bytes = [0_u8; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(format!("no randomness: {error}")))?;
    Ok(hexadecimal(&bytes))
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
