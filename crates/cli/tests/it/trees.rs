//! Sub-agents of sub-agents, from outside: started, waited for, stopped.

use std::time::Instant;

use serde_json::Value;

use crate::help::{PATIENCE, Rally, said_by, write};

/// A task that is under way with this scenario, by its id and its session's.
fn begun(rally: &Rally, scenario: &str) -> (String, String) {
    let agent = Rally::scenario(scenario);
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &agent, "--check", "true", "--detach"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let task = rally.json(&["task", "list"])["items"][0]["taskId"].as_str().unwrap().to_owned();
    Rally::until("the sub-agent is in its turn", || run_of(&show(rally, &task), 0)["status"] == "running");
    let session = show(rally, &task)["sessions"][0]["sessionId"].as_str().unwrap().to_owned();
    (task, session)
}

fn show(rally: &Rally, task: &str) -> Value {
    rally.json(&["task", "show", task])
}

fn run_of(task: &Value, place: usize) -> Value {
    task["runs"][place].clone()
}

fn spawn(rally: &Rally, task: &str, parent: &str, scenario: &str, label: &str) -> Value {
    let agent = Rally::scenario(scenario);
    rally.json(&["task", "spawn", task, "--agent-cmd", &agent, "--label", label, "--parent", parent])
}

#[test]
fn of_twenty_spawns_at_once_against_a_cap_of_five_exactly_five_are_accepted() {
    let rally = Rally::with_config("[limits]\nspawnDepth = 2\n");
    let go = rally.path("go.txt");
    let scenario = format!("waits-for-file {}", go.display());
    let (task, parent) = begun(&rally, &scenario);
    let agent = Rally::scenario(&scenario);
    let arguments = ["task", "spawn", &task, "--agent-cmd", &agent, "--parent", &parent, "--json"];
    let ended: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..20).map(|_| scope.spawn(|| rally.run(&arguments))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let (accepted, refused): (Vec<_>, Vec<_>) = ended.iter().partition(|ended| ended.code == Some(0));
    assert_eq!((accepted.len(), refused.len()), (5, 15), "{ended:#?}");
    for ended in refused {
        assert!(ended.err.contains("5/5") && ended.err.contains("childrenPerParent"), "{ended:?}");
        assert!(ended.err.contains("rally task stop --session"), "{ended:?}");
    }
    assert_eq!(show(&rally, &task)["sessions"].as_array().unwrap().len(), 6);
    write(&go, "go");
    Rally::until("the task is done", || show(&rally, &task)["status"] == "done");
    let runs = show(&rally, &task)["runs"].as_array().unwrap().clone();
    let goals = runs.iter().filter(|run| run["purpose"] == "goal").count();
    let results = runs.iter().filter(|run| run["purpose"] == "follow_up").count();
    assert_eq!((goals, results), (6, 5), "each child's result reached its parent once");
}

#[test]
fn by_default_a_sub_agent_starts_none_and_the_refusal_names_a_call_that_works() {
    let rally = Rally::new();
    let (task, parent) = begun(&rally, &format!("waits-for-file {}", rally.path("go").display()));
    let agent = Rally::scenario("good");
    let refused = rally.run(&["task", "spawn", &task, "--agent-cmd", &agent, "--parent", &parent]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("depth 1/1") && refused.err.contains("without `--parent`"), "{refused:?}");
    let keyed = ["task", "spawn", &task, "--agent-cmd", &agent, "--key", "once"];
    let (first, second) = (rally.json(&keyed), rally.json(&keyed));
    assert_eq!(first["sessionId"], second["sessionId"]);
    assert_eq!(first["state"], "admitted");
    write(&rally.path("go"), "go");
    Rally::until("the task is done", || show(&rally, &task)["status"] == "done");
}

#[test]
fn on_a_lane_of_one_a_parent_that_waits_lets_its_child_run() {
    let rally = Rally::with_config("[limits]\nspawnDepth = 2\nlaneSubagent = 1\n");
    let go = rally.path("go.txt");
    let (task, parent) = begun(&rally, &format!("waits-for-file {}", go.display()));
    let early = rally.run(&["task", "wait", &parent]);
    assert!(early.err.contains("no sub-agent at work"), "{early:?}");
    let spawned = spawn(&rally, &task, &parent, "good", "helper");
    assert_eq!((&spawned["state"], &spawned["position"]), (&"parked".into(), &1.into()));
    assert_eq!(run_of(&show(&rally, &task), 1)["queuePosition"], 1);
    let text = rally.run(&["task", "show", &task]).out;
    assert!(text.contains("waits for a slot, place 1"), "{text}");
    assert_eq!(rally.run(&["task", "wait", &parent]).code, Some(0));
    Rally::until("the child has run", || run_of(&show(&rally, &task), 1)["outcome"] == "completed");
    Rally::until("the parent goes on", || run_of(&show(&rally, &task), 0)["status"] == "running");
    write(&go, "go");
    Rally::until("the task is done", || show(&rally, &task)["status"] == "done");
    let purposes: Vec<String> = show(&rally, &task)["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["purpose"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(purposes, ["goal", "goal", "follow_up"]);
    let room = rally.room();
    let helper = room.iter().find(|message| message["name"] == "helper").unwrap();
    assert_eq!(helper["metadata"]["deliveryHops"][0]["sessionId"], parent.as_str());
    assert_eq!(helper["metadata"]["deliveryHops"][0]["result"], "queued");
}

#[test]
fn a_stop_takes_a_tree_of_three_levels_with_everything_that_escaped() {
    let rally = Rally::with_config("[limits]\nspawnDepth = 3\ncancelGraceMs = 300\nstopGraceMs = 1000\n");
    let (task, root) = begun(&rally, "ignores-cancel");
    let forks = spawn(&rally, &task, &root, "forks", "forks")["sessionId"].as_str().unwrap().to_owned();
    spawn(&rally, &task, &root, "ignores-term", "stubborn");
    spawn(&rally, &task, &forks, "ignores-cancel", "leaf");
    Rally::until("all have begun and one has left a process behind", || {
        let view = show(&rally, &task);
        let open = (0..4).map(|place| run_of(&view, place)["status"].clone());
        let expected = ["running", "terminal", "running", "running"];
        open.zip(expected).all(|(status, wanted)| status == wanted)
            && rally.data.agent_processes().iter().any(|process| process.how.contains("sleep 600"))
    });
    let begin = Instant::now();
    let stop = rally.json(&["task", "stop", "--session", &root, "--wait"]);
    assert!(begin.elapsed() < PATIENCE);
    assert_eq!(rally.data.agent_processes(), [], "the answer comes when everything is gone");
    let took = stop["endedAt"].as_i64().unwrap() - stop["askedAt"].as_i64().unwrap();
    assert!(took < 10_000, "graces of 1.3 s took {took} ms");
    let labels: Vec<&str> =
        stop["nodes"].as_array().unwrap().iter().filter_map(|node| node["label"].as_str()).collect();
    assert_eq!((labels.len(), &labels[1..]), (4, &["forks", "leaf", "stubborn"][..]));
    assert_eq!(stop["counts"], serde_json::json!({ "completed": 1, "killed": 3 }));
    assert_eq!(show(&rally, &task)["status"], "interrupted");
    let room = rally.room();
    let entries: Vec<&Value> =
        room.iter().filter(|message| message["metadata"].get("treeStop").is_some()).collect();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["metadata"]["treeStop"]["counts"], stop["counts"]);
    let told = entries[0]["text"].as_str().unwrap();
    for line in ["  - forks: completed", "    - leaf: killed", "  - stubborn: killed"] {
        assert!(told.contains(line), "`{line}` is not in: {told}");
    }
    let system = said_by(&room, "system").join("\n");
    assert!(!system.contains("had to be ended by force"), "one entry tells of all: {system}");
    let again = rally.run(&["task", "stop", "--session", &root]);
    assert!(again.err.contains("nothing is left to stop"), "{again:?}");
}

#[test]
fn a_budget_of_tokens_ends_what_comes_after_it_and_is_named() {
    let rally = Rally::new();
    let agent = Rally::scenario("usage");
    let arguments =
        ["run", "Do it", "--agent-cmd", &agent, "--check", "false", "--budget-tokens", "1", "--json"];
    let ended = rally.run(&arguments);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let result = ended.result();
    assert_eq!((&result["status"], &result["reason"]), (&"waiting_on_user".into(), &"capped".into()));
    assert_eq!(result["runs"][1]["reason"]["limit"], "budget.tokens");
    let refused = rally.run(&["task", "retry", result["taskId"].as_str().unwrap()]);
    assert!(refused.err.contains("budget.tokens") && refused.err.contains("/1)"), "{refused:?}");
}
