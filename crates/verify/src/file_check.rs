//! Whether a file exists inside the work folder and has content.
//!
//! The path is resolved before it is trusted: a link in the work folder that leads out of it would let a worker show a
//! file that is not its own.

use std::io;
use std::path::{Component, Path};

use rallypoint_model::task::EvidenceResult;

/// What was seen of the file, and the sentence that says so.
pub(crate) async fn check_file(root: &Path, path: &str) -> (EvidenceResult, String) {
    let root = match tokio::fs::canonicalize(root).await {
        Ok(root) => root,
        Err(error) => {
            return (EvidenceResult::Inconclusive, format!("the work folder cannot be read: {error}"));
        }
    };
    if Path::new(path).components().any(|component| component == Component::ParentDir) {
        return (EvidenceResult::Failed, format!("`{path}` may not contain `..`"));
    }
    let found = match tokio::fs::canonicalize(root.join(path)).await {
        Ok(found) => found,
        Err(error) => return unreadable(path, &error),
    };
    if !found.starts_with(&root) {
        return (EvidenceResult::Failed, format!("`{path}` leads out of the work folder"));
    }
    match tokio::fs::metadata(&found).await {
        Ok(facts) if !facts.is_file() => (EvidenceResult::Failed, format!("`{path}` is not a regular file")),
        Ok(facts) if facts.len() == 0 => (EvidenceResult::Failed, format!("`{path}` is empty")),
        Ok(facts) => (EvidenceResult::Passed, format!("`{path}` exists, {} bytes", facts.len())),
        Err(error) => unreadable(path, &error),
    }
}

/// Only an absent file is a failure; what cannot be looked at is not known to be absent.
fn unreadable(path: &str, error: &io::Error) -> (EvidenceResult, String) {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            (EvidenceResult::Failed, format!("`{path}` does not exist"))
        }
        _ => (EvidenceResult::Inconclusive, format!("`{path}` cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A work folder with a few files, beside a file that is not in it.
    fn folders() -> (TempDir, std::path::PathBuf) {
        let outer = TempDir::new().unwrap();
        let root = outer.path().join("work");
        std::fs::create_dir_all(root.join("docs")).unwrap();
        std::fs::write(outer.path().join("outside.txt"), "text").unwrap();
        std::fs::write(root.join("docs/guide.md"), "text").unwrap();
        std::fs::write(root.join("empty"), "").unwrap();
        symlink("docs/guide.md", root.join("inner-link")).unwrap();
        symlink("../outside.txt", root.join("outer-link")).unwrap();
        symlink("/etc", root.join("folder-link")).unwrap();
        symlink("gone", root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        (outer, root)
    }

    async fn result(path: &str) -> (EvidenceResult, String) {
        let (_outer, root) = folders();
        check_file(&root, path).await
    }

    #[tokio::test]
    async fn a_file_with_content_passes() {
        let expected = (EvidenceResult::Passed, "`docs/guide.md` exists, 4 bytes".to_owned());
        assert_eq!(result("docs/guide.md").await, expected);
        assert_eq!(result("./docs//guide.md").await.0, EvidenceResult::Passed);
        assert_eq!(result("inner-link").await.0, EvidenceResult::Passed);
    }

    #[tokio::test]
    async fn absent_empty_and_folders_fail() {
        for (path, reason) in [
            ("nothing", "`nothing` does not exist"),
            ("dangling", "`dangling` does not exist"),
            ("docs/guide.md/x", "`docs/guide.md/x` does not exist"),
            ("empty", "`empty` is empty"),
            ("docs", "`docs` is not a regular file"),
            ("", "`` is not a regular file"),
        ] {
            assert_eq!(result(path).await, (EvidenceResult::Failed, reason.to_owned()));
        }
    }

    #[tokio::test]
    async fn nothing_outside_the_work_folder_counts() {
        for path in ["../outside.txt", "docs/../../outside.txt"] {
            assert_eq!(
                result(path).await,
                (EvidenceResult::Failed, format!("`{path}` may not contain `..`"))
            );
        }
        for path in ["outer-link", "folder-link/passwd", "/etc/passwd"] {
            assert_eq!(
                result(path).await,
                (EvidenceResult::Failed, format!("`{path}` leads out of the work folder"))
            );
        }
    }

    #[tokio::test]
    async fn a_folder_whose_name_begins_alike_is_outside() {
        let (outer, root) = folders();
        std::fs::create_dir(outer.path().join("work-2")).unwrap();
        std::fs::write(outer.path().join("work-2/file"), "text").unwrap();
        let path = outer.path().join("work-2/file");
        assert_eq!(check_file(&root, path.to_str().unwrap()).await.0, EvidenceResult::Failed);
    }

    #[tokio::test]
    async fn an_absolute_path_into_the_work_folder_passes() {
        let (_outer, root) = folders();
        let path = root.join("docs/guide.md");
        assert_eq!(check_file(&root, path.to_str().unwrap()).await.0, EvidenceResult::Passed);
    }

    #[tokio::test]
    async fn what_cannot_be_looked_at_is_inconclusive() {
        assert_eq!(result("loop").await.0, EvidenceResult::Inconclusive);
        assert_eq!(result(&"n".repeat(300)).await.0, EvidenceResult::Inconclusive);
        let (_outer, root) = folders();
        let (result, reason) = check_file(&root.join("gone"), "file").await;
        assert_eq!(result, EvidenceResult::Inconclusive);
        assert!(reason.starts_with("the work folder cannot be read: "), "{reason}");
    }
}
