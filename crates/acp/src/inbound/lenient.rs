//! Reading JSON that is almost right.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The value of this JSON text; the text itself as a string when nothing reads it.
///
/// Agents cut text in the middle of a surrogate pair and then escape the half;
/// others send numbers out of range or nest beyond the reader's limit.
pub(super) fn value(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    serde_json::from_str(&without_lone_surrogates(text)).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// The string in this JSON text, when it is one.
pub(super) fn string(text: &str) -> Option<String> {
    if !text.starts_with('"') {
        return None;
    }
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&without_lone_surrogates(text))).ok()
}

/// The number in an answer's `id`. We send plain numbers; some agents give
/// them back as a string of digits or with a fraction of zero.
pub(super) fn our_number(text: &str) -> Option<u64> {
    let digits = text.trim_matches('"');
    let whole = digits.strip_suffix(".0").unwrap_or(digits);
    if whole.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    whole.parse().ok()
}

/// Takes a member out when it is a string or null; leaves anything else in place.
pub(super) fn take_string(object: &mut Map<String, Value>, name: &str) -> Option<String> {
    match object.get(name) {
        Some(Value::String(_) | Value::Null) => {}
        _ => return None,
    }
    match object.shift_remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// A count as it may be written: whole, or as a float.
pub(super) fn count(value: &Value) -> Option<u64> {
    if let Some(count) = value.as_u64() {
        return Some(count);
    }
    let count = value.as_f64()?;
    (count >= 0.0 && count.is_finite()).then_some(count as u64)
}

/// The first `limit` characters, with an ellipsis when there were more.
pub(super) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Replaces each escape of half a surrogate pair by the replacement character.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut fixed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        fixed.push_str(before);
        let length = escape_length(escape);
        let (escape, after) = escape.split_at(length);
        match surrogate(escape) {
            None => fixed.push_str(escape),
            Some(Half::High) => match after.get(..6).and_then(surrogate) {
                Some(Half::Low) => {
                    let (low, behind) = after.split_at(6);
                    fixed.push_str(escape);
                    fixed.push_str(low);
                    rest = behind;
                    continue;
                }
                _ => fixed.push_str("\\ufffd"),
            },
            Some(Half::Low) => fixed.push_str("\\ufffd"),
        }
        rest = after;
    }
    fixed.push_str(rest);
    Cow::Owned(fixed)
}

enum Half {
    High,
    Low,
}

fn escape_length(escape: &str) -> usize {
    if escape.get(..6).is_some_and(|code| code.starts_with("\\u")) {
        return 6;
    }
    1 + escape.chars().nth(1).map_or(0, char::len_utf8)
}

fn surrogate(escape: &str) -> Option<Half> {
    let code = u32::from_str_radix(escape.strip_prefix("\\u")?, 16).ok()?;
    match code {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn half_a_surrogate_pair_costs_one_character_only() {
        assert_eq!(value(r#"{"text":"a\ud83d b"}"#), json!({"text": "a\u{fffd} b"}));
        assert_eq!(value(r#""\ude00\ud83d\ude00""#), json!("\u{fffd}😀"));
        assert_eq!(value(r#""\\ud83d""#), json!("\\ud83d"));
        assert_eq!(value(r#""\ud83d\"""#), json!("\u{fffd}\""));
    }

    #[test]
    fn what_nothing_reads_stays_as_text() {
        assert_eq!(value("1e999"), json!("1e999"));
    }

    #[test]
    fn numbers_of_ours_are_found_in_any_dress() {
        assert_eq!(our_number("7"), Some(7));
        assert_eq!(our_number("\"7\""), Some(7));
        assert_eq!(our_number("7.0"), Some(7));
        assert_eq!(our_number("7.5"), None);
        assert_eq!(our_number("\"abc\""), None);
        assert_eq!(our_number("\"\""), None);
        assert_eq!(our_number("99999999999999999999999"), None);
        assert_eq!(our_number("-1"), None);
    }

    #[test]
    fn shortening_respects_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöü", 2), "äö…");
    }
}
