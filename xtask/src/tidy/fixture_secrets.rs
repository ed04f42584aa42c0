//! Recordings of real programs are fixtures, and real programs print keys.
//!
//! Looks in every `fixtures` folder, in binary files too. Tests of the redactor make their keys in code.

use crate::finding::Finding;
use crate::rust_source::{after, before, is_word_char, line_at};
use crate::tree::Tree;

/// What a secret looks like: its first characters and how many key characters must follow.
struct Shape {
    name: &'static str,
    prefix: &'static str,
    least: usize,
    is_key_char: fn(char) -> bool,
}

const SHAPES: &[Shape] = &[
    Shape { name: "an API key", prefix: "sk-", least: 16, is_key_char: is_token_char },
    Shape { name: "an AWS key id", prefix: "AKIA", least: 16, is_key_char: is_upper_or_digit },
    Shape { name: "a GitHub token", prefix: "ghp_", least: 20, is_key_char: is_token_char },
];

const KEY_BLOCK: &str = "-----BEGIN ";
const KEY_BLOCK_KIND: &str = "PRIVATE KEY";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files().filter(|file| file.is_in_folder_named("fixtures")) {
        for (offset, name) in secrets_in(&file.text) {
            findings.push(Finding::at_line(
                &file.path,
                line_at(&file.text, offset),
                format!("a fixture holds what looks like {name}"),
                "replace it by a text of another shape; if it was real, revoke it now",
            ));
        }
    }
    findings
}

/// Where they start, and what they look like. The value itself is never repeated in a message.
fn secrets_in(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for shape in SHAPES {
        for (offset, _) in text.match_indices(shape.prefix) {
            let continues_a_word = before(text, offset).chars().next_back().is_some_and(is_word_char);
            let rest = after(text, offset + shape.prefix.len());
            let length = rest.chars().take_while(|&character| (shape.is_key_char)(character)).count();
            if !continues_a_word && length >= shape.least {
                found.push((offset, shape.name));
            }
        }
    }
    for (offset, _) in text.match_indices(KEY_BLOCK) {
        let line = after(text, offset + KEY_BLOCK.len()).split(['\n', '\\', '-']).next().unwrap_or_default();
        if line.contains(KEY_BLOCK_KIND) {
            found.push((offset, "a private key"));
        }
    }
    found.sort_unstable();
    found
}

fn is_token_char(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

fn is_upper_or_digit(character: char) -> bool {
    character.is_ascii_uppercase() || character.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    #[test]
    fn each_shape_is_found_with_its_line() {
        let filler = "A1B2C3D4E5F6A7B8C9D0";
        let text = format!(
            "{{\"key\":\"sk-{filler}\"}}\nAKIA{filler}\n\nghp_{filler}\n-----BEGIN RSA PRIVATE KEY-----\n"
        );
        let tree = tree_of(&[
            ("crates/acp/fixtures/a/b.jsonl", &text),
            ("fixtures/c.bin", &format!("\0{text}")),
            ("crates/acp/src/lib.rs", &text),
        ]);
        let of = |path: &str| {
            [
                format!("{path}:1: a fixture holds what looks like an API key"),
                format!("{path}:2: a fixture holds what looks like an AWS key id"),
                format!("{path}:4: a fixture holds what looks like a GitHub token"),
                format!("{path}:5: a fixture holds what looks like a private key"),
            ]
        };
        let wanted: Vec<String> =
            of("crates/acp/fixtures/a/b.jsonl").into_iter().chain(of("fixtures/c.bin")).collect();
        assert_eq!(headlines(&check(&tree)), wanted);
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        let tree = tree_of(&[(
            "fixtures/a.txt",
            "task-0192f0a1b2c3d4e5f6a7b8c9 sk-short AKIAlowercase0123456789 -----BEGIN CERTIFICATE-----",
        )]);
        assert_eq!(check(&tree), []);
    }
}
