//! What was found wrong.

use std::fmt;

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// What a follower was shown, or a caller was answered, is in the journal: same number, same content, none
    /// twice, none left out.
    Shown,
    /// One task and one message of the person for each request.
    OneTask,
    /// One routed message for each boundary event and room, one terminal reply for each task.
    OneMessage,
    /// One outcome for each run.
    OneOutcome,
    /// Each prompt reached its agent once.
    OnePrompt,
    /// Output of agents is stored once, whole and in order.
    Output,
    /// Nothing is left of agents that have ended.
    Orphans,
    /// The journal alone gives the stored projections.
    Replay,
    /// Every task comes to the end that its work leads to.
    Ending,
}

/// One thing found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What does not hold.
    pub rule: Rule,
    /// Where, and how.
    pub text: String,
}

impl Violation {
    pub(crate) fn new(rule: Rule, text: impl Into<String>) -> Self {
        Self { rule, text: text.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.rule, self.text)
    }
}
