//! The agents that come with Rallypoint: bodies of `rally agent-serve NAME`.
//!
//! Each one is an ordinary agent of the Agent Client Protocol on standard
//! input and output, started and supervised like any other program, so that
//! there is no second way to run work:
//!
//! - `shell` runs the commands that a prompt contains,
//! - `command` wraps any command line program,
//! - `scripted` plays a script, for demonstrations,
//! - `scenario` misbehaves on purpose, for tests.
//!
//! They block on threads and hold no state beyond their process.

use std::io::{BufRead, BufReader, Write};
use std::process::ExitCode;

use rallypoint_acp::agent_side::{Agent, AgentServer};

mod command;
mod commands;
mod output;
mod report;
mod run;
mod scenario;
mod script;
mod scripted;
mod shell;
mod tool_run;

pub use scenario::SCENARIOS;

/// Exit code for a command line that cannot be used.
const USAGE: u8 = 2;

/// Serves the built-in agent of this name on standard input and output until the input ends.
pub fn serve(name: &str, args: &[String]) -> ExitCode {
    serve_on(name, args, BufReader::new(std::io::stdin()), std::io::stdout())
}

/// Serves the scenario agent: arguments are the scenario's name and its own arguments.
pub fn scenario(args: &[String]) -> ExitCode {
    serve("scenario", args)
}

fn serve_on(
    name: &str,
    args: &[String],
    input: impl BufRead,
    output: impl Write + Send + 'static,
) -> ExitCode {
    match name {
        "shell" => serve_agent(shell::ShellAgent::default(), input, output),
        "command" => match command::CommandAgent::from_args(args) {
            Ok(agent) => serve_agent(agent, input, output),
            Err(message) => usage(&message),
        },
        "scripted" => match scripted::ScriptedAgent::from_args(args) {
            Ok(agent) => serve_agent(agent, input, output),
            Err(message) => usage(&message),
        },
        "scenario" => scenario::serve(args, input, output),
        _ => {
            usage(&format!("there is no built-in agent `{name}`\nuse one of `shell`, `command`, `scripted`"))
        }
    }
}

fn serve_agent(agent: impl Agent, input: impl BufRead, output: impl Write + Send + 'static) -> ExitCode {
    match AgentServer::new(agent).serve(input, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("cannot read requests: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn usage(message: &str) -> ExitCode {
    complain(message);
    ExitCode::from(USAGE)
}

fn complain(message: &str) {
    // With standard error gone there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "agent-serve: {message}");
}

#[cfg(test)]
mod tests;
