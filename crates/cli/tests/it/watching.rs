//! What a watcher sees while work goes on.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::help::{Rally, write};

#[test]
fn an_update_is_shown_while_its_agent_still_works() {
    let rally = Rally::new();
    let seen = rally.path("seen");
    let agent = Rally::scenario(&format!("waits-for-file {}", seen.display()));
    let mut child = rally
        .command(&["run", "Wait for me", "--agent-cmd", &agent, "--check", "true", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut confirmed = false;
    let mut last = String::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if !confirmed && line.contains("\"agent.output\"") {
            // The agent ends only after this.
            write(&seen, "yes");
            confirmed = true;
        }
        last = line;
    }
    assert!(confirmed);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{last}");
    assert!(last.contains("\"status\":\"done\""), "{last}");
}

#[test]
fn a_detached_run_goes_on_by_itself_and_can_be_looked_at() {
    let rally = Rally::new();
    let ended = rally.run(&[
        "run",
        "Go\n\n$ echo later > done.txt",
        "--agent",
        "shell",
        "--check",
        "true",
        "--detach",
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let id = ended.out.split_whitespace().find(|word| word.len() == 36).unwrap().to_owned();
    Rally::until("the task is done", || rally.json(&["task", "show", &id])["status"] == "done");
    assert!(rally.path("done.txt").exists());
}

#[test]
fn the_log_of_a_task_is_its_part_of_the_journal() {
    let rally = Rally::new();
    let ended = rally.run(&["run", "Go\n\n$ true", "--agent", "shell", "--check", "true", "--json"]);
    let result = ended.result();
    let task = result["taskId"].as_str().unwrap();
    let log = rally.run(&["task", "log", task, "--json"]);
    let mut shown: Vec<String> = ended.out.lines().map(str::to_owned).collect();
    shown.pop();
    let logged: Vec<&str> = log.out.lines().collect();
    assert!(logged.len() >= shown.len(), "{} < {}", logged.len(), shown.len());
    for line in &shown {
        let shown: serde_json::Value = serde_json::from_str(line).unwrap();
        let kept = logged
            .iter()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .find(|kept| kept["seq"] == shown["seq"]);
        assert_eq!(kept.as_ref(), Some(&shown));
    }
}

#[test]
fn stopping_a_task_ends_its_processes_and_exits_130() {
    let rally = Rally::new();
    let child = rally
        .command(&["run", "Wait\n\n$ sleep 300", "--agent", "shell", "--check", "true", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let id = || {
        let tasks = rally.json(&["task", "list"]);
        tasks["items"][0]["taskId"].as_str().map(str::to_owned)
    };
    Rally::until("the task is there", || id().is_some());
    let id = id().unwrap();
    Rally::until("its command runs", || {
        rally.json(&["task", "show", &id])["sessions"][0]["status"] == "tool_running"
    });
    assert_eq!(rally.run(&["task", "stop", &id]).code, Some(0));
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    assert_eq!(rally.json(&["task", "show", &id])["status"], "interrupted");
    Rally::until("every process is gone", || rally.data.agent_processes().is_empty());
}

#[test]
fn a_silent_agent_is_suspected_told_and_not_judged() {
    let rally = Rally::with_config("[limits]\nstallMs = 400\n");
    let seen = rally.path("seen");
    let agent = Rally::scenario(&format!("waits-for-file {}", seen.display()));
    let mut child = rally
        .command(&["run", "Be silent", "--agent-cmd", &agent, "--check", "true", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut kinds = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let kind = line["kind"].as_str().unwrap().to_owned();
        if kind == "run.suspected" {
            write(&seen, "go on");
        }
        kinds.push(kind);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{kinds:?}");
    let at = |kind: &str| kinds.iter().position(|known| known == kind);
    assert!(at("run.suspected") < at("run.reassured"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| *kind == "run.suspected").count(), 1, "{kinds:?}");
}
