//! What can be typed after `rally search`.

use clap::{Args, ValueEnum};
use rallypoint_model::found::FoundKind;

/// What is looked for, and where.
#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    /// Words that are all to be there; each may be the beginning of a longer one, "words in quotes" stand together
    pub(crate) text: String,
    /// Only what is of this kind
    #[arg(long = "in", value_enum, value_name = "KIND")]
    pub(crate) kind: Option<Kind>,
    /// Only in this room
    #[arg(long)]
    pub(crate) room: Option<String>,
    /// Only of this task
    #[arg(long)]
    pub(crate) task: Option<String>,
    /// Rows at most
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: u32,
}

/// A kind as it is typed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// Titles, goals and criteria
    Tasks,
    /// What was said in rooms
    Messages,
    /// What agents said and did, questions, evidence
    Events,
}

impl From<Kind> for FoundKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Tasks => Self::Task,
            Kind::Messages => Self::Message,
            Kind::Events => Self::Event,
        }
    }
}
