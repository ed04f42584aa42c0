//! The doors that are open: the socket always, a loopback port when it was asked for at the start or later.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use rallypoint_ops::Problem;
use rallypoint_runtime::Daemon;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::access::{Access, guarded};
use crate::{ServeError, guard, listen, request_id, stopped};

/// The port that is tried first when nobody named one.
const USUAL_PORT: u16 = 4747;

/// Opens doors and makes links through them.
#[derive(Clone, Debug)]
pub(crate) struct Doors {
    access: Arc<Access>,
    daemon: Daemon,
    listeners: mpsc::UnboundedSender<TcpListener>,
    open: Arc<Mutex<Option<SocketAddr>>>,
}

impl Doors {
    pub(crate) fn new(access: Arc<Access>, daemon: Daemon) -> (Self, mpsc::UnboundedReceiver<TcpListener>) {
        let (listeners, arriving) = mpsc::unbounded_channel();
        (Self { access, daemon, listeners, open: Arc::default() }, arriving)
    }

    /// Listens on this address from now on.
    pub(crate) async fn listen(&self, address: SocketAddr) -> Result<SocketAddr, ServeError> {
        let listener = listen::tcp(address).await?;
        let bound = listener.local_addr().map_err(|source| ServeError::Listen { address, source })?;
        self.daemon.listens_on(bound.to_string());
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(bound);
        // The receiver is gone only when serving has ended.
        let _ = self.listeners.send(listener);
        Ok(bound)
    }

    /// A link that lets a browser in once, through a door that is opened for it when there is none.
    pub(crate) async fn link(&self) -> Result<String, Problem> {
        let failed =
            |error: &dyn std::fmt::Display| Problem::internal(format!("no link can be made: {error}"));
        let open = *self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let address = match open {
            Some(address) => address,
            None => self.listen_somewhere().await.map_err(|error| failed(&error))?,
        };
        let code = self.access.new_link().map_err(|error| failed(&error))?;
        Ok(format!("http://{address}/open?code={code}"))
    }

    /// On the usual port, or on one that is free.
    async fn listen_somewhere(&self) -> Result<SocketAddr, ServeError> {
        let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, USUAL_PORT));
        match self.listen(usual).await {
            Ok(address) => Ok(address),
            Err(_) => self.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await,
        }
    }

    pub(crate) fn access(&self) -> &Arc<Access> {
        &self.access
    }
}

/// Serves each door that is opened until a stop is asked for.
pub(crate) async fn serve_doors(
    mut arriving: mpsc::UnboundedReceiver<TcpListener>,
    router: Router,
    access: Arc<Access>,
    stop: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut serving = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            Some(listener) = arriving.recv() => {
                let routes = request_id::naming(guard::loopback_only(guarded(router.clone(), Arc::clone(&access))));
                let ends = stopped(stop.clone());
                serving.spawn(async move { axum::serve(listener, routes).with_graceful_shutdown(ends).await });
            }
            Some(ended) = serving.join_next() => ended.map_err(std::io::Error::other)??,
            () = stopped(stop.clone()), if serving.is_empty() => return Ok(()),
        }
    }
}
