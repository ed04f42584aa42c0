//! Properties over random secrets and texts from a small alphabet, so that secrets overlap, contain one another, repeat
//! themselves and touch the placeholder's own letters. The expected text comes from a slow, obvious rule.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::forms::all_forms;
use crate::{Redactor, SecretSet};

/// (form, index of its secret), an earlier secret before a later one.
type Forms = Vec<(String, usize)>;

fn secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]{6,9}",
        "[abä]{4,8}",
        "[abré\\[\\]:]{6,9}",
        "(redacted|\\[redact|acted:[AB]|\\]ababab|ababab\\[|[AB]\\]\\[red|secret)",
        "[a-c\n]{6,40}",
    ]
    .prop_filter("long enough", |value| value.trim().len() >= 6)
}

fn secrets() -> impl Strategy<Value = Vec<String>> {
    vec(secret(), 0..5)
}

/// Text made of whole secrets, pieces and forms of them, and noise.
fn text_for(secrets: Vec<String>) -> impl Strategy<Value = (Vec<String>, String)> {
    let mut words: Vec<String> =
        vec!["[redacted:A]".into(), "[".into(), "]".into(), "b".into(), "ä".into(), "🔑".into()];
    for value in &secrets {
        words.extend(all_forms(value).into_iter().take(12));
        words.push(value.clone());
        words.push(value.chars().take(4).collect());
        words.push(value.chars().skip(2).collect());
    }
    let word = prop_oneof![3 => proptest::sample::select(words), 1 => "[abär\\[\\]]{0,6}"];
    vec(word, 0..14).prop_map(move |parts| (secrets.clone(), parts.concat()))
}

fn case() -> impl Strategy<Value = (Vec<String>, String)> {
    secrets().prop_flat_map(text_for)
}

/// The text cut into pieces at random characters' borders, some of them empty.
fn cut_case() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    (case(), vec(0usize..7, 1..40)).prop_map(|((secrets, text), lengths)| {
        let mut letters = text.chars().peekable();
        let mut pieces = Vec::new();
        for length in lengths.iter().cycle().take(2000) {
            if letters.peek().is_none() {
                break;
            }
            pieces.push(letters.by_ref().take(*length).collect());
        }
        pieces.push(letters.collect());
        (secrets, pieces)
    })
}

fn name(index: usize) -> String {
    ["A", "B", "C", "D", "E"].get(index).copied().unwrap_or("F").to_owned()
}

fn build(secrets: &[String]) -> Redactor {
    Redactor::new(SecretSet::from_pairs(
        secrets.iter().enumerate().map(|(index, value)| (name(index), value.as_str())),
    ))
}

fn forms_of(secrets: &[String]) -> Forms {
    secrets
        .iter()
        .enumerate()
        .flat_map(|(owner, value)| all_forms(value).into_iter().map(move |form| (form, owner)))
        .collect()
}

/// (start, end, owner) of the stretches that have to be hidden: at each place the longest form, joined where they
/// overlap.
fn expected_regions(forms: &Forms, text: &str) -> Vec<(usize, usize, usize)> {
    let mut regions: Vec<(usize, usize, usize)> = Vec::new();
    for (start, _) in text.char_indices() {
        let rest = text.get(start..).unwrap_or_default();
        let longest = forms
            .iter()
            .rev()
            .filter(|(form, _)| rest.starts_with(form.as_str()))
            .max_by_key(|(form, _)| form.len());
        let Some((form, owner)) = longest else { continue };
        let end = start + form.len();
        match regions.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            _ => regions.push((start, end, *owner)),
        }
    }
    regions
}

/// What is shown for each secret, learnt from redacting its bare value.
fn expected_text(redactor: &Redactor, secrets: &[String], forms: &Forms, text: &str) -> String {
    let mut shown = String::new();
    let mut at = 0;
    for (start, end, owner) in expected_regions(forms, text) {
        shown.push_str(text.get(at..start).unwrap_or_default());
        let value = secrets.get(owner).map(|value| value.trim()).unwrap_or_default();
        shown.push_str(&redactor.redact(value));
        at = end;
    }
    shown.push_str(text.get(at..).unwrap_or_default());
    shown
}

fn stream_through(redactor: &Redactor, pieces: &[String]) -> String {
    let mut stream = redactor.stream();
    let mut shown: String = pieces.iter().map(|piece| stream.push(piece)).collect();
    shown.push_str(&stream.finish());
    shown
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn redacts_exactly_what_the_slow_rule_says((secrets, text) in case()) {
        let redactor = build(&secrets);
        let forms = forms_of(&secrets);
        prop_assert_eq!(redactor.redact(&text), expected_text(&redactor, &secrets, &forms, &text));
    }

    #[test]
    fn no_form_is_left((secrets, text) in case()) {
        let redactor = build(&secrets);
        let shown = redactor.redact(&text);
        for (form, _) in forms_of(&secrets) {
            prop_assert!(!shown.contains(&form), "{:?} in {:?}", form, shown);
        }
        prop_assert!(!redactor.contains_secret(&shown));
        prop_assert_eq!(redactor.contains_secret(&text), *shown != *text);
    }

    #[test]
    fn redacting_again_changes_nothing((secrets, text) in case()) {
        let redactor = build(&secrets);
        let once = redactor.redact(&text).into_owned();
        prop_assert_eq!(redactor.redact(&once), once.as_str());
    }

    #[test]
    fn a_stream_joins_to_the_whole((secrets, pieces) in cut_case()) {
        let redactor = build(&secrets);
        let whole = pieces.concat();
        prop_assert_eq!(stream_through(&redactor, &pieces), redactor.redact(&whole));
    }

    #[test]
    fn a_stream_letter_by_letter_joins_to_the_whole((secrets, text) in case()) {
        let redactor = build(&secrets);
        let letters: Vec<String> = text.chars().map(String::from).collect();
        prop_assert_eq!(stream_through(&redactor, &letters), redactor.redact(&text));
    }

    #[test]
    fn what_a_stream_shows_is_never_taken_back((secrets, pieces) in cut_case()) {
        let redactor = build(&secrets);
        let whole = redactor.redact(&pieces.concat()).into_owned();
        let mut stream = redactor.stream();
        let mut shown = String::new();
        for piece in &pieces {
            shown.push_str(&stream.push(piece));
            prop_assert!(whole.starts_with(&shown));
        }
    }

    #[test]
    fn held_back_is_the_longest_proper_beginning((secrets, text) in case()) {
        let forms = forms_of(&secrets);
        let expected = text
            .char_indices()
            .filter_map(|(start, _)| text.get(start..))
            .find(|tail| forms.iter().any(|(form, _)| form.len() > tail.len() && form.starts_with(tail)))
            .map_or(0, str::len);
        let held = build(&secrets).held_back(&text);
        prop_assert_eq!(held, expected);
        prop_assert!(text.is_char_boundary(text.len() - held));
    }

    #[test]
    fn groups_by_safe_split_join_to_the_whole((secrets, pieces) in cut_case()) {
        let redactor = build(&secrets);
        let whole = pieces.concat();
        let regions = expected_regions(&forms_of(&secrets), &whole);
        let mut waiting: Vec<&str> = Vec::new();
        let mut shown = String::new();
        let mut border = 0;
        for piece in &pieces {
            waiting.push(piece);
            let released: String = waiting.drain(..redactor.safe_split(&waiting)).collect();
            border += released.len();
            shown.push_str(&redactor.redact(&released));
            // No hit is cut by the border, so neither side of it shows a fragment of one.
            prop_assert!(!regions.iter().any(|(start, end, _)| *start < border && border < *end));
        }
        shown.push_str(&redactor.redact(&waiting.concat()));
        prop_assert_eq!(shown, redactor.redact(&whole));
    }

    #[test]
    fn safe_split_releases_as_much_as_it_can((secrets, pieces) in cut_case()) {
        let redactor = build(&secrets);
        let whole = pieces.concat();
        let regions = expected_regions(&forms_of(&secrets), &whole);
        let settled = whole.len() - redactor.held_back(&whole);
        let slices: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let mut border = 0;
        let mut expected = 0;
        for (index, piece) in pieces.iter().enumerate() {
            border += piece.len();
            if border <= settled && !regions.iter().any(|(start, end, _)| *start < border && border < *end) {
                expected = index + 1;
            }
        }
        prop_assert_eq!(redactor.safe_split(&slices), expected);
    }

    #[test]
    fn any_value_is_hidden_in_every_form(value in "\\PC{6,30}", before in "[a-z]{0,4}", after in "[a-z]{0,4}") {
        prop_assume!(value.trim().len() >= 6);
        let redactor = build(std::slice::from_ref(&value));
        for form in all_forms(&value) {
            let text = format!("{before}{form}{after}");
            let shown = redactor.redact(&text);
            prop_assert!(!shown.contains(&form), "{:?} in {:?}", form, shown);
        }
    }

    #[test]
    fn adding_is_the_same_as_building_at_once(first in secrets(), second in secrets(), text in "[abä\\[\\]]{0,40}") {
        let pairs = |values: &[String], from: usize| -> Vec<(String, String)> {
            values.iter().enumerate().map(|(index, value)| (name(from + index), value.clone())).collect()
        };
        let together: Vec<_> = pairs(&first, 0).into_iter().chain(pairs(&second, first.len())).collect();
        let added = build(&first).with_added(pairs(&second, first.len()));
        prop_assert_eq!(added.redact(&text), Redactor::new(SecretSet::from_pairs(together)).redact(&text));
    }
}
