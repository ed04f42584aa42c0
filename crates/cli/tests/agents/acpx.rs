//! `rally acp` under acpx, a command line client of the protocol that somebody else wrote.
//!
//! `make test-acpx` installs it and says where with `RALLY_TEST_ACPX`.

use std::path::PathBuf;
use std::process::{Child, Command};

use rallypoint_process::sweep::kill_identities;
use rallypoint_process::{ProcessIdentity, Signal};
use serde_json::Value;

use crate::harness::Test;
use crate::stage::Stage;

pub(crate) fn tests() -> Vec<Test> {
    let test = |name: &str, body: fn()| Test {
        name: format!("acpx::{name}"),
        installed: folder(),
        goal: "test-acpx",
        body: Box::new(body),
    };
    vec![
        test("gets_the_words_of_a_prompt_and_allows_what_is_asked", allows),
        test("denies_and_the_agent_hears_it", denies),
        test("that_is_interrupted_leaves_no_work_behind", interrupted),
    ]
}

/// Where `make test-acpx` installed it; nothing when it did not.
fn folder() -> Option<PathBuf> {
    std::env::var_os("RALLY_TEST_ACPX").map(PathBuf::from).filter(|folder| !folder.as_os_str().is_empty())
}

/// acpx with `rally acp` as its agent, which lets this one work.
fn acpx(stage: &Stage, agent: &str, more: &[&str], prompt: &str) -> Command {
    let programs = folder().unwrap().join("node_modules/.bin");
    let rally = env!("CARGO_BIN_EXE_rally");
    let served = format!("{rally} acp --agent-cmd '{rally} agent-serve {agent}'");
    let mut command = stage.command_of(&programs.join("node"));
    command.arg(programs.join("acpx")).args(["--format", "json", "--agent", &served]);
    command.args(more).args(["exec", prompt]);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", programs.display()));
    command
}

/// The frames that it printed, of both directions.
fn frames(child: Child) -> (Option<i32>, Vec<Value>) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let frames = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    (output.status.code(), frames)
}

fn stop_reason(frames: &[Value]) -> Option<&str> {
    frames.iter().rev().find_map(|frame| frame["result"]["stopReason"].as_str())
}

fn words(frames: &[Value]) -> String {
    let updates = frames.iter().map(|frame| &frame["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

fn allows() {
    let stage = Stage::with(&[]);
    let steps = r#"{ say = "Looking. " }, { ask_permission = { title = "make it", kind = "execute" } }, { say = "Done." }"#;
    let script = stage.path("script.toml");
    std::fs::write(&script, format!("[[turns]]\nsteps = [{steps}]\n")).unwrap();
    let agent = format!("scripted {}", script.display());
    let child = acpx(&stage, &agent, &["--approve-all"], "Make it").spawn().unwrap();
    let (code, frames) = frames(child);
    assert_eq!((code, stop_reason(&frames)), (Some(0), Some("end_turn")), "{frames:?}");
    assert_eq!(words(&frames), "Looking. Done.");
    assert!(frames.iter().any(|frame| frame["method"] == "session/request_permission"), "{frames:?}");
    stage.empty();
}

fn denies() {
    let stage = Stage::with(&[]);
    let child = acpx(&stage, "scenario permission", &["--deny-all"], "Make it").spawn().unwrap();
    let (_, frames) = frames(child);
    assert_eq!(words(&frames), "the option was never", "{frames:?}");
    assert_eq!(stop_reason(&frames), Some("end_turn"), "{frames:?}");
    assert_eq!(stage.json(&["question", "list"])["items"].as_array().map(Vec::len), Some(0));
    stage.empty();
}

fn interrupted() {
    let stage = Stage::with(&[]);
    let child = acpx(&stage, "scenario ignores-cancel", &[], "Tick").spawn().unwrap();
    let task = || stage.json(&["task", "list"])["items"][0].clone();
    stage.until("it works", || task()["status"] == "active" && !stage.data.agents().is_empty());
    kill_identities(&[ProcessIdentity::of(child.id()).unwrap()], Signal::Interrupt);
    let (_, frames) = frames(child);
    assert!(frames.iter().any(|frame| frame["method"] == "session/cancel"), "{frames:?}");
    // It may leave before a stubborn agent has ended, and then prints no answer.
    assert!([None, Some("cancelled")].contains(&stop_reason(&frames)), "{frames:?}");
    stage.until("it is stopped", || task()["status"] == "interrupted");
    stage.empty();
}
