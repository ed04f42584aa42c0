//! What can be typed about rooms.

use clap::Subcommand;
use clap::builder::PossibleValuesParser;

#[derive(Debug, Subcommand)]
pub(crate) enum RoomVerb {
    /// List rooms
    List,
    /// Show what was said
    Show {
        /// Id, a part of it that no other room has, or `main`
        #[arg(default_value = "main")]
        room: String,
        /// Only messages of this task
        #[arg(long, value_name = "ID")]
        task: Option<String>,
        /// Messages at most, the latest ones
        #[arg(long, default_value_t = 200)]
        limit: u32,
    },
    /// Make a room
    New {
        /// Its title
        title: String,
        /// Whether it is for a task, for the peers of one, or for two
        #[arg(long, default_value = "task", value_parser = PossibleValuesParser::new(["task", "worktree", "direct"]))]
        kind: String,
    },
    /// Say something in a room, and to the sub-agents that it names with `@name`
    Say {
        /// Id, a part of it that no other room has, or `main`
        room: String,
        /// The words
        text: String,
    },
}
