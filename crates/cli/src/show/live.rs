//! Progress on a terminal: one line a sub-agent, below the lines that stay.
//!
//! It is drawn on stderr, so that stdout holds data only; where stderr is no terminal it draws nothing.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rallypoint_model::agent_io::AgentOutput;
use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::ids::{RunId, SessionId};
use rallypoint_model::run::RunStatus;
use rallypoint_model::usage::Measured;

use crate::output::Output;
use crate::show::narrator::{Line, Narrator};
use crate::show::text::{brief, columns, padded};
use crate::show::{time, usage};

/// Time between two pictures of a spinner.
const TICK: Duration = Duration::from_millis(120);
/// Columns for who speaks.
const WHO_COLUMNS: usize = 10;
/// Columns that spinner, name and numbers of a progress line take.
const AROUND: usize = 44;

/// Lines and progress of one task.
#[derive(Debug)]
pub(crate) struct Live {
    narrator: Narrator,
    bars: Option<Bars>,
}

#[derive(Debug)]
struct Bars {
    all: MultiProgress,
    by_session: BTreeMap<SessionId, ProgressBar>,
    runs: BTreeMap<RunId, SessionId>,
    /// Tokens of its ended runs, and whether they are a guess.
    tokens: BTreeMap<SessionId, (u64, bool)>,
}

/// Whether progress is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// One line a sub-agent, drawn again and again.
    Drawn,
    /// None.
    Off,
}

impl Live {
    pub(crate) fn new(progress: Progress) -> Self {
        let bars = (progress == Progress::Drawn).then(|| Bars {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()),
            by_session: BTreeMap::new(),
            runs: BTreeMap::new(),
            tokens: BTreeMap::new(),
        });
        Self { narrator: Narrator::default(), bars }
    }

    pub(crate) fn last_reply(&self) -> Option<&str> {
        self.narrator.last_reply()
    }

    /// Shows an event to a person.
    pub(crate) fn show(&mut self, record: &EventRecord, output: &mut Output) -> io::Result<()> {
        let lines = self.narrator.tell(record);
        self.print(&lines, output)?;
        if let Some(bars) = &mut self.bars {
            bars.take(record, &self.narrator);
        }
        Ok(())
    }

    /// Prints lines above the progress.
    pub(crate) fn print(&self, lines: &[Line], output: &mut Output) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.aside(|| lines.iter().try_for_each(|line| output.line(&text(line))))
    }

    /// Does something while no progress is drawn, such as asking the person.
    pub(crate) fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        match &self.bars {
            Some(bars) => bars.all.suspend(act),
            None => act(),
        }
    }

    /// Draws no progress while a person types.
    pub(crate) fn pause(&self) {
        if let Some(bars) = &self.bars {
            // As below.
            let _ = bars.all.clear();
            bars.all.set_draw_target(ProgressDrawTarget::hidden());
        }
    }

    /// Draws it again.
    pub(crate) fn resume(&self) {
        if let Some(bars) = &self.bars {
            bars.all.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Takes the progress away; the lines stay.
    pub(crate) fn end(&mut self) {
        if let Some(bars) = self.bars.take() {
            for bar in bars.by_session.values() {
                bar.finish_and_clear();
            }
            // A terminal that can't be cleared shows the last progress for ever, which is no reason to fail.
            let _ = bars.all.clear();
        }
    }
}

/// `14:03:05  shell      ▸ $ date`.
pub(crate) fn text(line: &Line) -> String {
    format!("{}  {} {}", time::clock(line.at), padded(&brief(&line.who, 24), WHO_COLUMNS), line.text)
}

impl Bars {
    fn take(&mut self, record: &EventRecord, narrator: &Narrator) {
        match &record.event {
            Event::RunQueued { run_id, session_id, .. } => {
                if let Some(label) = narrator.label(*session_id) {
                    self.runs.insert(*run_id, *session_id);
                    self.begin(*session_id, label);
                }
            }
            Event::RunMoved { run_id, to, .. } => {
                if let Some(session) = self.runs.get(run_id).copied() {
                    self.say(session, status(*to));
                }
            }
            Event::AgentOutput { generation_id, output, foreign_session: None, .. } => {
                let session = narrator.session_of(*generation_id);
                if let (Some(session), Some(text)) = (session, doing(output)) {
                    self.say(session, &text);
                }
            }
            Event::RunUsed { run_id, usage: used } => {
                let (tokens, estimated) = match &used.tokens {
                    Measured::Measured { value } => (value.total(), false),
                    Measured::Estimated { value } => (value.total(), true),
                    Measured::Unavailable { .. } => (0, false),
                };
                if let Some(session) = self.runs.get(run_id).copied() {
                    let known = self.tokens.entry(session).or_default();
                    *known = (known.0.saturating_add(tokens), known.1 || estimated);
                }
            }
            Event::RunEnded { run_id, .. } => {
                if let Some(bar) = self.runs.get(run_id).and_then(|session| self.by_session.remove(session)) {
                    bar.finish_and_clear();
                }
            }
            Event::AgentOutput { .. }
            | Event::RunAnswered { .. }
            | Event::WorldOpened { .. }
            | Event::ClockShifted { .. }
            | Event::RoomCreated { .. }
            | Event::RoomReset { .. }
            | Event::DeliveryQueued(_)
            | Event::DeliveryMoved(_)
            | Event::DeliveryExtended { .. }
            | Event::ProgressModeSet(_)
            | Event::ProgressOffered(_)
            | Event::ProgressSettled(_)
            | Event::MidTurnMoved(_)
            | Event::ResultRerouted { .. }
            | Event::MessagePosted { .. }
            | Event::TaskCreated { .. }
            | Event::TaskStatusChanged { .. }
            | Event::TaskVerified { .. }
            | Event::TaskStopRequested { .. }
            | Event::TreeStopRequested { .. }
            | Event::TreeStopped { .. }
            | Event::TaskOverridden { .. }
            | Event::TaskPaused(_)
            | Event::TaskResumed(_)
            | Event::TaskReopened(_)
            | Event::TaskPatched(_)
            | Event::TaskPlanRevised(_)
            | Event::TaskRestarted(_)
            | Event::TaskArchived { .. }
            | Event::TaskUnarchived { .. }
            | Event::TaskDeleted { .. }
            | Event::TaskResultsRemoved { .. }
            | Event::TriggerRefused { .. }
            | Event::PermissionDecided { .. }
            | Event::QuestionOpened { .. }
            | Event::QuestionExtended { .. }
            | Event::QuestionClosed { .. }
            | Event::SessionCreated { .. }
            | Event::RunCounted { .. }
            | Event::SessionOffered { .. }
            | Event::SessionConfigured { .. }
            | Event::SessionEventKept { .. }
            | Event::SessionMailReceived { .. }
            | Event::SessionMailTaken { .. }
            | Event::RunCancelRequested { .. }
            | Event::RunSuspected { .. }
            | Event::RunReassured { .. }
            | Event::GenerationStarted { .. }
            | Event::GenerationMoved { .. }
            | Event::GenerationInitialized { .. }
            | Event::GenerationLoadFailed { .. }
            | Event::GenerationOpened { .. }
            | Event::GenerationInput { .. }
            | Event::GenerationInputAccepted { .. }
            | Event::GenerationOptionSet { .. }
            | Event::GenerationToolsConnected { .. }
            | Event::SessionToolCalled { .. }
            | Event::SessionToolAnswered { .. }
            | Event::GenerationNoted { .. }
            | Event::GenerationEnded { .. }
            | Event::GenerationCleaned { .. }
            | Event::TurnPlanned { .. }
            | Event::TurnActionDone { .. } => {}
        }
    }

    fn begin(&mut self, session: SessionId, label: &str) {
        let bar = self.all.add(ProgressBar::new_spinner());
        // A style that can't be read leaves the plain one.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {wide_msg} {elapsed}") {
            bar.set_style(style);
        }
        let tokens = self
            .tokens
            .get(&session)
            .filter(|(tokens, _)| *tokens > 0)
            .map(|(tokens, estimated)| format!(" {} tokens", usage::token_count(*tokens, *estimated)))
            .unwrap_or_default();
        bar.set_prefix(format!("{}{tokens}", padded(label, WHO_COLUMNS)));
        bar.enable_steady_tick(TICK);
        if let Some(before) = self.by_session.insert(session, bar) {
            before.finish_and_clear();
        }
    }

    fn say(&self, session: SessionId, text: &str) {
        if let Some(bar) = self.by_session.get(&session) {
            bar.set_message(brief(text, columns().saturating_sub(AROUND)));
        }
    }
}

fn status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Queued => "waits for a slot",
        RunStatus::Starting => "is being started",
        RunStatus::Running => "works",
        RunStatus::WaitingApproval => "waits for a permission",
        RunStatus::WaitingQuestion => "waits for an answer",
        RunStatus::WaitingChildren => "waits for its children",
        RunStatus::WaitingLogin => "waits for a login",
        RunStatus::Settling => "has answered",
        RunStatus::Terminal => "has ended",
    }
}

fn doing(output: &AgentOutput) -> Option<String> {
    // A report's brackets and the fence around it say nothing.
    let says_something = |line: &&str| line.contains(char::is_alphanumeric) && !line.starts_with("```");
    let last_line = |text: &str| text.lines().rev().map(str::trim).find(says_something).map(str::to_owned);
    match output {
        AgentOutput::Message { text } => last_line(text),
        AgentOutput::Thought { text } => last_line(text).map(|text| format!("thinks: {text}")),
        AgentOutput::ToolCall { call } => call.title.clone(),
        AgentOutput::ToolCallUpdate { call } => match call.status.as_deref() {
            Some("completed" | "failed") => Some("works".to_owned()),
            _ => call.title.clone(),
        },
        AgentOutput::Plan { .. } => Some("plans".to_owned()),
        AgentOutput::Notice { title, .. } => Some(title.clone()),
        AgentOutput::Compaction { status, .. } if status == "in_progress" => {
            Some("shortens its memory".to_owned())
        }
        AgentOutput::NativeAgent { update } if update.state.as_deref() == Some("running") => Some(
            update
                .title
                .as_ref()
                .map_or("has a helper at work".to_owned(), |title| format!("helper: {title}")),
        ),
        AgentOutput::PlanRemoved { .. }
        | AgentOutput::UserMessage { .. }
        | AgentOutput::Compaction { .. }
        | AgentOutput::CompactionSummary { .. }
        | AgentOutput::NativeAgent { .. }
        | AgentOutput::SessionMessage { .. }
        | AgentOutput::Mode { .. }
        | AgentOutput::Title { .. }
        | AgentOutput::Commands { .. }
        | AgentOutput::Usage { .. }
        | AgentOutput::Other { .. } => None,
    }
}
