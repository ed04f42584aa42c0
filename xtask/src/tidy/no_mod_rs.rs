//! A module is `name.rs`, beside the folder `name/` of its children: tabs and search results then show names.

use crate::finding::Finding;
use crate::tree::Tree;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust_files()
        .filter_map(|file| {
            let folder = file.path.strip_suffix("/mod.rs")?;
            Some(Finding::new(
                &file.path,
                "a module file named `mod.rs`",
                format!(
                    "move it to `{folder}.rs` (in a `tests` folder, to a named file in a folder of its own)"
                ),
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    #[test]
    fn mod_files_are_found_by_their_whole_name() {
        let tree = tree_of(&[
            ("crates/model/src/ids/mod.rs", ""),
            ("crates/model/src/ids.rs", ""),
            ("crates/model/src/not_mod.rs", ""),
        ]);
        assert_eq!(headlines(&check(&tree)), ["crates/model/src/ids/mod.rs: a module file named `mod.rs`"]);
    }
}
