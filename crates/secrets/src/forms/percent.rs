//! A value inside a URL or a form body. Writers differ in what they leave as it is, in the case of the digits, and in
//! how they write a space.

use std::collections::BTreeSet;
use std::fmt::Write;

/// Punctuation that stays as it is, by kind of writer: strict, path (Python), `encodeURIComponent`, forms, `encodeURI`.
const LEFT_ALONE: [&str; 5] = ["-._~", "-._~/", "-._~!*'()", "-._*", "-._~!*'();,/?:@&=+$#"];

#[derive(Clone, Copy)]
enum HexCase {
    Lower,
    Upper,
}

#[derive(Clone, Copy)]
enum Space {
    Percent,
    Plus,
}

/// The value as every kind of writer would put it.
pub(super) fn escaped(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for left_alone in LEFT_ALONE {
        for hex in [HexCase::Lower, HexCase::Upper] {
            for space in [Space::Percent, Space::Plus] {
                forms.insert(escape(value, left_alone, hex, space));
            }
        }
    }
    forms
}

fn escape(value: &str, left_alone: &str, hex: HexCase, space: Space) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        let letter = char::from(byte);
        if letter.is_ascii_alphanumeric() || (letter.is_ascii() && left_alone.contains(letter)) {
            text.push(letter);
        } else if letter == ' ' && matches!(space, Space::Plus) {
            text.push('+');
        } else {
            // Writing to a string cannot fail.
            let _ = match hex {
                HexCase::Lower => write!(text, "%{byte:02x}"),
                HexCase::Upper => write!(text, "%{byte:02X}"),
            };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(value: &str, form: &str) -> bool {
        escaped(value).contains(form)
    }

    #[test]
    fn both_cases_of_the_digits() {
        assert!(has("a/b+c=d?", "a%2Fb%2Bc%3Dd%3F"));
        assert!(has("a/b+c=d?", "a%2fb%2bc%3dd%3f"));
    }

    #[test]
    fn space_both_ways() {
        assert!(has("open sesame!", "open+sesame%21"));
        assert!(has("open sesame!", "open%20sesame!"));
    }

    #[test]
    fn other_scripts_byte_by_byte() {
        assert!(has("pässword", "p%C3%A4ssword"));
        assert!(has("pässword", "p%c3%a4ssword"));
    }

    #[test]
    fn a_slash_may_stay() {
        assert!(has("a/b=c d", "a/b%3Dc%20d"));
    }
}
