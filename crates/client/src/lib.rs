//! Talks to a daemon: single calls, and the journal followed over restarts of the daemon without gap or repeat.
//!
//! Method, path and the place of each field are taken from the registry of operations, so that a caller names an
//! operation and hands in its input. Starting a daemon is the caller's business: where one may be missing, the caller
//! gives the event stream a hook that brings it back.

mod call;
mod connect;
mod events;
mod sse;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rallypoint_ops::Problem;
use rallypoint_ops::types::EventsInput;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use events::{EventStream, Received, ReconnectHook};

/// Why a call did not give its answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens. Nothing was sent.
    #[error("no daemon is running")]
    NoDaemon,
    /// The daemon said no, and why.
    #[error("{0}")]
    Refused(Problem),
    /// The connection ended, or a deadline passed, before the answer was whole. The call may have been carried out.
    #[error("the connection to the daemon was lost")]
    Lost,
    /// What is at the other end does not speak this protocol, or the call does not fit the registry.
    #[error("the daemon can't be talked to: {0}")]
    Protocol(String),
}

/// Where a daemon listens.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Socket(PathBuf),
    Tcp(SocketAddr),
}

/// A daemon to talk to. Cheap to clone; each call has a connection of its own, so none waits for another.
#[derive(Clone, Debug)]
pub struct Client {
    address: Arc<Address>,
    token: Option<Token>,
}

/// A token that is shown with each call, and never printed.
#[derive(Clone)]
struct Token(Arc<str>);

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(…)")
    }
}

impl Client {
    /// The daemon behind this socket.
    pub fn unix(path: impl AsRef<Path>) -> Self {
        Self { address: Arc::new(Address::Socket(path.as_ref().to_owned())), token: None }
    }

    /// The daemon behind this port.
    pub fn tcp(address: SocketAddr) -> Self {
        Self { address: Arc::new(Address::Tcp(address)), token: None }
    }

    /// The same daemon, shown this token with each call.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(Token(token.into()));
        self
    }

    /// Carries out one operation.
    pub async fn call<I, O>(&self, operation: &str, input: &I) -> Result<O, ClientError>
    where
        I: Serialize + ?Sized,
        O: DeserializeOwned,
    {
        let answer = self.call_for_text(operation, input).await?;
        serde_json::from_slice(&answer).map_err(|error| {
            ClientError::Protocol(format!("the answer to `{operation}` has another form: {error}"))
        })
    }

    /// Carries out one operation and gives the answer as it came: JSON with every field, known here or not.
    pub async fn call_for_text<I>(&self, operation: &str, input: &I) -> Result<Vec<u8>, ClientError>
    where
        I: Serialize + ?Sized,
    {
        call::carry_out(self, operation, input).await
    }

    /// Follows the journal after `input.after`, or from now on when it is absent.
    pub fn follow(&self, input: EventsInput) -> EventStream {
        EventStream::new(self.clone(), input)
    }
}
