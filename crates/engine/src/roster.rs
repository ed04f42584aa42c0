//! The text of the active sub-agents, as it stands in front of a main agent's history.
//!
//! Contract: elizaOS plugin-agent-orchestrator, `active-sub-agents.ts`. The
//! text is structure only: no times, no words of anybody. Transient states are
//! one bucket, so that the bytes change only when a session comes, goes, or
//! begins or ceases to wait for an answer. Lines are in the byte order of the
//! session ids, where the contract compares by locale.

use std::collections::{BTreeMap, BTreeSet};

use rallypoint_model::ids::SessionId;
use rallypoint_model::session::{SessionKind, SessionStatus};

use crate::changes::{Changes, RowRef};
use crate::state::{Session, State};
use crate::text::one_line;
use crate::view::session_status;

const TITLE: &str = "## Active sub-agent sessions";
const GUIDANCE: &str = "Say more to one of them with `SEND_TO_AGENT { sessionId, text }`, end one with \
`STOP_AGENT { sessionId }`, answer the user with `REPLY`; one turn may do several of these.";
const CHANGED: &str = "## Changes of the active sub-agent sessions";
/// Characters of a name.
const LABEL_CHARS: usize = 80;

/// How a session that has not ended is shown; `None` for one that has.
fn bucket(status: SessionStatus) -> Option<&'static str> {
    match status {
        SessionStatus::Running
        | SessionStatus::Ready
        | SessionStatus::Busy
        | SessionStatus::ToolRunning
        | SessionStatus::Authenticating => Some("active"),
        SessionStatus::Blocked => Some("blocked"),
        SessionStatus::Completed
        | SessionStatus::Errored
        | SessionStatus::Cancelled
        | SessionStatus::Stopped => None,
    }
}

/// What a line is made of.
#[derive(Clone, Copy, Debug)]
pub struct Active<'a> {
    /// The session.
    pub session_id: SessionId,
    /// Its name; its id is shown where that is blank.
    pub label: &'a str,
    /// Its profile.
    pub agent_type: &'a str,
    /// Its status.
    pub status: SessionStatus,
    /// Its work folder.
    pub workdir: &'a str,
}

#[derive(Clone, Debug)]
struct Line {
    bucket: &'static str,
    text: String,
}

/// The lines of all active sessions. A change costs what changed, not what is
/// there: a line is made again only when its bucket differs.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    lines: BTreeMap<SessionId, Line>,
    joined: Option<String>,
    rendered: u64,
    /// Who was told of, and in which bucket; `None` before the whole text was.
    told: Option<BTreeMap<SessionId, &'static str>>,
    /// Who changed since.
    changed: BTreeSet<SessionId>,
}

/// Two are equal that show the same.
impl PartialEq for Roster {
    fn eq(&self, other: &Self) -> bool {
        let texts =
            |roster: &Self| -> Vec<String> { roster.lines.values().map(|it| it.text.clone()).collect() };
        texts(self) == texts(other)
    }
}

/// What a main agent has not been told yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Everything: it was told of nobody before.
    Whole(String),
    /// One line for each session that came, went, or changed its bucket; the same whichever way it went in between.
    Changed(String),
}

impl Roster {
    /// The roster of a state.
    pub fn of_state(state: &State) -> Self {
        let mut roster = Self::default();
        for id in state.sessions.keys() {
            roster.look_at(state, *id);
        }
        roster
    }

    /// Takes in what a commit changed.
    pub fn follow(&mut self, state: &State, changes: &Changes) {
        for id in changes.touched.iter().filter_map(|row| session_of(state, *row)) {
            self.look_at(state, id);
        }
    }

    pub(crate) fn look_at(&mut self, state: &State, id: SessionId) {
        let Some(session) = state.sessions.get(&id) else {
            self.forget(id);
            return;
        };
        let task = session.task_id.and_then(|id| state.tasks.get(&id));
        let launch = session.launch.as_ref();
        match launch.filter(|_| is_listed(session)) {
            Some(launch) => self.set(&Active {
                session_id: id,
                label: &launch.label,
                agent_type: &launch.profile,
                status: session_status(state, session),
                workdir: task.map_or("", |task| task.cwd.as_str()),
            }),
            None => self.forget(id),
        }
    }

    /// Lists a session as it stands now, or takes it off when it has ended.
    pub fn set(&mut self, active: &Active<'_>) {
        let Some(bucket) = bucket(active.status) else {
            self.forget(active.session_id);
            return;
        };
        if self.lines.get(&active.session_id).is_some_and(|line| line.bucket == bucket) {
            return;
        }
        self.rendered = self.rendered.saturating_add(1);
        self.joined = None;
        self.changes(active.session_id);
        self.lines.insert(active.session_id, Line { bucket, text: line(active, bucket) });
    }

    /// Takes a session off.
    pub fn forget(&mut self, id: SessionId) {
        if self.lines.remove(&id).is_some() {
            self.joined = None;
            self.changes(id);
        }
    }

    /// Nobody needs to know who changed as long as nobody was told of anybody.
    fn changes(&mut self, id: SessionId) {
        if self.told.is_some() {
            self.changed.insert(id);
        }
    }

    /// What is to be told now; `None` where nothing changed. It is told with this. The whole text stands in front of a
    /// history once, and each change is appended to it, so that what stands there keeps its bytes.
    pub fn news(&mut self) -> Option<News> {
        let Some(told) = &mut self.told else {
            self.told = Some(self.lines.iter().map(|(id, line)| (*id, line.bucket)).collect());
            let whole = self.text().to_owned();
            return (!whole.is_empty()).then_some(News::Whole(whole));
        };
        let mut text = String::new();
        for id in std::mem::take(&mut self.changed) {
            let line = self.lines.get(&id);
            let before = match line {
                Some(line) => told.insert(id, line.bucket),
                None => told.remove(&id),
            };
            if before == line.map(|line| line.bucket) {
                continue;
            }
            text.push('\n');
            match line {
                Some(line) => text.push_str(&line.text),
                None => text.push_str(&format!("- sessionId={id} status=gone")),
            }
        }
        (!text.is_empty()).then(|| News::Changed(format!("{CHANGED}{text}")))
    }

    /// Whoever is told next knows nothing yet.
    pub(crate) fn forget_told(&mut self) {
        self.told = None;
        self.changed.clear();
    }

    /// Sessions that are listed, in their order.
    pub fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.lines.keys().copied()
    }

    /// Whether nobody is listed.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The text without a final newline; empty when nobody is active.
    pub fn text(&mut self) -> &str {
        let lines = &self.lines;
        self.joined.get_or_insert_with(|| join(lines))
    }

    /// The same for a reader that can't keep it.
    pub fn rendered(&self) -> String {
        self.joined.clone().unwrap_or_else(|| join(&self.lines))
    }

    /// Lines that were made so far; a counter for tests and metrics.
    pub fn rendered_lines(&self) -> u64 {
        self.rendered
    }
}

fn join(lines: &BTreeMap<SessionId, Line>) -> String {
    let mut text = String::new();
    if !lines.is_empty() {
        text.push_str(TITLE);
        text.push('\n');
        text.push_str(GUIDANCE);
    }
    for line in lines.values() {
        text.push('\n');
        text.push_str(&line.text);
    }
    text
}

/// The session whose line a row may change.
pub(crate) fn session_of(state: &State, row: RowRef) -> Option<SessionId> {
    match row {
        RowRef::Session(id) => Some(id),
        RowRef::Run(id) => state.runs.get(&id).map(|run| run.session_id),
        RowRef::Question(id) => state.questions.get(&id).and_then(|question| question.session_id),
        RowRef::World | RowRef::Room(_) | RowRef::Task(_) | RowRef::Generation(_) | RowRef::Delivery(_) => {
            None
        }
    }
}

/// Whether a room asked for it, so that results have somewhere to go.
fn is_listed(session: &Session) -> bool {
    session.kind == SessionKind::SubAgent && session.origin.is_some()
}

fn line(active: &Active<'_>, bucket: &str) -> String {
    let id = active.session_id;
    let label = one_line(active.label, LABEL_CHARS);
    let label = if label.is_empty() { id.to_string() } else { label };
    format!(
        "- [{label}] sessionId={id} agentType={} status={bucket} workdir=…{}",
        active.agent_type,
        tail(active.workdir)
    )
}

/// The last two segments of a path.
pub fn tail(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    segments.get(segments.len().saturating_sub(2)..).unwrap_or_default().join("/")
}
