//! Every known case of a peer's failure is a test of ours, or is not taken for a reason.
//!
//! `fixtures/case-ids.txt` lists the cases, one a line: an id, then what must hold. `fixtures/case-coverage.txt` says
//! for each id which tests hold it (`ID: test_name, test_name`), or `ID: not taken: reason`. A test may also be a row of
//! a data file whose runner makes a test of each row.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::tree::Tree;

use super::rules_table::is_test;

const IDS: &str = "fixtures/case-ids.txt";
const COVERAGE: &str = "fixtures/case-coverage.txt";
const ROWS: &str = "fixtures/router";
const NOT_TAKEN: &str = "not taken:";
/// A reason is a sentence, not a word.
const REASON_WORDS: usize = 4;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(ids) = tree.file(IDS) else {
        return Vec::new();
    };
    let coverage = tree.file(COVERAGE).map(|file| file.text.as_str()).unwrap_or_default();
    let mut covered: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    let mut findings = Vec::new();
    for (line, id, words) in entries(coverage) {
        let Some(words) = words.strip_prefix(':') else {
            findings.push(Finding::at_line(
                COVERAGE,
                line,
                "the line is not `ID: …`",
                "write the id, a colon, then tests or `not taken: reason`",
            ));
            continue;
        };
        if covered.insert(id, (line, words.trim())).is_some() {
            findings.push(Finding::at_line(
                COVERAGE,
                line,
                format!("the case `{id}` stands here twice"),
                "keep one line for each case",
            ));
        }
    }
    for (line, id, _) in entries(&ids.text) {
        match covered.remove(id) {
            None => findings.push(Finding::at_line(
                IDS,
                line,
                format!("the case `{id}` is neither tested nor named as not taken"),
                format!("add it to `{COVERAGE}`"),
            )),
            Some((line, words)) => findings.extend(covering(tree, line, id, words)),
        }
    }
    for (id, (line, _)) in covered {
        findings.push(Finding::at_line(
            COVERAGE,
            line,
            format!("the case `{id}` is not in `{IDS}`"),
            "remove the line, or add the case",
        ));
    }
    findings
}

fn covering(tree: &Tree, line: usize, id: &str, words: &str) -> Vec<Finding> {
    if let Some(reason) = words.strip_prefix(NOT_TAKEN) {
        let thin = reason.split_whitespace().count() < REASON_WORDS;
        let finding = Finding::at_line(
            COVERAGE,
            line,
            format!("the case `{id}` is not taken without a reason"),
            "say in a sentence why it does not apply or where it will be held",
        );
        return if thin { vec![finding] } else { Vec::new() };
    }
    words
        .split(',')
        .map(str::trim)
        .filter(|name| name.is_empty() || !(is_test(tree, name) || is_row(tree, name)))
        .map(|name| {
            Finding::at_line(
                COVERAGE,
                line,
                format!("the case `{id}` names the test `{name}`, which does not exist"),
                "name an existing test, or say `not taken:` and why",
            )
        })
        .collect()
}

/// Whether a data file has a row of this name. Their runner makes a test of each row, and fails for one without.
fn is_row(tree: &Tree, name: &str) -> bool {
    let rows = tree.files().filter(|file| file.is_under(ROWS) && file.has_extension("json"));
    let wanted = format!("\"name\":\"{name}\"");
    rows.into_iter().any(|file| file.text.contains(&wanted))
}

/// Line number, id and the rest of each line that is no comment.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let end = line.find(|character: char| character == ':' || character.is_whitespace());
        let (id, rest) = line.split_at(end.unwrap_or(line.len()));
        Some((index + 1, id, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    fn tree(coverage: &str) -> Vec<String> {
        let tree = tree_of(&[
            ("fixtures/case-ids.txt", "# cases\nL1 nothing is lost\nD1/V1 nothing is doubled\n"),
            ("fixtures/case-coverage.txt", coverage),
            ("fixtures/router/rows.json", "[{\"name\":\"a_row\"}]"),
            ("crates/engine/src/lib.rs", "#[test]\nfn nothing_is_lost() {}\n"),
        ]);
        headlines(&check(&tree)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_case_that_is_tested_or_not_taken_with_a_reason_passes() {
        let clean = "L1: nothing_is_lost, a_row\nD1/V1: not taken: we have no channel with two senders\n";
        assert_eq!(tree(clean), Vec::<String>::new());
    }

    #[test]
    fn a_case_in_neither_list_a_missing_test_and_a_thin_reason_are_findings() {
        let found = tree("L1: something_else\nD1/V1: not taken: later\nX9: nothing_is_lost\n");
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(tree("L1: nothing_is_lost\n").len(), 1);
    }
}
