//! Just enough reading of Rust text to look for words in code without being fooled by comments and literals.
//!
//! This is not a parser: it blanks out what is not code and finds words and function heads in the rest.
//! Positions stay valid, because a blanked character becomes one space and line breaks stay.

use std::ops::Range;

/// A function head: `fn name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) kind: FunctionKind,
    /// Where its `fn` stands, in bytes.
    pub(crate) offset: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FunctionKind {
    Test,
    Other,
}

/// The same text with comments, strings and character literals replaced by spaces.
pub(crate) fn code_only(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while let Some(&current) = chars.get(at) {
        let end = literal_or_comment_end(&chars, at);
        if end > at {
            for character in chars.get(at..end).unwrap_or_default() {
                code.push(if *character == '\n' { '\n' } else { ' ' });
            }
            at = end;
        } else {
            code.push(current);
            at += 1;
        }
    }
    code
}

/// Byte offsets at which `word` stands as a whole word.
pub(crate) fn find_word<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(offset, _)| offset).filter(move |&offset| {
        let before = before(code, offset).chars().next_back();
        let after = after(code, offset + word.len()).chars().next();
        !before.is_some_and(is_word_char) && !after.is_some_and(is_word_char)
    })
}

pub(crate) fn functions(code: &str) -> Vec<Function> {
    find_word(code, "fn")
        .filter_map(|offset| {
            let rest = after(code, offset + "fn".len()).trim_start();
            let name: String = rest.chars().take_while(|&character| is_word_char(character)).collect();
            if name.is_empty() {
                return None;
            }
            Some(Function { name, kind: kind_of_function_at(code, offset), offset })
        })
        .collect()
}

/// Line numbers start at one.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    before(text, offset).matches('\n').count() + 1
}

pub(crate) fn before(text: &str, offset: usize) -> &str {
    text.get(..offset).unwrap_or_default()
}

pub(crate) fn after(text: &str, offset: usize) -> &str {
    text.get(offset..).unwrap_or_default()
}

pub(crate) fn is_word_char(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The attributes of a function stand between it and the end of whatever came before.
fn kind_of_function_at(code: &str, offset: usize) -> FunctionKind {
    let head = before(code, offset).rsplit(['{', '}', ';']).next().unwrap_or_default();
    let attributes = head.replace("cfg(test)", "");
    if attributes.contains("#[") && find_word(&attributes, "test").next().is_some() {
        FunctionKind::Test
    } else {
        FunctionKind::Other
    }
}

/// Where the comment or literal that starts at `at` ends; `at` itself when none starts there.
fn literal_or_comment_end(chars: &[char], at: usize) -> usize {
    match (chars.get(at), chars.get(at + 1)) {
        (Some('/'), Some('/')) => position_of(chars, at, '\n'),
        (Some('/'), Some('*')) => block_comment_end(chars, at),
        (Some('"'), _) => quoted_end(chars, at, '"'),
        (Some('\''), Some('\\')) => quoted_end(chars, at, '\''),
        (Some('\''), Some(_)) if chars.get(at + 2) == Some(&'\'') => at + 3,
        (Some('r'), Some('"' | '#')) if starts_literal(chars, at) => raw_string_end(chars, at).unwrap_or(at),
        _ => at,
    }
}

/// Whether the `r` at `at` can be the prefix of a raw string, and not the end of a name.
fn starts_literal(chars: &[char], at: usize) -> bool {
    let mut name: Range<usize> = at..at;
    while name.start > 0 && chars.get(name.start - 1).is_some_and(|&character| is_word_char(character)) {
        name.start -= 1;
    }
    matches!(chars.get(name), Some([] | ['b' | 'c']))
}

fn raw_string_end(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars.iter().skip(at + 1).take_while(|&&character| character == '#').count();
    let quote = at + 1 + hashes;
    if chars.get(quote) != Some(&'"') {
        return None;
    }
    let mut end = quote + 1;
    while end < chars.len() {
        let closes = chars.get(end) == Some(&'"')
            && chars.iter().skip(end + 1).take(hashes).filter(|&&character| character == '#').count()
                == hashes;
        if closes {
            return Some(end + 1 + hashes);
        }
        end += 1;
    }
    Some(end)
}

fn quoted_end(chars: &[char], at: usize, quote: char) -> usize {
    let mut end = at + 1;
    while let Some(&character) = chars.get(end) {
        end += match character {
            '\\' => 2,
            _ if character == quote => return end + 1,
            _ => 1,
        };
    }
    chars.len()
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let mut depth = 0_usize;
    let mut end = at;
    while end < chars.len() {
        match (chars.get(end), chars.get(end + 1)) {
            (Some('/'), Some('*')) => {
                depth += 1;
                end += 2;
            }
            (Some('*'), Some('/')) => {
                depth -= 1;
                end += 2;
                if depth == 0 {
                    return end;
                }
            }
            _ => end += 1,
        }
    }
    chars.len()
}

fn position_of(chars: &[char], at: usize, wanted: char) -> usize {
    chars
        .iter()
        .skip(at)
        .position(|&character| character == wanted)
        .map_or(chars.len(), |distance| at + distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that are left, which is what the checks look at.
    fn words_left(source: &str) -> Vec<String> {
        code_only(source)
            .split(|character| !is_word_char(character))
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        let source = r##"
            a // b "c
            /* d /* e */ f */ g
            "h \" i" j
            r#"k " l"# m
            br"n" o
            'p' '\'' '"' q
            'life x
            "##;
        // The `b` of a byte string stays, which harms nobody.
        assert_eq!(words_left(source), ["a", "g", "j", "m", "b", "o", "q", "life", "x"]);
    }

    #[test]
    fn raw_names_are_not_raw_strings() {
        assert_eq!(words_left("r#type for r\"x\" parser\"y\" end"), ["r", "type", "for", "parser", "end"]);
    }

    #[test]
    fn blanking_keeps_the_lines() {
        let source = "one\n/* two\nthree */ unsafe\n";
        let code = code_only(source);
        let offset = find_word(&code, "unsafe").next().unwrap();
        assert_eq!(line_at(&code, offset), 3);
    }

    #[test]
    fn an_unfinished_literal_ends_with_the_text() {
        assert_eq!(words_left("a \"b"), ["a"]);
        assert_eq!(words_left("a \"b\\"), ["a"]);
        assert_eq!(words_left("a r#\"b"), ["a"]);
        assert_eq!(words_left("a /* b"), ["a"]);
    }

    #[test]
    fn words_are_found_whole() {
        let found: Vec<usize> = find_word("unsafe_code unsafe not_unsafe", "unsafe").collect();
        assert_eq!(found, [12]);
    }

    #[test]
    fn test_functions_are_told_apart() {
        let code = "
            fn plain() {}
            #[test]
            fn a_test() {}
            #[cfg(test)]
            fn helper() {}
            proptest! { #![config(Config { cases: 9 })] #[test] fn a_property(x in 0..9) {} }
            #[tokio::test(flavor = x)]
            async fn an_async_test() {}
            type Callback = fn(u8);
        ";
        let found: Vec<(String, FunctionKind)> =
            functions(code).into_iter().map(|function| (function.name, function.kind)).collect();
        assert_eq!(
            found,
            [
                ("plain".to_owned(), FunctionKind::Other),
                ("a_test".to_owned(), FunctionKind::Test),
                ("helper".to_owned(), FunctionKind::Other),
                ("a_property".to_owned(), FunctionKind::Test),
                ("an_async_test".to_owned(), FunctionKind::Test),
            ]
        );
    }
}
