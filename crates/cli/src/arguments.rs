//! What can be typed after `rally`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use rallypoint_model::permission::Preset;

use crate::duration::Milliseconds;

pub(crate) mod policy;
pub(crate) mod rooms;
pub(crate) mod search;
pub(crate) mod steering;
pub(crate) mod trees;
pub(crate) mod wanted;

/// Sends agents out to work and brings every result back to the room that asked.
#[derive(Debug, Parser)]
#[command(name = "rally", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// Data folder [default: $RALLY_HOME, else `rallypoint` in the XDG data folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Write JSON to stdout, in the schema of the API
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 usage, 3 waiting on a person, 4 timed out, \
                          5 ended and verification not passed, 130 interrupted";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Give a goal to an agent and follow it to its end
    Run(RunArguments),
    /// List, show, follow, stop and correct tasks
    Task {
        #[command(subcommand)]
        verb: TaskVerb,
    },
    /// Make, read and reset rooms, and speak in them
    Room {
        #[command(subcommand)]
        verb: rooms::RoomVerb,
    },
    /// Look after messages on their way to platform conversations
    Delivery {
        #[command(subcommand)]
        verb: rooms::DeliveryVerb,
    },
    /// List and answer what waits for a person
    Question {
        #[command(subcommand)]
        verb: QuestionVerb,
    },
    /// Explain what agents may do without a person
    Policy {
        #[command(subcommand)]
        verb: policy::PolicyVerb,
    },
    /// List agents: where they are, which version, whether a login shows, and what to do next
    #[command(args_conflicts_with_subcommands = true)]
    Agents {
        /// Only these
        names: Vec<String>,
        #[command(subcommand)]
        verb: Option<AgentsVerb>,
    },
    /// Read the full output of a run
    Result {
        #[command(subcommand)]
        verb: ResultVerb,
    },
    /// Run the daemon in this terminal
    Serve(ServeArguments),
    /// Look at the daemon, or end it
    Daemon {
        #[command(subcommand)]
        verb: DaemonVerb,
    },
    /// Add up what agents used, in tokens and money
    Usage(UsageArguments),
    /// Look for words in tasks, messages and events, newest first
    Search(search::SearchArguments),
    /// List every operation of the API, with its verb, route and slash form
    Operations,
    /// Print a link that lets a browser in, once
    Open,
    /// Be the agent of an editor: serve the Agent Client Protocol on standard input and output
    Acp(AcpArguments),
    /// Serve our tools to the agent of a session; started by the agent
    Mcp(McpArguments),
    /// Check what this machine has and lacks
    Doctor,
    /// Watch three agents work on one small task, in a throw-away folder
    Demo(DemoArguments),
}

pub(crate) fn option_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((id, value)) if !id.trim().is_empty() => Ok((id.trim().to_owned(), value.to_owned())),
        _ => Err("write it as `ID=VALUE`".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// What is to be reached
    pub(crate) goal: String,
    /// Agent or profile [default: the only ready one; `shell` when the goal contains commands]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Program and arguments of an agent that speaks the Agent Client Protocol
    #[arg(long, value_name = "COMMAND")]
    pub(crate) agent_cmd: Option<String>,
    /// Where the program of `--agent` is, when it is not on `PATH`
    #[arg(long, value_name = "PROGRAM", requires = "agent", conflicts_with = "agent_cmd")]
    pub(crate) agent_path: Option<PathBuf>,
    /// Variable of this environment that the agent gets too; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
    /// Option of the agent's conversation, such as its mode or model; may be repeated
    #[arg(long, value_name = "ID=VALUE", value_parser = option_pair)]
    pub(crate) set: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) wanted: wanted::WantedArguments,
    /// File that goes with the goal, a picture too; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    /// What the agent may do without a person: readonly, verifier, standard, permissive or autonomous
    #[arg(long, value_name = "PRESET")]
    pub(crate) permissions: Option<Preset>,
    /// Work folder [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Room that asks [default: main]
    #[arg(long, value_name = "ID")]
    pub(crate) room: Option<String>,
    /// The platform's id of the message that asks; replies name it, and the same id asks once
    #[arg(long, value_name = "ID", requires = "room")]
    pub(crate) platform_message: Option<String>,
    /// How the room's conversation hears of this work while it goes on: compact, threaded or silent [default: as the room]
    #[arg(long, value_name = "MODE", value_parser = rooms::progress_mode, requires = "room")]
    pub(crate) progress: Option<rallypoint_model::progress::ProgressMode>,
    /// Room where its agents talk among themselves [default: none]
    #[arg(long, value_name = "ID")]
    pub(crate) worktree_room: Option<String>,
    /// Statement that a person has to accept; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) accept: Vec<String>,
    /// Command that must exit 0 in the work folder; may be repeated
    #[arg(long, value_name = "CMD")]
    pub(crate) check: Vec<String>,
    /// Total time, such as `90s`, `10m`, `1h` or `500ms`
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Milliseconds>,
    /// Take the result without proof
    #[arg(long)]
    pub(crate) unchecked: bool,
    #[command(flatten)]
    pub(crate) admission: trees::AdmissionArguments,
    /// Print the task's id and leave it running
    #[arg(long)]
    pub(crate) detach: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskVerb {
    /// List tasks, latest first
    List(steering::ListArguments),
    /// Add up all tasks by where they stand
    Status,
    /// Show the slots and who waits for one
    Queue,
    /// Change its title, goal, criteria, priority or agent
    Edit(steering::EditArguments),
    /// Hold it: turns are cancelled, what waits is held, its sessions are kept
    Pause(steering::AllArguments),
    /// Let it go on in the same sessions
    Resume(steering::AllArguments),
    /// Open it again when it has ended
    Reopen {
        /// Id, or a part of it that no other task has
        task: String,
    },
    /// Make another task of it, and start its work
    Fork(steering::ForkArguments),
    /// Say something to whoever works on it
    Message {
        /// Id, or a part of it that no other task has
        task: String,
        /// The words
        text: String,
    },
    /// Read what was said about it, latest first
    Messages(steering::PartArguments),
    /// Read what was said and done about it, latest first
    Timeline(steering::PartArguments),
    /// Read who decided what about it, latest first
    Decisions(steering::PartArguments),
    /// List what it brought forth
    Artifacts(steering::PartArguments),
    /// Read its plans, or give it a newer one
    Plan {
        #[command(subcommand)]
        verb: steering::PlanVerb,
    },
    /// Begin it again in new sessions
    Restart(steering::RestartArguments),
    /// Begin it again from what was known at an event
    Rerun(steering::RerunArguments),
    /// Give a session of it one more turn
    RetryTurn(steering::RetryTurnArguments),
    /// Say by name whether its result holds
    Validate(steering::ValidateArguments),
    /// Run the checks of its result once more
    Check {
        /// Id, or a part of it that no other task has
        task: String,
        /// Wait for their end, for a minute at most
        #[arg(long)]
        wait: bool,
    },
    /// Show one task, whole
    Show {
        /// Id, or a part of it that no other task has
        task: String,
    },
    /// Show what happened
    Log {
        /// Id, or a part of it that no other task has
        task: String,
        /// Go on until the task has ended
        #[arg(long)]
        follow: bool,
    },
    /// Start one more sub-agent for it, or for one of its sub-agents
    Spawn(trees::SpawnArguments),
    /// Let the turn of a sub-agent wait for those that it started; it holds no slot meanwhile
    Wait {
        /// Session id, or a part of it that no other session of the latest tasks has
        session: String,
    },
    /// Stop all work on it, or one sub-agent and all below it
    Stop(trees::StopArguments),
    /// Give it another run in its last session
    Retry {
        /// Id, or a part of it that no other task has
        task: String,
        /// What to say instead of "continue or report"
        #[arg(long)]
        text: Option<String>,
        /// Variable of this environment that the agent gets again; may be repeated
        #[arg(long, value_name = "NAME")]
        pass_env: Vec<String>,
    },
    /// Accept or reject its result by name and reason
    #[command(group = clap::ArgGroup::new("verdict").required(true).args(["accept", "reject"]))]
    Override {
        /// Id, or a part of it that no other task has
        task: String,
        /// Take the result
        #[arg(long)]
        accept: bool,
        /// Refuse the result
        #[arg(long)]
        reject: bool,
        /// Who decides
        #[arg(long, value_name = "NAME")]
        by: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Put a task that is over out of sight
    Archive {
        /// Id, or a part of it that no other task has
        task: String,
        /// Stop whoever works on it first
        #[arg(long)]
        stop: bool,
    },
    /// Bring an archived task back
    Unarchive {
        /// Id, or a part of it that no other task has
        task: String,
    },
    /// Hide a task for good, or remove its content
    Delete {
        /// Id, or a part of it that no other task has
        task: String,
        /// Remove goal, messages, outputs and files; ids and times stay
        #[arg(long)]
        purge: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Print the path of a sub-agent's transcript
    Transcript {
        /// Session id, or a part of it that no other session of the latest tasks has
        session: String,
    },
    /// Want another mode, model, thought level or option of a sub-agent, from its next prompt on
    #[command(group = clap::ArgGroup::new("what").required(true).multiple(true)
        .args(["model", "mode", "thinking", "set"]))]
    Set {
        /// Session id, or a part of it that no other session of the latest tasks has
        session: String,
        #[command(flatten)]
        wanted: wanted::WantedArguments,
        /// Option of the agent's conversation; may be repeated
        #[arg(long, value_name = "ID=VALUE", value_parser = option_pair)]
        set: Vec<(String, String)>,
    },
    /// Say something to a sub-agent
    Send {
        /// Session id, or a part of it that no other session of the latest tasks has
        session: String,
        /// The words
        text: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum QuestionVerb {
    /// List what waits for an answer
    List,
    /// Answer a question, once
    #[command(group = clap::ArgGroup::new("answer").required(true)
        .args(["allow", "decline", "text", "accept", "option", "field"]))]
    Answer {
        /// Id, or a part of it that no other question has
        question: String,
        /// Allow it once
        #[arg(long)]
        allow: bool,
        /// No, and why
        #[arg(long, value_name = "REASON")]
        decline: Option<String>,
        /// Words, for a question of an agent
        #[arg(long, value_name = "TEXT")]
        text: Option<String>,
        /// Accept the result
        #[arg(long)]
        accept: bool,
        /// Take this option
        #[arg(long, value_name = "ID")]
        option: Option<String>,
        /// Value of a field of a form; may be repeated
        #[arg(long, value_name = "NAME=VALUE", value_parser = option_pair)]
        field: Vec<(String, String)>,
        /// Answer as an agent and within what it may decide: `main`, or the session of one above
        #[arg(long = "as", value_name = "AGENT")]
        as_agent: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct UsageArguments {
    /// Only of this task
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// Only of tasks that this room asked for
    #[arg(long, value_name = "ID")]
    pub(crate) room: Option<String>,
    /// Only of runs that ended on this day of UTC, such as 2026-03-01
    #[arg(long, value_name = "DAY")]
    pub(crate) day: Option<jiff::civil::Date>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsVerb {
    /// Show who works for a room, as its main agent gets to know it
    Active {
        /// Id, a part of it that no other room has, or `main`
        #[arg(long, value_name = "ID", default_value = "main")]
        room: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ResultVerb {
    /// Print it
    Get {
        /// Id of the run, or a part of it that no other run of the latest tasks has
        run: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Listen here, on a loopback address [default: 127.0.0.1:4747, or a free port when that is taken]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// Listen on the socket in the data folder only
    #[arg(long, conflicts_with = "listen")]
    pub(crate) no_listen: bool,
    /// Use a throw-away data folder
    #[arg(long)]
    pub(crate) ephemeral: bool,
    /// End after ten idle minutes
    #[arg(long)]
    pub(crate) idle_exit: bool,
    /// Leave the terminal's session; for a daemon that a command starts
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonVerb {
    /// Show it and what it holds
    Status,
    /// End it; agents live on and are found again by the next one
    Stop,
}

#[derive(Debug, Args)]
pub(crate) struct AcpArguments {
    /// Agent that works on prompts [default: chosen as for `rally run`]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Command line of an agent without a profile
    #[arg(long, value_name = "COMMAND")]
    pub(crate) agent_cmd: Option<String>,
    /// Variable of this environment that the agent gets; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
    /// What the agent may do without a person: readonly, verifier, standard, permissive or autonomous
    #[arg(long, value_name = "PRESET")]
    pub(crate) permissions: Option<Preset>,
    /// Command that must exit 0 in the work folder after each prompt; may be repeated. Without one results are taken
    /// without proof
    #[arg(long, value_name = "CMD")]
    pub(crate) check: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct McpArguments {
    /// The session; its token is taken from `RALLY_SESSION_TOKEN`
    #[arg(long, value_name = "ID")]
    pub(crate) session: rallypoint_model::ids::SessionId,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Let the worker claim again instead of repairing, so that the check never passes
    #[arg(long)]
    pub(crate) without_repair: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use rallypoint_ops::OPERATIONS;

    use super::*;

    fn parsed(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_operation_that_names_a_verb_is_reached_by_it() {
        for operation in OPERATIONS {
            let Some(words) = operation.cli else { continue };
            let mut command = Arguments::command();
            for word in words.split(' ').filter(|word| !word.starts_with('-')) {
                let found = command.find_subcommand(word).cloned();
                command =
                    found.unwrap_or_else(|| panic!("`rally {words}` of `{}` is missing", operation.name));
            }
            for option in words.split(' ').filter_map(|word| word.strip_prefix("--")) {
                assert!(command.get_arguments().any(|each| each.get_long() == Some(option)), "{words}");
            }
        }
    }

    #[test]
    fn a_run_takes_all_its_options() {
        let line = "rally run goal --agent shell --check true --check false --accept ok --timeout 90s --json --detach";
        let arguments = parsed(line).unwrap();
        assert!(arguments.json);
        let Verb::Run(run) = arguments.verb else { panic!("not a run") };
        assert_eq!(run.check, ["true", "false"]);
        assert_eq!(run.timeout, Some(Milliseconds(90_000)));
        assert!(run.detach && !run.unchecked);
    }

    #[test]
    fn usage_errors_are_exit_code_2() {
        for line in [
            "rally run",
            "rally run goal --timeout soon",
            "rally dance",
            "rally task override 1 --by a --reason b",
            "rally task stop",
            "rally task stop 1 --session 2",
            "rally task spawn 1",
            "rally run goal --priority soon",
            "rally task override 1 --accept --reject --by a --reason b",
            "rally question answer 1",
            "rally question answer 1 --allow --text x",
            "rally serve --listen here",
        ] {
            let error = parsed(line).unwrap_err();
            assert_eq!((error.exit_code(), error.use_stderr()), (2, true), "{line}");
        }
        assert_eq!(parsed("rally --help").unwrap_err().exit_code(), 0);
    }
}
