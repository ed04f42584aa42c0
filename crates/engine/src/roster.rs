//! The text of the active sub-agents, as it stands in front of a main agent's history.
//!
//! Contract: elizaOS plugin-agent-orchestrator, `active-sub-agents.ts`. The
//! text is structure only: no times, no words of anybody. Transient states are
//! one bucket, so that the bytes change only when a session comes, goes, or
//! begins or ceases to wait for an answer. Lines are in the byte order of the
//! session ids, where the contract compares by locale.

use std::collections::BTreeMap;

use rallypoint_model::ids::SessionId;
use rallypoint_model::session::{SessionKind, SessionStatus};

use crate::changes::{Changes, RowRef};
use crate::state::{Session, State};
use crate::text::one_line;
use crate::view::session_status;

const TITLE: &str = "## Active sub-agent sessions";
const GUIDANCE: &str = "Say more to one of them with `SEND_TO_AGENT { sessionId, text }`, end one with \
`STOP_AGENT { sessionId }`, answer the user with `REPLY`; one turn may do several of these.";
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
        for row in &changes.touched {
            let session_id = match row {
                RowRef::Session(id) => Some(*id),
                RowRef::Run(id) => state.runs.get(id).map(|run| run.session_id),
                RowRef::Question(id) => state.questions.get(id).and_then(|question| question.session_id),
                RowRef::World
                | RowRef::Room(_)
                | RowRef::Task(_)
                | RowRef::Generation(_)
                | RowRef::Delivery(_) => None,
            };
            if let Some(id) = session_id {
                self.look_at(state, id);
            }
        }
    }

    fn look_at(&mut self, state: &State, id: SessionId) {
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
        self.lines.insert(active.session_id, Line { bucket, text: line(active, bucket) });
    }

    /// Takes a session off.
    pub fn forget(&mut self, id: SessionId) {
        if self.lines.remove(&id).is_some() {
            self.joined = None;
        }
    }

    /// The text without a final newline; empty when nobody is active.
    pub fn text(&mut self) -> &str {
        let lines = &self.lines;
        self.joined.get_or_insert_with(|| {
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
        })
    }

    /// Lines that were made so far; a counter for tests and metrics.
    pub fn rendered_lines(&self) -> u64 {
        self.rendered
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
fn tail(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    segments.get(segments.len().saturating_sub(2)..).unwrap_or_default().join("/")
}
