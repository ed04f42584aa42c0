//! Whoever takes a crate can tell under which terms, and finds both texts at the root.

use toml::{Table, Value};

use crate::finding::Finding;
use crate::manifest;
use crate::tree::Tree;

const FILES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    // Manifests that cannot be read are reported by the check of the dependency direction.
    let (members, _) = manifest::members(tree);
    let root = manifest::root(tree);
    let mut findings = Vec::new();
    for file in FILES {
        if tree.file(file).is_none_or(|file| file.text.trim().is_empty()) {
            findings.push(Finding::new(
                *file,
                "the licence text is missing",
                "add the file with the standard text",
            ));
        }
    }
    for member in &members {
        if !has_licence(&member.manifest, &root) {
            findings.push(Finding::new(
                &member.path,
                format!("crate `{}` has no licence", member.name),
                "write `license.workspace = true` under `[package]`",
            ));
        }
    }
    findings
}

fn has_licence(manifest: &Table, root: &Table) -> bool {
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    ["license", "license-file"].iter().any(|field| match manifest::get(manifest, &["package", field]) {
        Some(Value::Table(inherited)) => {
            inherited.get("workspace").and_then(Value::as_bool) == Some(true)
                && manifest::get(root, &["workspace", "package", field]).is_some_and(is_text)
        }
        Some(value) => is_text(value),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    const INHERITS: &str = "[package]\nlicense.workspace = true\n";

    #[test]
    fn a_licence_is_stated_or_inherited() {
        let tree = tree_of(&[
            ("Cargo.toml", "[workspace.package]\nlicense = \"MIT OR Apache-2.0\"\n"),
            ("LICENSE-APACHE", "text"),
            ("LICENSE-MIT", "text"),
            ("crates/engine/Cargo.toml", INHERITS),
            ("crates/model/Cargo.toml", "[package]\nlicense = \"MIT\"\n"),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn missing_texts_and_fields_are_found() {
        let tree = tree_of(&[
            ("Cargo.toml", "[workspace.package]\nversion = \"1.0.0\"\n"),
            ("LICENSE-MIT", "\n"),
            ("crates/engine/Cargo.toml", INHERITS),
            ("crates/model/Cargo.toml", "[package]\n"),
        ]);
        assert_eq!(
            headlines(&check(&tree)),
            [
                "LICENSE-APACHE: the licence text is missing",
                "LICENSE-MIT: the licence text is missing",
                "crates/engine/Cargo.toml: crate `engine` has no licence",
                "crates/model/Cargo.toml: crate `model` has no licence",
            ]
        );
    }
}
