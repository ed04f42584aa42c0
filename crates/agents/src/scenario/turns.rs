//! Scenarios that speak the protocol, if badly.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use rallypoint_acp::agent_side::{
    Agent, Client, PermissionAnswer, PermissionChoice, PromptEnd, Session, ToolUpdate, Turn,
};
use rallypoint_acp::rpc::{AUTH_REQUIRED, INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use rallypoint_model::completion::{CompletionReport, ReportedTest};

use super::accounts::Accounts;
use super::memory::Memory;
use super::odd_frames;
use super::permits::Permits;
use super::quirks::{self, SlowStart};
use super::spending::Spending;
use super::tools;
use crate::report;

/// How long `waits-for-file` waits.
const FILE_AT_MOST: Duration = Duration::from_secs(120);
/// How often it looks.
const FILE_CHECK: Duration = Duration::from_millis(20);
/// Pace of `ignores-cancel`.
const TICK: Duration = Duration::from_millis(100);
/// How long after its answer `late` speaks again.
const LATE: Duration = Duration::from_millis(50);
/// What `stderr-flood` writes.
const STDERR_BYTES: usize = 1024 * 1024;

const CHOICES: [PermissionChoice<'static>; 3] = [
    PermissionChoice { id: "never", name: "Reject", kind: "reject_once" },
    PermissionChoice { id: "always", name: "Allow for this session", kind: "allow_always" },
    PermissionChoice { id: "once", name: "Allow", kind: "allow_once" },
];

/// The agent of one scenario.
#[derive(Debug)]
pub(super) struct ScenarioAgent {
    scenario: Scenario,
}

#[derive(Debug)]
enum Scenario {
    Good,
    Claims,
    Empty,
    Exits(i32),
    Login,
    LoginInPrompt,
    ErrorInPrompt,
    Stops(&'static str),
    WaitsForFile(PathBuf),
    IgnoresCancel,
    Forks,
    Counts { file: PathBuf, chunks: u64, milliseconds: u64 },
    DoubleAnswer,
    Late,
    JunkLines,
    UnknownKinds,
    HugeLine(usize),
    Flood(u64),
    BadUtf8,
    Permission,
    PermissionWait,
    Permits(Permits),
    StderrFlood,
    NoNewline,
    Usage,
    SplitSecret(String),
    Remembers(Memory),
    Options(std::sync::Mutex<Vec<String>>),
    IgnoresEof,
    Slow(SlowStart),
    FailsLogin(RpcError),
    FailsLoginInPrompt(RpcError),
    LeavesChild,
    WorksOn,
    Apologises,
    Accounts(Accounts),
    Calls(PathBuf),
    Spends(Spending),
}

impl ScenarioAgent {
    pub(super) fn from_args(name: &str, args: &[String]) -> Result<Self, String> {
        let text = |place: usize, what: &str| {
            args.get(place).cloned().ok_or_else(|| format!("scenario `{name}` needs {what}"))
        };
        let number = |place: usize, default: Option<u64>| match (args.get(place), default) {
            (Some(digits), _) => {
                digits.parse().map_err(|_| format!("scenario `{name}`: `{digits}` is no number"))
            }
            (None, Some(default)) => Ok(default),
            (None, None) => Err(format!("scenario `{name}` needs a number")),
        };
        let scenario = match name {
            "good" => Scenario::Good,
            "claims" => Scenario::Claims,
            "empty" => Scenario::Empty,
            "dies-in-prompt" => Scenario::Exits(9),
            "exits-zero-in-prompt" => Scenario::Exits(0),
            "login" => Scenario::Login,
            "login-in-prompt" => Scenario::LoginInPrompt,
            "error-in-prompt" => Scenario::ErrorInPrompt,
            "unknown-stop" => Scenario::Stops("banana"),
            "max-tokens" => Scenario::Stops("max_tokens"),
            "refusal" => Scenario::Stops("refusal"),
            "waits-for-file" => Scenario::WaitsForFile(text(0, "a path")?.into()),
            "ignores-cancel" => Scenario::IgnoresCancel,
            "forks" => Scenario::Forks,
            "counts" => Scenario::Counts {
                file: text(0, "a file")?.into(),
                chunks: number(1, Some(5))?,
                milliseconds: number(2, Some(0))?,
            },
            "double-answer" => Scenario::DoubleAnswer,
            "late" => Scenario::Late,
            "junk-lines" => Scenario::JunkLines,
            "unknown-kinds" => Scenario::UnknownKinds,
            "huge-line" => Scenario::HugeLine(number(0, None)? as usize),
            "flood" => Scenario::Flood(number(0, None)?),
            "bad-utf8" => Scenario::BadUtf8,
            "permission" => Scenario::Permission,
            "permission-wait" => Scenario::PermissionWait,
            "permits" => Scenario::Permits(Permits {
                count: number(0, Some(3))?,
                leaves: args.get(1).is_some_and(|word| word == "leaves"),
            }),
            "stderr-flood" => Scenario::StderrFlood,
            "no-newline" => Scenario::NoNewline,
            "usage" => Scenario::Usage,
            "split-secret" => Scenario::SplitSecret(text(0, "a text")?),
            "options" => Scenario::Options(std::sync::Mutex::default()),
            "remembers" => {
                Scenario::Remembers(Memory::new(text(0, "a file")?.into(), number(1, Some(1))?, true))
            }
            "forgets" => Scenario::Remembers(Memory::new(text(0, "a file")?.into(), 1, false)),
            "ignores-eof" => Scenario::IgnoresEof,
            "slow-open" => Scenario::Slow(SlowStart { milliseconds: number(0, None)? }),
            "fails-login" => Scenario::FailsLogin(quirks::error_of(args)?),
            "fails-login-in-prompt" => Scenario::FailsLoginInPrompt(quirks::error_of(args)?),
            "leaves-child" => Scenario::LeavesChild,
            "works-on" => Scenario::WorksOn,
            "apologises" => Scenario::Apologises,
            "calls" => Scenario::Calls(text(0, "a file")?.into()),
            "accounts" => Scenario::Accounts(Accounts::new(text(0, "a model")?)),
            "spends" => Scenario::Spends(Spending::new(&text(0, "a way")?, text(1, "a file")?.into())?),
            _ => return Err(format!("there is no scenario `{name}`")),
        };
        Ok(Self { scenario })
    }

    /// Whether it goes on when its input ends.
    pub(super) fn outlives_its_input(&self) -> bool {
        matches!(self.scenario, Scenario::IgnoresCancel | Scenario::IgnoresEof)
    }

    /// What it prints before anything else.
    pub(super) fn banner(&self) -> &'static [u8] {
        match self.scenario {
            Scenario::JunkLines => b"\x1b[1;32mWelcome to the agent!\x1b[0m\n\nconfig loaded {not json}\n",
            _ => b"",
        }
    }
}

impl Agent for ScenarioAgent {
    fn name(&self) -> &'static str {
        "rallypoint-scenario"
    }

    fn set_option(&self, id: &str, value: &Value) -> Result<(), RpcError> {
        match &self.scenario {
            Scenario::Options(taken) if id != "unknown" => {
                let mut taken = taken.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                taken.push(format!("{id}={value}"));
                Ok(())
            }
            _ => Err(RpcError::new(INVALID_PARAMS, format!("there is no option `{id}`"))),
        }
    }

    fn can_load(&self) -> bool {
        match &self.scenario {
            Scenario::Remembers(_) => true,
            Scenario::Spends(spending) => spending.can_load(),
            _ => false,
        }
    }

    fn load_session(&self, session: &Session, client: &Client) -> Result<(), RpcError> {
        match &self.scenario {
            Scenario::Remembers(memory) => memory.load(session, client),
            Scenario::Spends(spending) => spending.load(session, client),
            _ => Err(RpcError::new(INTERNAL_ERROR, "this agent has no memory")),
        }
    }

    fn open_session(&self, session: &Session) -> Result<(), RpcError> {
        match &self.scenario {
            Scenario::Login => Err(login()),
            Scenario::Spends(spending) => spending.opened(session),
            Scenario::FailsLogin(error) => Err(error.clone()),
            Scenario::Slow(slow) => {
                slow.pass();
                Ok(())
            }
            Scenario::Remembers(memory) => {
                memory.note(&session.cwd, &format!("session {}", session.session_id))
            }
            _ => Ok(()),
        }
    }

    fn prompt(&self, turn: &Turn) -> Result<PromptEnd, RpcError> {
        match &self.scenario {
            Scenario::Good | Scenario::IgnoresEof | Scenario::Slow(_) => turn.send_message_chunk("hello"),
            Scenario::Claims => turn.send_message_chunk(&claim()),
            Scenario::Empty | Scenario::Login | Scenario::FailsLogin(_) => {}
            Scenario::FailsLoginInPrompt(error) => return Err(error.clone()),
            Scenario::LeavesChild => quirks::leave_child(turn)?,
            Scenario::Calls(file) => return tools::prompt(turn, file),
            Scenario::Accounts(accounts) => return Ok(accounts.prompt(turn)),
            Scenario::Spends(spending) => return spending.prompt(turn),
            Scenario::Apologises => turn.send_message_chunk(quirks::APOLOGY),
            Scenario::WorksOn => {
                turn.send_message_chunk("the answer");
                answered_then(turn, quirks::work_on);
                return Ok(PromptEnd::Answered);
            }
            Scenario::Exits(code) => {
                turn.send_message_chunk("I have begun");
                std::process::exit(*code);
            }
            Scenario::LoginInPrompt => return Err(login()),
            Scenario::ErrorInPrompt => {
                let error = RpcError::new(INTERNAL_ERROR, "Internal error");
                return Err(RpcError { data: Some(json!({"details": "the model is not there"})), ..error });
            }
            Scenario::Stops(reason) => {
                turn.send_message_chunk("as far as I came");
                return Ok(PromptEnd::stopped(*reason));
            }
            Scenario::WaitsForFile(path) => return Ok(wait_for_file(turn, path)),
            Scenario::IgnoresCancel => tick_for_ever(turn),
            Scenario::Forks => fork(turn)?,
            Scenario::Counts { file, chunks, milliseconds } => {
                return count(turn, file, *chunks, *milliseconds);
            }
            Scenario::DoubleAnswer => {
                turn.send_message_chunk("only once");
                answered_then(turn, |turn| {
                    answer(turn);
                    turn.send_message_chunk("only once");
                });
                return Ok(PromptEnd::Answered);
            }
            Scenario::Late => {
                turn.send_message_chunk("in time");
                answered_then(turn, |turn| {
                    thread::sleep(LATE);
                    turn.send_message_chunk(", and late");
                });
                return Ok(PromptEnd::Answered);
            }
            Scenario::JunkLines => odd_frames::junk(turn),
            Scenario::UnknownKinds => odd_frames::unknown_kinds(turn),
            Scenario::HugeLine(bytes) => turn.send_message_chunk(&"x".repeat(*bytes)),
            Scenario::Flood(chunks) => {
                (0..*chunks).for_each(|number| turn.send_message_chunk(&format!("chunk {number}\n")));
            }
            Scenario::BadUtf8 => odd_frames::bad_utf8(turn),
            Scenario::Permission => {
                let answer = turn.request_permission("ask-1", "touch a file", "execute", &CHOICES);
                return Ok(permission_end(turn, &answer));
            }
            Scenario::PermissionWait => {
                let answer =
                    turn.request_permission_through_cancel("ask-1", "touch a file", "execute", &CHOICES);
                return Ok(permission_end(turn, &answer));
            }
            Scenario::Permits(permits) => return permits.ask(turn),
            Scenario::StderrFlood => {
                // A reader that is gone is no reason to stop.
                let _ = std::io::stderr()
                    .write_all("noise on the side\n".repeat(STDERR_BYTES / 18 + 1).as_bytes());
                turn.send_message_chunk("said after a lot of noise");
            }
            Scenario::NoNewline => {
                turn.send_message_chunk("the end is near");
                let frame =
                    json!({"jsonrpc": "2.0", "id": turn.request_id, "result": {"stopReason": "end_turn"}});
                turn.client.send_raw(frame.to_string().as_bytes());
                std::process::exit(0);
            }
            Scenario::Usage => {
                turn.send_message_chunk("counted");
                return Ok(PromptEnd::Stopped { stop_reason: "end_turn".to_owned(), extra: usage() });
            }
            Scenario::SplitSecret(text) => odd_frames::split(turn, text),
            Scenario::Remembers(memory) => memory.prompt(turn)?,
            Scenario::Options(taken) => {
                let taken = taken.lock().unwrap_or_else(std::sync::PoisonError::into_inner).join(", ");
                turn.send_message_chunk(&format!("options: {taken}"));
            }
        }
        Ok(PromptEnd::stopped("end_turn"))
    }
}

fn login() -> RpcError {
    RpcError::new(AUTH_REQUIRED, "Authentication required")
}

fn answer(turn: &Turn) {
    turn.client.answer(&turn.request_id, Ok(json!({"stopReason": "end_turn"})));
}

/// Answers and goes on speaking, on a thread of its own: for the server the
/// turn is over, and the next prompt is welcome.
fn answered_then(turn: &Turn, then: impl FnOnce(&Turn) + Send + 'static) {
    let turn = turn.clone();
    thread::spawn(move || {
        answer(&turn);
        then(&turn);
    });
}

fn claim() -> String {
    let report = CompletionReport {
        diff_summary: "Everything was done".to_owned(),
        files_changed: vec!["src/everything.rs".to_owned()],
        test_results: vec![ReportedTest {
            command: "make test".to_owned(),
            exit_code: 0,
            summary: "all passed".to_owned(),
        }],
        ..CompletionReport::default()
    };
    format!("It is done.\n\n{}", report::block(&report))
}

fn wait_for_file(turn: &Turn, path: &std::path::Path) -> PromptEnd {
    turn.send_message_chunk("waiting\n");
    let path = turn.session.cwd.join(path);
    let started = Instant::now();
    while !path.exists() && started.elapsed() < FILE_AT_MOST {
        if turn.cancel.wait(FILE_CHECK) {
            return PromptEnd::stopped("cancelled");
        }
    }
    turn.send_message_chunk("done waiting\n");
    PromptEnd::stopped("end_turn")
}

fn tick_for_ever(turn: &Turn) -> ! {
    loop {
        turn.send_message_chunk("tick ");
        thread::sleep(TICK);
    }
}

fn fork(turn: &Turn) -> Result<(), RpcError> {
    let failed =
        |error: std::io::Error| RpcError::new(INTERNAL_ERROR, format!("cannot run `setsid`: {error}"));
    let mut child = Command::new("setsid")
        .args(["sh", "-c", "echo; exec sleep 600 >&-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    // Its first word says that it is out of our session by now.
    if let Some(mut output) = child.stdout.take() {
        output.read_exact(&mut [0]).map_err(failed)?;
    }
    turn.send_message_chunk(&format!("left {} behind", child.id()));
    Ok(())
}

/// Noted before any work, and in one write: a prompt that runs twice leaves two lines.
fn count(turn: &Turn, file: &std::path::Path, chunks: u64, milliseconds: u64) -> Result<PromptEnd, RpcError> {
    let note = format!("{} {}\n", std::process::id(), turn.session.session_id);
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(turn.session.cwd.join(file))
        .and_then(|mut file: File| file.write_all(note.as_bytes()))
        .map_err(|error| RpcError::new(INTERNAL_ERROR, format!("cannot note the prompt: {error}")))?;
    let pause = Duration::from_millis(milliseconds) / u32::try_from(chunks.max(1)).unwrap_or(u32::MAX);
    for number in 1..=chunks {
        turn.send_message_chunk(&format!("chunk {number} of {chunks}\n"));
        if turn.cancel.wait(pause) {
            return Ok(PromptEnd::stopped("cancelled"));
        }
        if number < chunks {
            let id = format!("call-{number}");
            turn.send_tool_call(&id, &format!("step {number}"), "other", json!({"step": number}));
            turn.send_tool_update(&id, ToolUpdate { status: Some("completed"), ..ToolUpdate::default() });
        }
    }
    Ok(PromptEnd::stopped("end_turn"))
}

fn permission_end(turn: &Turn, answer: &PermissionAnswer) -> PromptEnd {
    match answer {
        PermissionAnswer::Selected(option) => {
            turn.send_message_chunk(&format!("the option was {option}"));
            PromptEnd::stopped("end_turn")
        }
        PermissionAnswer::Cancelled if turn.cancel.is_set() => PromptEnd::stopped("cancelled"),
        PermissionAnswer::Cancelled => {
            turn.send_message_chunk("no option was given");
            PromptEnd::stopped("end_turn")
        }
    }
}

fn usage() -> Map<String, Value> {
    let usage = json!({
        "usage": {"inputTokens": 1200, "outputTokens": 300, "cachedReadTokens": 1000, "totalTokens": 2500},
        "_meta": {"quota": {"token_count": {"inputTokens": 1200, "outputTokens": 300}}},
    });
    match usage {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
