//! A client on in-memory pipes or on a child process, built from the same parts as the real one.

use std::io::{BufReader, Read, Write, pipe};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rallypoint_acp::frames::LineAssembler;
use rallypoint_acp::inbound::{Peer, PeerState};
use rallypoint_acp::outbound::encode;
use rallypoint_model::agent_io::{AgentInput, AgentItem, AgentOutput, PromptBlock, PromptPart};
use rallypoint_model::completion::CompletionReport;
use rallypoint_model::usage::UsageKind;

/// Longer than anything here takes; a hang becomes a failure.
const AT_MOST: Duration = Duration::from_secs(20);
const LINE_CAP: usize = 16 * 1024 * 1024;
/// Where a child of the tests finds which agent it is.
pub(super) const CHILD_VARIABLE: &str = "RALLYPOINT_TEST_AGENT";

pub(super) struct Client {
    to: Option<Box<dyn Write>>,
    items: Receiver<AgentItem>,
    inputs: std::sync::mpsc::Sender<(u64, AgentInput)>,
    seq: u64,
    session: String,
    pub(super) child: Option<Child>,
}

impl Client {
    /// The agent on a thread of this process.
    pub(super) fn on_thread(name: &str, args: &[&str]) -> Self {
        let (input, to) = pipe().unwrap();
        let (from, output) = pipe().unwrap();
        let (name, args) = (name.to_owned(), strings(args));
        thread::spawn(move || crate::serve_on(&name, &args, BufReader::new(input), output));
        Self::new(to, from, None)
    }

    /// The agent as a process of its own: this test binary again, see `child`.
    pub(super) fn as_child(name: &str, args: &[&str]) -> Self {
        let mut line = vec![name.to_owned()];
        line.extend(strings(args));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::child::serves_when_it_is_a_child", "--nocapture"])
            .env(CHILD_VARIABLE, line.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self::new(to, from, Some(child))
    }

    fn new(to: impl Write + 'static, mut from: impl Read + Send + 'static, child: Option<Child>) -> Self {
        let (sender, items) = channel();
        let (inputs, expected) = channel::<(u64, AgentInput)>();
        thread::spawn(move || {
            let mut assembler = LineAssembler::new(LINE_CAP);
            let mut peer = Peer::new(PeerState::default(), UsageKind::PerTurn);
            let mut frame = 0;
            let mut buffer = vec![0; 65536];
            loop {
                let length = from.read(&mut buffer).unwrap_or(0);
                let mut take = |line: rallypoint_acp::frames::AssembledLine<'_>| {
                    for (seq, input) in expected.try_iter() {
                        peer.expect(seq, &input);
                    }
                    frame += 1;
                    for item in peer.line_items(&line.line, frame) {
                        // Fails only when the test is over.
                        let _ = sender.send(item);
                    }
                };
                if length == 0 {
                    assembler.finish(&mut take);
                    break;
                }
                assembler.push(&buffer[..length], &mut take);
            }
        });
        Self { to: Some(Box::new(to)), items, inputs, seq: 0, session: String::new(), child }
    }

    pub(super) fn send(&mut self, input: AgentInput) -> u64 {
        self.seq += 1;
        let bytes = encode(&input, self.seq);
        self.inputs.send((self.seq, input)).unwrap();
        self.to.as_mut().unwrap().write_all(&bytes).unwrap();
        self.seq
    }

    pub(super) fn hello(&mut self) {
        self.send(AgentInput::Initialize);
        self.until(|item| matches!(item, AgentItem::Initialized { .. }));
    }

    pub(super) fn open(&mut self, cwd: &Path) {
        self.hello();
        self.send(AgentInput::NewSession { cwd: cwd.to_str().unwrap().to_owned(), tools: false });
        let items = self.until(|item| matches!(item, AgentItem::SessionOpened { .. }));
        match items.last() {
            Some(AgentItem::SessionOpened { agent_session_id, .. }) => {
                self.session = agent_session_id.clone();
            }
            item => panic!("{item:?}"),
        }
    }

    pub(super) fn send_prompt(&mut self, blocks: &[(PromptPart, &str)]) -> u64 {
        let blocks =
            blocks.iter().map(|(part, text)| PromptBlock { part: *part, text: (*text).to_owned() }).collect();
        self.send(AgentInput::Prompt {
            agent_session_id: self.session.clone(),
            blocks,
            attachments: Vec::new(),
        })
    }

    /// A prompt with one task block, and everything up to its answer.
    pub(super) fn prompt(&mut self, text: &str) -> Vec<AgentItem> {
        self.send_prompt(&[(PromptPart::Task, text)]);
        self.until_answer()
    }

    pub(super) fn until_answer(&mut self) -> Vec<AgentItem> {
        self.until(|item| matches!(item, AgentItem::PromptAnswered { .. } | AgentItem::RequestFailed { .. }))
    }

    pub(super) fn cancel(&mut self) {
        self.send(AgentInput::Cancel { agent_session_id: self.session.clone() });
    }

    pub(super) fn until(&mut self, is_last: impl Fn(&AgentItem) -> bool) -> Vec<AgentItem> {
        let mut seen = Vec::new();
        loop {
            let item =
                self.items.recv_timeout(AT_MOST).unwrap_or_else(|error| panic!("{error} after {seen:?}"));
            seen.push(item);
            if seen.last().is_some_and(&is_last) {
                return seen;
            }
        }
    }

    pub(super) fn close(&mut self) {
        drop(self.to.take());
    }

    /// Everything up to the end of the agent's output.
    pub(super) fn rest(&mut self) -> Vec<AgentItem> {
        let mut seen = Vec::new();
        while let Ok(item) = self.items.recv_timeout(AT_MOST) {
            seen.push(item);
        }
        seen
    }

    pub(super) fn wait(&mut self) -> ExitStatus {
        self.child.as_mut().unwrap().wait().unwrap()
    }
}

fn strings(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

pub(super) fn message(items: &[AgentItem]) -> String {
    outputs(items)
        .filter_map(|output| match output {
            AgentOutput::Message { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

pub(super) fn thought(items: &[AgentItem]) -> String {
    outputs(items)
        .filter_map(|output| match output {
            AgentOutput::Thought { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

pub(super) fn outputs(items: &[AgentItem]) -> impl Iterator<Item = &AgentOutput> {
    items.iter().filter_map(|item| match item {
        AgentItem::Output { output, .. } => Some(output),
        _ => None,
    })
}

pub(super) fn stop_reason(items: &[AgentItem]) -> &str {
    match items.last() {
        Some(AgentItem::PromptAnswered { stop_reason, .. }) => stop_reason,
        item => panic!("{item:?}"),
    }
}

/// The report that ends a message.
pub(super) fn report(items: &[AgentItem]) -> CompletionReport {
    let text = message(items);
    let (_, block) = text.rsplit_once("```json\n").unwrap_or_else(|| panic!("no report in {text}"));
    serde_json::from_str(block.strip_suffix("```\n").unwrap()).unwrap()
}
