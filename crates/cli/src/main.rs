//! The program `rally`.
//!
//! Every verb but two is a client of the daemon's API. The two, `shim` and `agent-serve`, are the processes that the
//! daemon starts; they are told apart before anything else happens, since the shim must be one thread that uses next
//! to no memory.

mod acp;
mod agents;
mod arguments;
mod autostart;
mod daemon;
mod data_folder;
mod delivery;
mod demo;
mod doctor;
mod duration;
mod environment;
mod failure;
mod mcp;
mod open;
mod operations;
mod output;
mod policy;
mod question;
mod resolve;
mod results;
mod room;
mod run;
mod search;
mod serve;
mod show;
mod task;
mod usage;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{AgentsVerb, Arguments, Verb};
use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match words.split_first() {
        Some((verb, rest)) if verb == "shim" => shim(rest),
        Some((verb, rest)) if verb == "agent-serve" => agent(rest),
        _ => command_line(),
    }
}

fn shim(rest: &[OsString]) -> ExitCode {
    match rest {
        [folder] => rallypoint_process::shim::run_shim(Path::new(folder)),
        _ => misused(
            "`rally shim` takes the folder of one generation",
            "it is started by the daemon, not by hand",
        ),
    }
}

fn agent(rest: &[OsString]) -> ExitCode {
    let texts: Vec<String> = rest.iter().map(|word: &OsString| word.to_string_lossy().into_owned()).collect();
    match texts.split_first() {
        Some((name, arguments)) => rallypoint_agents::serve(name, arguments),
        None => misused("`rally agent-serve` takes the name of an agent", "`rally agents` lists them"),
    }
}

fn misused(message: &str, hint: &str) -> ExitCode {
    let failure = Failure::usage(message).with_hint(hint);
    failure.print(&mut Output::new(output::Form::Text));
    failure.exit_code()
}

fn command_line() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // A help text that nobody reads any more is no failure.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(failure::USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let mut output = Output::new(if arguments.json { output::Form::Json } else { output::Form::Text });
    match started(arguments, &mut output) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure.print(&mut output);
            failure.exit_code()
        }
    }
}

fn started(arguments: Arguments, output: &mut Output) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("the program can't start its threads: {error}")))?;
    let ended = runtime.block_on(carried_out(arguments, output));
    // A thread may still wait for a line on the terminal.
    runtime.shutdown_background();
    ended
}

async fn carried_out(arguments: Arguments, output: &mut Output) -> Result<u8, Failure> {
    let given = arguments.data.as_deref();
    if let Verb::Demo(demo) = arguments.verb {
        return demo::carry_out(demo, output).await;
    }
    if let Verb::Serve(serve) = arguments.verb {
        return serve::carry_out(serve, given, output).await;
    }
    let connector = Connector::new(data_folder::resolve(given, |name| std::env::var_os(name))?)?;
    match arguments.verb {
        Verb::Run(run) => run::carry_out(run, &connector, output).await,
        Verb::Task { verb } => task::carry_out(verb, &connector, output).await,
        Verb::Room { verb } => room::carry_out(verb, &connector, output).await,
        Verb::Delivery { verb } => delivery::carry_out(verb, &connector, output).await,
        Verb::Question { verb } => question::carry_out(verb, &connector, output).await,
        Verb::Agents { names, verb: None } => agents::carry_out(names, &connector, output).await,
        Verb::Agents { verb: Some(AgentsVerb::Active { room }), .. } => {
            agents::active(&room, &connector, output).await
        }
        Verb::Policy { verb } => policy::carry_out(verb, &connector, output).await,
        Verb::Result { verb } => results::carry_out(verb, &connector, output).await,
        Verb::Daemon { verb } => daemon::carry_out(verb, &connector, output).await,
        Verb::Search(arguments) => search::carry_out(arguments, &connector, output).await,
        Verb::Usage(arguments) => usage::carry_out(arguments, &connector, output).await,
        Verb::Mcp(arguments) => mcp::carry_out(&arguments, &connector).await,
        Verb::Operations => operations::carry_out(&connector, output).await,
        Verb::Acp(arguments) => acp::carry_out(&arguments, &connector).await,
        Verb::Open => open::carry_out(&connector, output).await,
        Verb::Doctor => doctor::carry_out(&connector, output).await,
        // Told apart above.
        Verb::Demo(_) | Verb::Serve(_) => Ok(0),
    }
}
