//! The folder's lock: whether its shim lives, and how to make sure that none ever will again.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::shim::{LOCK_FILE, REVOKED_FILE};

/// Why a folder could not be revoked.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    /// Its shim lives.
    #[error("the shim of `{folder}` still runs", folder = folder.display())]
    Held { folder: PathBuf },
    #[error("the folder `{folder}` cannot be revoked: {source}", folder = folder.display())]
    Io { folder: PathBuf, source: io::Error },
}

/// Proof that no shim runs in a folder and none will; holds the folder's lock.
#[derive(Debug)]
pub struct RevokeGuard {
    _lock: File,
}

/// Whether no shim holds the folder's lock. A folder that does not exist has none.
///
/// A shim that was launched but has not come to the lock yet counts as gone; to rule that out, [`revoke`].
pub fn shim_is_gone(folder: &Path) -> Result<bool, io::Error> {
    let lock = match File::open(folder.join(LOCK_FILE)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    try_lock(&lock)
}

/// Takes the folder's lock and forbids it to every shim, for ever. Blocks for two small writes to disk.
pub fn revoke(folder: &Path) -> Result<RevokeGuard, RevokeError> {
    let failed = |source| RevokeError::Io { folder: folder.to_path_buf(), source };
    let options = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options
    };
    let lock = options().open(folder.join(LOCK_FILE)).map_err(failed)?;
    if !try_lock(&lock).map_err(failed)? {
        return Err(RevokeError::Held { folder: folder.to_path_buf() });
    }
    // On disk before an outcome is declared on the strength of it.
    let revoked = options().open(folder.join(REVOKED_FILE)).map_err(failed)?;
    revoked.sync_all().map_err(failed)?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(RevokeGuard { _lock: lock })
}

fn try_lock(lock: &File) -> io::Result<bool> {
    loop {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
