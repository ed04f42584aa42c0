//! What can be typed about trees of sub-agents and about who goes first.

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args};
use rallypoint_model::admission::{Budget, Priority, UnknownCost};
use rallypoint_model::mail::{ConversationMode, MailMode};
use rallypoint_model::money::Money;
use rallypoint_model::permission::Preset;

use crate::duration::Milliseconds;

/// When a task's runs get their slots, and what they may use.
#[derive(Debug, Args)]
pub(crate) struct AdmissionArguments {
    /// Its place among those that wait for a slot: low, normal, high or urgent [default: normal]
    #[arg(long, value_name = "BAND", value_parser = PossibleValuesParser::new(Priority::ALL.map(Priority::as_str)), hide_possible_values = true)]
    priority: Option<String>,
    /// Tokens that its agents may use together, as far as they report them
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    budget_tokens: Option<u64>,
    /// Time that its agents may be at work, added up
    #[arg(long, value_name = "TIME")]
    budget_time: Option<Milliseconds>,
    /// Money that its agents may cost together, such as `2.50USD`, as far as it is known
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    budget_cost: Option<Money>,
    /// Start no further run once one of them had a cost that is not known
    #[arg(long, requires = "budget_cost")]
    refuse_unknown_cost: bool,
}

fn amount(text: &str) -> Result<Money, String> {
    match text.parse::<Money>() {
        Ok(money) if money.micros == 0 => Err("a budget of nothing lets nothing run".to_owned()),
        parsed => parsed,
    }
}

impl AdmissionArguments {
    /// The band, when one is named.
    pub(crate) fn priority(&self) -> Option<Priority> {
        let named = self.priority.as_deref()?;
        Priority::ALL.into_iter().find(|band| band.as_str() == named)
    }

    /// The budget, when there is one.
    pub(crate) fn budget(&self) -> Option<Budget> {
        let unknown_cost = if self.refuse_unknown_cost { UnknownCost::Refuse } else { UnknownCost::Allow };
        let budget = Budget {
            tokens: self.budget_tokens,
            active_ms: self.budget_time.map(|time| time.0),
            cost: self.budget_cost,
            unknown_cost,
        };
        (!budget.is_unset()).then_some(budget)
    }
}

/// One more sub-agent.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("who").required(true).multiple(true).args(["agent", "agent_cmd"]))]
pub(crate) struct SpawnArguments {
    /// Id of the task, or a part of it that no other task has
    pub(crate) task: String,
    /// Agent or profile
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Program and arguments of an agent that speaks the Agent Client Protocol
    #[arg(long, value_name = "COMMAND")]
    pub(crate) agent_cmd: Option<String>,
    /// Where the program of `--agent` is, when it is not on `PATH`
    #[arg(long, value_name = "PROGRAM", requires = "agent", conflicts_with = "agent_cmd")]
    pub(crate) agent_path: Option<std::path::PathBuf>,
    /// Name in the room, by which it is called [default: the agent's]
    #[arg(long, value_name = "NAME", visible_alias = "name")]
    pub(crate) label: Option<String>,
    /// Pass on all that it says to whoever it works for, and what is said to `@name` to it
    #[arg(long)]
    pub(crate) conversation: bool,
    /// Let it speak to the others of the same parent too
    #[arg(long, requires = "conversation")]
    pub(crate) siblings: bool,
    /// How it takes what is said to it in a turn: steer, followup, collect or interrupt [default: collect]
    #[arg(long, value_name = "MODE", requires = "conversation", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(MailMode::ALL.map(MailMode::as_str)))]
    mail_mode: Option<String>,
    /// Its own part of the goal [default: the whole goal]
    #[arg(long = "task", value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Session that it works for, or a part of its id [default: the task itself]
    #[arg(long, value_name = "SESSION")]
    pub(crate) parent: Option<String>,
    #[command(flatten)]
    pub(crate) wanted: super::wanted::WantedArguments,
    /// What it may do without a person, at most what the sub-agent above it may
    #[arg(long, value_name = "PRESET")]
    pub(crate) permissions: Option<Preset>,
    /// Variable of this environment that the agent gets too; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
    /// Same key, same sub-agent
    #[arg(long, value_name = "TEXT")]
    pub(crate) key: Option<String>,
}

impl SpawnArguments {
    /// How it talks, when it does.
    pub(crate) fn conversation(&self) -> Option<ConversationMode> {
        let named = self.mail_mode.as_deref();
        let mode = MailMode::ALL.into_iter().find(|mode| Some(mode.as_str()) == named).unwrap_or_default();
        self.conversation.then_some(ConversationMode { siblings: self.siblings, mode })
    }
}

/// What is to be stopped.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["task", "session"]))]
pub(crate) struct StopArguments {
    /// Id of the task, or a part of it that no other task has
    pub(crate) task: Option<String>,
    /// Stop only this sub-agent and all below it
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Wait until every process is gone, for a minute at most
    #[arg(long)]
    pub(crate) wait: bool,
}
