use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;

fn redactor(pairs: &[(&str, &str)]) -> Redactor {
    Redactor::new(SecretSet::from_pairs(pairs.iter().copied()))
}

/// Text without line structure that no secret of these tests is part of.
fn clean_text(bytes: usize) -> String {
    "The quick brown fox jumps over 13 lazy dogs; sk- or ghp_ alone is no key.\n"
        .chars()
        .cycle()
        .take(bytes)
        .collect()
}

/// The shape of a private key in PEM form, 50 lines of 64 characters, from a fixed sequence.
fn key_like() -> String {
    let mut state: u32 = 7;
    let mut lines = vec!["-----BEGIN PRIVATE KEY-----".to_owned()];
    for _ in 0..50 {
        let bytes: Vec<u8> = (0..48)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        lines.push(STANDARD.encode(bytes));
    }
    lines.push("-----END PRIVATE KEY-----\n".to_owned());
    lines.join("\n")
}

#[test]
fn every_hit_is_replaced_by_its_name() {
    let redactor = redactor(&[("KEY", "sk-12345"), ("PASS", "hunter22")]);
    assert_eq!(redactor.redact("sk-12345 hunter22sk-12345"), "[redacted:KEY] [redacted:PASS][redacted:KEY]");
}

#[test]
fn clean_text_is_borrowed() {
    let redactor = redactor(&[("KEY", "sk-12345")]);
    assert!(matches!(redactor.redact("nothing here: sk-1234"), Cow::Borrowed(_)));
    assert!(!redactor.contains_secret("nothing here: sk-1234"));
    assert!(redactor.contains_secret("here: sk-12345"));
}

#[test]
fn an_empty_set_changes_nothing() {
    let redactor = Redactor::default();
    assert!(redactor.is_empty());
    assert!(matches!(redactor.redact("sk-12345"), Cow::Borrowed("sk-12345")));
    assert!(!redactor.contains_secret("sk-12345"));
    assert_eq!(redactor.held_back("sk-12345"), 0);
    assert_eq!(redactor.safe_split(&["a", "b"]), 2);
}

#[test]
fn empty_text_stays_empty() {
    let redactor = redactor(&[("KEY", "sk-12345")]);
    assert_eq!(redactor.redact(""), "");
    assert_eq!(redactor.held_back(""), 0);
    assert_eq!(redactor.safe_split(&[]), 0);
}

#[test]
fn of_secrets_inside_each_other_the_longest_counts() {
    let redactor = redactor(&[("INNER", "abcdef"), ("OUTER", "xyz-abcdef-xyz")]);
    assert_eq!(redactor.redact("xyz-abcdef-xyz"), "[redacted:OUTER]");
    assert_eq!(redactor.redact("abcdef-xyz"), "[redacted:INNER]-xyz");
}

#[test]
fn overlapping_secrets_leave_no_rest() {
    let redactor = redactor(&[("FIRST", "abcdef"), ("SECOND", "defghi")]);
    assert_eq!(redactor.redact("<abcdefghi>"), "<[redacted:FIRST]>");
}

#[test]
fn the_first_name_of_a_value_is_shown() {
    let redactor = redactor(&[("FIRST", "same-value"), ("SECOND", "same-value")]);
    assert_eq!(redactor.redact("same-value"), "[redacted:FIRST]");
}

#[test]
fn encoded_forms_are_found_in_real_surroundings() {
    let value = "p\"ä/s s'w&rd+x=\\z";
    let redactor = redactor(&[("PASS", value)]);
    for (text, shown) in [
        (r#"{"p":"p\"ä/s s'w&rd+x=\\z"}"#, r#"{"p":"[redacted:PASS]"}"#),
        (r#"{"p":"p\"\u00e4\/s s'w&rd+x=\\z"}"#, r#"{"p":"[redacted:PASS]"}"#),
        ("?p=p%22%C3%A4%2Fs%20s%27w%26rd%2Bx%3D%5Cz&q=1", "?p=[redacted:PASS]&q=1"),
        ("p=p%22%c3%a4%2fs+s%27w%26rd%2bx%3d%5cz&q=1", "p=[redacted:PASS]&q=1"),
        (r#"export P='p"ä/s s'\''w&rd+x=\z'"#, "export P='[redacted:PASS]'"),
        ("7022c3a42f73207327772672642b783d5c7a.", "[redacted:PASS]."),
        ("7022C3A42F73207327772672642B783D5C7A.", "[redacted:PASS]."),
    ] {
        assert_eq!(redactor.redact(text), shown, "{text}");
    }
}

#[test]
fn basic_authentication_does_not_show_the_password() {
    let redactor = redactor(&[("PASS", "correct-horse-battery")]);
    for user in ["a", "ab", "abc", "abcd"] {
        let header = format!("Basic {}", STANDARD.encode(format!("{user}:correct-horse-battery")));
        let shown = redactor.redact(&header);
        assert!(shown.contains("[redacted:PASS]"), "{shown}");
        // At most the characters that share bits with the neighbours are left of it.
        assert!(shown.len() < "Basic ".len() + "[redacted:PASS]".len() + 12, "{shown}");
    }
}

#[test]
fn a_key_is_hidden_whole_by_line_and_encoded() {
    let key = key_like();
    let redactor = redactor(&[("SSH_KEY", key.as_str())]);
    let line = key.lines().nth(20).unwrap_or_default();
    assert_eq!(redactor.redact(&key), "[redacted:SSH_KEY]\n");
    assert_eq!(redactor.redact(&format!("20\t{line}\r\n")), "20\t[redacted:SSH_KEY]\r\n");
    assert_eq!(redactor.redact(&STANDARD.encode(&key)), "[redacted:SSH_KEY]");
    assert_eq!(redactor.redact("-----BEGIN PRIVATE KEY-----"), "-----BEGIN PRIVATE KEY-----");
    let quoted = format!("{key:?}");
    assert_eq!(redactor.redact(&quoted), "\"[redacted:SSH_KEY]\\n\"");
}

#[test]
fn secrets_in_other_scripts() {
    let redactor = redactor(&[("PASS", "пароль🔑秘密"), ("NEXT", "秘密の鍵")]);
    assert_eq!(redactor.redact("«пароль🔑秘密»"), "«[redacted:PASS]»");
    assert_eq!(redactor.redact("пароль🔑秘密の鍵!"), "[redacted:PASS]!");
    assert_eq!(redactor.held_back("ja, паро"), "паро".len());
    assert_eq!(redactor.held_back("пароль🔑秘密"), "秘密".len());
}

#[test]
fn redacting_again_changes_nothing_even_at_placeholder_edges() {
    for pairs in [
        [("KEY", "sk-12345"), ("EDGE", "]token")],
        [("KEY", "sk-12345"), ("EDGE", "token[")],
        [("KEY", "sk-12345"), ("EDGE", "redacted")],
        [("KEY", "sk-12345"), ("EDGE", "[redacted:KEY]")],
        [("KEY", "sk-12345"), ("EDGE", "KEY][redacted")],
        [("sk-12345", "sk-12345"), ("EDGE", "acted:")],
    ] {
        let redactor = redactor(&pairs);
        let text = "tokensk-12345token[redacted:KEY] token[sk-12345sk-12345] redacted";
        let once = redactor.redact(text).into_owned();
        assert_eq!(redactor.redact(&once), once, "{pairs:?}");
        assert!(!redactor.contains_secret(&once), "{once}");
    }
}

#[test]
fn a_name_that_gives_the_value_away_is_not_shown() {
    let redactor = redactor(&[("password-hunter22", "hunter22")]);
    assert_eq!(redactor.redact("hunter22"), "[redacted:secret]");
}

#[test]
fn added_secrets_are_hidden_and_the_old_redactor_stays() {
    let old = redactor(&[("KEY", "sk-12345")]);
    let new = old.with_added([("PASS", "hunter22"), ("PIN", "1234")]);
    assert_eq!(new.redact("sk-12345 hunter22 1234"), "[redacted:KEY] [redacted:PASS] 1234");
    assert_eq!(new.ignored(), ["PIN"]);
    assert_eq!(old.redact("sk-12345 hunter22"), "[redacted:KEY] hunter22");
}

#[test]
fn held_back_is_the_longest_open_beginning() {
    let redactor = redactor(&[("KEY", "abcabd"), ("OTHER", "bcabxyz")]);
    for (text, length) in [("", 0), ("--", 0), ("--a", 1), ("--abcab", 5), ("--abcabc", 3), ("--bcab", 4)] {
        assert_eq!(redactor.held_back(text), length, "{text}");
    }
    assert_eq!(redactor.held_back("--abcabd"), 0);
}

#[test]
fn pieces_are_released_up_to_the_last_safe_border() {
    let redactor = redactor(&[("KEY", "sk-12345")]);
    for (pieces, released) in [
        (vec!["one ", "two "], 2),
        (vec!["one ", "two sk"], 1),
        (vec!["one ", "sk-", "123"], 1),
        (vec!["one ", "sk-", "12345"], 3),
        (vec!["one ", "sk-", "12346"], 3),
        (vec!["one ", "x sk-", "12345 and sk-1", "2"], 1),
        (vec!["sk-12345", "sk-1"], 1),
        (vec!["one ", "", "", "sk-1"], 3),
        (vec!["sk-1"], 0),
    ] {
        assert_eq!(redactor.safe_split(&pieces), released, "{pieces:?}");
    }
}

#[test]
fn a_border_between_two_hits_is_safe() {
    let redactor = redactor(&[("KEY", "sk-12345")]);
    assert_eq!(redactor.safe_split(&["sk-1", "2345", "sk-1", "2345", "sk"]), 4);
}

#[test]
fn debug_does_not_print_values() {
    let redactor = redactor(&[("KEY", "sk-12345")]);
    let printed = format!("{redactor:?}");
    assert!(printed.contains("KEY") && !printed.contains("sk-"), "{printed}");
}

#[test]
fn too_much_to_look_for_hides_everything() {
    let redactor = Redactor::with_limit(SecretSet::from_pairs([("KEY", "sk-12345")]), 10);
    assert!(redactor.hides_everything());
    assert_eq!(redactor.redact("anything"), ALL_HIDDEN);
    assert_eq!(redactor.redact(ALL_HIDDEN), ALL_HIDDEN);
    assert!(redactor.contains_secret("anything"));
    assert_eq!(redactor.held_back("anything"), 8);
    let mut stream = redactor.stream();
    let shown = [stream.push(""), stream.push("any"), stream.push("thing"), stream.finish()].concat();
    assert_eq!(shown, ALL_HIDDEN);
}

#[test]
fn can_be_shared_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    shared(&redactor(&[]));
}

/// The limits are wide: this catches a search that is not one pass, not a slow machine.
#[test]
fn a_megabyte_takes_one_pass() {
    let key = key_like();
    let begin = Instant::now();
    let redactor =
        redactor(&[("SSH_KEY", key.as_str()), ("KEY", "sk-12345"), ("RULER", "--------------------")]);
    let built = begin.elapsed();
    let clean = clean_text(1 << 20);
    let begin = Instant::now();
    assert!(matches!(redactor.redact(&clean), Cow::Borrowed(_)));
    let passed = begin.elapsed();
    // Hits all over, and one hit that never ends.
    let begin = Instant::now();
    let dense = redactor.redact(&"sk-12345 ".repeat(100_000)).len();
    let endless = redactor.redact(&"-".repeat(1 << 20)).into_owned();
    let dense_passed = begin.elapsed();
    assert_eq!(dense, "[redacted:KEY] ".len() * 100_000);
    assert_eq!(endless, "[redacted:RULER]");
    for (what, took) in [("build", built), ("clean", passed), ("dense", dense_passed)] {
        assert!(took < Duration::from_secs(5), "{what} took {took:?}");
    }
}
