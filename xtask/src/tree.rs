//! The files that belong to the repository, read once.
//!
//! In a git work tree these are the tracked files and the new ones that are not ignored; elsewhere every file
//! outside the folders that builds fill. Checks ask this list and never walk the disk themselves.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::rust_source;

/// Folders that hold no source, wherever they are.
const SKIPPED_FOLDERS: &[&str] = &[".git", "target", "node_modules"];
const CONSOLE_BUILD: &str = "web/dist";

#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Relative to the root, with `/` between the parts.
    pub(crate) path: String,
    /// The content; bytes that are not UTF-8 are replaced.
    pub(crate) text: String,
    pub(crate) kind: ContentKind,
    code: OnceCell<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentKind {
    Text,
    Binary,
}

impl SourceFile {
    fn new(path: String, bytes: &[u8]) -> Self {
        let kind = if bytes.contains(&0) { ContentKind::Binary } else { ContentKind::Text };
        Self { path, text: String::from_utf8_lossy(bytes).into_owned(), kind, code: OnceCell::new() }
    }

    pub(crate) fn has_extension(&self, wanted: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == wanted)
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.has_extension("rs")
    }

    pub(crate) fn is_under(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether one of the folders on the way to the file has this name.
    pub(crate) fn is_in_folder_named(&self, name: &str) -> bool {
        self.path.rsplit_once('/').is_some_and(|(folders, _)| folders.split('/').any(|part| part == name))
    }

    /// The Rust text with comments and literals blanked out.
    pub(crate) fn code(&self) -> &str {
        self.code.get_or_init(|| rust_source::code_only(&self.text))
    }
}

#[derive(Debug)]
pub(crate) struct Tree {
    files: Vec<SourceFile>,
}

impl Tree {
    pub(crate) fn load(root: &Path) -> anyhow::Result<Self> {
        let paths = if root.join(".git").exists() { list_with_git(root)? } else { list_by_walking(root)? };
        let mut files = Vec::new();
        for path in paths {
            let on_disk = root.join(&path);
            // Deleted but still in the index, a link, or the folder of a submodule.
            if !fs::symlink_metadata(&on_disk).is_ok_and(|metadata| metadata.is_file()) {
                continue;
            }
            let bytes = fs::read(&on_disk).with_context(|| format!("cannot read `{path}`"))?;
            files.push(SourceFile::new(path, &bytes));
        }
        Ok(Self { files })
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    pub(crate) fn rust_files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub(crate) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The folder names directly under `crates`.
    pub(crate) fn crate_folders(&self) -> BTreeSet<&str> {
        self.files
            .iter()
            .filter_map(|file| file.path.strip_prefix("crates/")?.split_once('/'))
            .map(|(folder, _)| folder)
            .collect()
    }
}

fn list_with_git(root: &Path) -> anyhow::Result<BTreeSet<String>> {
    let output = Command::new("git")
        // A checkout that belongs to somebody else (a mounted folder, seen by root) is listed too.
        .args(["-c", "safe.directory=*", "-C"])
        .arg(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("cannot start `git` to list the files")?;
    ensure!(
        output.status.success(),
        "`git ls-files` ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout)
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect())
}

fn list_by_walking(root: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let on_disk = root.join(&folder);
        let entries =
            fs::read_dir(&on_disk).with_context(|| format!("cannot list `{}`", on_disk.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list `{}`", on_disk.display()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type().with_context(|| format!("cannot tell what `{path}` is"))?;
            if kind.is_dir() {
                if !SKIPPED_FOLDERS.contains(&name.as_str()) && path != CONSOLE_BUILD {
                    folders.push(path);
                }
            } else if kind.is_file() {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temp_tree::tree_of;

    #[test]
    fn walking_leaves_out_what_builds_write() {
        let tree = tree_of(&[
            ("Cargo.toml", ""),
            ("crates/model/src/lib.rs", ""),
            ("crates/model/target/x.rs", ""),
            ("target/debug/y.rs", ""),
            ("web/dist/index.html", ""),
            ("web/src/app.ts", ""),
        ]);
        let paths: Vec<&str> = tree.files().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["Cargo.toml", "crates/model/src/lib.rs", "web/src/app.ts"]);
        assert_eq!(tree.crate_folders(), BTreeSet::from(["model"]));
    }

    #[test]
    fn folders_are_compared_whole() {
        let file = SourceFile::new("crates/process/tests/tree.rs".to_owned(), b"");
        assert!(file.is_under("crates/process"));
        assert!(!file.is_under("crates/proc"));
        assert!(file.is_in_folder_named("tests"));
        assert!(!file.is_in_folder_named("tree.rs"));
    }
}
