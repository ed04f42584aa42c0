//! Why a shim could not be reached or would not do what it was asked.

use std::io;

use crate::agent_process::AgentProcess;
use crate::wire::Refusal;

/// Why no connection to a shim came about.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Nobody listens in the folder: no shim yet, or no more.
    #[error("no shim listens in the folder")]
    NoShim,
    /// A daemon with this higher epoch has attached before; this one is deposed.
    #[error("refused: a daemon with epoch {epoch} was here")]
    Refused { epoch: u64 },
    #[error("the shim did not answer in time")]
    Timeout,
    #[error("the shim answered something unexpected: {0}")]
    Protocol(String),
    #[error("the shim's socket failed: {0}")]
    Io(#[from] io::Error),
}

/// Why an agent was not started. Except for `AlreadyStarted`, `Timeout`, `Closed` and `Refused`, nothing runs and
/// the shim has ended; after `Timeout` and `Closed`, attach again and see whether it was started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the program was not found: {message}")]
    NotFound { message: String },
    #[error("the program cannot be executed: {message}")]
    NotExecutable { message: String },
    #[error("the working folder cannot be used: {message}")]
    BadCwd { message: String },
    #[error("the agent could not be started: {message}")]
    Other { message: String },
    #[error("an agent was started here already, with pid {pid}", pid = process.pid)]
    AlreadyStarted { process: AgentProcess },
    #[error("the shim did not answer in time")]
    Timeout,
    #[error("the connection to the shim is gone")]
    Closed,
    #[error("the shim refused: {message}")]
    Refused { message: String },
}

/// Why input was not taken. After `Timeout` and `Closed` it may have been: attach again and compare the last input
/// sequence number. After anything else it was provably not.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("input must come in order, {expected} is next")]
    Gap { expected: u64 },
    #[error("no agent was started")]
    NotStarted,
    #[error("the agent has ended")]
    Exited,
    #[error("the agent's input is closed")]
    StdinClosed,
    #[error("the agent has {pending_bytes} bytes of input left to read; try again later")]
    Overloaded { pending_bytes: u64 },
    #[error("the spool cannot be written: {message}")]
    SpoolFull { message: String },
    #[error("{bytes} bytes exceed the limit of {limit} for one input")]
    TooLong { bytes: usize, limit: usize },
    #[error("the shim did not answer in time")]
    Timeout,
    #[error("the connection to the shim is gone")]
    Closed,
    #[error("the shim refused: {message}")]
    Refused { message: String },
}

/// Why a command to the shim was not carried out, or not known to be.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("no agent was started")]
    NotStarted,
    /// Only `finish`: end the agent first.
    #[error("the agent still runs")]
    StillRunning,
    /// Only `finish`: this many processes could not be ended; the shim stays.
    #[error("{left} processes could not be ended")]
    TreeLeft { left: u32 },
    #[error("the shim did not answer in time")]
    Timeout,
    #[error("the connection to the shim is gone")]
    Closed,
    #[error("the shim refused: {message}")]
    Refused { message: String },
}

/// Why a request got no usable reply, before it is turned into the error of its operation.
#[derive(Debug)]
pub(super) enum RequestError {
    Timeout,
    Closed,
    Refused(Refusal),
    Unexpected(String),
}

impl From<RequestError> for StartError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Timeout => StartError::Timeout,
            RequestError::Closed => StartError::Closed,
            RequestError::Refused(Refusal::AlreadyStarted { process }) => {
                StartError::AlreadyStarted { process }
            }
            RequestError::Refused(refusal) => StartError::Refused { message: describe(&refusal) },
            RequestError::Unexpected(message) => StartError::Refused { message },
        }
    }
}

impl From<RequestError> for SendError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Timeout => SendError::Timeout,
            RequestError::Closed => SendError::Closed,
            RequestError::Unexpected(message) => SendError::Refused { message },
            RequestError::Refused(Refusal::Gap { expected }) => SendError::Gap { expected },
            RequestError::Refused(Refusal::NotStarted) => SendError::NotStarted,
            RequestError::Refused(Refusal::Exited) => SendError::Exited,
            RequestError::Refused(Refusal::StdinClosed) => SendError::StdinClosed,
            RequestError::Refused(Refusal::Overloaded { pending_bytes }) => {
                SendError::Overloaded { pending_bytes }
            }
            RequestError::Refused(Refusal::SpoolFull { message }) => SendError::SpoolFull { message },
            RequestError::Refused(refusal) => SendError::Refused { message: describe(&refusal) },
        }
    }
}

impl From<RequestError> for ControlError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Timeout => ControlError::Timeout,
            RequestError::Closed => ControlError::Closed,
            RequestError::Unexpected(message) => ControlError::Refused { message },
            RequestError::Refused(Refusal::NotStarted) => ControlError::NotStarted,
            RequestError::Refused(Refusal::StillRunning) => ControlError::StillRunning,
            RequestError::Refused(Refusal::TreeLeft { left }) => ControlError::TreeLeft { left },
            RequestError::Refused(refusal) => ControlError::Refused { message: describe(&refusal) },
        }
    }
}

/// For refusals that the operation at hand does not expect.
pub(super) fn describe(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Epoch { highest } => format!("a daemon with epoch {highest} was here"),
        Refusal::Version { supported } => format!("the shim speaks version {supported} of the protocol"),
        Refusal::NotStarted => "no agent was started".to_owned(),
        Refusal::AlreadyStarted { process } => format!("an agent runs already, with pid {}", process.pid),
        Refusal::Gap { expected } => format!("input {expected} is next"),
        Refusal::StdinClosed => "the agent's input is closed".to_owned(),
        Refusal::Exited => "the agent has ended".to_owned(),
        Refusal::Overloaded { pending_bytes } => format!("{pending_bytes} bytes of input wait for the agent"),
        Refusal::SpoolFull { message } | Refusal::Malformed { message } => message.clone(),
        Refusal::StillRunning => "the agent still runs".to_owned(),
        Refusal::TreeLeft { left } => format!("{left} processes could not be ended"),
    }
}
