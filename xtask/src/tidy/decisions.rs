//! Decision records are numbered without gaps, and each answers the same four questions.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::tree::Tree;

const FOLDER: &str = "docs/decisions";
const HEADINGS: &[&str] = &["Context", "Choice", "What we gave up", "How we would notice it was wrong"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut numbered: BTreeMap<usize, &str> = BTreeMap::new();
    for file in tree.files().filter(|file| file.is_under(FOLDER)) {
        let Some(number) = number_of(&file.path) else {
            findings.push(Finding::new(
                &file.path,
                "not named like a decision record",
                "name it with four digits and a few words: `0007-what-was-chosen.md`",
            ));
            continue;
        };
        if let Some(other) = numbered.insert(number, &file.path) {
            findings.push(Finding::new(
                &file.path,
                format!("the number {number:04} is taken by `{other}`"),
                "take the next free number",
            ));
        }
        findings.extend(check_headings(&file.path, &file.text));
    }
    for (expected, (&number, path)) in (1..).zip(&numbered) {
        if number != expected {
            findings.push(Finding::new(
                *path,
                format!("there is no decision {expected:04} before it"),
                "number the records from 0001 without gaps",
            ));
            break;
        }
    }
    findings
}

/// The number of `docs/decisions/0001-some-words.md`.
fn number_of(path: &str) -> Option<usize> {
    let name = path.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(".md")?;
    let (digits, words) = name.split_once('-')?;
    let is_slug =
        !words.is_empty() && words.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (digits.len() == 4 && is_slug).then(|| digits.parse().ok())?
}

fn check_headings(path: &str, text: &str) -> Option<Finding> {
    let present: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("## ")).map(str::trim).collect();
    (present != HEADINGS).then(|| {
        Finding::new(
            path,
            format!("its headings are not the four of a decision record: {}", present.join(", ")),
            format!("write, in this order: {}", HEADINGS.join(", ")),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    const GOOD: &str =
        "# T\n\n## Context\n\n## Choice\n\n## What we gave up\n\n## How we would notice it was wrong\n";

    #[test]
    fn numbered_records_with_the_headings_pass() {
        let tree = tree_of(&[("docs/decisions/0001-a.md", GOOD), ("docs/decisions/0002-b-c.md", GOOD)]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn gaps_doubles_names_and_headings_are_found() {
        let tree = tree_of(&[
            ("docs/decisions/0001-a.md", GOOD),
            ("docs/decisions/0001-b.md", GOOD),
            ("docs/decisions/0003-c.md", "# T\n\n## Context\n\n## Choice\n"),
            ("docs/decisions/notes.md", GOOD),
        ]);
        assert_eq!(
            headlines(&check(&tree)),
            [
                "docs/decisions/0001-b.md: the number 0001 is taken by `docs/decisions/0001-a.md`",
                "docs/decisions/0003-c.md: its headings are not the four of a decision record: Context, Choice",
                "docs/decisions/notes.md: not named like a decision record",
                "docs/decisions/0003-c.md: there is no decision 0002 before it",
            ]
        );
    }
}
