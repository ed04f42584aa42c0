//! Looking for an agent's program.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The file that this program name stands for, looked for along a `PATH` value.
///
/// A name with a slash in it is a path already and is only checked. Folders
/// given relatively are skipped, since the agent works in another folder than
/// the one that looks.
pub fn find_program(program: &str, path_variable: &str) -> Option<PathBuf> {
    if program.is_empty() {
        return None;
    }
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_executable(path));
    }
    std::env::split_paths(path_variable)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
