//! Processes as a crash leaves them: shims, agents and spools that live on while the engine forgets everything that is
//! not stored. It keeps its own books of what each agent was given and what it said.

use std::collections::{BTreeMap, VecDeque};

use rallypoint_model::agent_io::{AgentInput, AgentItem, AgentOutput, AgentReport};
use rallypoint_model::ids::GenerationId;
use rallypoint_model::session::SpoolCursor;

use crate::answers::loads;
use crate::host::{ask, said};

/// One step of an agent.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Say,
    Ask,
    Stop(&'static str),
    Exit,
    /// The answer to a request of ours, which gets its frame when it is written.
    Reply(AgentItem),
}

/// A shim, its agent and its spool.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) shim_alive: bool,
    pub(crate) started: bool,
    pub(crate) agent_alive: bool,
    pub(crate) taken: u64,
    pub(crate) removed: bool,
    spool: Vec<(AgentItem, u64)>,
    frames: u64,
    prompt: Option<u64>,
    acts: VecDeque<Act>,
    waits: bool,
    asked: u32,
}

/// A prompt as its agent knows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// What was said to it up to the answer.
    pub(crate) said: String,
    /// The stop reason of the answer.
    pub(crate) answered: Option<&'static str>,
    /// Whether the agent was killed or ended by itself before it answered.
    pub(crate) cut: bool,
}

/// Every process that there ever was.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    pub(crate) processes: BTreeMap<GenerationId, Process>,
    /// Prompts by the process and their number there.
    pub(crate) heard: BTreeMap<(GenerationId, u64), Heard>,
}

impl Fleet {
    /// A shim without an agent yet.
    pub(crate) fn launch(&mut self, id: GenerationId) {
        self.processes.insert(id, Process { shim_alive: true, ..Process::default() });
    }

    pub(crate) fn start(&mut self, id: GenerationId) {
        if let Some(process) = self.processes.get_mut(&id).filter(|process| process.shim_alive) {
            (process.started, process.agent_alive) = (true, true);
            process.spool.push((AgentItem::Started { pid: 7 }, process.frames));
        }
    }

    /// Passes an input on, as a shim does: into the spool first, and only with the number after the last one. True
    /// when the agent got a prompt.
    pub(crate) fn send(&mut self, id: GenerationId, seq: u64, input: &AgentInput, turn: Vec<Act>) -> bool {
        let Some(process) = self.processes.get_mut(&id) else { return false };
        if !process.agent_alive || seq != process.taken + 1 {
            return false;
        }
        process.taken = seq;
        process.spool.push((AgentItem::InputAccepted { seq }, process.frames));
        match input {
            AgentInput::Initialize => {
                process
                    .reply(AgentItem::Initialized { agent: "agent 1.0".to_owned(), capabilities: loads() });
            }
            AgentInput::NewSession { .. } => process.reply(AgentItem::SessionOpened {
                agent_session_id: format!("conversation of {id}"),
                raw: serde_json::Value::Null,
            }),
            AgentInput::LoadSession { .. } | AgentInput::ResumeSession { .. } => {
                process.reply(AgentItem::SessionLoaded { seq, frame: 0 });
            }
            AgentInput::Authenticate { .. }
            | AgentInput::SetConfigOption { .. }
            | AgentInput::SetMode { .. }
            | AgentInput::SetModel { .. } => process.reply(AgentItem::RequestAnswered { seq, frame: 0 }),
            AgentInput::Prompt { .. } => {
                process.prompt = Some(seq);
                process.acts = turn.into();
                self.heard.insert((id, seq), Heard::default());
                return true;
            }
            AgentInput::Cancel { .. } if process.prompt.is_some() => {
                process.waits = false;
                process.acts = [Act::Stop("cancelled")].into();
            }
            AgentInput::AnswerPermission { .. } | AgentInput::AnswerElicitation { .. } => {
                process.waits = false;
            }
            AgentInput::Cancel { .. }
            | AgentInput::RefuseMethod { .. }
            | AgentInput::Steer { .. }
            | AgentInput::CloseSession { .. }
            | AgentInput::ServeFile { .. } => {}
        }
        false
    }

    /// Lets an agent do one thing; false when it has nothing to do.
    pub(crate) fn act(&mut self, id: GenerationId) -> bool {
        let Some(process) = self.processes.get_mut(&id) else { return false };
        if !process.agent_alive || process.waits {
            return false;
        }
        let Some(act) = process.acts.pop_front() else { return false };
        let frame = process.frames + 1;
        let seq = process.prompt.unwrap_or(0);
        let item = match act {
            Act::Say => {
                let words = format!("{frame} of {seq};");
                if let Some(heard) = self.heard.get_mut(&(id, seq)) {
                    heard.said.push_str(&words);
                }
                said(frame, &words)
            }
            Act::Ask => {
                process.waits = true;
                process.asked += 1;
                ask(&process.asked.to_string(), frame, "execute")
            }
            Act::Stop(stop) => {
                process.prompt = None;
                if let Some(heard) = self.heard.get_mut(&(id, seq)) {
                    heard.answered = Some(stop);
                }
                AgentItem::PromptAnswered { seq, frame, stop_reason: stop.to_owned(), usage: None }
            }
            Act::Exit => {
                self.end_agent(id, Some(3), None);
                return true;
            }
            Act::Reply(item) => with_frame(item, frame),
        };
        process.frames = frame;
        process.spool.push((item, frame));
        true
    }

    /// The agent is gone and its shim says so.
    pub(crate) fn end_agent(&mut self, id: GenerationId, code: Option<i32>, signal: Option<i32>) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        if !process.agent_alive {
            return;
        }
        process.agent_alive = false;
        process.spool.push((AgentItem::Exited { code, signal }, process.frames));
        let open = process.prompt.take();
        if let Some(heard) = open.and_then(|seq| self.heard.get_mut(&(id, seq))) {
            heard.cut = true;
        }
    }

    /// The shim is gone, and with it whoever could hear the agent.
    pub(crate) fn kill_shim(&mut self, id: GenerationId) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        (process.shim_alive, process.agent_alive) = (false, false);
        let open = process.prompt.take();
        if let Some(heard) = open.and_then(|seq| self.heard.get_mut(&(id, seq))) {
            heard.cut = true;
        }
    }

    /// Reads on from a cursor: at most so many records, words that follow each other as one.
    pub(crate) fn read(&self, id: GenerationId, from: SpoolCursor, most: usize) -> Option<AgentReport> {
        let process = self.processes.get(&id)?;
        let start = usize::try_from(from.record).ok()?;
        let records: Vec<_> = process.spool.iter().skip(start).take(most).cloned().collect();
        let frames = records.last()?.1;
        let record = from.record + records.len() as u64;
        let mut items: Vec<AgentItem> = Vec::new();
        for (item, _) in records {
            if let Some(AgentItem::Output { last_frame, output: AgentOutput::Message { text }, .. }) =
                items.last_mut()
                && let AgentItem::Output {
                    last_frame: to, output: AgentOutput::Message { text: more }, ..
                } = &item
            {
                text.push_str(more);
                *last_frame = *to;
                continue;
            }
            items.push(item);
        }
        Some(AgentReport { cursor: SpoolCursor { record, skip: 0, frames }, items })
    }

    pub(crate) fn is_empty_spool(&self, id: GenerationId) -> bool {
        self.processes.get(&id).is_none_or(|process| process.spool.is_empty())
    }
}

impl Process {
    fn reply(&mut self, item: AgentItem) {
        self.acts.push_back(Act::Reply(item));
    }
}

fn with_frame(item: AgentItem, frame: u64) -> AgentItem {
    match item {
        AgentItem::SessionLoaded { seq, .. } => AgentItem::SessionLoaded { seq, frame },
        AgentItem::RequestAnswered { seq, .. } => AgentItem::RequestAnswered { seq, frame },
        other => other,
    }
}
