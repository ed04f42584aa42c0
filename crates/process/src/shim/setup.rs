//! Before the shim's loop: the folder becomes its own, the process becomes the root of a tree.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{getpid, set_child_subreaper, setsid};

use crate::shim::ShimOptions;
use crate::shim::server::Server;
use crate::shim::signals::Signals;
use crate::spool::spool_end;

/// The file whose lock says that a folder's shim lives.
pub(crate) const LOCK_FILE: &str = "lock";
/// The file whose presence forbids a shim to run in a folder for ever.
pub(crate) const REVOKED_FILE: &str = "revoked";
/// The socket, relative to the folder because socket paths end at 107 bytes.
pub(crate) const SOCKET_FILE: &str = "sock";

/// Somebody who only looks whether the shim is gone holds the lock for a moment; a shim that lives never lets go.
const LOCK_WAIT: Duration = Duration::from_secs(1);
const LOCK_RETRY: Duration = Duration::from_millis(10);

#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error("cannot {what}: {source}")]
    Io { what: &'static str, source: io::Error },
    #[error("another process holds the folder's lock")]
    Locked,
    #[error("the folder is revoked")]
    Revoked,
    #[error("the folder's spool is already in use by an earlier shim")]
    Used,
}

pub(super) fn prepare(folder: &Path, options: ShimOptions) -> Result<Server, SetupError> {
    std::env::set_current_dir(folder).map_err(|source| failed("enter the folder", source))?;
    let lock =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(LOCK_FILE);
    let lock = lock.map_err(|source| failed("open the lock file", source))?;
    take_lock(&lock)?;
    // Looked at under the lock: whoever revokes holds it while writing the file.
    if fs::exists(REVOKED_FILE).map_err(|source| failed("look for the revoked file", source))? {
        return Err(SetupError::Revoked);
    }
    // An agent that was started here once must not be started again, whatever became of its shim.
    if spool_end(Path::new(".")).map_or(true, |end| end > 0) {
        return Err(SetupError::Used);
    }
    become_root_of_tree()?;
    let signals = Signals::install().map_err(|source| failed("install signal handlers", source))?;
    let listener = listen().map_err(|source| failed("listen on the socket", source))?;
    Ok(Server::new(options, lock, signals, listener))
}

fn take_lock(lock: &fs::File) -> Result<(), SetupError> {
    let give_up_at = Instant::now() + LOCK_WAIT;
    loop {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < give_up_at => {
                std::thread::sleep(LOCK_RETRY);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(SetupError::Locked),
            Err(error) => return Err(failed("take the folder's lock", error.into())),
        }
    }
}

fn become_root_of_tree() -> Result<(), SetupError> {
    match setsid() {
        // Already the leader of its group: started by hand from a shell, which gave it a group of its own.
        Ok(_) | Err(rustix::io::Errno::PERM) => {}
        Err(error) => return Err(failed("start a session", error.into())),
    }
    set_child_subreaper(Some(getpid())).map_err(|error| failed("become a subreaper", error.into()))
}

fn listen() -> io::Result<UnixListener> {
    match fs::remove_file(SOCKET_FILE) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Between these two lines the folder's own mode keeps others out.
    let listener = UnixListener::bind(SOCKET_FILE)?;
    fs::set_permissions(SOCKET_FILE, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn failed(what: &'static str, source: io::Error) -> SetupError {
    SetupError::Io { what, source }
}
