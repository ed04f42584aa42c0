//! The machine's clock is set by hours, both ways, while agents work; and the daemon is stopped and continued.

use std::process::Command;

use rallypoint_model::event::Event;
use rallypoint_testkit::Journal;
use serde_json::Value;

use crate::help::Rally;

const SIX_HOURS_MS: i64 = 6 * 60 * 60 * 1000;

/// A configuration whose limits are all shorter than the steps.
const LIMITS: &str = "[limits]\nrunTimeoutSeconds = 3600\nstallMs = 3600000\nsetupTimeoutMs = 600000\n\
                      permissionDeadlineMinutes = 60\nquestionDeadlineMinutes = 60\n";

/// A `rally` whose clock is set through a file.
fn rally() -> Rally {
    let rally = Rally::with_config(LIMITS);
    let clock = rally.path("clock").display().to_string();
    rally.with_variable("RALLY_FAULT_CLOCK", &clock)
}

/// Sets the clock, at once for every reader.
fn set(rally: &Rally, by_ms: i64) {
    let new = rally.path("clock.new");
    std::fs::write(&new, by_ms.to_string()).unwrap();
    std::fs::rename(new, rally.path("clock")).unwrap();
}

fn show(rally: &Rally, task: &str) -> Value {
    rally.json(&["task", "show", task])
}

fn start(rally: &Rally, agent: &str, more: &[&str]) -> String {
    let agent = Rally::scenario(agent);
    let arguments = ["run", "Wait", "--agent-cmd", &agent, "--check", "true", "--detach", "--json"];
    let task = rally.run(&[&arguments[..], more].concat()).result()["taskId"].as_str().unwrap().to_owned();
    Rally::until("the agent has its prompt", || !show(rally, &task)["runs"][0]["startedAt"].is_null());
    task
}

/// How far the clocks were moved so far, as the journal says.
fn shifts(rally: &Rally) -> Vec<i64> {
    let journal = Journal::read(&rally.data.database()).unwrap();
    let shift = |record: &rallypoint_model::event::EventRecord| match &record.event {
        Event::ClockShifted { by_ms, .. } => Some(*by_ms).filter(|by_ms| *by_ms != 0),
        _ => None,
    };
    journal.events.iter().filter_map(shift).collect()
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

#[test]
fn a_clock_that_is_set_by_hours_ends_no_run_and_no_question() {
    let rally = rally();
    let task = start(&rally, "waits-for-file go", &["--timeout", "2h"]);
    let asking = start(&rally, "permission", &[]);
    Rally::until("somebody is asked", || {
        show(&rally, &asking)["openQuestions"].as_array().map(Vec::len) == Some(1)
    });
    for (steps, by_ms) in [(1, SIX_HOURS_MS), (2, 0), (3, -SIX_HOURS_MS)] {
        set(&rally, by_ms);
        Rally::until("the step was noticed", || shifts(&rally).len() >= steps);
        let (waiting, asking) = (show(&rally, &task), show(&rally, &asking));
        assert!(waiting["runs"][0]["outcome"].is_null(), "{waiting}");
        assert_eq!(waiting["runs"][0]["status"], "running");
        assert_eq!(asking["openQuestions"].as_array().map(Vec::len), Some(1), "{asking}");
    }
    for (shift, step) in shifts(&rally).iter().zip([SIX_HOURS_MS, -SIX_HOURS_MS, -SIX_HOURS_MS]) {
        assert!((shift - step).abs() < 60_000, "{shift} for {step}");
    }
    std::fs::write(rally.path("go"), "").unwrap();
    Rally::until("the task is done", || show(&rally, &task)["status"] == "done");
    assert_eq!(show(&rally, &task)["runs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_limit_holds_in_time_that_has_passed_however_the_clock_is_set() {
    let rally = rally();
    let task = start(&rally, "waits-for-file go", &["--timeout", "4s"]);
    set(&rally, -SIX_HOURS_MS);
    Rally::until("the step was noticed", || !shifts(&rally).is_empty());
    Rally::until("the task has run out of time", || show(&rally, &task)["status"] == "failed");
    let shown = show(&rally, &task);
    assert_eq!((&shown["runs"][0]["outcome"], &shown["exitCode"]), (&"timed_out".into(), &4.into()));
}

#[test]
fn a_daemon_that_was_stopped_for_a_while_judges_nobody_by_that_time() {
    // Quiet for longer than it may take to get ready: but it was ready, and nobody looked.
    let rally = Rally::with_config("[limits]\nsetupTimeoutMs = 4000\n");
    assert_eq!(rally.run(&["task", "list"]).code, Some(0));
    let daemon = rally.data.daemons()[0].identity.pid;
    let agent = Rally::scenario("slow-open 1000");
    let arguments = ["run", "Wait", "--agent-cmd", &agent, "--check", "true", "--detach", "--json"];
    let task = rally.run(&arguments).result()["taskId"].as_str().unwrap().to_owned();
    Rally::until("its process is there", || !rally.data.agents().is_empty());
    signal("-STOP", daemon);
    // The agent gets ready meanwhile; the limit for that passes as well.
    let stopped = std::time::Instant::now();
    Rally::until("longer than the limit has passed", || stopped.elapsed().as_millis() > 7_000);
    signal("-CONT", daemon);
    Rally::until("the task is over", || show(&rally, &task)["status"] != "active");
    let shown = show(&rally, &task);
    assert!(["done", "validating"].contains(&shown["status"].as_str().unwrap()), "{shown}");
    Rally::until("the task is done", || show(&rally, &task)["status"] == "done");
    assert_eq!(show(&rally, &task)["runs"].as_array().map(Vec::len), Some(1));
}
