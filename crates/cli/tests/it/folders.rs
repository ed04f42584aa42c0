//! Data folders that are copied or moved under living agents, and programs that are exchanged under them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::help::Rally;

/// A task whose agent waits for the file `go`, and the id of it.
fn waiting(rally: &Rally) -> String {
    let agent = Rally::scenario("waits-for-file go");
    let arguments = ["run", "Wait", "--agent-cmd", &agent, "--check", "true", "--detach", "--json"];
    let task = rally.run(&arguments).result()["taskId"].as_str().unwrap().to_owned();
    Rally::until("the agent works", || {
        let run = rally.json(&["task", "show", &task])["runs"][0].clone();
        run["status"] == "running" && said(rally, &[], &task).contains("waiting")
    });
    task
}

/// The task's journal as text, from the daemon of another folder where one is named.
fn said(rally: &Rally, folder: &[&str], task: &str) -> String {
    rally.run(&[folder, &["task", "log", task, "--json"]].concat()).out
}

fn stop_daemon(rally: &Rally) {
    assert_eq!(rally.run(&["daemon", "stop"]).code, Some(0));
    Rally::until("the daemon has ended", || rally.data.daemons().is_empty());
}

fn outcome(task: &Value) -> &Value {
    &task["runs"][0]["outcome"]
}

fn let_it_end(rally: &Rally) {
    std::fs::write(rally.path("go"), "").unwrap();
}

#[test]
fn a_copied_data_folder_touches_nothing_of_the_original_and_both_go_on() {
    let rally = Rally::new();
    let task = waiting(&rally);
    stop_daemon(&rally);
    let agents = rally.data.agents();
    assert_eq!(agents.len(), 1);
    let copy = Rally::new();
    let (from, to) = (format!("{}/.", rally.data.path().display()), copy.data.path());
    assert!(Command::new("cp").arg("-a").arg(&from).arg(to).status().unwrap().success());

    // The copy finds no shim of its own, so its run is lost, and it goes on with other work.
    Rally::until("the copy knows that its run is lost", || {
        outcome(&copy.json(&["task", "show", &task])) == "lost"
    });
    assert_eq!(copy.run(&["run", "Go\n\n$ true", "--check", "true"]).code, Some(0));
    assert_eq!(rally.data.agents(), agents, "an agent of the original was touched");
    assert!(copy.data.agents().is_empty());

    // The original finds its agent, and the one prompt ends well.
    let shown = rally.json(&["task", "show", &task]);
    assert!(outcome(&shown).is_null(), "{shown}");
    let_it_end(&rally);
    Rally::until("the original is done", || rally.json(&["task", "show", &task])["status"] == "done");
    let shown = rally.json(&["task", "show", &task]);
    assert_eq!((shown["runs"].as_array().map(Vec::len), outcome(&shown)), (Some(1), &"completed".into()));
    assert_eq!(outcome(&copy.json(&["task", "show", &task])), "lost", "the copy heard of the original's end");
}

/// Brings a moved folder back, so that what lives in it is found and ended.
struct Moved {
    from: PathBuf,
    to: PathBuf,
}

impl Moved {
    fn new(from: &Path) -> Self {
        let (from, to) = (from.to_owned(), from.with_extension("moved"));
        std::fs::rename(&from, &to).unwrap();
        Self { from, to }
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        // A test that failed before may have brought it back.
        let _ = std::fs::rename(&self.to, &self.from);
    }
}

#[test]
fn a_moved_data_folder_keeps_its_agents() {
    let rally = Rally::new();
    let task = waiting(&rally);
    stop_daemon(&rally);
    let moved = Moved::new(rally.data.path());
    let place = moved.to.display().to_string();
    let there = ["--data", place.as_str()];
    let shown = rally.json(&[&there[..], &["task", "show", &task]].concat());
    assert!(outcome(&shown).is_null(), "{shown}");
    let_it_end(&rally);
    Rally::until("the task is done", || {
        rally.json(&[&there[..], &["task", "show", &task]].concat())["status"] == "done"
    });
    let shown = rally.json(&[&there[..], &["task", "show", &task]].concat());
    assert_eq!((shown["runs"].as_array().map(Vec::len), outcome(&shown)), (Some(1), &"completed".into()));
    assert_eq!(rally.run(&[&there[..], &["daemon", "stop"]].concat()).code, Some(0));
    drop(moved);
}

#[test]
fn agents_of_the_program_before_are_read_by_this_one_to_their_end() {
    // The oldest format that is read: while there is only one, the newest as well.
    let oldest = rallypoint_process::spool::OLDEST_READABLE_VERSION.to_string();
    let rally = Rally::new().with_variable("RALLY_SHIM_SPOOL_VERSION", &oldest);
    let task = waiting(&rally);
    stop_daemon(&rally);
    let shown = rally.json(&["task", "show", &task]);
    assert!(outcome(&shown).is_null(), "{shown}");
    let_it_end(&rally);
    Rally::until("the task is done", || rally.json(&["task", "show", &task])["status"] == "done");
    let text = rally.json(&[
        "result",
        "get",
        rally.json(&["task", "show", &task])["runs"][0]["runId"].as_str().unwrap(),
    ]);
    assert_eq!(text["text"], "waiting\ndone waiting\n");
}

#[test]
fn what_an_agent_of_a_newer_program_says_is_kept_and_its_run_says_why_it_is_silent() {
    let newer = (rallypoint_process::spool::FORMAT_VERSION + 1).to_string();
    let rally = Rally::with_config("[limits]\nsetupTimeoutMs = 2000\n")
        .with_variable("RALLY_SHIM_SPOOL_VERSION", &newer);
    let agent = Rally::scenario("good");
    let ended = rally.run(&["run", "Go", "--agent-cmd", &agent, "--check", "true", "--json"]);
    assert_eq!(ended.code, Some(1), "it never gets ready for this program: {ended:?}");
    assert!(ended.out.contains("was written by a newer program"), "{ended:?}");
    assert_eq!(ended.result()["runs"][0]["outcome"], "failed");
}
