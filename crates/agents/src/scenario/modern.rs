//! An agent that knows what newer agents know: options, forms, helpers of its own, resume and close.
//!
//! It reads and answers line by line on one thread, apart from the toolkit that the other scenarios use, so that it can
//! say what that one does not. What it is asked, it notes in a file of the work folder, one method a line.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use rallypoint_acp::rpc::{INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND};

/// Whether it offers options, or the blocks that came before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    Modern,
    Older,
}

/// Why it stops reading.
struct Ends(ExitCode);

struct Modern<I, O> {
    age: Age,
    notes: PathBuf,
    input: I,
    output: O,
    cwd: PathBuf,
    session: String,
    set: BTreeMap<&'static str, String>,
    asked: u64,
}

/// Plays it until the input ends.
pub(super) fn serve(age: Age, notes: PathBuf, input: impl BufRead, output: impl Write) -> ExitCode {
    let set = [("model", "small"), ("mode", "auto"), ("effort", "low"), ("fast", "false")];
    let mut agent = Modern {
        age,
        notes,
        input,
        output,
        cwd: PathBuf::new(),
        session: String::new(),
        set: set.map(|(id, value)| (id, value.to_owned())).into(),
        asked: 0,
    };
    while let Some(message) = agent.read() {
        if let Err(Ends(code)) = agent.take(&message) {
            return code;
        }
    }
    ExitCode::SUCCESS
}

impl<I: BufRead, O: Write> Modern<I, O> {
    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let length = self.input.read_line(&mut line).ok()?;
        (length > 0).then(|| serde_json::from_str(&line).unwrap_or_default())
    }

    /// A client that is gone is noticed at the end of the input.
    fn send(&mut self, frame: &Value) {
        let _ = writeln!(self.output, "{frame}").and_then(|()| self.output.flush());
    }

    fn answer(&mut self, message: &Value, result: Value) {
        let id = message.get("id").cloned().unwrap_or_default();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refuse(&mut self, message: &Value, code: i64, words: &str) {
        let id = message.get("id").cloned().unwrap_or_default();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": words}}));
    }

    fn update(&mut self, session: &str, update: Value) {
        let params = json!({"sessionId": session, "update": update});
        self.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn say(&mut self, session: &str, text: &str) {
        let content = json!({"type": "text", "text": text});
        self.update(session, json!({"sessionUpdate": "agent_message_chunk", "content": content}));
    }

    fn note(&self, line: &str) {
        let file = OpenOptions::new().append(true).create(true).open(self.cwd.join(&self.notes));
        // Tests that look for the note say that it is missing.
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }

    fn noted(&self) -> String {
        std::fs::read_to_string(self.cwd.join(&self.notes)).unwrap_or_default()
    }

    fn take(&mut self, message: &Value) -> Result<(), Ends> {
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let params = message.get("params").cloned().unwrap_or_default();
        let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        match method.as_str() {
            "initialize" => {
                let hello = self.hello();
                self.answer(message, hello);
            }
            "session/new" => {
                self.cwd = text("cwd").into();
                self.session = format!("modern-{}", std::process::id());
                self.note(&format!("session/new {}", self.session));
                let mut opened = self.offer();
                if let Some(members) = opened.as_object_mut() {
                    members.insert("sessionId".to_owned(), self.session.clone().into());
                }
                self.answer(message, opened);
            }
            "session/resume" | "session/load" => {
                self.cwd = text("cwd").into();
                self.note(&method);
                let id = text("sessionId");
                if self.noted().lines().any(|line| line == format!("session/new {id}")) {
                    self.session = id;
                    let offer = self.offer();
                    self.answer(message, offer);
                } else {
                    self.refuse(message, RESOURCE_NOT_FOUND, "there is no such session");
                }
            }
            "session/set_config_option" if self.age == Age::Modern => {
                self.set(message, &text("configId"), params.get("value").unwrap_or(&Value::Null));
            }
            "session/set_mode" => self.set(message, "mode", params.get("modeId").unwrap_or(&Value::Null)),
            "session/set_model" if self.age == Age::Older => {
                self.set(message, "model", params.get("modelId").unwrap_or(&Value::Null));
            }
            "session/close" => {
                self.note("session/close");
                self.answer(message, json!({}));
            }
            "session/prompt" => {
                let goal = params.get("prompt").map(Value::to_string).unwrap_or_default();
                let before = self.noted().lines().filter(|line| *line == "session/prompt").count();
                self.note("session/prompt");
                return self.prompt(message, &goal, &params, before);
            }
            "session/cancel" | "" => {}
            _ => self.refuse(message, METHOD_NOT_FOUND, "not served"),
        }
        Ok(())
    }

    fn hello(&self) -> Value {
        let session = match self.age {
            Age::Modern => json!({"resume": {}, "close": {}, "list": {}}),
            Age::Older => json!({}),
        };
        json!({
            "protocolVersion": 1,
            "agentInfo": {"name": "rallypoint-modern", "version": env!("CARGO_PKG_VERSION")},
            "authMethods": [{"id": "key", "name": "A key in the environment"}],
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": self.age == Age::Modern, "embeddedContext": self.age == Age::Modern},
                "sessionCapabilities": session,
            },
        })
    }

    fn is(&self, id: &str) -> String {
        self.set.get(id).cloned().unwrap_or_default()
    }

    fn options(&self) -> Value {
        let select = |id: &str, category: &str, values: &[&str]| {
            let options: Vec<Value> =
                values.iter().map(|value| json!({"value": value, "name": value.to_uppercase()})).collect();
            json!({"id": id, "name": id, "category": category, "type": "select", "currentValue": self.is(id),
                "options": options})
        };
        // How much it can think depends on the model.
        let efforts: &[&str] = if self.is("model") == "big" { &["low", "high"] } else { &["low"] };
        json!([
            select("model", "model", &["small", "big"]),
            select("mode", "mode", &["auto", "plan"]),
            select("effort", "thought_level", efforts),
            {"id": "fast", "name": "fast", "type": "boolean", "currentValue": self.is("fast") == "true"},
        ])
    }

    fn offer(&self) -> Value {
        match self.age {
            Age::Modern => json!({"configOptions": self.options()}),
            Age::Older => json!({
                "modes": {"currentModeId": self.is("mode"), "availableModes": [
                    {"id": "auto", "name": "Auto"}, {"id": "plan", "name": "Plan"}]},
                "models": {"currentModelId": self.is("model"), "availableModels": [
                    {"modelId": "small", "name": "Small"}, {"modelId": "big", "name": "Big"}]},
            }),
        }
    }

    fn set(&mut self, message: &Value, id: &str, value: &Value) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.note(&format!("set {id}={value}"));
        match self.set.iter_mut().find(|(known, _)| **known == id) {
            Some((_, place)) => {
                *place = value;
                let answer = match self.age {
                    Age::Modern => json!({"configOptions": self.options()}),
                    Age::Older => json!({}),
                };
                self.answer(message, answer);
            }
            None => self.refuse(message, INVALID_PARAMS, "there is no such option"),
        }
    }

    /// What it does stands in the goal, as a word of its own kind.
    fn prompt(&mut self, message: &Value, goal: &str, params: &Value, before: usize) -> Result<(), Ends> {
        let session = self.session.clone();
        if goal.contains("do-cut") && before == 0 {
            self.say(&session, "I have begun");
            return Err(Ends(ExitCode::from(9)));
        }
        if goal.contains("do-updates") {
            self.updates(&session);
        }
        if goal.contains("do-form") {
            let said = self.ask(
                "elicitation/create",
                json!({"sessionId": session, "mode": "form", "message": "Which port?",
                "requestedSchema": {"type": "object", "required": ["port"],
                    "properties": {"port": {"type": "integer", "title": "Port"}}}}),
            );
            self.say(&session, &format!("the answer was {said}\n"));
        }
        if goal.contains("do-visit") {
            let said = self.ask(
                "elicitation/create",
                json!({"sessionId": session, "mode": "url", "message": "Please log in",
                "elicitationId": "e1", "url": "https://example.org/login"}),
            );
            self.say(&session, &format!("the answer was {said}\n"));
        }
        if goal.contains("do-files") {
            self.files(&session);
        }
        let helper = goal.contains("do-helper");
        if helper {
            self.helper(&session, json!({"state": "running"}));
            self.say("modern-helper", "I am the helper\n");
        }
        let kinds: Vec<&str> = params
            .get("prompt")
            .and_then(Value::as_array)
            .map(|blocks| blocks.iter().filter_map(|block| block.get("type")?.as_str()).collect())
            .unwrap_or_default();
        let extra: Vec<&str> = kinds.into_iter().filter(|kind| *kind != "text").collect();
        let set = ["model", "mode", "effort", "fast"].map(|id| format!("{id}={}", self.is(id))).join(" ");
        self.say(
            &session,
            &format!("{set}{}", extra.iter().map(|kind| format!(" {kind}")).collect::<String>()),
        );
        self.answer(message, json!({"stopReason": "end_turn"}));
        if helper {
            // Work of a helper may go on after the turn that made it.
            self.say("modern-helper", "and I speak late\n");
            self.helper(&session, json!({"state": "idle", "stopReason": "end_turn"}));
        }
        Ok(())
    }

    fn helper(&mut self, session: &str, state: Value) {
        self.update(
            session,
            json!({"sessionUpdate": "subagent_update", "sessionId": "modern-helper", "title": "look around",
                "capabilities": {"cancel": {}}, "state": state}),
        );
    }

    fn updates(&mut self, session: &str) {
        let text = json!({"type": "text", "text": "so far"});
        for update in [
            json!({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": [
                {"content": "look", "priority": "high", "status": "in_progress"},
                {"content": "write", "priority": "low", "status": "pending"}]}}),
            json!({"sessionUpdate": "plan_removed", "planId": "p"}),
            json!({"sessionUpdate": "notice", "severity": "warning", "title": "The cache is cold"}),
            json!({"sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed"}),
            json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": "k", "content": text}),
            json!({"sessionUpdate": "session_info_update", "title": "A title"}),
            json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "compact"}]}),
            json!({"sessionUpdate": "user_message_chunk", "content": text}),
            json!({"sessionUpdate": "session_message", "messageId": "m", "senderSessionId": session,
                "recipientSessionId": "modern-helper", "content": [text]}),
            json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}),
            json!({"sessionUpdate": "hologram", "depth": 3}),
        ] {
            self.update(session, update);
        }
    }

    /// Reads and writes through the client, in the work folder and out of it.
    fn files(&mut self, session: &str) {
        let path = |name: &str| self.cwd.join(name).display().to_string();
        let (given, made, link, above) = (path("given"), path("made"), path("link"), path("../above"));
        for (method, params) in [
            ("fs/read_text_file", json!({"sessionId": session, "path": given, "line": 2, "limit": 1})),
            ("fs/write_text_file", json!({"sessionId": session, "path": made, "content": "written for it"})),
            ("fs/read_text_file", json!({"sessionId": session, "path": link})),
            ("fs/write_text_file", json!({"sessionId": session, "path": above, "content": "no"})),
        ] {
            let said = self.ask(method, params);
            self.say(session, &format!("{said}\n"));
        }
    }

    /// Asks the client and reads on until it answers; other messages meanwhile are what a busy agent leaves.
    fn ask(&mut self, method: &str, params: Value) -> String {
        self.asked += 1;
        let id = format!("ask-{}", self.asked);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        while let Some(message) = self.read() {
            if message.get("id") == Some(&Value::String(id.clone())) {
                return message
                    .get("result")
                    .or_else(|| message.get("error"))
                    .map_or(String::new(), Value::to_string);
            }
        }
        "none".to_owned()
    }
}
