//! A value as base64 or hex, alone, wrapped to lines, or somewhere inside a larger text that was encoded as a whole.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// Shortest inner part that is worth looking for, in base64 characters. Eight are 48 bits, so a chance hit is rare.
const MIN_INNER_CHARS: usize = 8;

/// Widths, in characters, at which the common tools break base64 into lines.
const LINE_WIDTHS: [usize; 2] = [64, 76];

/// Base64 of the bytes in both alphabets: padded, unpadded, as lines, and the part that stays the same wherever the
/// bytes stand inside a larger text (as in `user:password` of basic authentication).
pub(super) fn base64(bytes: &[u8]) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for (padded, unpadded) in [(&STANDARD, &STANDARD_NO_PAD), (&URL_SAFE, &URL_SAFE_NO_PAD)] {
        let whole = padded.encode(bytes);
        forms.extend(LINE_WIDTHS.iter().flat_map(|width| lines(&whole, *width)));
        forms.insert(whole);
        forms.insert(unpadded.encode(bytes));
        forms.extend((0..3).filter_map(|before| inner(unpadded, bytes, before)));
    }
    forms
}

/// Hex of the bytes in lower and in upper case.
pub(super) fn hex(bytes: &[u8]) -> [String; 2] {
    let lower: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    let upper = lower.to_ascii_uppercase();
    [lower, upper]
}

fn digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0')
}

/// The characters that depend on the bytes alone, when `before` bytes (modulo three) of other text precede them.
/// A character carries six bits; one that shares its bits with a neighbour is left out.
fn inner(engine: &GeneralPurpose, bytes: &[u8], before: usize) -> Option<String> {
    let mut larger = vec![0; before];
    larger.extend_from_slice(bytes);
    let first = (before * 8).div_ceil(6);
    let end = larger.len() * 8 / 6;
    let part = engine.encode(&larger).get(first..end)?.to_owned();
    (part.len() >= MIN_INNER_CHARS).then_some(part)
}

/// The lines into which a tool would break the text; nothing when one line is enough.
fn lines(text: &str, width: usize) -> Vec<String> {
    if text.len() <= width {
        return Vec::new();
    }
    let letters: Vec<char> = text.chars().collect();
    letters
        .chunks(width)
        .filter(|line| line.len() >= MIN_INNER_CHARS)
        .map(|line| line.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_alphabets_padded_and_not() {
        let forms = base64(b"??>>~~!!");
        for form in ["Pz8+Pn5+ISE=", "Pz8+Pn5+ISE", "Pz8-Pn5-ISE=", "Pz8-Pn5-ISE"] {
            assert!(forms.contains(form), "{form}");
        }
    }

    #[test]
    fn inner_part_is_found_at_every_alignment() {
        let value = "correct-horse";
        let forms = base64(value.as_bytes());
        for before in ["", "u", "us", "use", "user"] {
            for after in ["", "1", "12", "123"] {
                for engine in [STANDARD, URL_SAFE_NO_PAD] {
                    let text = engine.encode(format!("{before}:{value}{after}"));
                    assert!(forms.iter().any(|form| text.contains(form.as_str())), "{before} {after} {text}");
                }
            }
        }
    }

    #[test]
    fn short_inner_parts_are_not_looked_for() {
        assert!(inner(&STANDARD_NO_PAD, b"123456", 0).is_some());
        assert_eq!(inner(&STANDARD_NO_PAD, b"123456", 1), None);
        assert_eq!(inner(&STANDARD_NO_PAD, b"123456", 2), None);
        assert!(inner(&STANDARD_NO_PAD, b"1234567", 1).is_some());
    }

    #[test]
    fn long_values_are_known_line_by_line() {
        let value = "0123456789".repeat(12);
        let whole = STANDARD.encode(&value);
        let forms = base64(value.as_bytes());
        for width in LINE_WIDTHS {
            assert!(whole.get(..width).is_some_and(|line| forms.contains(line)));
            assert!(whole.get(width..width * 2).is_some_and(|line| forms.contains(line)));
        }
    }

    #[test]
    fn hex_in_both_cases() {
        assert_eq!(hex("Jürgen".as_bytes()), ["4ac3bc7267656e", "4AC3BC7267656E"]);
    }
}
