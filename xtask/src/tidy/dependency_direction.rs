//! Which crate may know which.
//!
//! The table is the agreement; an edge that is not in it fails, in every kind of dependency. Two extra rules:
//! any crate may use `testkit` in its tests, and no crate but `bench` (which is never shipped) may use it
//! otherwise. A crate that is not in the table fails, so a new crate starts with a line here.

use toml::{Table, Value};

use crate::finding::Finding;
use crate::manifest::{self, Member};
use crate::tree::Tree;

const HERE: &str = "xtask/src/tidy/dependency_direction.rs";
const PREFIX: &str = "rallypoint-";
const TESTKIT: &str = "testkit";

/// A crate and those it may know.
const TABLE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("engine", &["model"]),
    ("ops", &["model"]),
    ("store", &["engine", "model"]),
    ("acp", &["engine", "model"]),
    ("channels", &["engine", "model"]),
    ("llm", &["engine", "model"]),
    ("process", &["engine", "model"]),
    ("secrets", &["engine", "model"]),
    ("workspace", &["engine", "model", "process"]),
    ("agents", &["acp", "engine", "llm", "model", "process"]),
    ("verify", &["engine", "model", "process", "workspace"]),
    (
        "runtime",
        &[
            "acp",
            "agents",
            "channels",
            "engine",
            "llm",
            "model",
            "ops",
            "process",
            "secrets",
            "store",
            "verify",
            "workspace",
        ],
    ),
    ("server", &["model", "ops", "runtime"]),
    ("client", &["model", "ops"]),
    ("tui", &["client"]),
    ("bridges", &["acp", "client", "model", "ops"]),
    (
        "cli",
        &[
            "acp",
            "agents",
            "bridges",
            "channels",
            "client",
            "engine",
            "llm",
            "model",
            "ops",
            "process",
            "runtime",
            "secrets",
            "server",
            "store",
            "tui",
            "verify",
            "workspace",
        ],
    ),
    (
        "testkit",
        &[
            "acp",
            "agents",
            "channels",
            "client",
            "engine",
            "llm",
            "model",
            "ops",
            "process",
            "runtime",
            "secrets",
            "server",
            "store",
            "tui",
            "verify",
            "workspace",
        ],
    ),
    ("bench", &["client", "testkit"]),
    ("xtask", &[]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Dev,
    Build,
}

const KINDS: &[(&str, Kind)] =
    &[("dependencies", Kind::Normal), ("dev-dependencies", Kind::Dev), ("build-dependencies", Kind::Build)];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let (members, mut findings) = manifest::members(tree);
    let root = manifest::root(tree);
    for member in &members {
        findings.extend(check_name(member));
        match TABLE.iter().find(|(name, _)| *name == member.name) {
            None => findings.push(Finding::new(
                &member.path,
                format!("crate `{}` is not in the direction table", member.name),
                format!("add it to the table in `{HERE}` with the crates that it may know"),
            )),
            Some((_, allowed)) => findings.extend(check_edges(member, allowed, &root)),
        }
    }
    findings
}

fn check_name(member: &Member) -> Option<Finding> {
    let wanted =
        if member.name == "xtask" { member.name.clone() } else { format!("{PREFIX}{}", member.name) };
    let actual = manifest::get(&member.manifest, &["package", "name"]).and_then(Value::as_str);
    (actual != Some(&wanted)).then(|| {
        Finding::new(
            &member.path,
            format!("the package is named `{}`, not `{wanted}`", actual.unwrap_or("")),
            "name the package after its folder",
        )
    })
}

fn check_edges(member: &Member, allowed: &[&str], root: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (kind, target) in edges(&member.manifest, root) {
        if allowed.contains(&target.as_str()) || (target == TESTKIT && kind == Kind::Dev) {
            continue;
        }
        let (what, hint) = if target == TESTKIT {
            (
                format!("`{}` depends on `testkit` outside its tests", member.name),
                "move it to `[dev-dependencies]`".to_owned(),
            )
        } else {
            (
                format!("`{}` may not know `{target}`", member.name),
                format!(
                    "it may know: {}; move the code, or hand the ability in from above",
                    if allowed.is_empty() { "none of our crates".to_owned() } else { allowed.join(", ") }
                ),
            )
        };
        findings.push(Finding::new(&member.path, what, hint));
    }
    findings
}

/// The dependencies of a manifest on our own crates, those of single platforms included.
fn edges(manifest: &Table, root: &Table) -> Vec<(Kind, String)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let platforms = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut edges = Vec::new();
    for table in std::iter::once(manifest).chain(platforms) {
        for (section, kind) in KINDS {
            let entries = table.get(*section).and_then(Value::as_table);
            for (key, entry) in entries.into_iter().flatten() {
                edges.extend(our_crate(key, entry, root).map(|name| (*kind, name)));
            }
        }
    }
    edges
}

/// The folder name of the crate that an entry means, looking through renames; `None` for others' packages.
fn our_crate(key: &str, entry: &Value, root: &Table) -> Option<String> {
    let inherited = entry.get("workspace").and_then(Value::as_bool) == Some(true);
    let shared = manifest::get(root, &["workspace", "dependencies", key]).filter(|_| inherited);
    let entry = shared.unwrap_or(entry);
    let package = entry.get("package").and_then(Value::as_str).unwrap_or(key);
    if package == "xtask" {
        return Some(package.to_owned());
    }
    package.strip_prefix(PREFIX).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{rest}")
    }

    #[test]
    fn edges_of_the_table_pass() {
        let tree = tree_of(&[
            (
                "crates/model/Cargo.toml",
                &manifest("rallypoint-model", "[dev-dependencies]\nrallypoint-testkit.workspace = true\n"),
            ),
            (
                "crates/store/Cargo.toml",
                &manifest(
                    "rallypoint-store",
                    "[dependencies]\nrallypoint-engine.workspace = true\nserde = \"1\"\n",
                ),
            ),
            ("xtask/Cargo.toml", &manifest("xtask", "[dependencies]\ntoml = \"1\"\n")),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn other_edges_fail_in_every_kind_of_dependency() {
        let tree = tree_of(&[
            (
                "Cargo.toml",
                "[workspace.dependencies]\njournal = { package = \"rallypoint-store\", path = \"crates/store\" }\n",
            ),
            (
                "crates/engine/Cargo.toml",
                &manifest(
                    "rallypoint-engine",
                    "[dependencies]\njournal.workspace = true\n\
                     [dev-dependencies]\nrallypoint-runtime = { path = \"../runtime\" }\n\
                     [build-dependencies]\nrallypoint-ops = { path = \"../ops\" }\n\
                     [target.'cfg(unix)'.dependencies]\nrallypoint-process = { path = \"../process\" }\n",
                ),
            ),
            ("xtask/Cargo.toml", &manifest("xtask", "[dependencies]\nrallypoint-model.workspace = true\n")),
        ]);
        assert_eq!(
            headlines(&check(&tree)),
            [
                "crates/engine/Cargo.toml: `engine` may not know `store`",
                "crates/engine/Cargo.toml: `engine` may not know `runtime`",
                "crates/engine/Cargo.toml: `engine` may not know `ops`",
                "crates/engine/Cargo.toml: `engine` may not know `process`",
                "xtask/Cargo.toml: `xtask` may not know `model`",
            ]
        );
    }

    #[test]
    fn testkit_is_for_tests_and_does_not_know_the_program() {
        let tree = tree_of(&[
            (
                "crates/cli/Cargo.toml",
                &manifest("rallypoint-cli", "[dependencies]\nrallypoint-testkit.workspace = true\n"),
            ),
            (
                "crates/testkit/Cargo.toml",
                &manifest("rallypoint-testkit", "[dependencies]\nrallypoint-cli.workspace = true\n"),
            ),
        ]);
        assert_eq!(
            headlines(&check(&tree)),
            [
                "crates/cli/Cargo.toml: `cli` depends on `testkit` outside its tests",
                "crates/testkit/Cargo.toml: `testkit` may not know `cli`",
            ]
        );
    }

    #[test]
    fn unknown_crates_and_other_names_fail() {
        let tree = tree_of(&[
            ("crates/model/Cargo.toml", &manifest("model", "")),
            ("crates/stray/Cargo.toml", &manifest("rallypoint-stray", "")),
        ]);
        assert_eq!(
            headlines(&check(&tree)),
            [
                "crates/model/Cargo.toml: the package is named `model`, not `rallypoint-model`",
                "crates/stray/Cargo.toml: crate `stray` is not in the direction table",
            ]
        );
    }

    #[test]
    fn the_table_names_only_its_own_crates_and_has_no_cycle() {
        let mut settled: Vec<&str> = Vec::new();
        while settled.len() < TABLE.len() {
            let before = settled.len();
            for (name, allowed) in TABLE {
                if !settled.contains(name) && allowed.iter().all(|other| settled.contains(other)) {
                    settled.push(name);
                }
            }
            assert!(settled.len() > before, "a cycle or an unknown name beyond {settled:?}");
        }
    }
}
