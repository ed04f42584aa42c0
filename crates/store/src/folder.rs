//! The data folder and the lock that keeps a second daemon out.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::StoreError;

/// Held for as long as a daemon works on a folder. Locks the opened folder
/// itself, so a copied or moved folder never shares a lock with its original.
#[derive(Debug)]
pub struct FolderLock {
    _folder: File,
}

impl FolderLock {
    /// Makes the folder when it is absent (mode 0700) and locks it.
    pub fn take(folder: &Path) -> Result<Self, StoreError> {
        let problem = |source| StoreError::Folder { folder: folder.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(problem)?;
        let opened = File::open(folder).map_err(problem)?;
        match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _folder: opened }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::Locked { folder: folder.to_owned() }),
            Err(error) => Err(problem(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_daemon_on_the_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::take(folder.path()).unwrap();
        assert!(matches!(FolderLock::take(folder.path()), Err(StoreError::Locked { .. })));
        drop(first);
        assert!(FolderLock::take(folder.path()).is_ok());
    }

    #[test]
    fn a_data_folder_that_is_a_file_is_a_clear_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "x").unwrap();
        assert!(matches!(FolderLock::take(&path), Err(StoreError::Folder { .. })));
    }
}
