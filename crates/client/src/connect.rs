//! Opening a connection and sending one request over it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};

use crate::{Address, ClientError};

/// Time a connection may take to open. The daemon is on this machine, so longer than this is a daemon that hangs.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// Pause before another attempt at a socket whose queue is full.
const QUEUE_PAUSE: Duration = Duration::from_millis(5);

/// Longest path that the system takes as the name of a socket, in bytes.
const SOCKET_PATH_MAX: usize = 107;

/// Sends the request and waits for the head of the answer. The answer lives until it is read or dropped.
pub(crate) async fn send(
    address: &Address,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, ClientError> {
    match address {
        Address::Socket(path) => exchange(opened(|| connect_socket(path)).await?, request).await,
        Address::Tcp(address) => exchange(opened(|| TcpStream::connect(address)).await?, request).await,
    }
}

async fn opened<T, F>(connect: impl Fn() -> F) -> Result<T, ClientError>
where
    F: Future<Output = io::Result<T>>,
{
    let opening = async {
        loop {
            match connect().await {
                // A socket whose queue is full says so at once instead of letting the caller wait.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(QUEUE_PAUSE).await,
                ended => return ended,
            }
        }
    };
    match timeout(CONNECT_DEADLINE, opening).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(unopened(&error)),
        Err(_) => Err(ClientError::Lost),
    }
}

fn unopened(error: &io::Error) -> ClientError {
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::ConnectionRefused
        // The daemon ended while the connection waited to be taken. Nothing was sent.
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => ClientError::NoDaemon,
        _ => ClientError::Protocol(format!("no connection: {error}")),
    }
}

/// A longer path is named relative to its opened folder.
async fn connect_socket(path: &Path) -> io::Result<UnixStream> {
    if path.as_os_str().len() <= SOCKET_PATH_MAX {
        return UnixStream::connect(path).await;
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let folder = File::open(folder)?;
    UnixStream::connect(PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name)).await
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, ClientError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|_| ClientError::Lost)?;
    // It ends with the answer, and an error of it is seen there as a cut body.
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(|error| {
        if error.is_parse() {
            ClientError::Protocol("the answer is not HTTP".to_owned())
        } else {
            ClientError::Lost
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_ends_while_a_connection_waits_is_no_daemon() {
        for kind in
            [io::ErrorKind::ConnectionReset, io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound]
        {
            assert_eq!(unopened(&kind.into()), ClientError::NoDaemon);
        }
        let refused = unopened(&io::ErrorKind::PermissionDenied.into());
        assert!(matches!(refused, ClientError::Protocol(_)));
    }
}
