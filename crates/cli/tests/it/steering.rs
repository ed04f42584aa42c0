//! Steering tasks from the command line.

use serde_json::{Value, json};

use crate::help::{Rally, write};
use crate::task_life::http;

fn begun(rally: &Rally, scenario: &str) -> String {
    let agent = Rally::scenario(scenario);
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &agent, "--check", "true", "--detach", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let task = rally.json(&["task", "list"])["items"][0]["taskId"].as_str().unwrap().to_owned();
    Rally::until("it is in its turn", || show(rally, &task)["runs"][0]["status"] == "running");
    task
}

fn show(rally: &Rally, task: &str) -> Value {
    rally.json(&["task", "show", task])
}

fn ids(page: &Value, field: &str) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_person_pauses_all_and_lets_all_go_on_and_run_waits_meanwhile() {
    let rally = Rally::new();
    let go = rally.path("go");
    let task = begun(&rally, &format!("waits-for-file {}", go.display()));
    assert_eq!(rally.json(&["task", "pause", "--all"]), json!({"tasks": 1}));
    Rally::until("its turn is cancelled", || show(&rally, &task)["runs"][0]["outcome"] == "cancelled");
    assert_eq!(show(&rally, &task)["sessions"][0]["status"], "ready");
    let listed = rally.run(&["task", "list"]).out;
    assert!(listed.contains("active, paused"), "{listed}");
    assert!(rally.run(&["task", "show", &task]).out.contains("paused "), "a person sees it");
    let refused = rally.run(&["task", "retry", &task]);
    assert!(refused.err.contains("rally task resume"), "{refused:?}");
    write(&go, "go");
    assert_eq!(rally.json(&["task", "resume", "--all"]), json!({"tasks": 1}));
    Rally::until("the task is done", || show(&rally, &task)["status"] == "done");
    let log = rally.run(&["task", "log", &task]).out;
    assert!(log.contains("paused by") && log.contains("resumed by"), "{log}");
}

#[test]
fn lists_are_filtered_searched_and_paged_without_a_gap() {
    let rally = Rally::new();
    let mut made = Vec::new();
    for goal in ["Red fox\n\n$ true", "Blue fox\n\n$ true", "Green hen\n\n$ true"] {
        let ended = rally.run(&["run", goal, "--agent", "shell", "--check", "true", "--json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        made.push(ended.result()["taskId"].as_str().unwrap().to_owned());
    }
    let foxes = rally.json(&["task", "list", "--search", "FOX"]);
    assert_eq!(ids(&foxes, "taskId"), [made[1].clone(), made[0].clone()]);
    assert_eq!(ids(&rally.json(&["task", "list", "--status", "active"]), "taskId"), Vec::<String>::new());
    assert_eq!(rally.run(&["task", "list", "--status", "lost"]).code, Some(2));

    let first = rally.json(&["task", "list", "--limit", "2"]);
    let cursor = first["nextCursor"].as_str().unwrap();
    // What moves to the front in between is not shown a second time, and nothing behind it is left out.
    rally.json(&["task", "edit", &made[2], "--title", "Hen", "--priority", "high"]);
    let rest = rally.json(&["task", "list", "--limit", "2", "--cursor", cursor]);
    let mut all = ids(&first, "taskId");
    all.extend(ids(&rest, "taskId"));
    all.sort();
    made.sort();
    assert_eq!(all, made);
    assert_eq!(rest["nextCursor"], Value::Null);
    let high = rally.json(&["task", "list", "--priority", "high"]);
    assert_eq!(high["items"][0]["title"], "Hen");
    assert!(rally.run(&["task", "list", "--cursor", "7"]).err.contains("no cursor"));

    let page = rally.json(&["task", "timeline", &all[0], "--limit", "3"]);
    let older = rally.json(&[
        "task",
        "timeline",
        &all[0],
        "--limit",
        "500",
        "--cursor",
        page["nextCursor"].as_str().unwrap(),
    ]);
    let seqs = |page: &Value| -> Vec<i64> {
        page["items"].as_array().unwrap().iter().map(|item| item["seq"].as_i64().unwrap()).collect()
    };
    let mut both = seqs(&page);
    both.extend(seqs(&older));
    assert!(both.windows(2).all(|pair| pair[0] > pair[1]), "newest first, none twice: {both:?}");
    assert_eq!(older["items"].as_array().unwrap().last().unwrap()["event"]["kind"], "task.created");
}

#[test]
fn a_json_answer_of_the_command_line_is_the_body_of_the_api() {
    let rally = Rally::new();
    let ended = rally.run(&["run", "Do it\n\n$ true", "--agent", "shell", "--check", "true", "--json"]);
    let task = ended.result()["taskId"].as_str().unwrap().to_owned();
    Rally::until("nothing is left of its process", || {
        let events = rally.run(&["task", "log", &task, "--json"]).out;
        events.contains("generation.cleaned")
    });
    for (verb, path) in [
        (vec!["task", "show", &task], format!("/v1/tasks/{task}")),
        (vec!["task", "list", "--limit", "20"], "/v1/tasks?limit=20".to_owned()),
        (vec!["task", "status"], "/v1/status".to_owned()),
        (vec!["task", "queue"], "/v1/capacity".to_owned()),
        (vec!["task", "messages", &task], format!("/v1/tasks/{task}/messages?limit=20")),
        (vec!["task", "timeline", &task], format!("/v1/tasks/{task}/timeline?limit=20")),
        (vec!["task", "decisions", &task], format!("/v1/tasks/{task}/decisions?limit=20")),
        (vec!["task", "artifacts", &task], format!("/v1/tasks/{task}/artifacts?limit=20")),
        (vec!["task", "plan", "list", &task], format!("/v1/tasks/{task}/plan-revisions?limit=20")),
        (vec!["question", "list"], "/v1/questions".to_owned()),
    ] {
        assert_eq!(rally.json(&verb), http(&rally, "GET", &path, &Value::Null, None).1, "{verb:?}");
    }
}

#[test]
fn a_result_is_judged_by_name_checked_again_and_planned_anew() {
    let rally = Rally::new();
    let agent = Rally::scenario("good");
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &agent, "--accept", "it looks right", "--json"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let task = ended.result()["taskId"].as_str().unwrap().to_owned();
    let view = show(&rally, &task);
    assert!(view["blockedReason"].as_str().unwrap().contains("it looks right"), "{view}");
    assert!(view["completionSummary"].is_string() && view["correctiveLimit"] == 3, "{view}");
    assert!(view["sessions"][0]["goalPrompt"].as_str().unwrap().starts_with("--- Goal ---"), "{view}");

    let plan = rally.json(&["task", "plan", "set", &task, r#"{"steps":["look"]}"#, "--summary", "first"]);
    let refused = rally.run(&["task", "plan", "set", &task, "[1]"]);
    assert!(refused.err.contains("JSON object"), "{refused:?}");
    let agent = rally.json(&[
        "task",
        "retry-turn",
        &task,
        "--new-session",
        "--plan-revision",
        plan["id"].as_str().unwrap(),
    ]);
    assert_eq!(agent["sessions"].as_array().unwrap().len(), 2);
    Rally::until("it waits again", || show(&rally, &task)["status"] == "waiting_on_user");
    assert!(show(&rally, &task)["sessions"][1]["goalPrompt"].as_str().unwrap().contains("look"));

    let checked = rally.json(&["task", "check", &task, "--wait"]);
    assert_eq!(checked["status"], "waiting_on_user", "a person is still to be asked: {checked}");
    let without = rally.run(&["task", "validate", &task, "--pass", "--evidence", " ", "--by", "kim"]);
    assert!(without.err.contains("what shows it"), "{without:?}");
    let judged = rally.json(&["task", "validate", &task, "--pass", "--evidence", "I looked", "--by", "kim"]);
    assert_eq!((&judged["status"], &judged["reason"]), (&json!("done"), &json!("proven")), "{judged}");
    let again = rally.run(&["task", "validate", &task, "--fail", "--evidence", "x", "--by", "kim"]);
    assert!(again.err.contains("no result of it"), "{again:?}");
    assert_eq!(rally.json(&["task", "status"])["byStatus"]["done"], 1);
}

#[test]
fn a_task_that_is_worked_on_is_archived_only_when_its_stop_was_asked_for() {
    let rally = Rally::new();
    let task = begun(&rally, &format!("waits-for-file {}", rally.path("never").display()));
    let refused = rally.run(&["task", "archive", &task]);
    assert!(refused.err.contains("not over"), "{refused:?}");
    let archived = rally.json(&["task", "archive", &task, "--stop"]);
    assert_eq!(archived["status"], "interrupted");
    assert!(archived["archivedAt"].is_i64(), "{archived}");
}
