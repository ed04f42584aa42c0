//! What is tried with each agent.

use rallypoint_testkit::mock_model::{PLAIN_ANSWER, Usage};
use serde_json::Value;

use crate::agent::{AGENTS, Agent};
use crate::harness::Test;
use crate::outcome::record;
use crate::stage::{Ended, Stage};

type Scenario = fn(&Agent);

const SCENARIOS: &[(&str, Scenario)] = &[
    ("answers_and_counts_its_tokens", answers),
    ("runs_a_command_once_it_is_allowed", allowed),
    ("runs_nothing_that_is_declined", declined),
    ("ends_its_turn_when_it_is_cancelled", cancelled),
    ("killed_in_mid_turn_goes_on_or_says_so", killed),
    ("without_a_login_asks_for_one", unauthorized),
    ("refused_by_its_provider_has_failed", provider_down),
    ("changes_nothing_that_it_may_only_read", read_only),
    ("asks_with_the_tool_that_it_was_given_and_gets_the_answer", tool),
];

/// Every scenario with every agent.
pub(crate) fn tests() -> Vec<Test> {
    let with = |agent: &'static Agent| {
        SCENARIOS.iter().map(move |(name, scenario)| Test {
            name: format!("{}::{name}", agent.name),
            installed: crate::agent::folder(),
            goal: "test-agents",
            body: Box::new(move || scenario(agent)),
        })
    };
    AGENTS.into_iter().flat_map(with).collect()
}

/// Outcome of each run of a task.
fn outcomes(task: &Value) -> Vec<&str> {
    task["runs"].as_array().unwrap().iter().map(|run| run["outcome"].as_str().unwrap_or("open")).collect()
}

/// The full output of a task's run.
fn said(stage: &Stage, task: &Value, run: usize) -> String {
    let id = task["runs"][run]["runId"].as_str().unwrap();
    stage.json(&["result", "get", id])["text"].as_str().unwrap().to_owned()
}

fn answers(agent: &Agent) {
    let stage = Stage::with(&[agent]);
    let ended = stage.run(agent, "Say something", &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let task = ended.last();
    assert_eq!(said(&stage, &task, 0).trim(), PLAIN_ANSWER);
    record(agent, "answer", "yes");
    counted(agent, &stage, &stage.task(task["taskId"].as_str().unwrap()));
    stage.empty();
}

/// Tokens are counted with a mark that says how sure they are, and never more than the model reported.
fn counted(agent: &Agent, stage: &Stage, task: &Value) {
    let usage = &task["sessions"][0]["usage"];
    let state = usage["state"].as_str().unwrap();
    if state == "unavailable" {
        assert_ne!(usage["reason"].as_str().unwrap(), "", "{usage}");
    } else {
        let number = |name: &str| usage["value"][name].as_u64().unwrap_or(0);
        let seen = number("input") + number("cacheRead") + number("cacheWrite");
        let all: u64 = stage.mock.requests().iter().map(|request| Usage::whole_input(&request.usage)).sum();
        assert!(seen > 0 && number("output") > 0, "{usage}");
        // Cached tokens may stand in both numbers; they are zero in a first turn.
        assert!(seen <= all, "{usage}: more than the {all} that the model counted");
    }
    record(agent, "usage", state);
}

/// A task that waits for a permission, and the question.
fn asked(agent: &Agent, stage: &Stage) -> (String, String) {
    let goal = format!("[[mock:{} echo it-ran > made.txt && cat made.txt]]", agent.command_word);
    let mode = format!("mode={}", agent.asking_mode);
    let ended = stage.run(agent, &goal, &["--set", &mode]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let questions = stage.json(&["question", "list"]);
    let question = &questions["items"][0];
    assert_eq!(question["question"]["kind"], "approval", "{questions}");
    assert!(!stage.path("made.txt").exists());
    let id = |value: &Value| value.as_str().unwrap().to_owned();
    (id(&ended.last()["taskId"]), id(&question["questionId"]))
}

fn allowed(agent: &Agent) {
    let stage = Stage::with(&[agent]);
    let (task, question) = asked(agent, &stage);
    let answered = stage.rally(&["question", "answer", &question, "--allow"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let task = stage.settled(&task);
    assert_eq!(outcomes(&task), ["completed"], "{task}");
    assert_eq!(std::fs::read_to_string(stage.path("made.txt")).unwrap(), "it-ran\n");
    let text = said(&stage, &task, 0);
    assert!(text.contains("The tool said:") && text.contains("it-ran"), "{text}");
    record(agent, "permission", "asked, allowed, done");
    stage.empty();
}

fn declined(agent: &Agent) {
    let stage = Stage::with(&[agent]);
    let (task, question) = asked(agent, &stage);
    let answered = stage.rally(&["question", "answer", &question, "--decline", "not today"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let view = stage.settled(&task);
    assert!(!stage.path("made.txt").exists());
    let seen = match outcomes(&view)[0] {
        "completed" => "not done, and says so",
        "completed_empty" => "not done, ends its turn without a word",
        "failed" if view["runs"][0]["reason"]["stop_reason"] == "cancelled" => "not done, cancels its turn",
        other => panic!("a declined command ends a turn as {other}: {view}"),
    };
    record(agent, "declined", seen);
    // One that was asked to go on may ask for the command again, and waits.
    stage.rally(&["task", "stop", &task]);
    stage.empty();
}

fn cancelled(agent: &Agent) {
    let stage = Stage::with(&[agent]);
    let task = stage.start(agent, "[[mock:slow 400]]");
    stage.speaks(&task);
    let stopped = stage.rally(&["task", "stop", &task]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    let view = stage.settled(&task);
    assert_eq!(outcomes(&view), ["cancelled"], "{view}");
    assert!(said(&stage, &view, 0).contains("Piece 1"));
    record(agent, "cancel", "answers `cancelled`");
    stage.empty();
}

fn killed(agent: &Agent) {
    let stage = Stage::with(&[agent]);
    let task = stage.start(agent, "[[mock:hang-once cut]]");
    stage.speaks(&task);
    stage.kill_agents();
    let view = stage.settled(&task);
    let outcomes = outcomes(&view);
    if agent.goes_on {
        assert_eq!(outcomes, ["failed", "completed"], "{view}");
        assert_eq!(view["runs"][1]["purpose"], "continuing", "{view}");
        assert_eq!(view["status"], "done", "{view}");
        assert!(said(&stage, &view, 1).contains("goes on after the cut"));
        record(agent, "killed", "goes on in the same conversation");
    } else {
        assert_eq!(outcomes, ["failed"], "{view}");
        assert!(Stage::told(&view).contains("signal 9"), "{view}");
        let retried = stage.rally(&["task", "retry", &task]);
        assert_eq!(retried.code, Some(0), "{retried:?}");
        stage.until("the second run has ended", || stage.task(&task)["status"] == "done");
        record(agent, "killed", "fails and says so; `rally task retry` begins anew");
    }
    stage.empty();
}

fn unauthorized(agent: &Agent) {
    let stage = Stage::with(&[agent]);
    let ended = stage.run(agent, "[[mock:error 401]]", &[]);
    told_about(agent, &stage, &ended, 3, &["needs a login", "rally task retry"]);
    record(agent, "login", "waits for a login");
}

fn provider_down(agent: &Agent) {
    let stage = Stage::with(&[agent]);
    let ended = stage.run(agent, "[[mock:error 500]]", &[]);
    told_about(agent, &stage, &ended, 1, &["error", "rally task retry"]);
    record(agent, "error", "fails");
}

/// A failed run whose end says which agent and what to do.
fn told_about(agent: &Agent, stage: &Stage, ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    let task = stage.task(ended.last()["taskId"].as_str().unwrap());
    assert_eq!(outcomes(&task), ["failed"], "{task}");
    let told = Stage::told(&task);
    for word in words.iter().chain([&format!("`{}`", agent.name).as_str()]) {
        assert!(told.contains(word), "`{word}` is not in: {told}");
    }
    stage.empty();
}

/// Tried where the program knows permission presets.
fn read_only(agent: &Agent) {
    let stage = Stage::with(&[agent]);
    if !stage.rally(&["run", "--help"]).out.contains("--permissions") {
        return;
    }
    let canary = stage.path("canary.txt");
    std::fs::write(&canary, "alive\n").unwrap();
    let goal = format!("[[mock:{} echo dead > canary.txt]]", agent.command_word);
    let ended = stage.run(agent, &goal, &["--permissions", "readonly"]);
    assert_eq!(std::fs::read_to_string(&canary).unwrap(), "alive\n", "{ended:?}");
    record(agent, "readonly", "changes nothing");
    stage.rally(&["task", "stop", ended.last()["taskId"].as_str().unwrap_or_default()]);
    stage.empty();
}

/// One of our tools, called by the model through the tool server that the agent was told of.
fn tool(agent: &Agent) {
    let stage = Stage::with(&[agent]);
    let goal = "[[mock:mcp ask_user {\"question\":\"Which colour?\"}]]";
    let task = stage.start(agent, goal);
    let open = || stage.json(&["question", "list"])["items"][0].clone();
    let answer = |question: &Value, how: &[&str]| {
        let id = question["questionId"].as_str().unwrap();
        let answered = stage.rally(&[&["question", "answer", id], how].concat());
        assert_eq!(answered.code, Some(0), "{answered:?}");
    };
    stage.until("somebody is asked", || !open().is_null() || stage.task(&task)["settled"] == true);
    let wants_permission = open()["question"]["kind"] == "approval";
    if wants_permission {
        answer(&open(), &["--allow"]);
        stage.until("the tool asks", || {
            open()["question"]["kind"] == "ask" || stage.task(&task)["settled"] == true
        });
    }
    let question = open();
    let seen: Vec<String> =
        stage.mock.requests().into_iter().map(|it| format!("{} after {:?}", it.done, it.last_turn)).collect();
    assert_eq!(question["question"]["text"], "Which colour?", "{seen:?}");
    assert_eq!(stage.task(&task)["sessions"][0]["generation"]["tools"], "connected");
    answer(&question, &["--text", "blue"]);
    let view = stage.settled(&task);
    assert_eq!(outcomes(&view), ["completed"], "{view}");
    let text = said(&stage, &view, 0);
    assert!(text.contains("The tool said:") && text.contains("blue"), "{text}");
    let seen = if wants_permission { "asked, allowed, answered" } else { "answered" };
    record(agent, "tools", seen);
    stage.empty();
}
