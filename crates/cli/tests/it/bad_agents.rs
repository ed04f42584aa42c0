//! Agents that misbehave. Each ends with one clear error, the right exit code,
//! a task that tells the truth, and no process left.

use crate::help::{Ended, Rally, said_by};

fn with(scenario: &str) -> (Rally, Ended) {
    let rally = Rally::new();
    let ended =
        rally.run(&["run", "Do it", "--agent-cmd", &Rally::scenario(scenario), "--check", "true", "--json"]);
    (rally, ended)
}

/// Exit code, status, and a part of the reason's words.
fn check(scenario: &str, code: i32, status: &str, words: &str) {
    let (rally, ended) = with(scenario);
    assert_eq!(ended.code, Some(code), "{scenario}: {ended:?}");
    let result = ended.result();
    assert_eq!(result["status"], status, "{scenario}: {result}");
    let told = said_by(&rally.room(), "main_agent").join("\n");
    assert!(told.contains(words), "{scenario}: `{words}` is not in: {told}");
    Rally::until("every process of a task that ended is gone", || rally.data.agent_processes().is_empty());
}

#[test]
fn an_agent_that_prints_garbage_is_named_as_such() {
    check("garbage", 1, "failed", "does not seem to speak the Agent Client Protocol");
}

#[test]
fn an_agent_that_says_nothing_is_no_success() {
    check("empty", 1, "waiting_on_user", "ended without a usable result");
}

#[test]
fn an_agent_that_dies_at_once_is_told_with_its_exit_code_and_last_words() {
    check("dies-at-once", 1, "failed", "exit code 3");
}

#[test]
fn an_agent_that_dies_in_its_prompt_is_told_and_its_words_are_kept() {
    let (rally, ended) = with("dies-in-prompt");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let run = ended.result()["runs"][0]["runId"].as_str().unwrap().to_owned();
    assert_eq!(rally.json(&["result", "get", &run])["text"], "I have begun");
}

#[test]
fn an_agent_that_exits_zero_without_an_answer_has_failed() {
    check("exits-zero-in-prompt", 1, "failed", "before it answered");
}

#[test]
fn an_agent_that_asks_for_a_login_waits_for_a_person() {
    check("login", 3, "waiting_on_user", "needs a login");
    check("login-in-prompt", 3, "waiting_on_user", "needs a login");
}

#[test]
fn an_agent_that_answers_with_an_error_has_failed() {
    check("error-in-prompt", 1, "failed", "-32603");
}

#[test]
fn an_unknown_stop_reason_is_a_failure_that_names_it() {
    check("unknown-stop", 1, "failed", "banana");
}

#[test]
fn a_refusal_is_a_failure() {
    check("refusal", 1, "failed", "refused");
}

#[test]
fn an_agent_that_never_gets_ready_fails_at_its_deadline() {
    let rally = Rally::with_config("[limits]\nsetupTimeoutMs = 700\n");
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &Rally::scenario("silent"), "--check", "true"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let told = said_by(&rally.room(), "main_agent").join("\n");
    assert!(told.contains("was not ready within"), "{told}");
    Rally::until("every process is gone", || rally.data.agent_processes().is_empty());
}

#[test]
fn an_agent_that_ignores_cancel_and_term_is_ended_by_force() {
    for scenario in ["ignores-cancel", "ignores-term"] {
        let rally = Rally::with_config("[limits]\ncancelGraceMs = 300\nstopGraceMs = 1000\n");
        let agent = Rally::scenario(scenario);
        let ended =
            rally.run(&["run", "Do it", "--agent-cmd", &agent, "--check", "true", "--timeout", "800ms"]);
        assert_eq!(ended.code, Some(4), "{scenario}: {ended:?}");
        Rally::until("every process is gone", || rally.data.agent_processes().is_empty());
    }
}

#[test]
fn a_child_that_leaves_its_group_does_not_outlive_its_task() {
    let (rally, ended) = with("forks");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    Rally::until("the escaped child is gone", || rally.data.agent_processes().is_empty());
}

#[test]
fn output_that_strict_readers_choke_on_changes_nothing() {
    for scenario in
        ["junk-lines", "unknown-kinds", "bad-utf8", "stderr-flood", "no-newline", "late", "double-answer"]
    {
        let (_rally, ended) = with(scenario);
        assert_eq!(ended.code, Some(0), "{scenario}: {ended:?}");
        let ends = ended.lines().iter().filter(|line| line["kind"] == "run.ended").count();
        assert!(ends >= 1, "{scenario}: {ended:?}");
        assert_eq!(ended.result()["runs"].as_array().unwrap().len(), 1, "{scenario}");
    }
}

#[test]
fn a_flood_is_stored_whole_and_in_order() {
    let (_rally, ended) = with("flood 3000");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut next = None;
    for line in ended.lines().iter().filter(|line| line["kind"] == "agent.output") {
        let (first, last) =
            (line["data"]["firstFrame"].as_i64().unwrap(), line["data"]["lastFrame"].as_i64().unwrap());
        if let Some(next) = next {
            assert_eq!(first, next, "a hole or an overlap");
        }
        next = Some(last + 1);
    }
}

#[test]
fn tokens_are_shown_only_when_they_are_known() {
    let (rally, ended) = with("usage");
    let task = ended.result()["taskId"].as_str().unwrap().to_owned();
    let known = rally.json(&["task", "show", &task]);
    assert_eq!(known["sessions"][0]["usage"]["state"], "measured", "{known}");
    let (rally, ended) = with("good");
    let task = ended.result()["taskId"].as_str().unwrap().to_owned();
    let unknown = rally.json(&["task", "show", &task]);
    assert_eq!(unknown["sessions"][0]["usage"]["state"], "unavailable", "{unknown}");
}
