//! What can be typed to steer a task.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Subcommand};
use rallypoint_model::admission::Priority;

/// Reads a band.
pub(crate) fn band(named: Option<&str>) -> Option<Priority> {
    Priority::ALL.into_iter().find(|band| Some(band.as_str()) == named)
}

/// Which tasks.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Rows at most
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: u32,
    /// Where the page before ended, as `--json` told
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Archived ones too
    #[arg(long)]
    pub(crate) archived: bool,
    /// Only of this status, such as `active` or `waiting_on_user`
    #[arg(long)]
    pub(crate) status: Option<String>,
    /// Only those with this text in title, goal, criteria or agents
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// Only those that this room asked for
    #[arg(long, value_name = "ID")]
    pub(crate) room: Option<String>,
    /// Only of this band: low, normal, high or urgent
    #[arg(long, value_name = "BAND", value_parser = PossibleValuesParser::new(Priority::ALL.map(Priority::as_str)), hide_possible_values = true)]
    pub(crate) priority: Option<String>,
    /// Only paused ones
    #[arg(long)]
    pub(crate) paused: bool,
    /// Only forks of this task
    #[arg(long, value_name = "TASK")]
    pub(crate) forks_of: Option<String>,
}

/// What is to be changed.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").required(true).multiple(true).args(["title", "goal", "check", "accept", "priority", "agent"]))]
pub(crate) struct EditArguments {
    /// Id, or a part of it that no other task has
    pub(crate) task: String,
    /// One line
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// What is to be reached
    #[arg(long)]
    pub(crate) goal: Option<String>,
    /// Command that must exit 0; with `--accept`, all criteria from now on; may be repeated
    #[arg(long, value_name = "CMD")]
    pub(crate) check: Vec<String>,
    /// Statement that a person has to accept; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) accept: Vec<String>,
    /// Its place among those that wait for a slot: low, normal, high or urgent
    #[arg(long, value_name = "BAND", value_parser = PossibleValuesParser::new(Priority::ALL.map(Priority::as_str)), hide_possible_values = true)]
    pub(crate) priority: Option<String>,
    /// Agent or profile that works on it when it is begun again
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
}

/// One task, or all.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true).args(["task", "all"]))]
pub(crate) struct AllArguments {
    /// Id, or a part of it that no other task has
    pub(crate) task: Option<String>,
    /// Every task
    #[arg(long)]
    pub(crate) all: bool,
}

/// What is different in the other task.
#[derive(Debug, Args)]
pub(crate) struct ForkArguments {
    /// Id, or a part of it that no other task has
    pub(crate) task: String,
    /// One line [default: that of the task with `(fork)` behind it]
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// What is to be reached [default: the same]
    #[arg(long)]
    pub(crate) goal: Option<String>,
    /// Command that must exit 0; with `--accept`, all criteria [default: the same]; may be repeated
    #[arg(long, value_name = "CMD")]
    pub(crate) check: Vec<String>,
    /// Statement that a person has to accept; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) accept: Vec<String>,
    /// Its place among those that wait for a slot [default: the same]
    #[arg(long, value_name = "BAND", value_parser = PossibleValuesParser::new(Priority::ALL.map(Priority::as_str)), hide_possible_values = true)]
    pub(crate) priority: Option<String>,
    /// Agent or profile [default: the same]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Program and arguments of an agent that speaks the Agent Client Protocol
    #[arg(long, value_name = "COMMAND")]
    pub(crate) agent_cmd: Option<String>,
    /// Work folder [default: the same, or another scratch folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Variable of this environment that the agent gets too; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
}

/// A part of what a task has.
#[derive(Debug, Args)]
pub(crate) struct PartArguments {
    /// Id, or a part of it that no other task has
    pub(crate) task: String,
    /// Rows at most
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: u32,
    /// Where the page before ended, as `--json` told
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

/// Plans of a task.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanVerb {
    /// List them, latest first
    List(PartArguments),
    /// Give it a newer one
    Set {
        /// Id, or a part of it that no other task has
        task: String,
        /// The plan: a JSON object, or `@FILE` that holds one
        plan: String,
        /// The revision that it was made from
        #[arg(long, value_name = "ID")]
        base: Option<String>,
        /// What was changed
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
    },
}

/// What every way to begin again takes.
#[derive(Debug, Args)]
pub(crate) struct AnewArguments {
    /// What is added to the goal
    #[arg(long, value_name = "TEXT")]
    pub(crate) instruction: Option<String>,
    /// Stop whoever works on it first
    #[arg(long)]
    pub(crate) stop: bool,
    /// Agent or profile [default: the task's]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Program and arguments of an agent that speaks the Agent Client Protocol
    #[arg(long, value_name = "COMMAND")]
    pub(crate) agent_cmd: Option<String>,
    /// Follow this plan of before
    #[arg(long, value_name = "ID")]
    pub(crate) plan_revision: Option<String>,
    /// Variable of this environment that the agent gets again; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
}

/// A task begun again.
#[derive(Debug, Args)]
pub(crate) struct RestartArguments {
    /// Id, or a part of it that no other task has
    pub(crate) task: String,
    /// Follow this plan: a JSON object, or `@FILE` that holds one
    #[arg(long, value_name = "PLAN", conflicts_with = "plan_revision")]
    pub(crate) plan: Option<String>,
    /// What was changed in it
    #[arg(long, value_name = "TEXT", requires = "plan")]
    pub(crate) summary: Option<String>,
    #[command(flatten)]
    pub(crate) anew: AnewArguments,
}

/// A task begun again from an event.
#[derive(Debug, Args)]
pub(crate) struct RerunArguments {
    /// Id, or a part of it that no other task has
    pub(crate) task: String,
    /// Number of the event, as `rally task timeline` shows it
    #[arg(long, value_name = "NUMBER")]
    pub(crate) event: i64,
    #[command(flatten)]
    pub(crate) anew: AnewArguments,
}

/// One more turn.
#[derive(Debug, Args)]
pub(crate) struct RetryTurnArguments {
    /// Id, or a part of it that no other task has
    pub(crate) task: String,
    /// What to say instead of "continue or report"
    #[arg(long, value_name = "TEXT")]
    pub(crate) instruction: Option<String>,
    /// Say the words of this message of the task again
    #[arg(long, value_name = "ID", conflicts_with = "instruction")]
    pub(crate) message: Option<String>,
    /// The session, or a part of its id [default: the one that worked last]
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Begin another session in its place
    #[arg(long)]
    pub(crate) new_session: bool,
    /// Follow this plan of before
    #[arg(long, value_name = "ID")]
    pub(crate) plan_revision: Option<String>,
    /// Variable of this environment that the agent gets again; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
}

/// A person's word on a result.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("word").required(true).args(["pass", "fail"]))]
pub(crate) struct ValidateArguments {
    /// Id, or a part of it that no other task has
    pub(crate) task: String,
    /// It holds
    #[arg(long)]
    pub(crate) pass: bool,
    /// It does not
    #[arg(long)]
    pub(crate) fail: bool,
    /// What shows it
    #[arg(long, value_name = "TEXT")]
    pub(crate) evidence: String,
    /// Who says so
    #[arg(long, value_name = "NAME")]
    pub(crate) by: String,
    /// Although checks say otherwise
    #[arg(long = "override")]
    pub(crate) overrides: bool,
}
