//! A source file that nobody can read in one sitting is split, before it becomes the file that everything
//! touches.

use crate::allow_list::AllowList;
use crate::finding::Finding;
use crate::tree::Tree;

const ALLOWED: &str = "xtask/long-files.txt";
const EXTENSIONS: &[&str] = &["rs", "ts", "svelte"];
const MOST_LINES: usize = 800;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let allowed = AllowList::load(tree, ALLOWED);
    let mut findings = Vec::new();
    let mut needed = Vec::new();
    for file in tree.files().filter(|file| EXTENSIONS.iter().any(|extension| file.has_extension(extension))) {
        let lines = file.text.lines().count();
        if lines <= MOST_LINES {
            continue;
        }
        needed.push(file.path.clone());
        if !allowed.contains(&file.path) {
            findings.push(Finding::new(
                &file.path,
                format!("{lines} lines, more than {MOST_LINES}"),
                format!("split it by what it is about, or name it in `{ALLOWED}` with the reason"),
            ));
        }
    }
    findings.extend(allowed.findings(&needed));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    #[test]
    fn long_files_need_an_entry_with_a_reason() {
        let most = "x\n".repeat(800);
        let more = "x\n".repeat(801);
        let tree = tree_of(&[
            ("crates/model/src/allowed.rs", &more),
            ("crates/model/src/just_right.rs", &most),
            ("crates/model/src/long.rs", &more),
            ("docs/long.md", &more),
            ("web/src/list.svelte", &more),
            (
                "xtask/long-files.txt",
                "crates/model/src/allowed.rs one table\ncrates/model/src/just_right.rs was long\n",
            ),
        ]);
        assert_eq!(
            headlines(&check(&tree)),
            [
                "crates/model/src/long.rs: 801 lines, more than 800",
                "web/src/list.svelte: 801 lines, more than 800",
                "xtask/long-files.txt:2: the exception for `crates/model/src/just_right.rs` is not needed",
            ]
        );
    }
}
