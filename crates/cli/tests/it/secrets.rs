//! Secrets never reach the store, the output or the log.

use std::path::Path;

use crate::help::Rally;

const SECRET: &str = "correct-horse-battery";

fn files_with(folder: &Path, needle: &[u8], found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_with(&path, needle, found);
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(needle.len()).any(|window| window == needle)
        {
            found.push(path.display().to_string());
        }
    }
}

fn check(rally: &Rally, out: &str, err: &str) {
    assert!(!out.contains(SECRET), "{out}");
    assert!(!err.contains(SECRET), "{err}");
    Rally::until("the spool is gone", || rally.data.agent_processes().is_empty());
    rally.run(&["daemon", "stop"]);
    let mut found = Vec::new();
    files_with(rally.data.path(), SECRET.as_bytes(), &mut found);
    found.retain(|path| !path.ends_with("rally.toml"));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_passed_on_variable_is_hidden_in_goal_output_chunks_and_checks() {
    let rally = Rally::new().with_variable("MY_TOKEN", SECRET);
    let agent = Rally::scenario(&format!("split-secret {SECRET}"));
    let ended = rally.run(&[
        "run",
        &format!("Use {SECRET} well"),
        "--pass-env",
        "MY_TOKEN",
        "--agent-cmd",
        &agent,
        "--check",
        &format!("echo {SECRET}"),
        "--json",
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("[redacted:MY_TOKEN]"), "{}", ended.out);
    check(&rally, &ended.out, &ended.err);
}

#[test]
fn an_encoded_secret_is_hidden_too() {
    let rally = Rally::new().with_variable("MY_TOKEN", SECRET);
    let goal = "Encode\n\n$ printf %s \"$MY_TOKEN\" | base64\n$ printf %s \"$MY_TOKEN\" | od -An -tx1 | tr -d ' \\n'";
    let ended =
        rally.run(&["run", goal, "--pass-env", "MY_TOKEN", "--agent", "shell", "--check", "true", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for encoded in ["Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5", "636f72726563742d686f7273652d62617474657279"] {
        assert!(!ended.out.contains(encoded), "{}", ended.out);
    }
    check(&rally, &ended.out, &ended.err);
}

#[test]
fn a_configured_secret_is_hidden() {
    let rally = Rally::with_config(&format!("[secrets]\nDEPLOY = \"{SECRET}\"\n"));
    let goal = format!("Say it\n\n$ echo {SECRET}");
    let ended = rally.run(&["run", &goal, "--agent", "shell", "--check", "true", "--json"]);
    // The shell agent is given the goal as it is stored, so it runs the redacted command.
    assert_eq!(ended.code, Some(0), "{ended:?}");
    check(&rally, &ended.out, &ended.err);
}

#[test]
fn variables_that_nobody_named_do_not_reach_the_agent() {
    let rally = Rally::new().with_variable("SOME_TOKEN", SECRET).with_variable("CLAUDECODE", "1");
    let goal = "Look\n\n$ env | sort > env.txt";
    let ended = rally.run(&["run", goal, "--agent", "shell", "--check", "true"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let environment = std::fs::read_to_string(rally.path("env.txt")).unwrap();
    assert!(!environment.contains("SOME_TOKEN"), "{environment}");
    assert!(!environment.contains("CLAUDECODE"), "{environment}");
    assert!(environment.contains("PATH="), "{environment}");
}

#[test]
fn secrets_that_a_daemon_took_with_it_are_named_and_can_be_brought_again() {
    let rally = Rally::with_config("[limits]\ncorrectiveRounds = 0\n").with_variable("MY_TOKEN", SECRET);
    let goal = "Look\n\n$ test -n \"$MY_TOKEN\" && echo there > there.txt";
    let first =
        rally.run(&["run", goal, "--agent", "shell", "--pass-env", "MY_TOKEN", "--check", "false", "--json"]);
    assert_eq!(first.code, Some(5), "{first:?}");
    let task = first.result()["taskId"].as_str().unwrap().to_owned();
    std::fs::remove_file(rally.path("there.txt")).unwrap();
    rally.run(&["daemon", "stop"]);
    let status = || rally.json(&["task", "show", &task]);
    assert_eq!(rally.run(&["task", "retry", &task]).code, Some(0));
    Rally::until("it is told that the environment is lost", || status()["status"] == "interrupted");
    let told = crate::help::said_by(&rally.room(), "main_agent").join("\n");
    assert!(told.contains("environment lost") && told.contains("MY_TOKEN"), "{told}");
    assert_eq!(rally.run(&["task", "retry", &task, "--pass-env", "MY_TOKEN"]).code, Some(0));
    Rally::until("the work was done again", || rally.path("there.txt").exists());
    Rally::until("the task is settled", || status()["settled"] == true);
    check(&rally, &first.out, &first.err);
}
