//! What can be typed about how an agent is to work.

use clap::Args;
use rallypoint_model::agent_offer::Wanted;

/// Mode, model and thought level; each by its value or by its name, as the agent offers it.
#[derive(Debug, Args)]
pub(crate) struct WantedArguments {
    /// Model, as the agent offers it
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Mode, as the agent offers it
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// How much it is to think, as the agent offers it
    #[arg(long, value_name = "LEVEL")]
    thinking: Option<String>,
}

impl WantedArguments {
    /// What is wanted.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted { mode: self.mode.clone(), model: self.model.clone(), thinking: self.thinking.clone() }
    }
}
