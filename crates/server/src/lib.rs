//! The daemon's front door: HTTP over a Unix socket in the data folder and, when asked for, over TCP.
//!
//! Routes, their inputs and the OpenAPI document are generated from the registry of operations, so that none can
//! exist without the other. This crate moves requests and answers; what they mean is the runtime's business. It
//! knows no SQL, no git and no signals.

mod access;
mod doors;
mod entrance;
mod events;
mod guard;
mod health;
mod input;
mod listen;
mod metrics;
mod openapi;
mod problems;
mod request_id;
mod routes;
mod session;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rallypoint_runtime::Daemon;
use tokio::sync::watch;

use access::Access;
use doors::Doors;
use metrics::Metrics;
use routes::Served;

pub use access::TOKEN_FILE;
pub use listen::SOCKET_NAME;
pub use openapi::document as openapi_document;

/// Time that open connections get to finish their answers after a stop was asked for. Longer than any unary call
/// takes that does not hang; event streams end at once.
const DRAIN: Duration = Duration::from_secs(5);

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Absolute data folder; the socket is `rally.sock` in it.
    pub data_folder: PathBuf,
    /// Address to listen on besides the socket. Loopback only, since there are no accounts.
    pub listen: Option<SocketAddr>,
}

/// Why serving could not begin or went on no longer.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Everybody on the network could give orders to the agents.
    #[error(
        "`{address}` is not a loopback address, and there are no accounts by which callers from elsewhere could be told apart"
    )]
    NotLoopback {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The socket in the data folder can't be made.
    #[error("the socket `{}` can't be made: {source}", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The access token can't be read or made.
    #[error("the access token `{}` can't be used: {source}", path.display())]
    Token {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The address can't be listened on.
    #[error("can't listen on `{address}`: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Accepting calls failed.
    #[error("serving ended: {0}")]
    Accept(#[from] std::io::Error),
}

/// Serves the daemon until it is asked to stop, then removes the socket and closes it.
///
/// The daemon holds the data folder's lock, so a socket file found there belongs to nobody and is replaced. On every
/// path out, errors included, the daemon is closed, so that no caller has to.
pub async fn serve(daemon: Daemon, options: ServeOptions) -> Result<(), ServeError> {
    let served = serve_open(&daemon, &options).await;
    daemon.close().await;
    served
}

async fn serve_open(daemon: &Daemon, options: &ServeOptions) -> Result<(), ServeError> {
    let access = Access::open(&options.data_folder, daemon.limits())
        .map_err(|source| ServeError::Token { path: options.data_folder.join(TOKEN_FILE), source })?;
    let access = Arc::new(access);
    let (doors, arriving) = Doors::new(Arc::clone(&access), daemon.clone());
    if let Some(address) = options.listen {
        doors.listen(address).await?;
    }
    let (socket, _socket_file) = listen::socket(&options.data_folder)?;
    let stop = daemon.stop_requested();
    let served = Served { daemon: daemon.clone(), doors, metrics: Arc::new(Metrics::new()) };
    let router = routes::router(&served);
    let over_socket =
        axum::serve(socket, request_id::naming(router.clone())).with_graceful_shutdown(stopped(stop.clone()));
    let over_tcp = doors::serve_doors(arriving, router, access, stop.clone());
    let both = async { tokio::try_join!(async { over_socket.await }, over_tcp).map(|_| ()) };
    let drained = async {
        stopped(stop.clone()).await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        ended = both => ended.map_err(ServeError::Accept),
        () = drained => {
            tracing::warn!("open connections did not end within {} s and are dropped", DRAIN.as_secs());
            Ok(())
        }
    }
}

/// Waits until a stop is asked for, or until nobody is left who could ask.
async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the daemon is gone, which is a stop too.
    let _ = stop.wait_for(|asked| *asked).await;
}
