//! One thing that is not as agreed: where it is, what it is, and what to do about it.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// A path relative to the root, with `:line` when one line is to blame.
    pub(crate) place: String,
    pub(crate) what: String,
    pub(crate) hint: String,
}

impl Finding {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into(), hint: hint.into() }
    }

    pub(crate) fn at_line(path: &str, line: usize, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(format!("{path}:{line}"), what, hint)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}\n  hint: {}", self.place, self.what, self.hint)
    }
}

/// What a test compares: place and message without the hint.
#[cfg(test)]
pub(crate) fn headlines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{}: {}", finding.place, finding.what)).collect()
}
