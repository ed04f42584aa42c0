//! What can be typed about permissions.

use std::path::PathBuf;

use clap::{ArgGroup, Subcommand};
use rallypoint_model::permission::Preset;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Say what would be decided about a tool, and by which layer and rule
    #[command(group = ArgGroup::new("whom").required(true).args(["agent", "session"]))]
    Explain {
        /// Agent or profile, as it would be started now
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Session, or a part of its id, with what was frozen when it was asked for
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// Kind of the tool, such as `read`, `edit`, `execute` or `fetch`
        #[arg(long, value_name = "KIND")]
        tool: String,
        /// Path that it names
        #[arg(long, value_name = "PATH")]
        path: Option<String>,
        /// Command that it runs
        #[arg(long, value_name = "TEXT")]
        command: Option<String>,
        /// Preset that is asked for, with an agent
        #[arg(long, value_name = "PRESET", conflicts_with = "session")]
        permissions: Option<Preset>,
        /// Work folder [default: the session's, else the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
}
