//! The two ways in: a socket in the data folder for this user alone, and a loopback port.

use std::fs::{File, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::unix::SocketAddr as UnixAddress;
use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::ServeError;

/// Name of the socket in the data folder.
pub const SOCKET_NAME: &str = "rally.sock";

/// Pause after a failed accept. Out of file descriptors is the usual cause, and it does not pass by trying at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections of our own user only. The file's mode says the same; this holds where a mode is not kept.
#[derive(Debug)]
pub(crate) struct OwnUserListener {
    listener: UnixListener,
    uid: u32,
}

impl Listener for OwnUserListener {
    type Io = UnixStream;
    type Addr = UnixAddress;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => match stream.peer_cred() {
                    Ok(peer) if peer.uid() == self.uid => return (stream, address),
                    Ok(peer) => tracing::warn!("a connection of user {} was refused", peer.uid()),
                    Err(error) => tracing::warn!("a connection was refused, its user is not known: {error}"),
                },
                Err(error) => {
                    tracing::warn!("a connection could not be accepted: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// Removes the socket file at the end, while the daemon still holds the folder's lock.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode: at the same path there may be one of another daemon by then, in a folder that was removed and
    /// made again.
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    fn of(path: PathBuf) -> Self {
        let identity = identity_of(&path);
        Self { path, identity }
    }
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity_of(&self.path) != self.identity {
            return;
        }
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!("the socket `{}` was not removed: {error}", self.path.display());
            }
            _ => {}
        }
    }
}

/// Makes the socket in this folder, in place of one that a daemon before left.
pub(crate) fn socket(data_folder: &Path) -> Result<(OwnUserListener, SocketFile), ServeError> {
    let path = data_folder.join(SOCKET_NAME);
    let listener = bind(data_folder).map_err(|source| ServeError::Socket { path: path.clone(), source })?;
    let uid = rustix::process::geteuid().as_raw();
    Ok((OwnUserListener { listener, uid }, SocketFile::of(path)))
}

/// A socket's path may have 107 bytes, a folder's many more, so it is named relative to the opened folder.
fn bind(data_folder: &Path) -> io::Result<UnixListener> {
    let folder = File::open(data_folder)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(SOCKET_NAME);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Listens on this address when it is a loopback one.
pub(crate) async fn tcp(address: SocketAddr) -> Result<TcpListener, ServeError> {
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback { address });
    }
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_daemon_leaves_the_socket_of_the_one_that_came_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SOCKET_NAME);
        let (_listener, first) = socket(folder.path()).unwrap();
        let (_other, second) = socket(folder.path()).unwrap();
        drop(first);
        assert!(path.exists(), "it was the other's");
        drop(second);
        assert!(!path.exists());
    }
}
