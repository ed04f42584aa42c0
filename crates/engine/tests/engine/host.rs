//! An obedient host: does what committed state asks for, and plays agents by script.

use std::collections::{BTreeMap, VecDeque};

use rallypoint_engine::due::{Attendance, Effect, Verification, due};
use rallypoint_engine::view::is_settled;
use rallypoint_model::agent_io::{AgentInput, AgentItem, AgentOutput, AgentReport, ToolCallView};
use rallypoint_model::agent_offer::{AgentCapabilities, ConversationOffer};
use rallypoint_model::command::Command;
use rallypoint_model::ids::{EvidenceId, GenerationId, TaskId};
use rallypoint_model::question::ApprovalOption;
use rallypoint_model::session::{GenerationEnd, GenerationStatus, SpoolCursor};
use rallypoint_model::task::{CriterionCheck, Evidence, EvidenceResult};
use uuid::Uuid;

use crate::answers::{loads, setting_answer, told, whole};
use crate::world::World;

/// One step of a scripted turn. What follows a stop comes late.
#[derive(Clone, Debug)]
pub(crate) enum Verb {
    Say(&'static str),
    Tool(&'static str, &'static str),
    /// Asks for permission to run a command; the turn goes on when it is answered.
    Ask(&'static str),
    /// The same without waiting.
    AskOn(&'static str),
    /// A frame that means this.
    Item(AgentItem),
    Stop(&'static str),
    Fail(i64, &'static str),
    Exit(i32),
    Gone(GenerationEnd),
    /// First in a turn: the process is gone before the spool holds the prompt.
    Unaccepted(GenerationEnd),
}

/// What the agent does when it is asked to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnCancel {
    Answers(&'static str),
    Fails(i64),
    Ignores,
}

/// What the agent does with words that it is given in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnSteer {
    Answers,
    Refuses,
    /// Has them and says nothing.
    Keeps,
    /// They never reach it.
    Unaccepted,
}

#[derive(Debug, Default)]
struct Process {
    prompt: Option<u64>,
    playing: VecDeque<Verb>,
}

/// The host and its agents.
#[derive(Debug)]
pub(crate) struct Host {
    /// Turns by the agent's label, in the order of its prompts. No turn left: it says nothing.
    pub(crate) turns: BTreeMap<String, VecDeque<Vec<Verb>>>,
    /// What is played where no turn is left.
    pub(crate) otherwise: Vec<Verb>,
    /// Results of the machine checks, one a round; passes when there is none left.
    pub(crate) checks: VecDeque<EvidenceResult>,
    pub(crate) on_cancel: OnCancel,
    pub(crate) on_steer: OnSteer,
    /// What it was given in its turns.
    pub(crate) steered: Vec<String>,
    /// How launches go wrong, in order.
    pub(crate) launches: VecDeque<GenerationEnd>,
    /// How the conversation is refused.
    pub(crate) session_new: Option<(i64, &'static str)>,
    /// How opening an earlier conversation is refused.
    pub(crate) session_load: Option<(i64, &'static str)>,
    /// What processes say that they can do.
    pub(crate) capabilities: AgentCapabilities,
    /// What they offer in a conversation.
    pub(crate) offer: ConversationOffer,
    /// What was said to them besides prompts, as the kind and the value.
    pub(crate) told: Vec<String>,
    /// Whether processes are launched at all.
    pub(crate) launching: bool,
    /// Whether a process answers the hello.
    pub(crate) answering: bool,
    /// Whether checks are run.
    pub(crate) checking: bool,
    /// The prompts that were given, as the texts of their last blocks.
    pub(crate) prompts: Vec<(String, String)>,
    /// Most slots seen in use.
    pub(crate) most_slots: usize,
    processes: BTreeMap<GenerationId, Process>,
}

impl Host {
    /// Agents of this name play these turns.
    pub(crate) fn new(turns: &[(&str, Vec<Vec<Verb>>)]) -> Self {
        Self {
            turns: turns
                .iter()
                .map(|(label, turns)| ((*label).to_owned(), turns.iter().cloned().collect()))
                .collect(),
            otherwise: Vec::new(),
            checks: VecDeque::new(),
            on_cancel: OnCancel::Answers("cancelled"),
            on_steer: OnSteer::Answers,
            steered: Vec::new(),
            launches: VecDeque::new(),
            session_new: None,
            session_load: None,
            capabilities: loads(),
            offer: ConversationOffer::default(),
            told: Vec::new(),
            launching: true,
            answering: true,
            checking: true,
            prompts: Vec::new(),
            most_slots: 0,
            processes: BTreeMap::new(),
        }
    }

    /// One agent `ada` that plays these turns.
    pub(crate) fn ada(turns: Vec<Vec<Verb>>) -> Self {
        Self::new(&[("ada", turns)])
    }

    pub(crate) fn checks(mut self, results: &[EvidenceResult]) -> Self {
        self.checks = results.iter().copied().collect();
        self
    }

    /// Does everything that is due now.
    pub(crate) fn work(&mut self, world: &mut World) {
        for _ in 0..1000 {
            let mut moved = false;
            for effect in due(&world.state, &world.limits) {
                moved |= self.effect(world, effect);
                self.most_slots = self.most_slots.max(world.state.running_slots());
            }
            if !moved {
                return;
            }
        }
        panic!("the host never comes to rest");
    }

    /// Works and lets time pass until nothing more happens to the task by itself.
    pub(crate) fn finish(&mut self, world: &mut World, task_id: TaskId) {
        for _ in 0..1000 {
            self.work(world);
            if is_settled(&world.state, world.task(task_id)) || !world.pass_to_wakeup() {
                return;
            }
        }
        panic!("the task never settles: {}", world.story(task_id));
    }

    pub(crate) fn effect(&mut self, world: &mut World, effect: Effect) -> bool {
        world.now = world.now.plus(1);
        match effect {
            Effect::Attend(attendance) => self.attend(world, &attendance),
            Effect::Clean(generation_id) => {
                world.ok(Command::GenerationCleaned { generation_id, swept: 0, left: 0 });
                true
            }
            Effect::Verify(verification) => self.checking && self.verify(world, &verification),
            // Sinks outside are played by the tests that are about them.
            Effect::Export(_) | Effect::Send(_) | Effect::Progress(_) => false,
        }
    }

    fn attend(&mut self, world: &mut World, attendance: &Attendance) -> bool {
        let generation_id = attendance.generation_id;
        if attendance.status == GenerationStatus::Launching {
            if !self.launching {
                return false;
            }
            if let Some(end) = self.launches.pop_front() {
                world.ok(Command::GenerationGone { generation_id, end });
            } else {
                world.ok(Command::GenerationLaunched { generation_id });
            }
            return true;
        }
        if attendance.status == GenerationStatus::Stopping {
            report(world, generation_id, vec![AgentItem::Exited { code: None, signal: Some(15) }]);
            return true;
        }
        let Some((seq, input)) = attendance.inputs.first().cloned() else {
            return false;
        };
        let kept_away = self.on_steer == OnSteer::Unaccepted && matches!(input, AgentInput::Steer { .. });
        if !self.answering || kept_away {
            return false;
        }
        self.input(world, attendance, seq, &input);
        true
    }

    fn input(&mut self, world: &mut World, attendance: &Attendance, seq: u64, input: &AgentInput) {
        self.told.extend(told(input));
        let id = attendance.generation_id;
        let accepted = AgentItem::InputAccepted { seq };
        match input {
            AgentInput::Initialize => {
                let hello = AgentItem::Initialized {
                    agent: "agent 1.0".to_owned(),
                    capabilities: self.capabilities.clone(),
                };
                report(world, id, vec![accepted, hello]);
            }
            AgentInput::NewSession { .. } => {
                let answer = match self.session_new {
                    Some((code, message)) => {
                        AgentItem::RequestFailed { seq, frame: 2, code, message: message.to_owned() }
                    }
                    None => AgentItem::SessionOpened {
                        agent_session_id: "conversation".to_owned(),
                        raw: serde_json::Value::Null,
                    },
                };
                report(world, id, vec![accepted, whole(&self.offer), answer]);
            }
            AgentInput::LoadSession { .. } | AgentInput::ResumeSession { .. } => {
                let answer = match self.session_load {
                    Some((code, message)) => {
                        AgentItem::RequestFailed { seq, frame: 2, code, message: message.to_owned() }
                    }
                    None => AgentItem::SessionLoaded { seq, frame: 2 },
                };
                report(world, id, vec![accepted, answer]);
            }
            AgentInput::Prompt { blocks, .. } => {
                let label = attendance.launch.label.clone();
                let turn = self
                    .turns
                    .get_mut(&label)
                    .and_then(VecDeque::pop_front)
                    .unwrap_or_else(|| self.otherwise.clone());
                if let Some(Verb::Unaccepted(end)) = turn.first() {
                    world.ok(Command::GenerationGone { generation_id: id, end: end.clone() });
                    return;
                }
                let words = blocks.last().map(|block| block.text.clone()).unwrap_or_default();
                self.prompts.push((label, words));
                report(world, id, vec![accepted]);
                let process = self.processes.entry(id).or_default();
                process.prompt = Some(seq);
                process.playing = turn.into();
                self.play(world, id);
            }
            AgentInput::AnswerPermission { .. } | AgentInput::AnswerElicitation { .. } => {
                report(world, id, vec![accepted]);
                self.play(world, id);
            }
            AgentInput::Cancel { .. } => {
                report(world, id, vec![accepted]);
                match self.on_cancel {
                    OnCancel::Answers(stop) => self.verb(world, id, Verb::Stop(stop)),
                    OnCancel::Fails(code) => self.verb(world, id, Verb::Fail(code, "cancelled")),
                    OnCancel::Ignores => true,
                };
            }
            AgentInput::Steer { blocks, .. } => {
                let frame = next_cursor(world, id).frames;
                self.steered
                    .push(blocks.iter().map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n"));
                let answer = match self.on_steer {
                    OnSteer::Answers => Some(AgentItem::PromptAnswered {
                        seq,
                        frame,
                        stop_reason: "end_turn".to_owned(),
                        usage: None,
                    }),
                    OnSteer::Refuses => Some(AgentItem::RequestFailed {
                        seq,
                        frame,
                        code: -32600,
                        message: "a prompt is open".to_owned(),
                    }),
                    OnSteer::Keeps | OnSteer::Unaccepted => None,
                };
                report(world, id, std::iter::once(accepted).chain(answer).collect());
            }
            AgentInput::Authenticate { method_id } => {
                report(world, id, vec![accepted, setting_answer(seq, method_id)]);
            }
            AgentInput::RefuseMethod { .. }
            | AgentInput::CloseSession { .. }
            | AgentInput::ServeFile { .. } => {
                report(world, id, vec![accepted]);
            }
            AgentInput::SetConfigOption { value, .. }
            | AgentInput::SetMode { mode_id: value, .. }
            | AgentInput::SetModel { model_id: value, .. } => {
                report(world, id, vec![accepted, setting_answer(seq, value)]);
            }
        }
    }

    fn play(&mut self, world: &mut World, id: GenerationId) {
        while let Some(verb) = self.processes.entry(id).or_default().playing.pop_front() {
            if !self.verb(world, id, verb) {
                return;
            }
        }
    }

    /// Plays one step; false where the turn waits.
    pub(crate) fn verb(&mut self, world: &mut World, id: GenerationId, verb: Verb) -> bool {
        world.now = world.now.plus(1);
        let seq = self.processes.entry(id).or_default().prompt.unwrap_or(0);
        let frame = next_cursor(world, id).frames;
        let item = match verb {
            Verb::Say(text) => said(frame, text),
            Verb::Tool(tool, status) => tool_call(frame, tool, status),
            Verb::Ask(request) | Verb::AskOn(request) => ask(request, frame, "execute"),
            Verb::Item(ref item) => item.clone(),
            Verb::Stop(stop) => {
                AgentItem::PromptAnswered { seq, frame, stop_reason: stop.to_owned(), usage: None }
            }
            Verb::Fail(code, message) => {
                AgentItem::RequestFailed { seq, frame, code, message: message.to_owned() }
            }
            Verb::Exit(code) => AgentItem::Exited { code: Some(code), signal: None },
            Verb::Gone(end) | Verb::Unaccepted(end) => {
                world.ok(Command::GenerationGone { generation_id: id, end });
                return false;
            }
        };
        let waits = matches!(verb, Verb::Ask(_));
        report(world, id, vec![item]);
        !waits
    }

    fn verify(&mut self, world: &mut World, verification: &Verification) -> bool {
        let started_at = world.now;
        world.now = world.now.plus(1);
        let result = self.checks.pop_front().unwrap_or(EvidenceResult::Passed);
        let evidence = verification
            .criteria
            .iter()
            .filter(|criterion| !matches!(criterion.check, CriterionCheck::Human { .. }))
            .map(|criterion| Evidence {
                id: EvidenceId(Uuid::from_u128(criterion.id.0.as_u128() + 0x1000)),
                criterion_id: criterion.id,
                result,
                procedure: "make test".to_owned(),
                exit_code: Some(i32::from(result != EvidenceResult::Passed)),
                started_at,
                ended_at: world.now,
                detail: "output".to_owned(),
            })
            .collect();
        let (task_id, round) = (verification.task_id, verification.round);
        world.ok(Command::Verified { task_id, round, evidence });
        true
    }
}

/// One record and one frame further than what was understood.
fn next_cursor(world: &World, id: GenerationId) -> SpoolCursor {
    let known = world.state.generations.get(&id).map(|generation| generation.cursor).unwrap_or_default();
    SpoolCursor { record: known.record + 1, skip: 0, frames: known.frames + 1 }
}

/// Reports items as the next frame of a process.
pub(crate) fn report(world: &mut World, id: GenerationId, items: Vec<AgentItem>) {
    let cursor = next_cursor(world, id);
    world.ok(Command::AgentReported { generation_id: id, report: AgentReport { cursor, items } });
}

/// Words in this frame.
pub(crate) fn said(frame: u64, text: &str) -> AgentItem {
    AgentItem::Output {
        first_frame: frame,
        last_frame: frame,
        agent_session_id: None,
        output: AgentOutput::Message { text: text.to_owned() },
    }
}

/// A tool call in this frame.
pub(crate) fn tool_call(frame: u64, tool: &str, status: &str) -> AgentItem {
    AgentItem::Output {
        first_frame: frame,
        last_frame: frame,
        agent_session_id: None,
        output: AgentOutput::ToolCall { call: call(tool, "execute", status) },
    }
}

pub(crate) fn call(tool: &str, kind: &str, status: &str) -> ToolCallView {
    ToolCallView {
        tool_call_id: tool.to_owned(),
        title: Some(format!("run {tool}")),
        tool_kind: Some(kind.to_owned()),
        status: Some(status.to_owned()),
        text: None,
        locations: Vec::new(),
        raw: serde_json::Value::Null,
    }
}

/// A request for permission.
pub(crate) fn ask(request: &str, frame: u64, kind: &str) -> AgentItem {
    AgentItem::PermissionAsked {
        request_id: request.to_owned(),
        frame,
        call: call(request, kind, "pending"),
        options: [("yes", "allow_once"), ("no", "reject_once")]
            .iter()
            .map(|(id, kind)| ApprovalOption {
                option_id: (*id).to_owned(),
                name: (*id).to_owned(),
                kind: (*kind).to_owned(),
            })
            .collect(),
    }
}
