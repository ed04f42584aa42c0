//! The manifests of the workspace, read as plain TOML tables.

use toml::{Table, Value};

use crate::finding::Finding;
use crate::tree::Tree;

/// A member of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    /// `model` for `crates/model`, `xtask` for `xtask`.
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) manifest: Table,
}

/// The members, in path order; a manifest that cannot be read becomes a finding.
pub(crate) fn members(tree: &Tree) -> (Vec<Member>, Vec<Finding>) {
    let mut members = Vec::new();
    let mut findings = Vec::new();
    for file in tree.files() {
        let Some(name) = member_name(&file.path) else {
            continue;
        };
        match file.text.parse::<Table>() {
            Ok(manifest) => {
                members.push(Member { name: name.to_owned(), path: file.path.clone(), manifest });
            }
            Err(error) => findings.push(unreadable(&file.path, &error)),
        }
    }
    (members, findings)
}

/// The manifest at the root; an empty table when there is none that can be read.
pub(crate) fn root(tree: &Tree) -> Table {
    tree.file("Cargo.toml").and_then(|file| file.text.parse().ok()).unwrap_or_default()
}

pub(crate) fn get<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(*key))
}

fn member_name(path: &str) -> Option<&str> {
    if path == "xtask/Cargo.toml" {
        return Some("xtask");
    }
    let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

fn unreadable(path: &str, error: &toml::de::Error) -> Finding {
    Finding::new(path, format!("not readable as TOML: {}", error.message()), "correct the manifest")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    #[test]
    fn members_are_one_level_deep() {
        let tree = tree_of(&[
            ("Cargo.toml", "[workspace.package]\nlicense = \"MIT\"\n"),
            ("crates/model/Cargo.toml", "[package]\n"),
            ("crates/model/fixtures/Cargo.toml", "[package]\n"),
            ("xtask/Cargo.toml", "[package]\n"),
        ]);
        let (members, findings) = members(&tree);
        assert_eq!(members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["model", "xtask"]);
        assert_eq!(findings, []);
        assert_eq!(get(&root(&tree), &["workspace", "package", "license"]), Some(&Value::from("MIT")));
    }

    #[test]
    fn a_broken_manifest_is_a_finding() {
        let (_, findings) = members(&tree_of(&[("crates/model/Cargo.toml", "[package\n")]));
        assert_eq!(findings.len(), 1);
        assert!(headlines(&findings)[0].starts_with("crates/model/Cargo.toml: not readable as TOML: "));
    }
}
