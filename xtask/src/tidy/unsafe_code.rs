//! `unsafe` stands in `crates/process` and nowhere else.
//!
//! The compiler forbids it too, through the lints of the workspace; so every other crate must inherit them.

use toml::Value;

use crate::finding::Finding;
use crate::manifest;
use crate::rust_source::{find_word, line_at};
use crate::tree::Tree;

const EXCEPTION: &str = "crates/process";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files().filter(|file| !file.is_under(EXCEPTION)) {
        for offset in find_word(file.code(), "unsafe") {
            findings.push(Finding::at_line(
                &file.path,
                line_at(file.code(), offset),
                format!("`unsafe` outside `{EXCEPTION}`"),
                format!("use a safe interface, or move it to `{EXCEPTION}` with a safety note and a test"),
            ));
        }
    }
    // Manifests that cannot be read are reported by the check of the dependency direction.
    let (members, _) = manifest::members(tree);
    for member in members.iter().filter(|member| member.path != format!("{EXCEPTION}/Cargo.toml")) {
        let inherits = manifest::get(&member.manifest, &["lints", "workspace"]).and_then(Value::as_bool);
        if inherits != Some(true) {
            findings.push(Finding::new(
                &member.path,
                format!("crate `{}` does not inherit the lints of the workspace", member.name),
                "write `workspace = true` under `[lints]`",
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    #[test]
    fn only_process_may_be_unsafe() {
        let tree = tree_of(&[
            ("crates/process/src/lib.rs", "unsafe { go() }\n"),
            (
                "crates/store/src/lib.rs",
                "// unsafe\n#![forbid(unsafe_code)]\nlet x = \"unsafe\";\nunsafe { go() }\n",
            ),
        ]);
        assert_eq!(
            headlines(&check(&tree)),
            ["crates/store/src/lib.rs:4: `unsafe` outside `crates/process`"]
        );
    }

    #[test]
    fn the_other_crates_inherit_the_lints() {
        let tree = tree_of(&[
            ("crates/model/Cargo.toml", "[lints]\nworkspace = true\n"),
            ("crates/process/Cargo.toml", "[lints.rust]\nunsafe_code = \"deny\"\n"),
            ("crates/store/Cargo.toml", "[package]\n"),
        ]);
        assert_eq!(
            headlines(&check(&tree)),
            ["crates/store/Cargo.toml: crate `store` does not inherit the lints of the workspace"]
        );
    }
}
