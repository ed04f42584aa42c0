//! The agent that wraps any command line program: the prompt goes in, the output is the answer.

use std::process::Command;

use rallypoint_acp::agent_side::{Agent, PromptEnd, Turn};
use rallypoint_acp::rpc::RpcError;
use rallypoint_model::agent_io::PromptPart;

use crate::output::{OpenFence, code};
use crate::report;
use crate::run::{Ended, Stream, Streams, run};

/// How the program gets the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    StandardInput,
    LastArgument,
}

/// The agent.
#[derive(Debug)]
pub(crate) struct CommandAgent {
    delivery: Delivery,
    program: String,
    arguments: Vec<String>,
}

impl CommandAgent {
    /// Reads `[--stdin|--arg] -- program args…`.
    pub(crate) fn from_args(args: &[String]) -> Result<Self, String> {
        let mut delivery = Delivery::StandardInput;
        let mut rest = args.iter();
        let mut program = None;
        for arg in rest.by_ref() {
            match arg.as_str() {
                "--stdin" => delivery = Delivery::StandardInput,
                "--arg" => delivery = Delivery::LastArgument,
                "--" => break,
                option if option.starts_with('-') => return Err(format!("unknown option `{option}`")),
                name => {
                    program = Some(name.to_owned());
                    break;
                }
            }
        }
        let program = program.or_else(|| rest.next().cloned()).filter(|program| !program.is_empty());
        let program =
            program.ok_or("no program given\nuse `command [--stdin|--arg] -- PROGRAM [ARGUMENT…]`")?;
        Ok(Self { delivery, program, arguments: rest.cloned().collect() })
    }
}

impl Agent for CommandAgent {
    fn name(&self) -> &'static str {
        "rallypoint-command"
    }

    fn prompt(&self, turn: &Turn) -> Result<PromptEnd, RpcError> {
        let prompt = prompt_text(turn);
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&turn.session.cwd);
        let input = match self.delivery {
            Delivery::StandardInput => Some(prompt),
            Delivery::LastArgument => {
                command.arg(prompt);
                None
            }
        };
        let mut fence = OpenFence::default();
        let ended = run(command, Streams::Apart, input, turn, |stream, text| match stream {
            Stream::Out => {
                fence.push(text);
                turn.send_message_chunk(text);
            }
            Stream::Err => turn.send_thought(text),
        });
        let failure = match ended {
            Ok(Ended { cancelled: true, .. }) => return Ok(PromptEnd::stopped("cancelled")),
            Ok(Ended { code: 0, .. }) => return Ok(PromptEnd::stopped("end_turn")),
            Ok(Ended { code: exit_code, .. }) => format!("{} exited with {exit_code}", code(&self.program)),
            Err(error) => {
                format!("cannot start {} in `{}`: {error}", code(&self.program), turn.session.cwd.display())
            }
        };
        let report = report::block(&report::failed(failure.clone()));
        turn.send_message_chunk(&format!("{}{failure}\n\n{report}", fence.closing()));
        Ok(PromptEnd::stopped("end_turn"))
    }
}

/// Everything that is meant for the program; the frame speaks of tools and
/// rooms that a plain program does not have.
fn prompt_text(turn: &Turn) -> String {
    let meant = turn.prompt.iter().filter(|block| block.part != Some(PromptPart::Frame));
    let texts: Vec<&str> = meant.map(|block| block.text.trim_end()).collect();
    texts.join("\n\n") + "\n"
}
