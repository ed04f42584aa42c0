//! What is shown in place of a secret.
//!
//! Normally `[redacted:NAME]`. A placeholder must not contain a known form, or begin or end with a piece of one: text
//! that was redacted once would otherwise be hit again at the placeholder's edge, and redacting would not come to rest.
//! So a name that holds a value gives way to the word `secret`, and where even that collides (a secret that is part of
//! the placeholder itself) to a block character that occurs in no form.

use crate::matcher::{Form, Matcher};

/// Longest part of a name that is shown, in characters.
const MAX_NAME_CHARS: usize = 64;

/// The first of the characters that may stand for everything else.
const FIRST_BLOCK: char = '\u{2588}';

/// One placeholder for each name, in order.
pub(crate) fn choose<'name>(
    names: impl Iterator<Item = &'name str>,
    matcher: &Matcher,
    forms: &[Form],
) -> Vec<String> {
    let bracketed: Vec<&str> =
        forms.iter().map(|form| form.text.as_str()).filter(|form| form.contains('[')).collect();
    let last_resort = last_resort(forms);
    names
        .map(|name| {
            let shown = if matcher.contains_form(name) { String::new() } else { presentable(name) };
            let named = (!shown.is_empty()).then(|| format!("[redacted:{shown}]"));
            named
                .into_iter()
                .chain(["[redacted:secret]".to_owned(), "[redacted]".to_owned()])
                .find(|text| comes_to_rest(text, matcher, &bracketed))
                .unwrap_or_else(|| last_resort.clone())
        })
        .collect()
}

/// The name without anything that could end the placeholder early or break a line.
fn presentable(name: &str) -> String {
    name.chars()
        .take(MAX_NAME_CHARS)
        .map(|letter| if letter.is_ascii_alphanumeric() || "_-.".contains(letter) { letter } else { '_' })
        .collect()
}

/// Whether no form lies in the placeholder, around it, or across one of its edges. `bracketed` are the forms with an
/// opening bracket, the only ones that can hold the placeholder or reach into it from the left.
fn comes_to_rest(placeholder: &str, matcher: &Matcher, bracketed: &[&str]) -> bool {
    let reaches_in = |form: &str| {
        (1..=placeholder.len())
            .any(|length| placeholder.get(..length).is_some_and(|head| form.ends_with(head)))
    };
    !matcher.contains_form(placeholder)
        && matcher.open_tail(placeholder) == 0
        && !bracketed.iter().any(|form| form.contains(placeholder) || reaches_in(form))
}

/// Made of one character that is in no form, so no form can touch it.
fn last_resort(forms: &[Form]) -> String {
    let free = (FIRST_BLOCK..=char::MAX).find(|letter| !forms.iter().any(|form| form.text.contains(*letter)));
    free.unwrap_or(FIRST_BLOCK).to_string().repeat(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matcher::MatcherError;

    fn chosen(name: &str, values: &[&str]) -> Result<String, MatcherError> {
        let forms: Vec<Form> =
            values.iter().map(|text| Form { text: (*text).to_owned(), owner: 0 }).collect();
        Ok(choose([name].into_iter(), &Matcher::new(&forms)?, &forms).concat())
    }

    #[test]
    fn the_name_is_shown() -> Result<(), MatcherError> {
        assert_eq!(chosen("API_KEY", &["sk-12345"])?, "[redacted:API_KEY]");
        assert_eq!(chosen("my key]\n", &["sk-12345"])?, "[redacted:my_key__]");
        assert_eq!(chosen("", &["sk-12345"])?, "[redacted:secret]");
        assert_eq!(chosen(&"n".repeat(500), &["sk-12345"])?.len(), "[redacted:]".len() + MAX_NAME_CHARS);
        Ok(())
    }

    #[test]
    fn a_name_that_holds_a_value_is_not_shown() -> Result<(), MatcherError> {
        assert_eq!(chosen("key-hunter22", &["hunter22"])?, "[redacted:secret]");
        assert_eq!(chosen("key hunter 22", &["hunter 22"])?, "[redacted:secret]");
        Ok(())
    }

    #[test]
    fn a_secret_that_is_part_of_the_placeholder_gets_blocks() -> Result<(), MatcherError> {
        // Those that only touch the shortest placeholder do not matter to the one with the name.
        for value in ["[redacted]", "a[redacted]b"] {
            assert_eq!(chosen("API_KEY", &[value])?, "[redacted:API_KEY]", "{value}");
        }
        for value in ["redacted", "[redacted", "edacte", "xxxxx[", "xxxx[red", "]xxxxx"] {
            assert_eq!(chosen("API_KEY", &[value])?, "███", "{value}");
        }
        assert_eq!(chosen("API_KEY", &["redacted"])?, "███");
        assert_eq!(chosen("API_KEY", &["redacted", "██████"])?, "▉▉▉");
        Ok(())
    }

    #[test]
    fn a_secret_of_the_word_secret_leaves_the_shorter_placeholder() -> Result<(), MatcherError> {
        assert_eq!(chosen("my-secret", &["secret"])?, "[redacted]");
        Ok(())
    }
}
