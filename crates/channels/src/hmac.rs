//! HMAC-SHA256 (RFC 2104).

use sha2::{Digest, Sha256};

/// Bytes of a block of SHA-256.
const BLOCK: usize = 64;

/// The code of a message under a key, in hex.
pub(crate) fn hmac_sha256(key: &[u8], message: &[&[u8]]) -> String {
    let mut block = [0_u8; BLOCK];
    let short: Vec<u8> = if key.len() > BLOCK { Sha256::digest(key).to_vec() } else { key.to_vec() };
    for (to, from) in block.iter_mut().zip(short) {
        *to = from;
    }
    let padded = |pad: u8| block.map(|byte| byte ^ pad);
    let mut inner = Sha256::new();
    inner.update(padded(0x36));
    for part in message {
        inner.update(part);
    }
    let mut outer = Sha256::new();
    outer.update(padded(0x5c));
    outer.update(inner.finalize());
    outer.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test cases 1, 2, 3 and 6 of RFC 4231.
    #[test]
    fn codes_are_those_of_the_published_test_cases() {
        for (key, message, code) in [
            (
                vec![0x0b; 20],
                b"Hi There".to_vec(),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe".to_vec(),
                b"what do ya want for nothing?".to_vec(),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                vec![0xaa; 20],
                vec![0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                vec![0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(hmac_sha256(&key, &[&message]), code);
            let (begin, end) = message.split_at(3);
            assert_eq!(hmac_sha256(&key, &[begin, end]), code);
        }
    }
}
