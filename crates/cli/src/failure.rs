//! Why the program ends with another code than it should have.

use std::io;
use std::process::ExitCode;

use rallypoint_client::ClientError;
use rallypoint_model::refusal::RefusalCode;
use rallypoint_ops::Problem;

use crate::output::Output;

pub(crate) const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const WAITING: u8 = 3;
pub(crate) const INTERRUPTED: u8 = 130;
/// As a shell shows a program that wrote into a pipe nobody reads.
const BROKEN_PIPE: u8 = 141;

/// What happened, what to do next, and the exit code that says its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::with_code(FAILED, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::with_code(USAGE, message)
    }

    pub(crate) fn with_code(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// Writes it to stderr. Nothing is written when the reader of stdout went away: nobody needs to be told.
    pub(crate) fn print(&self, output: &mut Output) {
        if self.code == BROKEN_PIPE {
            return;
        }
        output.talk(&format!("error: {}", self.message));
        if let Some(hint) = &self.hint {
            output.talk(&format!("hint: {hint}"));
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(problem) => problem.into(),
            ClientError::NoDaemon => Self::failed("no daemon is running for this data folder")
                .with_hint("`rally serve` runs one in this terminal, `rally run` starts one by itself"),
            ClientError::Lost => Self::failed("the connection to the daemon was lost")
                .with_hint("`rally daemon status` shows whether it runs; the work itself goes on"),
            ClientError::Protocol(what) => {
                Self::failed(what).with_hint("`rally doctor` checks the daemon and this program")
            }
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let code = match problem.code {
            RefusalCode::Invalid => USAGE,
            RefusalCode::NotFound
            | RefusalCode::Conflict
            | RefusalCode::Limit
            | RefusalCode::AlreadyClosed
            | RefusalCode::AgentUnavailable
            | RefusalCode::KeyReused
            | RefusalCode::Unauthenticated
            | RefusalCode::Forbidden
            | RefusalCode::Internal => FAILED,
        };
        Self { code, message: problem.message, hint: problem.hint }
    }
}

/// Errors of writing to stdout.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::with_code(BROKEN_PIPE, "nobody reads the output");
        }
        Self::failed(format!("the output can't be written: {error}"))
    }
}
