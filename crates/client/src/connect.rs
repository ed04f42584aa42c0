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
use tokio::time::timeout;

use crate::{Address, ClientError};

/// Time a connection may take to open. The daemon is on this machine, so longer than this is a daemon that hangs.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// Longest path that the system takes as the name of a socket, in bytes.
const SOCKET_PATH_MAX: usize = 107;

/// Sends the request and waits for the head of the answer. The answer lives until it is read or dropped.
pub(crate) async fn send(
    address: &Address,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, ClientError> {
    match address {
        Address::Socket(path) => exchange(opened(connect_socket(path)).await?, request).await,
        Address::Tcp(address) => exchange(opened(TcpStream::connect(address)).await?, request).await,
    }
}

async fn opened<T>(connecting: impl Future<Output = io::Result<T>>) -> Result<T, ClientError> {
    match timeout(CONNECT_DEADLINE, connecting).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::ConnectionRefused => {
                Err(ClientError::NoDaemon)
            }
            _ => Err(ClientError::Protocol(format!("no connection: {error}"))),
        },
        Err(_) => Err(ClientError::Lost),
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
