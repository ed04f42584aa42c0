//! Every form in which a tool is likely to print a value: as it is, escaped for JSON, URLs or a shell, as base64 or hex.
//!
//! A form that is missing here is a leak, a form that is here in vain costs a little memory, so the lists are generous.
//! Forms of one value overlap (most are equal for a plain token); the result is a set.

mod encoded;
mod json;
mod percent;
mod shell;

use std::collections::BTreeSet;

/// Shortest line of a value of several lines that is hidden by itself, in characters. Shorter ones (a brace, an end
/// mark) are not worth hiding.
const MIN_LINE_CHARS: usize = 12;

/// All forms of `value`. Each has at least six bytes if the trimmed value has.
pub(crate) fn all_forms(value: &str) -> BTreeSet<String> {
    let trimmed = value.trim();
    let mut forms = text_forms(trimmed);
    forms.extend(encoded::hex(trimmed.as_bytes()));
    // A value read from a file often ends in a line break that is encoded along with it, and the last characters of
    // base64 differ then.
    for bytes in [trimmed.as_bytes(), value.as_bytes()] {
        forms.extend(encoded::base64(bytes));
    }
    for line in lines_worth_hiding(trimmed) {
        forms.extend(text_forms(line));
    }
    forms
}

/// The forms that leave the text readable.
fn text_forms(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([value.to_owned()]);
    forms.extend(json::escaped(value));
    forms.extend(percent::escaped(value));
    forms.extend(shell::escaped(value));
    forms
}

/// The lines of a value of several lines; nothing for a value of one line. Keys are often stored with their line breaks
/// spelled `\n`, and written out with real ones, so both divide.
fn lines_worth_hiding(value: &str) -> Vec<&str> {
    let lines: Vec<&str> = value.lines().flat_map(|line| line.split("\\n")).map(str::trim).collect();
    if lines.len() < 2 {
        return Vec::new();
    }
    lines.into_iter().filter(|line| line.chars().count() >= MIN_LINE_CHARS && !is_key_border(line)).collect()
}

/// The first and last line of a key in PEM form are the same for everyone, and stand around certificates as well.
fn is_key_border(line: &str) -> bool {
    line.starts_with("-----BEGIN ") || line.starts_with("-----END ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(value: &str, form: &str) -> bool {
        all_forms(value).contains(form)
    }

    #[test]
    fn a_plain_token_has_few_forms() {
        assert_eq!(text_forms("sk-abc123XYZ"), BTreeSet::from(["sk-abc123XYZ".to_owned()]));
    }

    #[test]
    fn surrounding_white_space_does_not_hide_the_value() {
        assert!(has(" token-0815\n", "token-0815"));
    }

    #[test]
    fn base64_is_known_with_and_without_the_final_line_break() {
        assert!(has("token-0815\n", "dG9rZW4tMDgxNQo="));
        assert!(has("token-0815\n", "dG9rZW4tMDgxNQ=="));
    }

    #[test]
    fn lines_of_a_key_are_known_but_not_its_borders() {
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg/kqhkiG9w0\nshort\r\nBAQEFAASCBKcwggSjAgEA+x==\n-----END PRIVATE KEY-----\n";
        assert!(has(key, "MIIEvQIBADANBg/kqhkiG9w0"));
        assert!(has(key, "MIIEvQIBADANBg\\/kqhkiG9w0"));
        assert!(has(key, "BAQEFAASCBKcwggSjAgEA%2Bx%3D%3D"));
        assert!(!has(key, "short"));
        assert!(!has(key, "-----BEGIN PRIVATE KEY-----"));
    }

    #[test]
    fn spelled_line_breaks_divide_lines_too() {
        let key = r"-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n-----END KEY-----\n";
        assert!(has(key, "MIIEvQIBADANBgkqhkiG"));
    }

    #[test]
    fn a_single_line_is_not_divided() {
        assert!(lines_worth_hiding("just one line of text").is_empty());
    }

    #[test]
    fn every_form_is_long_enough() {
        for value in ["äöü", "123456", "a\"b\\c/", "??>>~~", "x\ny\nz\nw"] {
            for form in all_forms(value) {
                assert!(form.len() >= 6, "{form:?} of {value:?}");
            }
        }
    }
}
