//! Data to stdout, talk to stderr.

use std::io::{self, Write};

use serde::Serialize;

/// How data is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The two ways out. Lines are written whole and at once, so that a reader of a pipe sees them when they happen.
#[derive(Debug)]
pub(crate) struct Output {
    form: Form,
    stdout: io::Stdout,
    stderr: io::Stderr,
    heard: bool,
}

impl Output {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, stdout: io::stdout(), stderr: io::stderr(), heard: true }
    }

    /// Takes everything and writes nothing.
    pub(crate) fn unheard(form: Form) -> Self {
        Self { heard: false, ..Self::new(form) }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    /// One line of data.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        if !self.heard {
            return Ok(());
        }
        let mut stdout = self.stdout.lock();
        stdout.write_all(text.as_bytes())?;
        stdout.write_all(b"\n")?;
        stdout.flush()
    }

    /// Data as it is, without a line end of ours.
    pub(crate) fn raw(&mut self, text: &[u8]) -> io::Result<()> {
        let mut stdout = self.stdout.lock();
        stdout.write_all(text)?;
        stdout.flush()
    }

    /// One line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(value).map_err(io::Error::other)?;
        self.line(&text)
    }

    /// One line for the person. Where stderr is closed there is nobody left to tell of it.
    pub(crate) fn talk(&mut self, text: &str) {
        if !self.heard {
            return;
        }
        let mut stderr = self.stderr.lock();
        let _ = writeln!(stderr, "{text}");
    }

    /// The same without a line end, to be answered on the line itself.
    pub(crate) fn ask(&mut self, text: &str) {
        let mut stderr = self.stderr.lock();
        let _ = write!(stderr, "{text} ").and_then(|()| stderr.flush());
    }
}
