//! Our tools in the hands of an agent that starts the tool server it is told of: real processes from end to end.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use rallypoint_ops::registry::{OPERATIONS, Role};
use serde_json::{Value, json};

use crate::help::{Rally, said_by, write};

/// Begins a task whose agent makes these calls.
fn begin(rally: &Rally, calls: &[Value], more: &[&str]) -> String {
    let lines: Vec<String> = calls.iter().map(ToString::to_string).collect();
    write(&rally.path("calls"), &lines.join("\n"));
    let agent = Rally::scenario("calls calls");
    let mut arguments =
        vec!["run", "Call them", "--agent-cmd", &agent, "--check", "true", "--detach", "--json"];
    arguments.extend(more);
    let ended = rally.run(&arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.result()["taskId"].as_str().unwrap().to_owned()
}

/// An answer of the daemon, whichever daemon it is: one may be killed while it answers.
fn json_of_any(rally: &Rally, arguments: &[&str]) -> Value {
    let mut all = arguments.to_vec();
    all.push("--json");
    for _ in 0..20 {
        let ended = rally.run(&all);
        if !ended.err.contains("the connection to the daemon was lost") {
            return serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        }
    }
    panic!("the daemon is lost again and again");
}

fn show(rally: &Rally, task: &str) -> Value {
    json_of_any(rally, &["task", "show", task])
}

fn log(rally: &Rally, task: &str, kind: &str) -> Vec<Value> {
    let ended = rally.run(&["task", "log", task, "--json"]);
    ended.lines().into_iter().filter(|row| row["kind"] == kind).collect()
}

fn until_done(rally: &Rally, task: &str) {
    Rally::until("the task is done", || show(rally, task)["status"] == "done");
}

fn question(rally: &Rally) -> Option<String> {
    let open = json_of_any(rally, &["question", "list"]);
    open["items"][0]["questionId"].as_str().map(str::to_owned)
}

#[test]
fn a_question_of_a_tool_is_asked_in_the_room_and_the_call_returns_with_the_answer() {
    let rally = Rally::new();
    let ask =
        json!({"tool": "ask_user", "arguments": {"question": "Which colour?", "options": ["red", "blue"]}});
    let task = begin(&rally, &[ask], &[]);
    Rally::until("it is asked", || question(&rally).is_some());
    let view = show(&rally, &task);
    assert_eq!(view["status"], "blocked");
    assert_eq!(view["runs"][0]["status"], "waiting_question");
    assert_eq!(view["sessions"][0]["generation"]["tools"], "connected");
    let asked = said_by(&rally.room(), "sub_agent").join("\n");
    assert!(asked.contains("QUESTION_FOR_TASK_CREATOR") && asked.contains("Which colour?"), "{asked}");
    let id = question(&rally).unwrap();
    let wrong = rally.run(&["question", "answer", &id, "--text", "green"]);
    assert!(wrong.err.contains("takes one of: red, blue"), "{wrong:?}");
    assert_eq!(rally.run(&["question", "answer", &id, "--text", "blue"]).code, Some(0));
    until_done(&rally, &task);
    assert!(said_by(&rally.room(), "sub_agent").join("\n").contains("blue"));
    let called = log(&rally, &task, "session.tool_called");
    assert_eq!(called.len(), 1);
    assert_eq!(called[0]["data"]["source"], "mcp");
    assert_eq!(log(&rally, &task, "session.tool_answered")[0]["data"]["answer"]["text"], "blue");
    assert_eq!(show(&rally, &task)["runs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_declined_question_is_answered_so() {
    let rally = Rally::new();
    let ask = json!({"tool": "ask_user", "arguments": {"question": "May I?"}});
    let task = begin(&rally, &[ask], &[]);
    Rally::until("it is asked", || question(&rally).is_some());
    let id = question(&rally).unwrap();
    assert_eq!(rally.run(&["question", "answer", &id, "--decline", "not today"]).code, Some(0));
    until_done(&rally, &task);
    let said = said_by(&rally.room(), "sub_agent").join("\n");
    assert!(said.contains("The question was declined: not today"), "{said}");
}

#[test]
fn a_report_by_call_counts_although_nothing_was_said_and_wins_over_words() {
    let rally = Rally::new();
    let report = json!({"tool": "report_completion", "sayNothing": true, "arguments": {
        "diffSummary": "The answer is 42.", "filesChanged": ["a.rs"]}});
    let task = begin(&rally, &[report], &[]);
    until_done(&rally, &task);
    let said = said_by(&rally.room(), "sub_agent").join("\n");
    assert!(said.contains("The answer is 42."), "{said}");
    let ended = log(&rally, &task, "run.ended");
    assert_eq!(ended[0]["data"]["outcome"], "completed");
    assert_eq!(ended[0]["data"]["claim"]["filesChanged"], json!(["a.rs"]));

    let rally = Rally::new();
    let failed = json!({"tool": "report_completion", "arguments": {
        "status": "failed", "reason": "no disk", "diffSummary": "nothing"}});
    let task = begin(&rally, &[failed], &[]);
    Rally::until("the task has failed", || show(&rally, &task)["status"] == "failed");
    let reason = log(&rally, &task, "run.ended")[0]["data"]["reason"].clone();
    assert_eq!(reason, json!({"kind": "reported", "reason": "no disk"}));
}

#[test]
fn words_to_others_land_once_and_names_that_nobody_has_get_feedback() {
    let rally = Rally::new();
    let calls = [
        json!({"tool": "coordinate", "arguments": {"text": "I change the parser"}, "repeat": true}),
        json!({"tool": "send", "arguments": {"to": "room", "text": "half is done"}, "repeat": true}),
        json!({"tool": "send", "arguments": {"to": "parent", "text": "and now the rest"}}),
        json!({"tool": "send", "arguments": {"to": "zoe", "text": "hello"}}),
        json!({"tool": "send", "arguments": {"to": "room"}}),
    ];
    let task = begin(&rally, &calls, &[]);
    until_done(&rally, &task);
    let room = said_by(&rally.room(), "sub_agent");
    let count = |words: &str| room.iter().filter(|text| text.contains(words)).count();
    assert_eq!(count("— AGENT_COORDINATION]\nI change the parser"), 1, "{room:?}");
    assert_eq!(count("]: half is done"), 1, "{room:?}");
    assert_eq!(count("]: and now the rest"), 1, "{room:?}");
    let told = room.last().unwrap();
    assert!(told.contains("failed: nobody here is called `zoe`"), "{told}");
    assert!(told.contains("failed: the arguments don't fit: missing field `text`"), "{told}");
    assert_eq!(log(&rally, &task, "session.tool_called").len(), calls.len());
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            files(&entry.path(), found);
        } else {
            found.push(entry.path());
        }
    }
}

#[test]
fn a_token_that_its_agent_tells_everybody_is_hidden_and_stored_nowhere() {
    let rally = Rally::new();
    let task = begin(&rally, &[json!({"tool": "coordinate", "arguments": {"text": "it is {token}"}})], &[]);
    until_done(&rally, &task);
    let said = said_by(&rally.room(), "sub_agent").join("\n");
    assert!(said.contains("it is session.") && said.contains("[redacted:RALLY_SESSION_TOKEN]"), "{said}");
    let inputs = log(&rally, &task, "generation.input");
    let opened = inputs.iter().find(|row| row["data"]["input"]["kind"] == "new_session").unwrap();
    assert_eq!(opened["data"]["input"]["tools"], true);
    let generation = opened["data"]["generationId"].as_str().unwrap().to_owned();
    Rally::until("the spool is gone", || rally.data.agent_processes().is_empty());
    rally.run(&["daemon", "stop"]);
    let mut all = Vec::new();
    files(rally.data.path(), &mut all);
    let before_seal = format!("session.{generation}.");
    for file in all {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap_or_default()).into_owned();
        for (at, _) in text.match_indices(&before_seal) {
            let after = &text[at + before_seal.len()..];
            assert!(after.starts_with("[redacted:"), "{}", file.display());
        }
    }
}

#[test]
fn an_agent_that_starts_no_tool_server_works_and_is_shown_so() {
    let rally = Rally::new();
    let agent = Rally::scenario("waits-for-file go");
    let ended = rally.run(&["run", "x", "--agent-cmd", &agent, "--check", "true", "--detach", "--json"]);
    let task = ended.result()["taskId"].as_str().unwrap().to_owned();
    Rally::until("it works", || show(&rally, &task)["runs"][0]["status"] == "running");
    assert_eq!(show(&rally, &task)["sessions"][0]["generation"]["tools"], "not_connected");
    let text = rally.run(&["task", "show", &task]).out;
    assert!(text.contains("tools not connected"), "{text}");
    write(&rally.path("go"), "");
    until_done(&rally, &task);
}

#[test]
fn a_cancelled_turn_withdraws_what_its_tool_asked() {
    let rally = Rally::new();
    let task = begin(&rally, &[json!({"tool": "ask_user", "arguments": {"question": "Still there?"}})], &[]);
    Rally::until("it is asked", || question(&rally).is_some());
    assert_eq!(rally.run(&["task", "stop", &task, "--wait"]).code, Some(0));
    Rally::until("it has stopped", || show(&rally, &task)["status"] == "interrupted");
    assert_eq!(question(&rally), None);
    let answered = log(&rally, &task, "session.tool_answered");
    assert_eq!(answered[0]["data"]["answer"], json!({"text": "the question was withdrawn", "failed": true}));
    Rally::until("nothing is left", || rally.data.agent_processes().is_empty());
}

/// A tool server as an agent starts it.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(rally: &Rally, session: &str, token: &str) -> Self {
        let mut command = rally.command(&["mcp", "--session", session]);
        command.env("RALLY_SESSION_TOKEN", token).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn say(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn a_server_with_a_wrong_token_answers_calls_with_the_reason_and_ends_with_its_input() {
    let rally = Rally::new();
    rally.json(&["room", "list"]);
    let session = "01990000-0000-7000-8000-000000000001";
    let mut server = Server::start(&rally, session, "session.01990000-0000-7000-8000-000000000002.00ff");
    server.say(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}"#);
    assert_eq!(server.hear()["result"]["protocolVersion"], "2024-11-05");
    server.say("not json");
    assert_eq!(server.hear()["error"]["code"], -32700);
    server.say(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    assert_eq!(server.hear()["result"], json!({}));
    server.say(r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#);
    assert_eq!(server.hear()["result"]["tools"].as_array().map(Vec::len), Some(4));
    server.say(r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"coordinate","arguments":{"text":"x"}}}"#);
    let answer = server.hear();
    assert_eq!(answer["result"]["isError"], true);
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("no session"), "{answer}");
    server.end();
}

/// The token of the one tool server that runs, and its session.
fn token_of_the_server(rally: &Rally) -> (String, String) {
    let found = rally.data.agent_processes().into_iter().find_map(|process| {
        let folder = Path::new("/proc").join(process.identity.pid.to_string());
        let split = |name: &str| -> Vec<String> {
            let bytes = std::fs::read(folder.join(name)).unwrap_or_default();
            bytes.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
        };
        let arguments = split("cmdline");
        let at = arguments.iter().position(|argument| argument == "--session")?;
        let variables = split("environ");
        let token = variables.iter().find_map(|pair| pair.strip_prefix("RALLY_SESSION_TOKEN="))?;
        Some((token.to_owned(), arguments.get(at + 1)?.clone()))
    });
    found.unwrap_or_else(|| panic!("no tool server runs: {:?}", rally.data.agent_processes()))
}

/// A task whose agent waits for the answer of a question, with the token of its tool server.
fn waiting(rally: &Rally) -> (String, String, String) {
    let task = begin(rally, &[json!({"tool": "ask_user", "arguments": {"question": "Ready?"}})], &[]);
    Rally::until("it is asked", || question(rally).is_some());
    let (token, session) = token_of_the_server(rally);
    (task, token, session)
}

const HELLO: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;

fn call(server: &mut Server, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    server.say(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string());
    server.hear()["result"].clone()
}

#[test]
fn a_token_whose_agent_process_has_ended_opens_nothing() {
    let rally = Rally::new();
    let (task, token, session) = waiting(&rally);
    let mut server = Server::start(&rally, &session, &token);
    server.say(HELLO);
    server.hear();
    let told = call(&mut server, "coordinate", &json!({"text": "still here"}));
    assert_eq!(told["isError"], false, "the token is good as long as the process lives: {told}");
    server.end();
    assert_eq!(rally.run(&["task", "stop", &task, "--wait"]).code, Some(0));
    Rally::until("nothing is left", || rally.data.agent_processes().is_empty());
    let (events, room) = (log(&rally, &task, "session.tool_called").len(), rally.room().len());
    // The same session goes on with another process, which has a token of its own.
    assert_eq!(rally.run(&["task", "retry", &task]).code, Some(0));
    Rally::until("it is asked again", || question(&rally).is_some());
    let (newer, _) = token_of_the_server(&rally);
    assert_ne!(newer, token);
    let mut server = Server::start(&rally, &session, &token);
    server.say(HELLO);
    server.hear();
    for (tool, arguments) in [
        ("coordinate", json!({"text": "a ghost speaks"})),
        ("report_completion", json!({"diffSummary": "a ghost reports"})),
    ] {
        let told = call(&mut server, tool, &arguments);
        assert_eq!(told["isError"], true, "{told}");
        assert!(told["content"][0]["text"].as_str().unwrap().contains("has ended"), "{told}");
    }
    server.end();
    assert_eq!(
        log(&rally, &task, "session.tool_called").len(),
        events + 1,
        "only the new process has called"
    );
    assert!(!rally.room().iter().any(|it| it["text"].as_str().unwrap().contains("ghost")), "{room}");
    rally.run(&["task", "stop", &task, "--wait"]);
}

/// Status and body of a request over the socket of the daemon.
fn request(rally: &Rally, method: &str, path: &str, token: Option<&str>, body: &Value) -> (u16, String) {
    let mut socket = UnixStream::connect(rally.data.socket()).unwrap();
    let body = body.to_string();
    let bearer = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: rally\r\n{bearer}Content-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.unwrap_or_else(|| panic!("no answer: {answer}")), answer)
}

#[test]
fn the_token_of_a_session_opens_its_tools_and_no_other_operation() {
    let rally = Rally::new();
    let (task, token, session) = waiting(&rally);
    let other = "01990000-0000-7000-8000-000000000001";
    for operation in OPERATIONS {
        let method = operation.method.as_str();
        let path: Vec<&str> =
            operation.path.split('/').map(|part| if part.starts_with('{') { other } else { part }).collect();
        let path = path.join("/");
        let body = json!({"process": other, "client": "c", "requestId": "1", "tool": "send"});
        let (status, answer) = request(&rally, method, &path, Some(&token), &body);
        if operation.role == Role::Session {
            assert!([400, 403].contains(&status), "of another session: {path}: {answer}");
            let (status, answer) = request(&rally, method, &path, None, &body);
            assert_eq!(status, 401, "without a token: {path}: {answer}");
        } else {
            assert_eq!(status, 403, "{path}: {answer}");
            assert!(answer.contains(operation.name), "{path}: {answer}");
        }
    }
    let path = format!("/v1/sessions/{other}/calls");
    let body = json!({"process": other, "requestId": "1", "tool": "coordinate", "arguments": {"text": "x"}});
    let (status, answer) = request(&rally, "POST", &path, Some(&token), &body);
    assert_eq!(status, 403, "{answer}");
    let path = format!("/v1/sessions/{session}/calls");
    let (status, answer) = request(&rally, "POST", &path, Some(&token), &body);
    assert!(status == 200 && answer.contains("Posted."), "{answer}");
    let forged = format!("{}0", &token[..token.len() - 1]);
    let forged = if forged == token { format!("{}1", &token[..token.len() - 1]) } else { forged };
    assert_eq!(request(&rally, "POST", &path, Some(&forged), &body).0, 401);
    assert_eq!(show(&rally, &task)["status"], "blocked", "nothing else has happened");
    rally.run(&["task", "stop", &task, "--wait"]);
}

#[test]
fn a_tool_server_that_dies_takes_its_question_back_and_the_agent_goes_on() {
    let rally = Rally::new();
    let (task, token, session) = waiting(&rally);
    let mut server = Server::start(&rally, &session, &token);
    server.say(HELLO);
    server.hear();
    let params = json!({"name": "ask_user", "arguments": {"question": "A second one?"}});
    server.say(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string());
    let open = || rally.json(&["question", "list"])["items"].as_array().map(Vec::len);
    Rally::until("both are asked", || open() == Some(2));
    server.end();
    assert_eq!(open(), Some(1), "whoever asked is gone");
    let id = question(&rally).unwrap();
    assert_eq!(rally.run(&["question", "answer", &id, "--text", "yes"]).code, Some(0));
    until_done(&rally, &task);
}

#[test]
fn a_server_without_a_token_says_what_it_needs() {
    let rally = Rally::new();
    let ended = rally.run(&["mcp", "--session", "01990000-0000-7000-8000-000000000001"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("RALLY_SESSION_TOKEN"), "{ended:?}");
}

/// The daemon kills itself at a point of a call; whoever comes next starts another one.
fn killed_at(point: &str) {
    let calls = [
        json!({"tool": "ask_user", "arguments": {"question": "Which colour?"}}),
        json!({"tool": "coordinate", "arguments": {"text": "I know the colour"}}),
        json!({"tool": "report_completion", "arguments": {"diffSummary": "It is painted"}}),
    ];
    let rally = Rally::new();
    let note = rally.path("note");
    let armed = rally
        .with_variable("RALLY_FAULT_POINT", point)
        .with_variable("RALLY_FAULT_POINT_NOTE", note.to_str().unwrap());
    let task = begin(&armed, &calls, &[]);
    Rally::until("it is asked", || question(&armed).is_some());
    let id = question(&armed).unwrap();
    Rally::until("it is answered", || {
        // A daemon that dies while it is told may have taken the answer all the same.
        let ended = armed.run(&["question", "answer", &id, "--text", "blue"]);
        ended.code == Some(0) || ended.err.contains("was closed before")
    });
    until_done(&armed, &task);
    assert!(note.exists(), "{point} was never reached");
    let room = said_by(&armed.room(), "sub_agent");
    let count = |words: &str| room.iter().filter(|text| text.contains(words)).count();
    assert_eq!(count("I know the colour"), 1, "{point}: {room:?}");
    assert_eq!(count("Which colour?"), 1, "{point}: {room:?}");
    let end = room.last().unwrap();
    assert!(end.contains("blue\nPosted.\nThe report is taken"), "{point}: {end}");
    assert_eq!(log(&armed, &task, "question.opened").len(), 1, "{point}");
    for kind in ["session.tool_called", "session.tool_answered"] {
        assert_eq!(log(&armed, &task, kind).len(), calls.len(), "{point}: {kind}");
    }
    assert_eq!(log(&armed, &task, "generation.tools_connected").len(), 1, "{point}");
    let ended = log(&armed, &task, "run.ended");
    assert_eq!(ended.len(), 1, "{point}");
    assert_eq!(ended[0]["data"]["claim"]["diffSummary"], "It is painted", "{point}");
}

#[test]
fn a_daemon_that_is_killed_at_any_point_of_a_call_loses_and_doubles_none() {
    let points = [
        "tools:hello",
        "tools:begin:1",
        "tools:begin:2",
        "tools:begin:3",
        "tools:decided:1",
        "tools:decided:2",
        "tools:decided:3",
        "tools:answering",
    ];
    for some in points.chunks(4) {
        std::thread::scope(|scope| {
            for point in some {
                scope.spawn(move || killed_at(point));
            }
        });
    }
}
