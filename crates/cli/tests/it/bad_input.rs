//! Requests that can't be carried out: one clear error with the next step, the
//! right exit code, and nothing left behind.

use crate::help::{Rally, write};

fn refused(arguments: &[&str], code: i32, words: &str) {
    let rally = Rally::new();
    let ended = rally.run(arguments);
    assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
    assert!(ended.err.contains(words), "{arguments:?}: `{words}` is not in: {}", ended.err);
    assert!(ended.err.contains("hint: "), "{arguments:?}: no next step: {}", ended.err);
    let tasks = rally.json(&["task", "list"]);
    assert_eq!(tasks["items"].as_array().map(Vec::len), Some(0), "{tasks}");
}

#[test]
fn an_unknown_agent_is_refused_with_the_known_ones() {
    refused(&["run", "x", "--agent", "nosuch"], 2, "there is no agent `nosuch`");
}

#[test]
fn a_program_that_is_not_installed_is_named() {
    refused(&["run", "x", "--agent-cmd", "/no/such/program --acp"], 1, "`/no/such/program`");
}

#[test]
fn a_work_folder_that_does_not_exist_or_is_a_file_is_refused() {
    refused(&["run", "x", "--agent", "shell", "--cwd", "/does/not/exist"], 2, "/does/not/exist");
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display().to_string();
    refused(&["run", "x", "--agent", "shell", "--cwd", &path], 2, "is not a folder");
}

#[test]
fn an_empty_goal_is_refused() {
    refused(&["run", "  ", "--agent", "shell"], 2, "the goal is empty");
}

#[test]
fn a_check_that_is_not_there_fails_and_says_so() {
    let rally = Rally::with_config("[limits]\ncorrectiveRounds = 0\n");
    let ended = rally.run(&["run", "Go\n\n$ true", "--agent", "shell", "--check", "no-such-check", "--json"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let result = ended.result();
    assert_eq!(result["evidence"][0]["exitCode"], 127, "{result}");
    assert!(
        result["evidence"][0]["detail"].as_str().unwrap().contains("check command not found"),
        "{result}"
    );
}

#[test]
fn a_data_folder_that_is_a_file_is_one_clear_error() {
    let rally = Rally::new();
    let file = rally.path("data");
    write(&file, "x");
    let ended = rally.run(&["--data", &file.display().to_string(), "run", "Go\n\n$ true"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.err.matches("error: ").count(), 1, "{}", ended.err);
    assert!(ended.err.contains("can't be used"), "{}", ended.err);
}

#[test]
fn a_folder_that_is_locked_by_another_daemon_is_told() {
    let rally = Rally::new();
    assert_eq!(rally.run(&["run", "Go\n\n$ true", "--check", "true"]).code, Some(0));
    let second = rally.run(&["serve"]);
    // Its own code, so that a command which loses the race for a start knows that another one won.
    assert_eq!(second.code, Some(75), "{second:?}");
    assert!(second.err.contains("in use by another daemon"), "{}", second.err);
}

#[test]
fn a_configuration_that_is_wrong_is_told_with_its_key() {
    let rally = Rally::with_config("[limits]\nlaneSubAgentz = 3\n");
    let ended = rally.run(&["run", "Go\n\n$ true"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("laneSubAgentz"), "{}", ended.err);
}

#[test]
fn an_unknown_task_is_told_with_the_way_to_find_it() {
    let rally = Rally::new();
    let ended = rally.run(&["task", "show", "00000000-0000-0000-0000-000000000000"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("rally task list"), "{}", ended.err);
}

#[test]
fn a_goal_with_odd_characters_travels_whole() {
    let rally = Rally::new();
    let goal = "Ünï ☂ \u{202e}rtl\u{0} \"quotes\" 'and' \\ back\n\n$ printf 'é☂' > odd.txt";
    let goal: String = goal.chars().filter(|character| *character != '\0').collect();
    let ended = rally.run(&["run", &goal, "--agent", "shell", "--check", "grep -q é☂ odd.txt", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let user = rally.room().into_iter().find(|message| message["speaker"] == "user").unwrap();
    assert_eq!(user["text"].as_str(), Some(goal.as_str()));
}

#[test]
fn a_huge_goal_is_taken_or_refused_in_words() {
    let rally = Rally::new();
    let goal = format!("{}\n\n$ true", "x".repeat(100_000));
    let ended = rally.run(&["run", &goal, "--agent", "shell", "--check", "true"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

#[test]
fn too_many_agents_for_one_task_is_a_limit_with_its_numbers() {
    let rally = Rally::with_config("[limits]\nchildrenPerParent = 0\n");
    let ended = rally.run(&["run", "Go\n\n$ true", "--agent", "shell"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("`childrenPerParent` is 0"), "{}", ended.err);
}
