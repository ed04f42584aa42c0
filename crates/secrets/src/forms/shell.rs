//! A value inside a shell word, as quoting helpers write it.

/// The inside of the quoted word: single quotes in both ways of leaving them for a moment, and double quotes.
pub(super) fn escaped(value: &str) -> [String; 3] {
    [value.replace('\'', r"'\''"), value.replace('\'', r#"'"'"'"#), double_quoted(value)]
}

fn double_quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        if matches!(letter, '"' | '\\' | '$' | '`') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_quotes_are_left_and_entered_again() {
        assert_eq!(escaped("it's me"), [r"it'\''s me", r#"it'"'"'s me"#, "it's me"]);
    }

    #[test]
    fn double_quotes_escape_what_the_shell_reads() {
        assert_eq!(double_quoted(r#"a"b$c`d\e"#), r#"a\"b\$c\`d\\e"#);
    }
}
