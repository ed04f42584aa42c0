//! A newcomer finds every crate in the code map, and no crate there that is gone.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::markdown;
use crate::tree::Tree;

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Code map";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.file(PAGE) else {
        return vec![Finding::new(PAGE, "the file is missing", "write it, with a section `## Code map`")];
    };
    let Some(lines) = markdown::section(&page.text, HEADING) else {
        return vec![Finding::new(
            PAGE,
            "there is no section `## Code map`",
            "add it and name every crate folder",
        )];
    };
    let folders = tree.crate_folders();
    let mut named = BTreeSet::new();
    let mut findings = Vec::new();
    for (number, line) in lines {
        for name in crate_folders_in(line) {
            if !folders.contains(name) && named.insert(name) {
                findings.push(Finding::at_line(
                    PAGE,
                    number,
                    format!("the code map names `crates/{name}`, which does not exist"),
                    "remove or correct the entry",
                ));
            }
            named.insert(name);
        }
    }
    for folder in folders.difference(&named) {
        findings.push(Finding::new(
            PAGE,
            format!("the code map does not name `crates/{folder}`"),
            "say what it owns, what it must not do, and its invariants",
        ));
    }
    findings
}

/// `model` for each `crates/model` between backticks.
fn crate_folders_in(line: &str) -> impl Iterator<Item = &str> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|code| code.strip_prefix("crates/"))
        .filter_map(|rest| rest.split('/').next())
        .filter(|name| {
            !name.is_empty() && name.chars().all(|character| character.is_alphanumeric() || character == '-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    #[test]
    fn the_map_and_the_folders_agree() {
        let tree = tree_of(&[
            (
                "ARCHITECTURE.md",
                "# A\n`crates/engine`\n## Code map\n### `crates/model`\n`crates/gone/src`, `crates/<name>`\n## After\n",
            ),
            ("crates/engine/src/lib.rs", ""),
            ("crates/model/src/lib.rs", ""),
        ]);
        assert_eq!(
            headlines(&check(&tree)),
            [
                "ARCHITECTURE.md:5: the code map names `crates/gone`, which does not exist",
                "ARCHITECTURE.md: the code map does not name `crates/engine`",
            ]
        );
    }

    #[test]
    fn a_missing_map_is_a_finding() {
        assert_eq!(headlines(&check(&tree_of(&[]))), ["ARCHITECTURE.md: the file is missing"]);
        let tree = tree_of(&[("ARCHITECTURE.md", "# A\n")]);
        assert_eq!(headlines(&check(&tree)), ["ARCHITECTURE.md: there is no section `## Code map`"]);
    }
}
