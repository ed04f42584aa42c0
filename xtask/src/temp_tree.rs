//! A throw-away folder with given files, for the tests of the checks.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::tree::Tree;

static COUNTER: AtomicU32 = AtomicU32::new(0);

struct TempFolder(PathBuf);

impl Drop for TempFolder {
    fn drop(&mut self) {
        // A folder that cannot be removed is left to the system's own cleaning of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes the files to a new folder and loads them as the repository would be loaded.
pub(crate) fn tree_of(files: &[(&str, &str)]) -> Tree {
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let folder = TempFolder(env::temp_dir().join(format!("xtask-{}-{number}", process::id())));
    fs::create_dir(&folder.0).expect("a new temporary folder");
    for (path, text) in files {
        let on_disk = folder.0.join(path);
        fs::create_dir_all(on_disk.parent().expect("a file has a folder")).expect("folders of the file");
        fs::write(on_disk, text).expect("the file");
    }
    Tree::load(&folder.0).expect("the tree")
}
