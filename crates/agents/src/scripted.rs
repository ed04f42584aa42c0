//! The agent that plays a script: real work on real files, the same each time.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use rallypoint_acp::agent_side::{Agent, PermissionAnswer, PermissionChoice, PromptEnd, ToolUpdate, Turn};
use rallypoint_acp::rpc::{INTERNAL_ERROR, RpcError};
use rallypoint_model::completion::CompletionReport;

use crate::report;
use crate::script::{Script, Step};
use crate::tool_run::run_command;

/// How often a file that is waited for is looked for.
const FILE_CHECK: Duration = Duration::from_millis(20);

/// The agent.
#[derive(Debug)]
pub(crate) struct ScriptedAgent {
    script: Script,
    /// Turns played so far, by session.
    played: Mutex<BTreeMap<String, usize>>,
    calls: AtomicU64,
}

impl ScriptedAgent {
    /// Reads the script file that is the only argument.
    pub(crate) fn from_args(args: &[String]) -> Result<Self, String> {
        let [path] = args else {
            return Err("no script given\nuse `scripted FILE.toml`".to_owned());
        };
        let text = fs::read_to_string(path).map_err(|error| format!("cannot read `{path}`: {error}"))?;
        Self::from_text(&text).map_err(|message| format!("`{path}`: {message}"))
    }

    fn from_text(text: &str) -> Result<Self, String> {
        let script: Script = toml::from_str(text).map_err(|error| error.to_string())?;
        if script.turns.is_empty() {
            return Err("the script has no turns".to_owned());
        }
        Ok(Self { script, played: Mutex::default(), calls: AtomicU64::new(0) })
    }

    fn next_steps(&self, session_id: &str) -> &[Step] {
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = played.entry(session_id.to_owned()).or_default();
        let steps = self.script.turns.get(*turn).or(self.script.turns.last());
        *turn += 1;
        steps.map(|turn| turn.steps.as_slice()).unwrap_or_default()
    }

    fn call_id(&self) -> String {
        format!("step-{}", self.calls.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Does one step; an end when the turn is over with it.
    fn play(&self, turn: &Turn, step: &Step) -> Result<Option<PromptEnd>, RpcError> {
        match step {
            Step::Say(text) => turn.send_message_chunk(text),
            Step::Think(text) => turn.send_thought(text),
            Step::Plan(entries) => {
                let entry =
                    |text: &String| json!({"content": text, "priority": "medium", "status": "pending"});
                turn.send_plan(entries.iter().map(entry).collect());
            }
            Step::Run(command) => {
                run_command(turn, &self.call_id(), command);
            }
            Step::Write { path, text } => self.write(turn, path, text)?,
            Step::AwaitFile { path, deadline_ms } => {
                await_file(turn, path, Duration::from_millis(*deadline_ms))?;
            }
            Step::PauseMs(pause) => {
                turn.cancel.wait(Duration::from_millis(*pause));
            }
            Step::AskPermission { title, kind } => return Ok(self.ask(turn, title, kind)),
            Step::Report(report) => {
                turn.send_message_chunk(&format!("\n{}", report::block_of(&completed(report))));
            }
            Step::Stop(reason) => return Ok(Some(PromptEnd::stopped(reason.clone()))),
            Step::Exit(code) => std::process::exit((*code).into()),
        }
        Ok(turn.cancel.is_set().then(|| PromptEnd::stopped("cancelled")))
    }

    fn write(&self, turn: &Turn, path: &str, text: &str) -> Result<(), RpcError> {
        let file = turn.session.cwd.join(path);
        let id = self.call_id();
        turn.send_tool_call(&id, &format!("write {path}"), "edit", json!({"path": file}));
        let before = fs::read_to_string(&file).ok();
        let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
        if let Err(error) = folder.and_then(|()| fs::write(&file, text)) {
            let message = format!("cannot write `{}`: {error}", file.display());
            turn.send_tool_update(
                &id,
                ToolUpdate { status: Some("failed"), text: Some(&message), ..ToolUpdate::default() },
            );
            return Err(RpcError::new(INTERNAL_ERROR, message));
        }
        let diff = json!({"type": "diff", "path": file, "oldText": before, "newText": text});
        turn.send_tool_update(
            &id,
            ToolUpdate { status: Some("completed"), content: vec![diff], ..ToolUpdate::default() },
        );
        Ok(())
    }

    fn ask(&self, turn: &Turn, title: &str, kind: &str) -> Option<PromptEnd> {
        let choices = [
            PermissionChoice { id: "allow", name: "Allow", kind: "allow_once" },
            PermissionChoice { id: "reject", name: "Reject", kind: "reject_once" },
        ];
        match turn.request_permission(&self.call_id(), title, kind, &choices) {
            PermissionAnswer::Selected(choice) if choice == "allow" => None,
            PermissionAnswer::Selected(_) => {
                turn.send_message_chunk(&format!("Permission was not given: {title}\n"));
                Some(PromptEnd::stopped("end_turn"))
            }
            PermissionAnswer::Cancelled => Some(PromptEnd::stopped("cancelled")),
        }
    }
}

impl Agent for ScriptedAgent {
    fn name(&self) -> &'static str {
        "rallypoint-scripted"
    }

    fn prompt(&self, turn: &Turn) -> Result<PromptEnd, RpcError> {
        for step in self.next_steps(&turn.session.session_id) {
            if let Some(end) = self.play(turn, step)? {
                return Ok(end);
            }
        }
        Ok(PromptEnd::stopped("end_turn"))
    }
}

fn await_file(turn: &Turn, path: &str, at_most: Duration) -> Result<(), RpcError> {
    let file = turn.session.cwd.join(path);
    let started = Instant::now();
    while !file.exists() {
        if started.elapsed() >= at_most {
            let message = format!("`{}` did not appear within {} ms", file.display(), at_most.as_millis());
            return Err(RpcError::new(INTERNAL_ERROR, message));
        }
        if turn.cancel.wait(FILE_CHECK) {
            break;
        }
    }
    Ok(())
}

/// A report as the script has it, with the members that it leaves out.
fn completed(given: &Value) -> Value {
    let mut report = serde_json::to_value(CompletionReport::default()).unwrap_or_default();
    if let (Some(report), Some(given)) = (report.as_object_mut(), given.as_object()) {
        report.extend(given.clone());
    }
    report
}
