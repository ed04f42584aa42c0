//! What is over goes out of sight and, in time, off the disk.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::help::Rally;

/// A word that is in everything the tests want gone.
const SECRET: &str = "plover-xyzzy";

fn listed(rally: &Rally, arguments: &[&str]) -> Vec<String> {
    let page = rally.json(arguments);
    let items = page["items"].as_array().unwrap();
    items.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()).collect()
}

fn run_one(rally: &Rally) -> String {
    let goal = format!("{SECRET}\n\n$ echo {SECRET}");
    let ended = rally.run(&["run", &goal, "--agent", "shell", "--check", "true", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.result()["taskId"].as_str().unwrap().to_owned()
}

fn session(rally: &Rally, task: &str) -> String {
    rally.json(&["task", "show", task])["sessions"][0]["sessionId"].as_str().unwrap().to_owned()
}

fn stop(rally: &Rally) {
    assert_eq!(rally.run(&["daemon", "stop"]).code, Some(0));
    Rally::until("the daemon has ended", || rally.data.daemons().is_empty());
}

/// Names of all transcripts.
fn transcripts(rally: &Rally) -> Vec<String> {
    let names = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let sessions = rally.data.path().join("sessions");
    let mut all: Vec<String> =
        names(sessions.clone()).iter().flat_map(|agent| names(sessions.join(agent))).collect();
    all.retain(|name| !name.contains(".jsonl.tmp"));
    all.sort();
    all
}

/// Files below a folder in which the word is found.
fn holding(folder: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, word));
        } else if let Ok(bytes) = fs::read(&path)
            && bytes.windows(word.len()).any(|window| window == word.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

fn finding(rally: &Rally, name: &str) -> Value {
    let doctor = rally.json(&["doctor"]);
    let all = doctor.as_array().unwrap();
    all.iter().find(|each| each["name"] == name).unwrap_or_else(|| panic!("no `{name}`: {doctor}")).clone()
}

#[test]
fn a_task_is_archived_by_the_time_of_its_end_although_the_daemon_was_away() {
    let config = |minutes: &str| format!("[limits]\narchiveAfterMinutes = {minutes}\n");
    let rally = Rally::with_config(&config("60"));
    let task = run_one(&rally);
    let session = session(&rally, &task);
    Rally::until("the transcript is there", || transcripts(&rally) == [format!("{session}.jsonl")]);
    assert_eq!(listed(&rally, &["task", "list"]), std::slice::from_ref(&task));
    let ended = rally.json(&["task", "show", &task])["endedAt"].as_i64().unwrap();
    stop(&rally);

    // 600 ms after its end; by the next start they are over.
    fs::write(rally.data.path().join("rally.toml"), config("0.01")).unwrap();
    Rally::until("the task is archived", || listed(&rally, &["task", "list"]).is_empty());
    assert_eq!(listed(&rally, &["task", "list", "--archived"]), std::slice::from_ref(&task));
    let shown = rally.json(&["task", "show", &task]);
    assert_eq!(shown["status"], "done");
    assert!(shown["archivedAt"].as_i64().unwrap() >= ended + 600, "{shown}");
    Rally::until(
        "the transcript is archived",
        || matches!(transcripts(&rally).as_slice(), [one] if one.starts_with(&format!("{session}.jsonl.deleted.2"))),
    );
    let kinds: Vec<Value> = rally.run(&["task", "log", &task, "--json"]).lines();
    assert_eq!(kinds.iter().filter(|event| event["kind"] == "task.archived").count(), 1);
}

#[test]
fn a_transcript_is_the_sessions_part_of_the_journal_and_follows_its_task() {
    let rally = Rally::new();
    let task = run_one(&rally);
    let session = session(&rally, &task);
    let path = || {
        let ended = rally.run(&["task", "transcript", &session]);
        (ended.code == Some(0)).then(|| PathBuf::from(ended.out.trim()))
    };
    let rows = |path: &Path| -> Vec<Value> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let journal = || -> Vec<Value> {
        let all = rally.run(&["task", "log", &task, "--json"]).lines();
        all.into_iter().filter(|event| event["sessionId"] == session.as_str()).collect()
    };
    // The process of the agent is cleaned up after the end, and that belongs to it too.
    Rally::until("the transcript is whole", || path().is_some_and(|path| rows(&path) == journal()));
    let live = path().unwrap();
    assert!(live.ends_with(format!("sessions/shell/{session}.jsonl")), "{live:?}");
    assert!(rows(&live).len() > 10);

    assert_eq!(rally.run(&["task", "archive", &task]).code, Some(0));
    Rally::until("the transcript is archived", || path().is_some_and(|path| path.exists()) && !live.exists());
    let archived = path().unwrap();
    assert!(archived.display().to_string().contains(".jsonl.deleted."), "{archived:?}");
    assert_eq!(rows(&archived), journal());

    assert_eq!(rally.run(&["task", "unarchive", &task]).code, Some(0));
    Rally::until("the transcript is back", || live.exists() && !archived.exists());
    assert_eq!(listed(&rally, &["task", "list"]), [task]);
}

#[test]
fn a_purge_leaves_no_word_of_a_task_on_the_disk_and_the_next_daemon_starts() {
    let rally = Rally::new();
    let task = run_one(&rally);
    let other =
        rally.run(&["run", "Keep\n\n$ echo kept-words", "--agent", "shell", "--check", "true", "--json"]);
    let other = other.result()["taskId"].as_str().unwrap().to_owned();
    Rally::until("both transcripts are there", || transcripts(&rally).len() == 2);
    let data = rally.data.path().to_owned();
    assert!(holding(&data, SECRET).len() >= 2, "{:?}", holding(&data, SECRET));

    let unasked = rally.run(&["task", "delete", &task, "--purge"]);
    assert_eq!(unasked.code, Some(2), "{unasked:?}");
    let before = rally.run(&["task", "log", &task, "--json"]).lines();
    Rally::until("the task is purged", || {
        rally.run(&["task", "delete", &task, "--purge", "--yes"]).code == Some(0)
    });
    Rally::until("no file holds the word", || holding(&data, SECRET).is_empty());
    let after = rally.run(&["task", "log", &task, "--json"]).lines();
    for (before, after) in before.iter().zip(&after) {
        for field in ["seq", "kind", "at", "taskId", "version"] {
            assert_eq!(before[field], after[field]);
        }
    }
    assert_eq!(finding(&rally, "purged text")["state"], "ok");

    stop(&rally);
    assert_eq!(listed(&rally, &["task", "list", "--archived"]), std::slice::from_ref(&other));
    let shown = rally.json(&["task", "show", &task]);
    assert_eq!((&shown["goal"], &shown["deleted"]["mode"]), (&Value::from(""), &Value::from("purge")));
    assert!(rally.run(&["task", "show", &other]).out.contains("kept-words"));
    let retry = rally.run(&["task", "retry", &task]);
    assert!(retry.code == Some(1) && retry.err.contains("deleted"), "{retry:?}");
    assert_eq!(rally.run(&["run", "Go\n\n$ true", "--agent", "shell", "--check", "true"]).code, Some(0));
    assert_eq!(holding(&data, SECRET), Vec::<PathBuf>::new());
}

#[test]
fn a_preserved_task_is_hidden_and_its_log_is_kept() {
    let rally = Rally::new();
    let task = run_one(&rally);
    assert_eq!(rally.run(&["task", "delete", &task, "--yes"]).code, Some(0));
    assert_eq!(listed(&rally, &["task", "list", "--archived"]), Vec::<String>::new());
    assert!(rally.run(&["task", "log", &task, "--json"]).out.contains(SECRET));
}

#[test]
fn what_can_not_be_removed_is_shown_kept_over_a_restart_and_tried_again() {
    let rally = Rally::with_config("[retention]\nsweepMinutes = 0.005\n");
    let folder = rally.data.path().join("sessions/shell");
    let name = "0198aa01-7000-7000-8000-000000000001.jsonl.deleted.20200101T000000Z";
    // A folder stands where a file is to be removed.
    fs::create_dir_all(folder.join(name).join("inside")).unwrap();
    assert_eq!(finding(&rally, "disk use")["state"], "ok", "there is no database yet");
    let attempts = || finding(&rally, "failed deletes")["data"][0]["attempts"].as_u64().unwrap_or(0);
    assert_eq!(rally.run(&["task", "list"]).code, Some(0));
    Rally::until("the failure is told", || attempts() >= 1);
    let told = finding(&rally, "failed deletes");
    assert_eq!(told["state"], "warn");
    assert_eq!(told["data"][0]["path"], format!("sessions/shell/{name}"));
    assert!(told["data"][0]["reason"].as_str().unwrap().contains("directory"), "{told}");
    assert!(rally.run(&["doctor"]).out.contains("failed deletes"));
    Rally::until("it is tried again", || attempts() >= 3);

    stop(&rally);
    assert!(attempts() >= 3, "it is forgotten");
    fs::remove_dir_all(folder.join(name)).unwrap();
    fs::write(folder.join(name), "a transcript").unwrap();
    assert_eq!(rally.run(&["task", "list"]).code, Some(0));
    Rally::until("it is removed", || !folder.join(name).exists());
    Rally::until("it is forgotten", || finding(&rally, "failed deletes")["state"] == "ok");
}

#[test]
fn old_transcripts_and_scratch_folders_go_by_their_keys_and_links_are_not_followed() {
    let rally = Rally::with_config(
        "[limits]\narchiveAfterMinutes = 0.001\n[retention]\nsweepMinutes = 0.005\ntranscriptDays = 0.00001\nscratchDays = 0.00001\n",
    );
    let outside = rally.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept.jsonl.deleted.20200101T000000Z"), "x").unwrap();
    fs::create_dir_all(rally.data.path().join("sessions")).unwrap();
    std::os::unix::fs::symlink(&outside, rally.data.path().join("sessions/linked")).unwrap();
    let young = rally.data.path().join("sessions/shell/young.jsonl.deleted.29990101T000000Z");
    fs::create_dir_all(young.parent().unwrap()).unwrap();
    fs::write(&young, "x").unwrap();
    let task = run_one(&rally);
    let session = session(&rally, &task);
    // A folder that is no task's is none of ours, and stays.
    let foreign = rally.data.path().join("scratch/not-a-task");
    fs::create_dir_all(&foreign).unwrap();
    let scratch = rally.data.path().join("scratch").join(&task);
    fs::create_dir_all(&scratch).unwrap();
    std::os::unix::fs::symlink(&outside, scratch.join("link")).unwrap();
    Rally::until("the task is archived", || listed(&rally, &["task", "list"]).is_empty());
    Rally::until("its scratch folder is removed", || !scratch.exists());
    Rally::until("its transcript is removed", || {
        transcripts(&rally).iter().all(|name| !name.starts_with(session.as_str()))
    });
    assert!(young.exists() && foreign.exists());
    assert!(outside.join("kept.jsonl.deleted.20200101T000000Z").exists());
}

#[test]
fn spools_are_kept_for_as_long_as_the_configuration_says() {
    let config = |days: &str| format!("[retention]\nsweepMinutes = 0.005\nspoolDays = {days}\n");
    let rally = Rally::with_config(&config("1"));
    let task = run_one(&rally);
    Rally::until("its process is cleaned up", || {
        rally.run(&["task", "log", &task, "--json"]).out.contains("generation.cleaned")
    });
    let spools = || fs::read_dir(rally.data.path().join("gen")).into_iter().flatten().count();
    assert_eq!(spools(), 1);
    assert!(finding(&rally, "disk use")["data"]["spoolBytes"].as_u64().unwrap() > 0);
    stop(&rally);
    fs::write(rally.data.path().join("rally.toml"), config("0.000001")).unwrap();
    assert_eq!(rally.run(&["task", "list"]).code, Some(0));
    Rally::until("the spool is removed", || spools() == 0);
}
