//! A value inside a JSON string, as the common writers escape it.

use std::collections::BTreeSet;
use std::fmt::Write;

/// Characters that a family of writers escapes by number although the format does not ask for it: none; those of HTML
/// (Go); those and quotes and equals (Gson); those and plus, grave and all quotes (.NET).
const NEEDLESSLY_ESCAPED: [&str; 4] = ["", "<>&", "<>&='", "<>&+'`\""];

/// How one writer escapes.
#[derive(Clone, Copy)]
struct Writer {
    hex: HexCase,
    other_scripts: OtherScripts,
    slash: Slash,
    by_number: &'static str,
}

#[derive(Clone, Copy)]
enum HexCase {
    Lower,
    Upper,
}

/// What becomes of characters outside ASCII.
#[derive(Clone, Copy)]
enum OtherScripts {
    AsTheyAre,
    ByNumber,
}

#[derive(Clone, Copy)]
enum Slash {
    AsItIs,
    Escaped,
}

/// The inside of the JSON string (no quotes around it), by every writer, and once more for JSON inside JSON.
pub(super) fn escaped(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for hex in [HexCase::Lower, HexCase::Upper] {
        for other_scripts in [OtherScripts::AsTheyAre, OtherScripts::ByNumber] {
            for slash in [Slash::AsItIs, Slash::Escaped] {
                for by_number in NEEDLESSLY_ESCAPED {
                    forms.insert(escape(value, Writer { hex, other_scripts, slash, by_number }));
                }
            }
        }
    }
    for other_scripts in [OtherScripts::AsTheyAre, OtherScripts::ByNumber] {
        let writer = Writer { hex: HexCase::Lower, other_scripts, slash: Slash::AsItIs, by_number: "" };
        forms.insert(escape(&escape(value, writer), writer));
    }
    forms
}

fn escape(value: &str, writer: Writer) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            _ if writer.by_number.contains(letter) => push_number(&mut text, letter, writer.hex),
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\0'..='\u{1f}' => push_number(&mut text, letter, writer.hex),
            '/' if matches!(writer.slash, Slash::Escaped) => text.push_str("\\/"),
            _ if !letter.is_ascii() && matches!(writer.other_scripts, OtherScripts::ByNumber) => {
                push_number(&mut text, letter, writer.hex);
            }
            _ => text.push(letter),
        }
    }
    text
}

/// Four hex digits for each UTF-16 unit, so two groups for a character outside the basic plane.
fn push_number(text: &mut String, letter: char, hex: HexCase) {
    let mut units = [0; 2];
    for unit in letter.encode_utf16(&mut units) {
        // Writing to a string cannot fail.
        let _ = match hex {
            HexCase::Lower => write!(text, "\\u{unit:04x}"),
            HexCase::Upper => write!(text, "\\u{unit:04X}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(value: &str, form: &str) -> bool {
        escaped(value).contains(form)
    }

    #[test]
    fn quotes_backslashes_and_breaks() {
        assert!(has("a\"b\\c\nd\te\u{1}", r#"a\"b\\c\nd\te\u0001"#));
    }

    #[test]
    fn slash_as_it_is_and_escaped() {
        assert!(has("ab/cd/ef", "ab/cd/ef"));
        assert!(has("ab/cd/ef", r"ab\/cd\/ef"));
    }

    #[test]
    fn other_scripts_by_number_in_both_cases() {
        assert!(has("pässword", "pässword"));
        assert!(has("pässword", r"p\u00e4ssword"));
        assert!(has("pässword", r"p\u00E4ssword"));
        assert!(has("key🔑key", r"key\ud83d\udd11key"));
    }

    #[test]
    fn needless_escapes_of_common_writers() {
        assert!(has("postgres://u:p@h/d?a=1&b=2", r"postgres://u:p@h/d?a=1\u0026b=2"));
        assert!(has("abc+def==", r"abc\u002Bdef=="));
        assert!(has("abc+def==", r"abc+def\u003d\u003d"));
    }

    #[test]
    fn json_inside_json() {
        assert!(has("a\"b\nc---", r#"a\\\"b\\nc---"#));
    }
}
