//! One task's life over HTTP, and what its keys promise.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::help::{Rally, write};

/// One call as a foreign program makes it: raw, over the socket.
pub(crate) fn http(rally: &Rally, method: &str, path: &str, body: &Value, key: Option<&str>) -> (u16, Value) {
    let mut stream = UnixStream::connect(rally.data.path().join("rally.sock")).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let key = key.map(|key| format!("idempotency-key: {key}\r\n")).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{key}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
}

/// A task over HTTP.
struct Life<'a> {
    rally: &'a Rally,
    task: String,
}

impl Life<'_> {
    fn get(&self, part: &str) -> Value {
        let (status, answer) =
            http(self.rally, "GET", &format!("/v1/tasks/{}{part}", self.task), &Value::Null, None);
        assert_eq!(status, 200, "{answer}");
        answer
    }

    fn post(&self, part: &str, body: &Value, key: &str) -> Value {
        let path = format!("/v1/tasks/{}/{part}", self.task);
        let (status, answer) = http(self.rally, "POST", &path, body, Some(key));
        assert_eq!(status, 200, "{part}: {answer}");
        let again = http(self.rally, "POST", &path, body, Some(key));
        assert_eq!(again, (200, answer.clone()), "a repeat of `{part}` gets the first answer");
        answer
    }

    fn refused(&self, part: &str, body: &Value) -> (u16, Value) {
        http(self.rally, "POST", &format!("/v1/tasks/{}/{part}", self.task), body, None)
    }

    fn view(&self) -> Value {
        self.get("")
    }

    fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        Rally::until(what, || holds(&self.view()));
        self.view()
    }

    fn done(&self) -> Value {
        self.until("the task is done", |task| task["status"] == "done")
    }

    fn journal(&self) -> Vec<Value> {
        let mut all = Vec::new();
        let mut after = 0;
        loop {
            let path = format!("/v1/events?taskId={}&limit=500&after={after}", self.task);
            let (_, page) = http(self.rally, "GET", &path, &Value::Null, None);
            all.extend(page["items"].as_array().unwrap().clone());
            match page["nextAfter"].as_i64() {
                Some(next) => after = next,
                None => return all,
            }
        }
    }

    fn count(&self, kind: &str) -> usize {
        self.journal().iter().filter(|event| event["kind"] == kind).count()
    }
}

fn texts(list: &Value, field: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item[field].as_str().unwrap_or_default().to_owned()).collect()
}

fn agent(label: &str, scenario: &str) -> Value {
    let argv: Vec<String> = Rally::scenario(scenario).split(' ').map(str::to_owned).collect();
    json!({ "agent": "scenario", "label": label, "argv": argv })
}

fn listed(rally: &Rally, query: &str) -> Vec<String> {
    let (status, page) = http(rally, "GET", &format!("/v1/tasks?{query}"), &Value::Null, None);
    assert_eq!(status, 200, "{page}");
    texts(&page["items"], "taskId")
}

/// The one task that is listed.
fn only(rally: &Rally, query: &str) -> String {
    let all = listed(rally, query);
    assert_eq!(all.len(), 1, "{query}: {all:?}");
    all[0].clone()
}

#[test]
fn one_life_of_a_task_over_http_loses_no_history_and_does_nothing_twice() {
    let rally = Rally::new();
    rally.json(&["task", "list"]);
    let go = rally.path("go");
    let waits = format!("waits-for-file {}", go.display());
    let environment = json!({ "PATH": std::env::var("PATH").unwrap() });

    // Created once, whoever asks again.
    let body = json!({
        "goal": "Do it", "agents": [agent("ada", &waits)], "checks": ["true"], "cwd": rally.work.path(),
        "environment": environment, "requestedBy": "kim",
    });
    let (status, created) = http(&rally, "POST", "/v1/tasks", &body, Some("k-create"));
    assert_eq!(status, 200, "{created}");
    let life = Life { rally: &rally, task: created["taskId"].as_str().unwrap().to_owned() };
    assert_eq!(http(&rally, "POST", "/v1/tasks", &body, Some("k-create")), (200, created));
    let (status, problem) = http(&rally, "POST", "/v1/tasks", &json!({"goal": "Else"}), Some("k-create"));
    assert_eq!((status, &problem["code"]), (409, &json!("key_reused")), "{problem}");
    assert_eq!(only(&rally, "limit=10"), life.task);
    life.until("it is in its turn", |task| task["runs"][0]["status"] == "running");

    // One more agent, and a message to both.
    let mut second = agent("bob", &waits);
    second["environment"] = environment.clone();
    life.post("agents", &second, "k-agent");
    let task = life.until("both are in their turns", |task| task["runs"][1]["status"] == "running");
    let sessions = texts(&task["sessions"], "sessionId");
    let said = life.post("messages", &json!({"text": "Mind the gap.", "by": "kim"}), "k-message");
    assert_eq!(said["forwardedTo"], json!(sessions));
    assert_eq!((&said["recorded"], &said["failedTo"]), (&json!(true), &json!([])));

    // Paused: nothing goes on, everything is kept.
    life.post("pause", &json!({"by": "kim"}), "k-pause");
    let ended = |task: &Value| {
        let ends: Vec<Value> =
            task["runs"].as_array().unwrap().iter().map(|run| run["outcome"].clone()).collect();
        ends == [json!("cancelled"), json!("cancelled"), Value::Null, Value::Null]
    };
    let task = life.until("both turns are cancelled and the messages held", ended);
    assert_eq!((&task["status"], &task["paused"]["by"]), (&json!("active"), &json!("kim")), "{task}");
    assert_eq!(task["settled"], false);
    let processes = |task: &Value| -> Vec<Value> {
        let sessions = task["sessions"].as_array().unwrap();
        sessions.iter().map(|session| session["generation"]["generationId"].clone()).collect()
    };
    let before = processes(&task);
    assert_eq!(only(&rally, "paused=true"), life.task);
    let (_, capacity) = http(&rally, "GET", "/v1/capacity", &Value::Null, None);
    assert_eq!((&capacity["used"], &capacity["held"]), (&json!(0), &json!(2)), "{capacity}");
    write(&go, "go");

    // It goes on in the same sessions, in the same processes.
    life.post("resume", &json!({"by": "kim"}), "k-resume");
    let task = life.until("it is done", |task| task["status"] == "done");
    assert_eq!(texts(&task["sessions"], "sessionId"), sessions);
    let started = life.journal().into_iter().filter(|event| event["kind"] == "generation.started").count();
    assert_eq!(started, before.len(), "no process was started anew");
    let purposes = texts(&task["runs"], "purpose");
    assert_eq!(purposes.iter().filter(|purpose| *purpose == "goal").count(), 2, "{purposes:?}");
    assert_eq!((life.count("task.paused"), life.count("task.resumed")), (1, 1));

    // A fork is a task of its own.
    let history = life.journal().len();
    let forked = life.post("fork", &json!({"title": "Other", "environment": environment}), "k-fork");
    assert_eq!(forked["forkedFrom"]["taskId"], life.task.as_str());
    assert_eq!((&forked["title"], &forked["goal"]), (&json!("Other"), &json!("Do it")));
    let fork = Life { rally: &rally, task: forked["taskId"].as_str().unwrap().to_owned() };
    fork.done();
    assert_eq!(only(&rally, &format!("parentTaskId={}", life.task)), fork.task);
    assert_eq!(only(&rally, "search=OTHER"), fork.task);
    assert!(life.journal().len() >= history);

    // From an event on, with what was said until then.
    let timeline = life.get("/timeline?limit=500");
    let items = timeline["items"].as_array().unwrap();
    let event = items.iter().find(|item| item["message"]["text"] == "Mind the gap.").unwrap();
    let unknown = life.refused("rerun-from-event", &json!({"eventSeq": 1}));
    assert_eq!((unknown.0, &unknown.1["code"]), (404, &json!("not_found")), "{unknown:?}");
    let body = json!({"eventSeq": event["seq"], "instruction": "Once more.", "environment": environment});
    life.post("rerun-from-event", &body, "k-rerun");
    let task = life.done();
    let prompt = task["sessions"][2]["goalPrompt"].as_str().unwrap();
    assert!(prompt.contains("kim: Mind the gap.") && prompt.ends_with("Once more."), "{prompt}");
    assert_eq!(task["sessions"][0]["status"], "stopped");

    // With another plan.
    let body = json!({"plan": {"steps": ["leap"]}, "editSummary": "shorter", "environment": environment});
    life.post("restart-with-edited-plan", &body, "k-plan");
    let task = life.done();
    let last = task["sessions"].as_array().unwrap().last().unwrap();
    assert!(last["goalPrompt"].as_str().unwrap().contains("leap"), "{last}");
    let plans = life.get("/plan-revisions");
    assert_eq!(plans["items"][0]["value"], json!({"steps": ["leap"]}));
    assert_eq!(life.count("task.restarted"), 2);
    assert!(!life.get("/artifacts")["items"].as_array().unwrap().is_empty());
    let decided = texts(&life.get("/decisions?limit=500")["items"], "kind");
    assert!(decided.contains(&"turn.planned".to_owned()) && decided.contains(&"task.paused".to_owned()));

    // Out of sight, and back.
    life.post("archive", &json!({}), "k-archive");
    assert_eq!(only(&rally, "limit=10"), fork.task);
    let task = life.post("reopen", &json!({"by": "kim"}), "k-reopen");
    assert_eq!((&task["status"], &task["reason"]), (&json!("waiting_on_user"), &json!("reopened")));
    assert!(task.get("archivedAt").is_none(), "{task}");
    let said = life.post("messages", &json!({"text": "Polish it.", "environment": environment}), "k-polish");
    assert!(said["started"].is_string(), "nobody was left, so one is started: {said}");
    life.done();

    // Deleted while somebody works on it: first he is stopped, and his process is gone.
    std::fs::remove_file(&go).unwrap();
    life.post("restart", &json!({"environment": environment}), "k-restart");
    life.until("somebody works", |task| {
        task["runs"].as_array().unwrap().iter().any(|run| run["status"] == "running")
    });
    let first = life.journal().first().unwrap()["seq"].clone();
    let refused = life.refused("restart", &json!({"environment": environment}));
    assert_eq!((refused.0, &refused.1["code"]), (409, &json!("conflict")), "{refused:?}");
    let deleted = life.post("delete", &json!({"mode": "purge", "by": "kim"}), "k-delete");
    assert_eq!((&deleted["status"], &deleted["deleted"]["mode"]), (&json!("interrupted"), &json!("purge")));
    Rally::until("no process is left", || rally.data.agent_processes().is_empty());
    assert_eq!(only(&rally, "includeArchived=true"), fork.task);
    let journal = life.journal();
    assert_eq!(journal.first().unwrap()["seq"], first, "its skeleton stays");
    assert!(!journal.iter().any(|event| event.to_string().contains("Mind the gap")), "its words are gone");
    let refused = life.refused("messages", &json!({"text": "Hello?"}));
    assert_eq!(refused.0, 409, "{refused:?}");
}

#[test]
fn a_request_that_a_killed_daemon_had_decided_is_not_done_again() {
    let rally = Rally::new();
    rally.json(&["task", "list"]);
    let go = rally.path("go");
    let body = json!({
        "goal": "Do it", "agents": [agent("ada", &format!("waits-for-file {}", go.display()))], "checks": ["true"],
        "cwd": rally.work.path(), "environment": { "PATH": std::env::var("PATH").unwrap() },
    });
    let (status, created) = http(&rally, "POST", "/v1/tasks", &body, Some("k-1"));
    assert_eq!(status, 200, "{created}");
    for daemon in rally.data.daemons() {
        let pid = rustix::process::Pid::from_raw(i32::try_from(daemon.identity.pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    Rally::until("the daemon is gone", || rally.data.daemons().is_empty());
    rally.json(&["task", "list"]);
    assert_eq!(http(&rally, "POST", "/v1/tasks", &body, Some("k-1")), (200, created));
    assert_eq!(listed(&rally, "limit=10").len(), 1);
    write(&go, "go");
    let task = listed(&rally, "limit=10").remove(0);
    Rally::until("the task is done", || rally.json(&["task", "show", &task])["status"] == "done");
}

/// A daemon that dies at this place, or stays.
fn serve(rally: &Rally, fault: Option<&str>) -> std::process::Child {
    let mut command = rally.command(&["serve", "--no-listen"]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    if let Some(fault) = fault {
        command.env("RALLY_FAULT_POINT", fault);
    }
    command.spawn().unwrap()
}

fn answers(rally: &Rally) -> bool {
    UnixStream::connect(rally.data.path().join("rally.sock")).is_ok()
}

#[test]
fn wherever_a_daemon_dies_a_request_under_a_key_is_carried_out_once() {
    let mut cut = 0;
    for point in ["decider:decided", "decider:committed", "decider:announced"] {
        for at in 1..=4 {
            let rally = Rally::new();
            let daemon = std::cell::RefCell::new(serve(&rally, Some(&format!("{point}:{at}"))));
            Rally::until("it answers or is dead", || {
                answers(&rally) || daemon.borrow_mut().try_wait().unwrap().is_some()
            });
            let body = json!({"title": "ops"});
            let mut daemon = daemon.into_inner();
            if daemon.try_wait().unwrap().is_none() {
                let path = rally.data.path().join("rally.sock");
                let mut stream = UnixStream::connect(path).unwrap();
                let text = body.to_string();
                let request = format!(
                    "POST /v1/rooms HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nidempotency-key: k-1\r\ncontent-length: {}\r\n\r\n{text}",
                    text.len()
                );
                // It may die before, while or after it answers; whoever asked knows of none.
                let mut answer = String::new();
                let _ =
                    stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
                cut += usize::from(answer.is_empty());
            }
            let _gone = daemon.kill();
            daemon.wait().unwrap();
            let mut daemon = serve(&rally, None);
            Rally::until("the next one answers", || answers(&rally));
            let first = http(&rally, "POST", "/v1/rooms", &body, Some("k-1"));
            assert_eq!(first.0, 200, "{point}:{at}: {first:?}");
            assert_eq!(http(&rally, "POST", "/v1/rooms", &body, Some("k-1")), first);
            let (_, rooms) = http(&rally, "GET", "/v1/rooms", &Value::Null, None);
            let made =
                rooms["items"].as_array().unwrap().iter().filter(|room| room["title"] == "ops").count();
            assert_eq!(made, 1, "{point}:{at}");
            daemon.kill().unwrap();
            daemon.wait().unwrap();
        }
    }
    assert!(cut >= 3, "only {cut} requests were cut, so this shows little");
}
