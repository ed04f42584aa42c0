//! Text of others, made harmless and brought into shape.

use std::borrow::Cow;
use std::io::IsTerminal;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of a terminal that doesn't say how many it has, and of a pipe.
const COLUMNS_DEFAULT: usize = 100;
/// Lines longer than this are hard to read, however wide the terminal is.
const COLUMNS_MAX: usize = 120;

/// What becomes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Its lines stay lines.
    Whole,
    /// It becomes one line.
    OneLine,
}

/// The text without anything that steers a terminal: escape sequences, control characters, and marks that turn the
/// direction of writing around, which can make one command look like another.
pub(crate) fn harmless(text: &str, shown: Shown) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_escape(&mut letters),
            '\n' if shown == Shown::Whole => clean.push('\n'),
            '\n' | '\t' => clean.push(' '),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            letter if letter.is_control() => {}
            letter => clean.push(letter),
        }
    }
    clean
}

/// Skips the rest of a sequence that began with ESC.
fn skip_escape(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match letters.next() {
        // Control sequence: parameters up to a final letter.
        Some('[') => while letters.next().is_some_and(|letter| !matches!(letter, '\u{40}'..='\u{7e}')) {},
        // Commands with text: up to BEL or ESC and a backslash.
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(letter) = letters.next() {
                match letter {
                    '\u{7}' | '\u{9c}' => return,
                    '\u{1b}' => {
                        letters.next();
                        return;
                    }
                    _ => {}
                }
            }
        }
        // Two intermediate letters at most, then a final one.
        Some(' '..='/') => while letters.next().is_some_and(|letter| matches!(letter, ' '..='/')) {},
        Some(_) | None => {}
    }
}

/// Harmless on a terminal, as it is in a pipe or file.
pub(crate) fn for_stdout(text: &str, shown: Shown) -> Cow<'_, str> {
    if std::io::stdout().is_terminal() { harmless(text, shown).into() } else { text.into() }
}

/// One harmless line of at most this many columns.
pub(crate) fn brief(text: &str, columns: usize) -> String {
    let line = harmless(text.trim(), Shown::OneLine);
    if line.width() <= columns {
        return line;
    }
    let mut cut = String::new();
    let mut used = 1;
    for letter in line.chars() {
        used += letter.width().unwrap_or(0);
        if used > columns {
            break;
        }
        cut.push(letter);
    }
    cut.push('…');
    cut
}

/// The text in lines of at most this many columns, broken at spaces where there are some.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    text.lines().flat_map(|line| wrapped_line(line.trim_end(), columns)).collect()
}

fn wrapped_line(line: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in line.split_inclusive(' ') {
        if current.width() + word.trim_end().width() > columns && !current.is_empty() {
            lines.push(std::mem::take(&mut current).trim_end().to_owned());
        }
        for letter in word.chars() {
            // A word that is longer than a line has no better place to break.
            if current.width() + letter.width().unwrap_or(0) > columns && letter != ' ' {
                lines.push(std::mem::take(&mut current).trim_end().to_owned());
            }
            current.push(letter);
        }
    }
    lines.push(current.trim_end().to_owned());
    lines
}

/// The text with spaces behind it up to this many columns.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// Columns that a line may have.
pub(crate) fn columns() -> usize {
    let terminal = rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    terminal.filter(|columns| *columns >= 40).unwrap_or(COLUMNS_DEFAULT).min(COLUMNS_MAX)
}

/// Columns that a table may have. A program that reads one wants its cells whole.
pub(crate) fn table_columns() -> usize {
    if std::io::stdout().is_terminal() { columns() } else { usize::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        let nasty = "a\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}b\u{1b}]8;;http://x\u{1b}\\link\u{1b}(B\rc\u{8}\u{9b}d\n\te";
        assert_eq!(harmless(nasty, Shown::Whole), "aredblinkcd\n e");
        assert_eq!(harmless(nasty, Shown::OneLine), "aredblinkcd  e");
        assert_eq!(harmless("rm \u{202e}txt.exe\u{2066}", Shown::OneLine), "rm txt.exe");
        assert_eq!(harmless("\u{1b}", Shown::Whole), "");
        assert_eq!(harmless("\u{1b}[1", Shown::Whole), "");
    }

    #[test]
    fn lines_are_broken_at_spaces_and_long_words_anywhere() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrapped("a\n\n  b", 10), ["a", "", "  b"]);
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        assert_eq!(wrapped("", 10), Vec::<String>::new());
    }

    #[test]
    fn a_brief_text_says_that_it_was_cut() {
        assert_eq!(brief("  hello\nworld ", 20), "hello world");
        assert_eq!(brief("hello world", 6), "hello…");
        assert_eq!(padded("日", 4), "日  ");
    }
}
