//! The agent that misbehaves on purpose.
//!
//! Each scenario is one thing that agents have been seen doing, so that a test
//! can meet it in milliseconds and every time the same. Hidden from lists;
//! `rally agent-serve scenario NAME [ARGUMENT…]`.

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rallypoint_acp::agent_side::AgentServer;

use crate::{complain, usage};

mod accounts;
mod memory;
mod modern;
mod odd_frames;
mod permits;
mod quirks;
mod spending;
mod steerable;
mod tools;
mod turns;

use turns::ScenarioAgent;

/// Longer than any test: such an agent does not end when its input does.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Bytes of noise of `garbage`.
const GARBAGE_BYTES: usize = 200 * 1024;

/// The scenarios and what each does.
pub const SCENARIOS: &[(&str, &str)] = &[
    ("good", "says hello and ends the turn"),
    ("claims", "claims completion with a report and does nothing"),
    ("empty", "ends the turn with nothing said"),
    ("garbage", "prints 200 KiB of noise and exits with 0"),
    ("silent", "never answers anything"),
    ("dies-at-once", "exits with 3 and a word on standard error"),
    ("dies-in-prompt", "says one chunk and exits with 9"),
    ("exits-zero-in-prompt", "says one chunk and exits with 0"),
    ("login", "refuses a session until somebody logs in"),
    ("login-in-prompt", "refuses a prompt until somebody logs in"),
    ("error-in-prompt", "answers a prompt with an internal error"),
    ("unknown-stop", "ends with a stop reason that nobody knows"),
    ("max-tokens", "ends at a token limit"),
    ("refusal", "refuses"),
    ("waits-for-file", "PATH: works until the file exists, at most 120 s"),
    ("ignores-cancel", "ticks for ever, through a cancel and the end of its input"),
    ("ignores-term", "the same, and through SIGTERM"),
    ("forks", "leaves a process in a session of its own behind"),
    ("counts", "FILE [CHUNKS [MILLISECONDS]]: notes each prompt in the file before it works"),
    ("double-answer", "answers a prompt twice and repeats its last chunk"),
    ("late", "says something 50 ms after its answer"),
    ("junk-lines", "prints banners, colours and logs between its frames"),
    ("unknown-kinds", "sends kinds that nobody knows and a request that has to be answered"),
    ("huge-line", "BYTES: says that much in one line"),
    ("flood", "CHUNKS: says that many chunks as fast as it can"),
    ("bad-utf8", "says bytes that are no UTF-8"),
    ("permission", "asks for permission and says what it was given"),
    ("permission-wait", "asks for permission and waits for the answer even when cancelled"),
    (
        "permits",
        "N [leaves]: asks for N things at once; what is allowed writes `ran-N`; may end its turn before the answers",
    ),
    ("stderr-flood", "writes 1 MiB to standard error before it answers"),
    ("no-newline", "leaves out the line end of its last frame and exits"),
    ("usage", "reports tokens with its answer"),
    ("split-secret", "TEXT: says the text in chunks of 3 bytes"),
    ("options", "takes options, but not `unknown`, and says which it has"),
    (
        "remembers",
        "FILE [CUTS]: dies in its first prompts, that many of them, and can load its session from the file",
    ),
    ("ignores-eof", "answers and does not end when its input does"),
    ("slow-open", "MILLISECONDS: opens a session that slowly, with signs of life"),
    ("fails-login", "CODE MESSAGE: refuses a session with this error"),
    ("fails-login-in-prompt", "CODE MESSAGE: refuses a prompt with this error"),
    ("leaves-child", "leaves a process in its own group behind"),
    ("works-on", "goes on after its answer, for a conversation of its own making"),
    ("accounts", "MODEL: counts tokens and money over its whole conversation"),
    (
        "spends",
        "WAY FILE: says what it uses beside its `calls`, in an `error`, in a `failure`, or until it is `cut` off",
    ),
    ("apologises", "ends its turn well, with a provider's failure as its words"),
    ("modern", "FILE: offers options, resumes and closes, and does what `do-…` in its goal says"),
    ("older", "FILE: the same with modes and models from before there were options"),
    (
        "calls",
        "FILE: starts its tool server, makes the calls in the file, one a line, and says what they gave",
    ),
    (
        "steerable",
        "[FILE]: takes words in its turn until it is told to finish, or refuses them until the file is there",
    ),
    ("forgets", "FILE: dies in its first prompt, says that it can load sessions and can't"),
];

/// Plays the scenario that the arguments name.
pub(crate) fn serve(args: &[String], input: impl BufRead, output: impl Write + Send + 'static) -> ExitCode {
    let Some((name, args)) = args.split_first() else {
        return usage("no scenario given");
    };
    match name.as_str() {
        "garbage" => garbage(output),
        "silent" => silent(input),
        "dies-at-once" => {
            complain("cannot find its configuration");
            ExitCode::from(3)
        }
        "ignores-term" => ignores_term(),
        "modern" | "older" => match args.first() {
            Some(notes) => {
                let age = if name == "modern" { modern::Age::Modern } else { modern::Age::Older };
                modern::serve(age, notes.into(), input, output)
            }
            None => usage(&format!("scenario `{name}` needs a file")),
        },
        "steerable" => steerable::serve(args.first().map(String::as_str), input, output),
        name => match ScenarioAgent::from_args(name, args) {
            Ok(agent) => with_server(agent, input, output),
            Err(message) => usage(&message),
        },
    }
}

fn with_server(
    agent: ScenarioAgent,
    input: impl BufRead,
    mut output: impl Write + Send + 'static,
) -> ExitCode {
    let eof_grace = if agent.outlives_its_input() { FOR_EVER } else { Duration::from_secs(5) };
    // A reader that is gone ends the server below as well.
    let _ = output.write_all(agent.banner());
    match AgentServer::new(agent).eof_grace(eof_grace).serve(input, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("cannot read requests: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Words, broken JSON, other JSON and bytes without meaning, until there is enough of it.
fn garbage(mut output: impl Write) -> ExitCode {
    let mut written = 0;
    let mut number: u8 = 0;
    while written < GARBAGE_BYTES {
        number = number.wrapping_add(1);
        let noise: Vec<u8> = (0..64).map(|place: u8| place.wrapping_mul(number) | 0x80).collect();
        let line = format!(
            "migrating table {number}\n{{\"level\":\"info\",\"id\":{number}}}\n{{\"jsonrpc\":\n[{number}]\n"
        );
        for bytes in [line.as_bytes(), &noise, b"\n"] {
            if output.write_all(bytes).is_err() {
                return ExitCode::SUCCESS;
            }
            written += bytes.len();
        }
    }
    // Nothing depends on noise that does not arrive.
    let _ = output.flush();
    ExitCode::SUCCESS
}

fn silent(mut input: impl BufRead) -> ExitCode {
    let mut buffer = [0; 4096];
    while matches!(input.read(&mut buffer), Ok(length) if length > 0) {}
    ExitCode::SUCCESS
}

/// Goes on as `ignores-cancel` with SIGTERM ignored: a shell can ignore a
/// signal for a program that it turns into, and this program cannot do that
/// for itself without unsafe code.
fn ignores_term() -> ExitCode {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("rally"));
    let error = Command::new("sh")
        .args(["-c", "trap '' TERM INT HUP; exec \"$0\" \"$@\""])
        .arg(own)
        .args(["agent-serve", "scenario", "ignores-cancel"])
        .exec();
    complain(&format!("cannot start itself again: {error}"));
    ExitCode::FAILURE
}
