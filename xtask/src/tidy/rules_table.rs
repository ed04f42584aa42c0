//! Every rule that always holds names the test that guards it, and that test exists.
//!
//! The last column of the table holds one or more names, separated by commas: a test function, or
//! `crate::path::function` to say where it is. A rule that nothing guards yet says `later:` and what will.

use crate::finding::Finding;
use crate::markdown;
use crate::rust_source::{FunctionKind, functions, is_word_char};
use crate::tree::{SourceFile, Tree};

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## The rules";
const RULES: usize = 20;
const LATER: &str = "later:";

/// What the tree has under the name of a test.
enum Found {
    Test,
    OtherFunction,
    Nothing,
}

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(lines) = tree.file(PAGE).and_then(|page| markdown::section(&page.text, HEADING)) else {
        return vec![Finding::new(PAGE, "there is no section `## The rules`", "add the table of the rules")];
    };
    let mut findings = Vec::new();
    let mut next = 1;
    for (line, text) in lines {
        let Some(cells) = markdown::table_cells(text) else {
            continue;
        };
        let Some(number) = cells.first().and_then(|cell| cell.parse::<usize>().ok()) else {
            continue;
        };
        if number != next {
            findings.push(Finding::at_line(
                PAGE,
                line,
                format!("rule {number} stands where rule {next} should"),
                "number the rules in order, without gaps",
            ));
        }
        next = number + 1;
        match cells.as_slice() {
            [_, rule, guard] if !rule.is_empty() => findings.extend(check_guard(tree, line, number, guard)),
            _ => findings.push(Finding::at_line(
                PAGE,
                line,
                format!("rule {number} does not have the three cells number, rule and guard"),
                "complete the row; write a bar inside a cell as `\\|`",
            )),
        }
    }
    if next != RULES + 1 {
        findings.push(Finding::new(
            PAGE,
            format!("the table ends with rule {}, not with rule {RULES}", next - 1),
            format!("list all {RULES} rules, or change the number in `xtask/src/tidy/rules_table.rs`"),
        ));
    }
    findings
}

fn check_guard(tree: &Tree, line: usize, number: usize, guard: &str) -> Vec<Finding> {
    if let Some(plan) = guard.strip_prefix(LATER) {
        let empty = Finding::at_line(
            PAGE,
            line,
            format!("rule {number} does not say what will guard it"),
            "write it after `later:`",
        );
        return if plan.trim().is_empty() { vec![empty] } else { Vec::new() };
    }
    guard
        .split(',')
        .filter_map(|name| check_name(tree, line, number, name.trim().trim_matches('`')))
        .collect()
}

fn check_name(tree: &Tree, line: usize, number: usize, name: &str) -> Option<Finding> {
    let is_name =
        !name.is_empty() && name.chars().all(|character| is_word_char(character) || character == ':');
    if !is_name {
        return Some(Finding::at_line(
            PAGE,
            line,
            format!("the guard of rule {number} is neither a test name nor `later: …`: `{name}`"),
            "name test functions, separated by commas, or start with `later:`",
        ));
    }
    let what = match find(tree, name) {
        Found::Test => return None,
        Found::OtherFunction => format!("rule {number} names `{name}`, which is a function but not a test"),
        Found::Nothing => format!("rule {number} names the test `{name}`, which does not exist"),
    };
    Some(Finding::at_line(
        PAGE,
        line,
        what,
        "name an existing test, or write `later:` and what will guard the rule",
    ))
}

/// Whether the tree has a test of this name.
pub(super) fn is_test(tree: &Tree, name: &str) -> bool {
    matches!(find(tree, name), Found::Test)
}

fn find(tree: &Tree, name: &str) -> Found {
    let (place, function) = name.rsplit_once("::").unwrap_or(("", name));
    let krate = place.split("::").next().unwrap_or_default();
    let mut found = Found::Nothing;
    for file in tree.rust_files().filter(|file| krate.is_empty() || is_in_crate(file, krate)) {
        for candidate in functions(file.code()) {
            match candidate.kind {
                _ if candidate.name != function => {}
                FunctionKind::Test => return Found::Test,
                FunctionKind::Other => found = Found::OtherFunction,
            }
        }
    }
    found
}

/// `engine` and `rallypoint_engine` both mean `crates/engine`.
fn is_in_crate(file: &SourceFile, krate: &str) -> bool {
    let folder = krate.strip_prefix("rallypoint_").unwrap_or(krate).replace('_', "-");
    file.is_under(&format!("crates/{folder}")) || (folder == "xtask" && file.is_under("xtask"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    /// A page whose rules have these guards, in order.
    fn page(guards: &[&str]) -> String {
        let rows =
            guards.iter().enumerate().map(|(index, guard)| format!("| {} | rule | {guard} |\n", index + 1));
        format!(
            "## The rules\n\n| # | rule | guarded by |\n| --- | --- | --- |\n{}",
            rows.collect::<String>()
        )
    }

    #[test]
    fn existing_tests_and_plans_pass() {
        let mut guards = vec!["later: a test"; RULES];
        guards[0] = "`engine::run::tests::ends_once`";
        guards[1] = "ends_once, `rallypoint_engine::ends_once`";
        let tree = tree_of(&[
            ("ARCHITECTURE.md", &page(&guards)),
            ("crates/engine/src/run.rs", "#[test]\nfn ends_once() {}\n"),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn names_without_a_test_are_found() {
        let mut guards = vec!["later: a test"; RULES];
        guards[0] = "`gone`";
        guards[1] = "helper";
        guards[2] = "store::ends_once";
        guards[3] = "a good feeling";
        guards[4] = "later:";
        guards[5] = "";
        let tree = tree_of(&[
            ("ARCHITECTURE.md", &page(&guards)),
            ("crates/engine/src/run.rs", "#[test]\nfn ends_once() {}\nfn helper() {}\n// fn gone() {}\n"),
        ]);
        assert_eq!(
            headlines(&check(&tree)),
            [
                "ARCHITECTURE.md:5: rule 1 names the test `gone`, which does not exist",
                "ARCHITECTURE.md:6: rule 2 names `helper`, which is a function but not a test",
                "ARCHITECTURE.md:7: rule 3 names the test `store::ends_once`, which does not exist",
                "ARCHITECTURE.md:8: the guard of rule 4 is neither a test name nor `later: …`: `a good feeling`",
                "ARCHITECTURE.md:9: rule 5 does not say what will guard it",
                "ARCHITECTURE.md:10: the guard of rule 6 is neither a test name nor `later: …`: ``",
            ]
        );
    }

    #[test]
    fn missing_rules_and_cells_are_found() {
        let tree = tree_of(&[("ARCHITECTURE.md", "## The rules\n| 1 | rule |\n| 3 | rule | later: x |\n")]);
        assert_eq!(
            headlines(&check(&tree)),
            [
                "ARCHITECTURE.md:2: rule 1 does not have the three cells number, rule and guard",
                "ARCHITECTURE.md:3: rule 3 stands where rule 2 should",
                "ARCHITECTURE.md: the table ends with rule 3, not with rule 20",
            ]
        );
    }
}
