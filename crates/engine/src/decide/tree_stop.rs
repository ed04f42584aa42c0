//! Ending trees of sessions: all at once, each on its own, told when nothing is left.

use std::collections::BTreeMap;

use rallypoint_model::command::Outcome;
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::{RunId, SessionId, TaskId};
use rallypoint_model::question::QuestionKind;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::run::{OutcomeReason, RunOutcome};
use rallypoint_model::stop::{StopNode, StoppedNode};
use rallypoint_model::task::{TaskReason, TaskStatus, TaskTrigger};
use serde_json::json;

use super::spawn::label_of;
use super::{Deciding, Post, Voice};
use crate::state::{TreeStop, TurnCause};
use crate::tree;

impl Deciding<'_, '_> {
    pub(crate) fn stop_session(&mut self, session_id: SessionId, by: &str) -> Result<Outcome, Refusal> {
        let session =
            self.state.sessions.get(&session_id).ok_or_else(|| Refusal::not_found("session", session_id))?;
        let Some(task_id) = session.task_id else {
            return Err(Refusal::new(RefusalCode::Invalid, "a room's own session is not stopped"));
        };
        if tree::is_being_stopped(self.state, session) {
            return Ok(Outcome::Done);
        }
        let nodes = tree::with_descendants(self.state, session_id);
        let over = session.stopped
            || self
                .state
                .tasks
                .get(&task_id)
                .is_none_or(|task| task.status.is_terminal() || task.status == TaskStatus::Interrupted);
        if over && nodes.iter().all(|id| tree::is_at_rest(self.state, *id)) {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("`{}` has ended, and all below it; nothing is left to stop", label_of(session)),
            )
            .with_hint(format!("`rally task show {task_id}` shows how each of them ended")));
        }
        self.begin_stop(task_id, Some(session_id), by, &nodes);
        self.withdraw_questions(task_id, by, |question| {
            matches!(question.question, QuestionKind::Ask { .. })
                && question.session_id.is_some_and(|id| nodes.contains(&id))
        });
        self.unblock_task(task_id);
        self.cancel_sessions(&nodes, by);
        let idle = self.state.tasks.get(&task_id).is_some_and(|task| {
            !self.state.task_has_open_run(task)
                && matches!(task.status, TaskStatus::Open | TaskStatus::Active)
        });
        if idle {
            self.move_task(task_id, TaskTrigger::Interrupted, Some(TaskReason::Stopped));
            self.tell_task(task_id, "the work was stopped", TurnCause::Moved);
        }
        Ok(Outcome::Done)
    }

    /// Records what a stop covers. From here on nothing of it is started.
    pub(crate) fn begin_stop(
        &mut self,
        task_id: TaskId,
        root_session_id: Option<SessionId>,
        by: &str,
        sessions: &[SessionId],
    ) {
        let nodes: Vec<StopNode> = sessions
            .iter()
            .filter_map(|id| self.state.sessions.get(id))
            .map(|session| StopNode {
                session_id: session.id,
                run_id: session.open_run.or(session.queue.first().copied()).or(session.last_run),
            })
            .collect();
        if nodes.is_empty() {
            return;
        }
        let scope = self.task_scope(task_id);
        self.emit(
            Aggregate::Task(task_id),
            scope,
            Event::TreeStopRequested { task_id, root_session_id, by: by.to_owned(), nodes },
        );
    }

    /// Asks every run of these sessions to end before it waits for any.
    fn cancel_sessions(&mut self, sessions: &[SessionId], by: &str) {
        let reason = OutcomeReason::StopAsked { by: by.to_owned() };
        let runs: Vec<RunId> = sessions
            .iter()
            .filter_map(|id| self.state.sessions.get(id))
            .flat_map(|session| session.queue.iter().copied().chain(session.open_run))
            .collect();
        for run_id in runs {
            self.cancel_run(run_id, by, &reason);
        }
    }

    /// Whether a session ends with the one above it, which is what those above hear of.
    pub(crate) fn is_below_a_stop(&self, session_id: SessionId) -> bool {
        let task = self.state.sessions.get(&session_id).and_then(|session| session.task_id);
        task.and_then(|id| self.state.tasks.get(&id)).is_some_and(|task| {
            let mut stops = task.stops.iter().filter(|stop| stop.root_session_id != Some(session_id));
            stops.any(|stop| stop.nodes.iter().any(|node| node.session_id == session_id))
        })
    }

    /// Whether the end of a run is told with the whole tree that it belongs to.
    pub(crate) fn is_told_with_its_tree(&self, session_id: SessionId) -> bool {
        let task = self.state.sessions.get(&session_id).and_then(|session| session.task_id);
        task.and_then(|id| self.state.tasks.get(&id)).is_some_and(|task| {
            task.stops.iter().any(|stop| {
                stop.nodes.len() > 1 && stop.nodes.iter().any(|node| node.session_id == session_id)
            })
        })
    }

    /// Tells of a tree once nothing of it works any more.
    pub(crate) fn close_stops(&mut self) -> bool {
        let found = self.state.open_tasks().find_map(|task| {
            let done = |stop: &&TreeStop| {
                stop.nodes.iter().all(|node| tree::is_at_rest(self.state, node.session_id))
            };
            task.stops.iter().find(done).map(|stop| (task.id, stop.clone()))
        });
        let Some((task_id, stop)) = found else { return false };
        let nodes: Vec<StoppedNode> = stop.nodes.iter().map(|node| self.stopped_node(node)).collect();
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for node in &nodes {
            let count = counts.entry(state_word(node.outcome).to_owned()).or_insert(0);
            *count = count.saturating_add(1);
        }
        let scope = self.task_scope(task_id);
        self.emit(
            Aggregate::Task(task_id),
            scope,
            Event::TreeStopped {
                task_id,
                root_session_id: stop.root_session_id,
                by: stop.by.clone(),
                nodes: nodes.clone(),
                counts: counts.clone(),
            },
        );
        self.tell_tree(task_id, &stop, &nodes, &counts);
        true
    }

    fn stopped_node(&self, node: &StopNode) -> StoppedNode {
        let left = self
            .state
            .generations_of(node.session_id)
            .filter_map(|generation| generation.cleaned)
            .fold(0_u32, |sum, cleaned| sum.saturating_add(cleaned.left));
        StoppedNode {
            session_id: node.session_id,
            run_id: node.run_id,
            label: self.state.sessions.get(&node.session_id).map(label_of).unwrap_or_default(),
            outcome: node.run_id.and_then(|id| self.state.runs.get(&id)).and_then(|run| run.outcome),
            left,
        }
    }

    /// One entry for the whole tree. A single run that was ended by it has told its own end.
    fn tell_tree(
        &mut self,
        task_id: TaskId,
        stop: &TreeStop,
        nodes: &[StoppedNode],
        counts: &BTreeMap<String, u32>,
    ) {
        let told = nodes.iter().filter_map(|node| node.run_id).any(|id| {
            self.state.runs.get(&id).and_then(|run| run.ended_at).is_some_and(|at| at >= stop.asked_at)
        });
        if nodes.len() == 1 && (told || stop.root_session_id.is_none()) {
            return;
        }
        let Some(task) = self.state.tasks.get(&task_id) else { return };
        let (room_id, in_reply_to) = (task.origin_room_id, task.origin_message_id);
        let sums: Vec<String> =
            counts.iter().map(|(word, count)| format!("{count} {}", word.replace('_', " "))).collect();
        let lines: Vec<String> = nodes.iter().map(|node| self.node_line(node)).collect();
        let root = stop.root_session_id.map_or_else(|| task_id.to_string(), |id| id.to_string());
        self.post(Post {
            room_id,
            speaker: Voice::System,
            text: format!("{} stopped the work: {}\n{}", stop.by, sums.join(", "), lines.join("\n")),
            source: "system".to_owned(),
            in_reply_to,
            task_id: Some(task_id),
            metadata: json!({
                "taskId": task_id,
                "treeStop": { "rootSessionId": stop.root_session_id, "nodes": nodes, "counts": counts },
            }),
            delivery_key: Some(format!("tree_stop|{root}|{}", stop.asked_at.0)),
            turn: None,
        });
    }

    fn node_line(&self, node: &StoppedNode) -> String {
        let depth = self.state.sessions.get(&node.session_id).map_or(1, |session| session.depth.max(1));
        let indent = "  ".repeat(depth.saturating_sub(1) as usize);
        let run = node.run_id.and_then(|id| self.state.runs.get(&id));
        let kept = match run.filter(|run| run.result.is_some()) {
            Some(run) => format!("; what it said is kept: `rally result get {}`", run.id),
            None => String::new(),
        };
        let left = match node.left {
            0 => String::new(),
            left => format!("; {left} of its processes could not be ended"),
        };
        format!("{indent}- {}: {}{kept}{left}", node.label, state_word(node.outcome).replace('_', " "))
    }
}

fn state_word(outcome: Option<RunOutcome>) -> &'static str {
    outcome.map_or("never_ran", RunOutcome::as_str)
}
