//! What real agents were seen doing, each met by the agent that does it on
//! purpose. Which test holds which of them stands in `fixtures/case-coverage.txt`.

use std::process::Stdio;

use rallypoint_process::Signal;
use rallypoint_process::sweep::kill_identities;
use serde_json::Value;

use crate::help::{Ended, Rally, said_by};

/// A configuration with one agent, `odd`, started by these words of a shell. `$RALLY` is the program.
fn shell_agent(script: &str, more: &str) -> Rally {
    let script = script.replace("$RALLY", Rally::program());
    let argv = serde_json::to_string(&["sh", "-c", &script]).unwrap();
    Rally::with_config(&format!("{more}\n[profiles.odd]\nargv = {argv}\nsetupTimeoutMs = 20000\n"))
}

fn odd_run(rally: &Rally) -> Ended {
    rally.run(&["run", "Do it", "--agent", "odd", "--check", "true", "--json"])
}

fn nothing_left(rally: &Rally) {
    Rally::until("every process is gone", || rally.data.agent_processes().is_empty());
}

fn begun(rally: &Rally, task: &str) -> bool {
    rally.json(&["task", "show", task])["runs"][0]["status"] == "running"
}

fn detached(rally: &Rally) -> String {
    let started =
        rally.run(&["run", "Do it", "--agent", "odd", "--check", "true", "--detach", "--json"]).result();
    started["taskId"].as_str().unwrap().to_owned()
}

#[test]
fn a_wrapped_agent_does_not_outlive_its_wrapper() {
    // The wrapper is the process that the shim knows; it dies of SIGTERM, what it wraps ignores it.
    let rally = shell_agent(
        "$RALLY agent-serve scenario ignores-term; exit $?",
        "[limits]\ncancelGraceMs = 200\nstopGraceMs = 500\n",
    );
    let task = detached(&rally);
    Rally::until("it works", || begun(&rally, &task) && rally.data.agent_processes().len() >= 3);
    assert_eq!(rally.run(&["task", "stop", &task]).code, Some(0));
    nothing_left(&rally);
}

#[test]
fn a_killed_wrapper_does_not_leave_its_agent_working() {
    let rally = shell_agent("$RALLY agent-serve scenario ignores-cancel; exit $?", "");
    let task = detached(&rally);
    Rally::until("it works", || begun(&rally, &task) && !rally.data.agents().is_empty());
    kill_identities(&rally.data.agents(), Signal::Kill);
    Rally::until("the run has ended", || {
        rally.json(&["task", "show", &task])["runs"][0]["status"] == "terminal"
    });
    nothing_left(&rally);
}

#[test]
fn an_agent_that_ignores_the_end_of_its_input_is_ended_all_the_same() {
    let rally = Rally::with_config("[limits]\nstopGraceMs = 500\n");
    let agent = Rally::scenario("ignores-eof");
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &agent, "--check", "true", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    nothing_left(&rally);
}

#[test]
fn a_child_in_the_agents_group_does_not_outlive_its_task() {
    let rally = Rally::new();
    let agent = Rally::scenario("leaves-child");
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &agent, "--check", "true", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    nothing_left(&rally);
}

#[test]
fn a_cancel_is_never_sent_when_no_prompt_is_open() {
    // What the agent is told goes past a file.
    let rally = shell_agent("tee -a told | $RALLY agent-serve scenario good", "");
    let ended = odd_run(&rally);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let task = ended.result()["taskId"].as_str().unwrap().to_owned();
    // The task has ended; to stop it now must not reach a turn that comes later.
    rally.run(&["task", "stop", &task]);
    nothing_left(&rally);
    let told = std::fs::read_to_string(rally.path("told")).unwrap();
    assert!(told.contains("session/prompt") && !told.contains("session/cancel"), "{told}");
}

#[test]
fn words_shortly_after_the_answer_are_part_of_it() {
    // Long enough for a machine that has much else to do.
    let rally = Rally::with_config("[limits]\nsettleMs = 3000\n");
    let agent = Rally::scenario("late");
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &agent, "--check", "true", "--json"]);
    let run = ended.result()["runs"][0]["runId"].as_str().unwrap().to_owned();
    assert_eq!(rally.json(&["result", "get", &run])["text"], "in time, and late");
}

#[test]
fn what_comes_long_after_the_answer_is_kept_as_late_and_told_to_nobody_twice() {
    // While its result is checked the session stays, so its process goes on; the check waits for this test.
    const CHECK: &str = "for i in $(seq 1000); do test -e go && exit 0; sleep 0.05; done; exit 1";
    let rally = Rally::new();
    let agent = Rally::scenario("works-on");
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &agent, "--check", CHECK, "--detach", "--json"]);
    let task = ended.result()["taskId"].as_str().unwrap().to_owned();
    let log = |task: &str| -> Vec<Value> {
        let ended = rally.run(&["task", "log", task, "--json"]);
        ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let late = |lines: &[Value], words: &str| {
        lines.iter().any(|line| {
            line["kind"] == "agent.output" && line.to_string().contains(words) && line["data"]["late"] == true
        })
    };
    Rally::until("its late words are kept", || late(&log(&task), "and one more thing"));
    let lines = log(&task);
    let child = lines.iter().find(|line| line.to_string().contains("a child's words")).unwrap();
    assert_eq!(child["data"]["foreignSession"], "a-child", "{child}");
    std::fs::write(rally.path("go"), "").unwrap();
    Rally::until("the task is done", || rally.json(&["task", "show", &task])["status"] == "done");
    let run = rally.json(&["task", "show", &task])["runs"][0]["runId"].as_str().unwrap().to_owned();
    assert_eq!(rally.json(&["result", "get", &run])["text"], "the answer");
}

#[test]
fn a_providers_failure_told_as_an_answer_is_not_taken_for_done() {
    let rally = Rally::new();
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &Rally::scenario("apologises"), "--json"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.result()["status"], "waiting_on_user");
}

#[test]
fn a_long_line_is_kept_whole_and_an_endless_one_is_named() {
    let rally = Rally::with_config("[limits]\nlineBytes = 1000000\n");
    let run = |bytes: &str| {
        let agent = Rally::scenario(&format!("huge-line {bytes}"));
        rally.run(&["run", "Do it", "--agent-cmd", &agent, "--check", "true", "--json"])
    };
    let whole = run("900000");
    assert_eq!(whole.code, Some(0), "{:?}", whole.code);
    let id = whole.result()["runs"][0]["runId"].as_str().unwrap().to_owned();
    assert_eq!(rally.json(&["result", "get", &id])["text"].as_str().map(str::len), Some(900_000));
    let cut = run("3000000");
    assert_eq!(cut.code, Some(1), "{:?}", cut.code);
    assert!(cut.out.contains("bytes was thrown away"));
    nothing_left(&rally);
}

#[test]
fn a_request_that_nobody_serves_is_answered_as_such() {
    let rally = Rally::new();
    let agent = Rally::scenario("unknown-kinds");
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &agent, "--check", "true", "--json"]);
    let run = ended.result()["runs"][0]["runId"].as_str().unwrap().to_owned();
    assert_eq!(rally.json(&["result", "get", &run])["text"], "it was answered with -32601");
}

#[test]
fn login_trouble_in_any_disguise_waits_for_a_person() {
    for (scenario, message) in [
        ("fails-login", "-32603 'Internal error: 401 Incorrect API key provided'"),
        ("fails-login", "-31002 'status 401 from the provider'"),
        ("fails-login-in-prompt", "-32603 'You are not logged in'"),
    ] {
        let rally = Rally::new();
        let agent = Rally::scenario(&format!("{scenario} {message}"));
        let ended = rally.run(&["run", "Do it", "--agent-cmd", &agent, "--check", "true", "--json"]);
        assert_eq!(ended.code, Some(3), "{message}: {ended:?}");
        let told = said_by(&rally.room(), "main_agent").join("\n");
        assert!(told.contains("needs a login"), "{told}");
        assert_eq!(ended.result()["runs"].as_array().map(Vec::len), Some(1), "no loop of retries");
        nothing_left(&rally);
    }
}

#[test]
fn a_slow_start_with_signs_of_life_is_waited_for() {
    let rally = Rally::with_config("[limits]\nsetupTimeoutMs = 800\n");
    let slow = Rally::scenario("slow-open 2000");
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &slow, "--check", "true", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn marks_of_an_agent_around_us_do_not_reach_the_agent() {
    let script = format!("env > env; {}", Rally::scenario("good"));
    let argv = serde_json::to_string(&["sh", "-c", &script]).unwrap();
    let rally = Rally::with_config(&format!("[profiles.claude]\nargv = {argv}\n"))
        .with_variable("CLAUDECODE", "1")
        .with_variable("CLAUDE_CODE_ENTRYPOINT", "cli")
        .with_variable("CLAUDE_CODE_SSE_PORT", "4242")
        .with_variable("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    let ended = rally.run(&["run", "Do it", "--agent", "claude", "--check", "true", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let seen = std::fs::read_to_string(rally.path("env")).unwrap();
    assert!(seen.contains("ANTHROPIC_BASE_URL="), "what the profile lets through is there: {seen}");
    for mark in ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"] {
        assert!(!seen.contains(mark), "{mark}: {seen}");
    }
}

#[test]
fn a_conversation_never_has_two_owners() {
    // Each start says whether the one before it still lives.
    let script = "test -e owner && kill -0 $(cat owner) 2>/dev/null && echo two >> owners; echo $$ > owner; \
                  exec $RALLY agent-serve scenario remembers memory 2";
    let rally = shell_agent(script, "");
    let config = rally.data.path().join("rally.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}trustsLoad = true\n")).unwrap();
    let ended = odd_run(&rally);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.result()["runs"].as_array().map(Vec::len), Some(3));
    assert!(!rally.path("owners").exists(), "an earlier process was still there");
}

#[test]
fn a_reader_that_stands_still_does_not_hold_up_the_agent() {
    let rally = Rally::new();
    let agent = Rally::scenario("flood 20000");
    let mut command = rally.command(&["run", "Do it", "--agent-cmd", &agent, "--check", "true", "--json"]);
    // Nobody reads this pipe: the command itself stands still once it is full.
    let mut reader = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    Rally::until("the task is done although its reader stands still", || {
        let tasks = rally.json(&["task", "list"]);
        tasks["items"][0]["status"] == "done"
    });
    assert!(reader.try_wait().unwrap().is_none(), "it has more to print than the pipe holds");
    reader.kill().unwrap();
    reader.wait().unwrap();
    nothing_left(&rally);
}

#[test]
fn an_agent_with_an_open_prompt_gets_no_second_one() {
    // `counts` refuses a prompt while another is open, as many agents do.
    let rally = shell_agent("$RALLY agent-serve scenario counts prompts 10 1000", "");
    let task = detached(&rally);
    Rally::until("it works", || rally.path("prompts").exists());
    let session =
        rally.json(&["task", "show", &task])["sessions"][0]["sessionId"].as_str().unwrap().to_owned();
    for text in ["and this", "and that"] {
        let sent = rally.run(&["task", "send", &session, text]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
    }
    Rally::until("all have ended well", || {
        let shown = rally.json(&["task", "show", &task]);
        let runs = shown["runs"].as_array().unwrap();
        runs.len() == 3 && runs.iter().all(|run| run["outcome"] == "completed")
    });
    let prompts = std::fs::read_to_string(rally.path("prompts")).unwrap();
    assert_eq!(prompts.lines().count(), 3);
}
