//! `rally acp`, driven as an editor drives its agent: real processes from end to end.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rallypoint_process::Signal;
use rallypoint_process::sweep::kill_identities;
use serde_json::{Value, json};

use crate::help::{PATIENCE, Rally, said_by, write};

/// The command line of an agent that plays these turns, each a list of steps.
fn script(rally: &Rally, turns: &[&str]) -> String {
    let path = rally.path("script.toml");
    let turns: Vec<String> = turns.iter().map(|steps| format!("[[turns]]\nsteps = [{steps}]\n")).collect();
    write(&path, &turns.concat());
    format!("{} agent-serve scripted {}", Rally::program(), path.display())
}

/// An editor with `rally acp` as its agent.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    frames: Receiver<Value>,
    /// What came while an answer was waited for.
    updates: Vec<Value>,
    next_id: u64,
}

impl Editor {
    fn start(rally: &Rally, agent: &str, more: &[&str]) -> Self {
        let mut arguments = vec!["acp", "--agent-cmd", agent];
        arguments.extend(more);
        let mut child = rally
            .command(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (sender, frames) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let frame = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(frame).is_err() {
                    return;
                }
            }
        });
        Self { child, input, frames, updates: Vec::new(), next_id: 0 }
    }

    /// After the hello, with a session in the work folder.
    fn open(rally: &Rally, agent: &str, capabilities: &Value, more: &[&str]) -> (Self, String) {
        let mut editor = Self::start(rally, agent, more);
        let hello =
            editor.ask("initialize", &json!({"protocolVersion": 1, "clientCapabilities": capabilities}));
        assert_eq!(hello["result"]["agentInfo"]["name"], "rallypoint", "{hello}");
        assert_eq!(hello["result"]["agentCapabilities"]["loadSession"], true, "{hello}");
        let cwd = rally.work.path();
        let opened = editor.ask("session/new", &json!({"cwd": cwd, "mcpServers": []}));
        let session = opened["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned();
        (editor, session)
    }

    fn send(&mut self, frame: &Value) {
        self.input.as_mut().unwrap().write_all(format!("{frame}\n").as_bytes()).unwrap();
    }

    fn hear(&mut self) -> Value {
        self.frames.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{error}: {:#?}", self.updates))
    }

    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    /// The answer to a request; updates on the way are kept.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let frame = self.hear();
            if frame.get("method").is_none() && frame["id"] == id {
                return frame;
            }
            assert_eq!(frame["method"], "session/update", "unexpected: {frame}");
            self.updates.push(frame["params"].clone());
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    /// Waits for a request of the agent.
    fn asked(&mut self, method: &str) -> Value {
        loop {
            let frame = self.hear();
            if frame["method"] == method {
                return frame;
            }
            assert_eq!(frame["method"], "session/update", "unexpected: {frame}");
            self.updates.push(frame["params"].clone());
        }
    }

    /// Waits for an update that fits.
    fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) {
        while !self.updates.iter().any(&fits) {
            let frame = self.hear();
            assert_eq!(frame["method"], "session/update", "no {what} yet: {frame}");
            self.updates.push(frame["params"].clone());
        }
    }

    /// The joined words of these chunks.
    fn words(&self, session: &str, kind: &str) -> String {
        let of = self.updates.iter().filter(|it| it["sessionId"] == session);
        of.filter(|it| it["update"]["sessionUpdate"] == kind)
            .map(|it| it["update"]["content"]["text"].as_str().unwrap())
            .collect()
    }

    fn end(mut self) {
        self.input = None;
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

fn stop_reason(answer: &Value) -> &str {
    answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn a_prompt_streams_words_thoughts_plan_and_tools_and_ends_with_the_turn() {
    let rally = Rally::new();
    let agent = script(
        &rally,
        &[
            r#"{ think = "hm" }, { plan = ["look", "do"] }, { say = "Looking." }, { run = "echo made > made.txt" }, { say = " Done." }"#,
        ],
    );
    let (mut editor, session) = Editor::open(&rally, &agent, &json!({}), &[]);
    let id = editor.prompt(&session, "Make a file");
    let answer = editor.answer(id);
    assert_eq!(stop_reason(&answer), "end_turn");
    assert_eq!(editor.words(&session, "agent_message_chunk"), "Looking. Done.");
    assert_eq!(editor.words(&session, "agent_thought_chunk"), "hm");
    let kinds: Vec<&str> =
        editor.updates.iter().map(|it| it["update"]["sessionUpdate"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"plan") && kinds.contains(&"tool_call"), "{kinds:?}");
    let mut calls = editor.updates.iter().map(|it| &it["update"]).filter(|it| it["toolCallId"].is_string());
    assert_eq!(calls.next_back().unwrap()["status"], "completed");
    assert!(rally.path("made.txt").exists());
    // The session is a room, with the task and its story.
    let room = rally.json(&["room", "show", &session]);
    let items = room.get("items").unwrap_or(&room).as_array().unwrap().clone();
    assert!(said_by(&items, "user").contains(&"Make a file".to_owned()), "{items:?}");
    editor.end();
    Rally::until("nothing is left", || rally.data.agent_processes().is_empty());
}

#[test]
fn a_permission_is_asked_in_the_editor_and_its_choice_goes_to_the_agent() {
    for (choice, says) in [("allow", "allowed"), ("reject", "rejected")] {
        let rally = Rally::new();
        let agent = Rally::scenario("permission");
        let (mut editor, session) = Editor::open(&rally, &agent, &json!({}), &[]);
        let id = editor.prompt(&session, "Do it");
        let request = editor.asked("session/request_permission");
        assert_eq!(request["params"]["sessionId"], session.as_str(), "{request}");
        let options = request["params"]["options"].as_array().unwrap();
        let chosen = options.iter().find(|it| it["kind"].as_str().unwrap().starts_with(choice)).unwrap();
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}});
        editor.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": outcome}));
        let answer = editor.answer(id);
        assert_eq!(stop_reason(&answer), "end_turn", "{says}");
        let words = editor.words(&session, "agent_message_chunk");
        let option = chosen["optionId"].as_str().unwrap();
        assert!(words.contains(option), "{option}: {words}");
        editor.end();
    }
}

#[test]
fn a_permission_that_is_answered_elsewhere_does_not_hold_the_prompt() {
    let rally = Rally::new();
    let (mut editor, session) = Editor::open(&rally, &Rally::scenario("permission"), &json!({}), &[]);
    let id = editor.prompt(&session, "Do it");
    let request = editor.asked("session/request_permission");
    let open = rally.json(&["question", "list"]);
    let question = open["items"][0]["questionId"].as_str().unwrap();
    assert_eq!(rally.run(&["question", "answer", question, "--allow"]).code, Some(0));
    let answer = editor.answer(id);
    assert_eq!(stop_reason(&answer), "end_turn");
    // Too late, and no harm.
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "x"}});
    editor.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": outcome}));
    editor.end();
}

#[test]
fn a_cancel_stops_the_run_and_answers_cancelled() {
    let rally = Rally::new();
    let agent = Rally::scenario("ignores-cancel");
    let (mut editor, session) = Editor::open(&rally, &agent, &json!({}), &[]);
    let id = editor.prompt(&session, "Tick");
    editor.until("tick", |it| it["update"]["sessionUpdate"] == "agent_message_chunk");
    editor.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
    let answer = editor.answer(id);
    assert_eq!(stop_reason(&answer), "cancelled");
    let tasks = rally.json(&["task", "list"]);
    assert_eq!(tasks["items"][0]["status"], "interrupted", "{tasks}");
    Rally::until("nothing is left", || rally.data.agent_processes().is_empty());
    editor.end();
}

#[test]
fn an_open_permission_does_not_outlive_a_cancel() {
    let rally = Rally::new();
    let (mut editor, session) = Editor::open(&rally, &Rally::scenario("permission"), &json!({}), &[]);
    let id = editor.prompt(&session, "Do it");
    let request = editor.asked("session/request_permission");
    editor.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    editor.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": cancelled}));
    let answer = editor.answer(id);
    assert_eq!(stop_reason(&answer), "cancelled");
    assert_eq!(rally.json(&["question", "list"])["items"].as_array().map(Vec::len), Some(0));
    editor.end();
}

#[test]
fn an_editor_that_goes_away_leaves_no_work_and_no_process() {
    let rally = Rally::new();
    let (mut editor, session) = Editor::open(&rally, &Rally::scenario("ignores-cancel"), &json!({}), &[]);
    editor.prompt(&session, "Tick");
    editor.until("tick", |it| it["update"]["sessionUpdate"] == "agent_message_chunk");
    editor.end();
    let tasks = rally.json(&["task", "list"]);
    assert_eq!(tasks["items"][0]["status"], "interrupted", "{tasks}");
    Rally::until("nothing is left", || rally.data.agent_processes().is_empty());
}

#[test]
fn a_run_that_fails_is_an_error_and_a_refusal_a_stop_reason() {
    for (scenario, reason) in [("refusal", "refusal"), ("max-tokens", "max_tokens")] {
        let rally = Rally::new();
        let (mut editor, session) = Editor::open(&rally, &Rally::scenario(scenario), &json!({}), &[]);
        let id = editor.prompt(&session, "x");
        let answer = editor.answer(id);
        assert_eq!(stop_reason(&answer), reason);
        editor.end();
    }
    for (scenario, code) in [("error-in-prompt", -32603), ("login-in-prompt", -32000)] {
        let rally = Rally::new();
        let (mut editor, session) = Editor::open(&rally, &Rally::scenario(scenario), &json!({}), &[]);
        let id = editor.prompt(&session, "x");
        let answer = editor.answer(id);
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert_ne!(answer["error"]["message"], "", "{answer}");
        editor.end();
    }
}

#[test]
fn checks_are_run_and_shown_and_what_they_find_is_worked_on_in_the_same_prompt() {
    let rally = Rally::new();
    let agent = script(&rally, &[r#"{ say = "Done." }"#, r#"{ run = "touch made" }, { say = "Now." }"#]);
    let (mut editor, session) = Editor::open(&rally, &agent, &json!({}), &["--check", "test -e made"]);
    let id = editor.prompt(&session, "Make it");
    let answer = editor.answer(id);
    assert_eq!(stop_reason(&answer), "end_turn");
    let words = editor.words(&session, "agent_message_chunk");
    assert!(words.starts_with("Done.Now.") && words.contains("check `test -e made` passed"), "{words}");
    editor.end();
}

#[test]
fn a_question_ends_the_turn_and_the_next_prompt_is_its_answer() {
    let rally = Rally::new();
    let call =
        json!({"tool": "ask_user", "arguments": {"question": "Which colour?", "options": ["red", "blue"]}});
    write(&rally.path("calls"), &call.to_string());
    let (mut editor, session) = Editor::open(&rally, &Rally::scenario("calls calls"), &json!({}), &[]);
    let id = editor.prompt(&session, "Paint it");
    let answer = editor.answer(id);
    assert_eq!(stop_reason(&answer), "end_turn");
    let words = editor.words(&session, "agent_message_chunk");
    assert!(words.contains("Which colour?") && words.contains("red, blue"), "{words}");
    let id = editor.prompt(&session, "blue");
    let answer = editor.answer(id);
    assert_eq!(stop_reason(&answer), "end_turn");
    let words = editor.words(&session, "agent_message_chunk");
    assert_eq!(words.matches("Which colour?").count(), 1, "nothing is said twice: {words}");
    assert!(words.ends_with("blue\n"), "{words}");
    let tasks = rally.json(&["task", "list"]);
    assert_eq!(tasks["items"].as_array().map(Vec::len), Some(1), "{tasks}");
    editor.end();
}

#[test]
fn a_second_prompt_is_worked_on_too_and_tells_nothing_of_the_first() {
    let rally = Rally::new();
    let agent = script(&rally, &[r#"{ say = "One. " }"#]);
    let (mut editor, session) = Editor::open(&rally, &agent, &json!({}), &[]);
    for prompt in ["first", "second"] {
        let id = editor.prompt(&session, prompt);
        let answer = editor.answer(id);
        assert_eq!(stop_reason(&answer), "end_turn");
    }
    assert_eq!(editor.words(&session, "agent_message_chunk"), "One. One. ");
    editor.end();
}

#[test]
fn a_session_is_loaded_with_what_was_said_and_goes_on() {
    let rally = Rally::new();
    let agent = script(&rally, &[r#"{ say = "It is 42." }"#]);
    let (mut editor, session) = Editor::open(&rally, &agent, &json!({}), &[]);
    let id = editor.prompt(&session, "What is it?");
    editor.answer(id);
    editor.end();
    let mut editor = Editor::start(&rally, &agent, &[]);
    editor.ask("initialize", &json!({"protocolVersion": 1}));
    let cwd = rally.work.path();
    let load = |id: &str| json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
    let unknown = editor.ask("session/load", &load("01990000-0000-7000-8000-000000000001"));
    assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
    let loaded = editor.ask("session/load", &load(&session));
    assert!(loaded["result"].is_object(), "{loaded}");
    assert_eq!(editor.words(&session, "user_message_chunk"), "What is it?");
    assert!(editor.words(&session, "agent_message_chunk").contains("It is 42."));
    editor.updates.clear();
    let id = editor.prompt(&session, "Again?");
    let answer = editor.answer(id);
    assert_eq!(stop_reason(&answer), "end_turn");
    assert_eq!(editor.words(&session, "agent_message_chunk"), "It is 42.");
    editor.end();
}

#[test]
fn sub_agents_are_native_ones_where_the_editor_shows_them_and_tool_calls_elsewhere() {
    for shown in [true, false] {
        let rally = Rally::new();
        let capabilities = if shown { json!({"subagents": {}}) } else { json!({}) };
        let agent = Rally::scenario("waits-for-file go");
        let (mut editor, session) = Editor::open(&rally, &agent, &capabilities, &[]);
        let id = editor.prompt(&session, "Lead");
        Rally::until("it works", || rally.json(&["task", "list"])["items"][0]["status"] == "active");
        let task = rally.json(&["task", "list"])["items"][0]["taskId"].as_str().unwrap().to_owned();
        let good = Rally::scenario("good");
        let spawned = rally.run(&[
            "task",
            "spawn",
            &task,
            "--agent-cmd",
            &good,
            "--label",
            "bob",
            "--task",
            "Say hello",
            "--json",
        ]);
        assert_eq!(spawned.code, Some(0), "{spawned:?}");
        let child = spawned.result()["sessionId"].as_str().unwrap().to_owned();
        if shown {
            editor.until("end of the child", |it| {
                it["update"]["sessionId"] == child.as_str() && it["update"]["state"]["state"] == "idle"
            });
            assert_ne!(editor.words(&child, "agent_message_chunk"), "", "{:#?}", editor.updates);
            let announced =
                editor.updates.iter().find(|it| it["update"]["sessionUpdate"] == "subagent_update");
            assert_eq!(announced.unwrap()["update"]["title"], "bob");
        } else {
            editor.until("end of the child", |it| {
                it["update"]["toolCallId"] == child.as_str() && it["update"]["status"] == "completed"
            });
            assert!(editor.updates.iter().all(|it| it["sessionId"] == session.as_str()));
        }
        write(&rally.path("go"), "");
        let answer = editor.answer(id);
        assert_eq!(stop_reason(&answer), "end_turn");
        editor.end();
    }
}

#[test]
fn a_daemon_that_is_killed_in_mid_turn_is_brought_back_and_the_prompt_goes_on() {
    let rally = Rally::new();
    let agent = Rally::scenario("waits-for-file go");
    let (mut editor, session) = Editor::open(&rally, &agent, &json!({}), &[]);
    let id = editor.prompt(&session, "Wait");
    Rally::until("it works", || {
        let task = rally.json(&["task", "list"])["items"][0]["taskId"].as_str().map(str::to_owned);
        task.is_some_and(|task| rally.json(&["task", "show", &task])["runs"][0]["status"] == "running")
    });
    let daemons: Vec<_> = rally.data.daemons().into_iter().map(|daemon| daemon.identity).collect();
    kill_identities(&daemons, Signal::Kill);
    write(&rally.path("go"), "");
    let answer = editor.answer(id);
    assert_eq!(stop_reason(&answer), "end_turn");
    editor.end();
}
