//! Agents that say what they use in the many places where agents say it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rallypoint_acp::agent_side::{Client, PromptEnd, Session, Turn};
use rallypoint_acp::rpc::{INTERNAL_ERROR, RpcError};
use serde_json::{Map, Value, json};

use super::memory::Memory;

/// Tokens of one model call.
const INPUT: u64 = 100;
const OUTPUT: u64 = 10;
/// What one call costs by its own account, in the unit of the currency.
const COST: f64 = 0.25;
/// How long it waits for its file, and how often it looks.
const AT_MOST: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

/// Where it says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Beside two model calls, between which it waits for the file; its answer says nothing.
    Calls,
    /// As a count of its process, which dies in its second prompt. The next one tells the old numbers again while it
    /// loads its session from the file, and counts from zero.
    Cut,
    /// In the error that ends the turn.
    Error,
    /// In an answer that names a failure.
    Failure,
}

/// Such an agent.
#[derive(Debug)]
pub(super) struct Spending {
    way: Way,
    file: PathBuf,
    memory: Memory,
    calls: AtomicU64,
}

impl Spending {
    pub(super) fn new(way: &str, file: PathBuf) -> Result<Self, String> {
        let way = match way {
            "calls" => Way::Calls,
            "cut" => Way::Cut,
            "error" => Way::Error,
            "failure" => Way::Failure,
            _ => return Err(format!("an agent does not spend in the way `{way}`")),
        };
        let memory = Memory::new(file.clone(), 0, true);
        Ok(Self { way, file, memory, calls: AtomicU64::new(0) })
    }

    pub(super) fn can_load(&self) -> bool {
        self.way == Way::Cut
    }

    pub(super) fn opened(&self, session: &Session) -> Result<(), RpcError> {
        match self.way {
            Way::Cut => self.memory.note(&session.cwd, &format!("session {}", session.session_id)),
            Way::Calls | Way::Error | Way::Failure => Ok(()),
        }
    }

    pub(super) fn load(&self, session: &Session, client: &Client) -> Result<(), RpcError> {
        self.memory.load(session, client)?;
        for update in told(2) {
            client.notify("session/update", json!({"sessionId": session.session_id, "update": update}));
        }
        Ok(())
    }

    pub(super) fn prompt(&self, turn: &Turn) -> Result<PromptEnd, RpcError> {
        let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        match self.way {
            Way::Calls => {
                turn.send_update(call(1));
                let path = turn.session.cwd.join(&self.file);
                let started = Instant::now();
                while !path.exists() && started.elapsed() < AT_MOST {
                    thread::sleep(LOOK);
                }
                turn.send_update(call(1));
                turn.send_message_chunk("called twice");
                Ok(PromptEnd::stopped("end_turn"))
            }
            Way::Cut => {
                for update in told(calls) {
                    turn.send_update(update);
                }
                let before = self.memory.prompts(&turn.session.cwd);
                self.memory.note(&turn.session.cwd, "prompt")?;
                if before == 1 {
                    turn.send_message_chunk("I have begun");
                    std::process::exit(9);
                }
                turn.send_message_chunk("counted");
                Ok(PromptEnd::Stopped { stop_reason: "end_turn".to_owned(), extra: usage(calls) })
            }
            Way::Error => {
                let error = RpcError::new(INTERNAL_ERROR, "the provider is gone");
                Err(RpcError { data: Some(Value::Object(usage(1))), ..error })
            }
            Way::Failure => {
                let mut extra = usage(1);
                let failure = json!({"severity": "error", "title": "High demand"});
                extra.insert("_meta".to_owned(), json!({"jetbrains": {"air": {"sessionFailure": failure}}}));
                Ok(PromptEnd::Stopped { stop_reason: "end_turn".to_owned(), extra })
            }
        }
    }
}

fn usage(calls: u64) -> Map<String, Value> {
    let usage = json!({"inputTokens": calls * INPUT, "outputTokens": calls * OUTPUT});
    [("usage".to_owned(), usage)].into_iter().collect()
}

/// A chunk that says nothing but what so many calls used.
fn call(calls: u64) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ""}, "_meta": usage(calls)})
}

/// What so many calls used and cost together.
fn told(calls: u64) -> [Value; 2] {
    let cost = json!({"amount": calls as f64 * COST, "currency": "USD"});
    let update = json!({"sessionUpdate": "usage_update", "used": calls * INPUT, "size": 1_000, "cost": cost});
    [update, call(calls)]
}
