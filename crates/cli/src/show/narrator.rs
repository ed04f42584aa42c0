//! Events told as lines that a person can follow.
//!
//! Only what matters to a reader becomes a line: who began, what they did and said, what was checked and what came of
//! it. An agent's words come in pieces, so they are held until a line of them is whole.

mod reports;
mod updates;

use std::collections::BTreeMap;

use rallypoint_model::agent_io::{AgentOutput, ToolCallView};
use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::ids::{CriterionId, GenerationId, RunId, SessionId};
use rallypoint_model::message::{Message, Speaker};
use rallypoint_model::retention::DeleteMode;
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunPurpose};
use rallypoint_model::session::SessionKind;
use rallypoint_model::task::{Evidence, EvidenceResult};
use rallypoint_model::time::Timestamp;

use crate::duration;
use crate::show::text::{Shown, brief, harmless};
use crate::show::{usage, words};

/// Columns of one line of text; more belongs into the task's log.
const LINE_COLUMNS: usize = 300;
/// Columns of a title that was told in full before.
const TITLE_AGAIN: usize = 60;
/// Lines of a tool's output that a failed call shows.
const TOOL_LINES: usize = 5;

/// One line: when, who, what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: Timestamp,
    pub(crate) who: String,
    pub(crate) text: String,
}

/// What is known of the task so far.
#[derive(Debug, Default)]
pub(crate) struct Narrator {
    labels: BTreeMap<SessionId, String>,
    sessions_of_runs: BTreeMap<RunId, SessionId>,
    sessions_of_generations: BTreeMap<GenerationId, SessionId>,
    criteria: BTreeMap<CriterionId, String>,
    tools: BTreeMap<(GenerationId, String), Tool>,
    speech: BTreeMap<GenerationId, String>,
    last_reply: Option<String>,
    updates: updates::Updates,
}

#[derive(Clone, Debug)]
struct Tool {
    title: String,
    began: Timestamp,
    ended: bool,
}

impl Narrator {
    /// The name of the session that an event concerns.
    pub(crate) fn label(&self, session: SessionId) -> Option<&str> {
        self.labels.get(&session).map(String::as_str)
    }

    /// The session that an agent process belongs to.
    pub(crate) fn session_of(&self, generation: GenerationId) -> Option<SessionId> {
        self.sessions_of_generations.get(&generation).copied()
    }

    /// The main agent's last words that were told.
    pub(crate) fn last_reply(&self) -> Option<&str> {
        self.last_reply.as_deref()
    }

    /// Takes in an event and tells what a reader should know of it.
    pub(crate) fn tell(&mut self, record: &EventRecord) -> Vec<Line> {
        let at = record.at;
        let line = |who: &str, text: String| vec![Line { at, who: who.to_owned(), text }];
        match &record.event {
            Event::TaskCreated { criteria, .. } => {
                self.criteria.extend(criteria.iter().map(|each| (each.id, each.text.clone())));
                Vec::new()
            }
            Event::SessionCreated {
                session_id,
                session_kind: SessionKind::SubAgent,
                launch: Some(launch),
                ..
            } => {
                self.labels.insert(*session_id, brief(&launch.label, 24));
                line(&launch.label, format!("joins as `{}`", launch.profile))
            }
            Event::RunQueued { run_id, session_id, purpose, .. } => {
                self.sessions_of_runs.insert(*run_id, *session_id);
                match (purpose, self.labels.get(session_id)) {
                    (RunPurpose::Goal | RunPurpose::Turn, _) | (_, None) => Vec::new(),
                    (purpose, Some(label)) => line(label, words::purpose(*purpose).to_owned()),
                }
            }
            Event::SessionMailTaken { session_id, keys, run_id: None, why } => {
                let who = self.label(*session_id).unwrap_or("agent").to_owned();
                line(&who, format!("{} messages to it are dropped: {why}", keys.len()))
            }
            Event::SessionEventKept { session_id, event, why, .. } => {
                let who = self.label(*session_id).unwrap_or("agent").to_owned();
                line(&who, format!("`{event}` is told in no room ({})", why.as_str()))
            }
            Event::GenerationStarted { generation_id, session_id, .. } => {
                self.sessions_of_generations.insert(*generation_id, *session_id);
                Vec::new()
            }
            // History that is told again, and conversations of an agent's own helpers, are in the log.
            Event::AgentOutput { replay: true, .. } | Event::AgentOutput { foreign_session: Some(_), .. } => {
                Vec::new()
            }
            Event::AgentOutput { generation_id, output, .. } => self.output(at, *generation_id, output),
            Event::SessionConfigured { session_id, by, .. } => {
                let who = self.label(*session_id).unwrap_or("agent").to_owned();
                line(&who, format!("{by} wants other settings from its next prompt on"))
            }
            Event::GenerationOptionSet { generation_id, problem: Some(problem), .. } => {
                line(&self.who(*generation_id), format!("does not take an option: {problem}"))
            }
            Event::GenerationLoadFailed { generation_id, message } => line(
                &self.who(*generation_id),
                format!("can't open its earlier conversation again: {message}"),
            ),
            Event::SessionToolCalled { generation_id, call, .. } => match words::tool_call(&call.request) {
                Some(text) => line(&self.who(*generation_id), text),
                None => Vec::new(),
            },
            Event::SessionToolAnswered { generation_id, answer, .. } if answer.failed => {
                line(&self.who(*generation_id), format!("is told: {}", brief(&answer.text, LINE_COLUMNS)))
            }
            Event::RunEnded { run_id, outcome, reason, .. } => self.run_ended(at, *run_id, *outcome, reason),
            // The last line of a run, where its agent reports anything.
            Event::RunUsed { run_id, usage: used } => {
                let label = self.sessions_of_runs.get(run_id).and_then(|session| self.labels.get(session));
                match (label, usage::run(used)) {
                    (Some(label), Some(words)) => line(label, format!("used {words}")),
                    _ => Vec::new(),
                }
            }
            Event::QuestionOpened { question, session_id, .. } => {
                let who =
                    session_id.and_then(|session| self.labels.get(&session)).map_or("rally", String::as_str);
                line(who, format!("asks: {}", words::question(question)))
            }
            Event::PermissionDecided { run_id, title, decision, layer, rule, option_kind, .. } => {
                let label = self.sessions_of_runs.get(run_id).and_then(|session| self.labels.get(session));
                let text = words::permission(*decision, rule, layer, title, option_kind.as_deref());
                line(label.map_or("agent", String::as_str), text)
            }
            Event::QuestionClosed { status, answer, by, .. } => {
                let answer =
                    answer.as_ref().map(|answer| format!(", {}", words::answer(answer))).unwrap_or_default();
                line("rally", format!("question {} by {by}{answer}", words::closed(*status)))
            }
            Event::TaskStatusChanged { to, reason, .. } => {
                let reason = reason.map(|reason| format!(": {}", words::reason(reason))).unwrap_or_default();
                line("task", format!("{}{reason}", words::status(*to)))
            }
            Event::TaskVerified { round, evidence, verdict, .. } => {
                let mut lines: Vec<Line> =
                    evidence.iter().flat_map(|each| line("check", self.checked(each))).collect();
                lines.extend(line("check", format!("round {round}: {}", words::verdict(*verdict))));
                lines
            }
            Event::TaskStopRequested { by, .. } => line("task", format!("{by} asked to stop it")),
            Event::TreeStopRequested { by, nodes, root_session_id: Some(_), .. } => {
                line("task", format!("{by} asked to stop {} of its sub-agents", nodes.len()))
            }
            Event::TreeStopRequested { .. } => Vec::new(),
            Event::TreeStopped { counts, .. } => {
                let sums: Vec<String> = counts
                    .iter()
                    .map(|(word, count)| format!("{count} {}", word.replace('_', " ")))
                    .collect();
                line("task", format!("the stop is complete: {}", sums.join(", ")))
            }
            Event::TaskOverridden { passed, by, reason, .. } => {
                let word = if *passed { "accepted" } else { "rejected" };
                line("task", format!("{word} by {by}: {reason}"))
            }
            Event::TaskPaused(paused) => line("task", format!("paused by {}", paused.by)),
            Event::TaskResumed(resumed) => line("task", format!("resumed by {}", resumed.by)),
            Event::TaskReopened(reopened) => line("task", format!("opened again by {}", reopened.by)),
            Event::TaskPatched(patched) => line("task", format!("changed by {}", patched.by)),
            Event::TaskPlanRevised(revised) => line("task", format!("has a plan by {}", revised.revision.by)),
            Event::TaskRestarted(restarted) => line("task", format!("begun again by {}", restarted.by)),
            Event::TaskArchived { by, .. } => line("task", format!("archived by {by}")),
            Event::TaskUnarchived { by, .. } => line("task", format!("brought back by {by}")),
            Event::TaskDeleted { mode: DeleteMode::Preserve, by, .. } => {
                line("task", format!("deleted by {by}; its journal is kept"))
            }
            Event::TaskDeleted { mode: DeleteMode::Purge, by, .. } => {
                line("task", format!("deleted by {by}; its content is gone"))
            }
            Event::TaskResultsRemoved { digests, .. } => {
                line("task", format!("{} full outputs were removed, their time is over", digests.len()))
            }
            Event::GenerationNoted { note, detail, .. } if note == "spool_unreadable" => {
                line("rally", format!("can't read on what its agent says, which is kept: {detail}"))
            }
            Event::MessagePosted { message, .. } => self.message(at, message),
            Event::DeliveryMoved(moved) => match words::delivery(moved) {
                Some(text) => line("channel", text),
                None => Vec::new(),
            },
            Event::TurnActionDone { problem: Some(problem), .. } => {
                line("rally", format!("could not act: {problem}"))
            }
            Event::RunSuspected { run_id, .. } => {
                let label = self.sessions_of_runs.get(run_id).and_then(|session| self.labels.get(session));
                line(
                    label.map_or("agent", String::as_str),
                    "has been silent for long; it may still finish".to_owned(),
                )
            }
            Event::GenerationCleaned { left, .. } if *left > 0 => {
                line("rally", format!("{left} processes of an agent could not be ended"))
            }
            Event::GenerationCleaned { .. }
            | Event::TurnActionDone { .. }
            | Event::SessionCreated { .. }
            | Event::SessionOffered { .. }
            | Event::SessionMailReceived { .. }
            | Event::SessionMailTaken { .. }
            | Event::WorldOpened { .. }
            | Event::ClockShifted { .. }
            | Event::RoomCreated { .. }
            | Event::RoomReset { .. }
            | Event::DeliveryQueued(_)
            | Event::DeliveryExtended { .. }
            | Event::ProgressModeSet(_)
            | Event::ProgressOffered(_)
            | Event::ProgressSettled(_)
            | Event::MidTurnMoved(_)
            | Event::ResultRerouted { .. }
            | Event::TriggerRefused { .. }
            | Event::RunMoved { .. }
            | Event::RunAnswered { .. }
            | Event::RunCounted { .. }
            | Event::RunCancelRequested { .. }
            | Event::RunReassured { .. }
            | Event::QuestionExtended { .. }
            | Event::GenerationToolsConnected { .. }
            | Event::SessionToolAnswered { .. }
            | Event::GenerationMoved { .. }
            | Event::GenerationInitialized { .. }
            | Event::GenerationOpened { .. }
            | Event::GenerationInput { .. }
            | Event::GenerationInputAccepted { .. }
            | Event::GenerationOptionSet { .. }
            | Event::GenerationNoted { .. }
            | Event::GenerationEnded { .. }
            | Event::TurnPlanned { .. } => Vec::new(),
        }
    }

    fn message(&mut self, at: Timestamp, message: &Message) -> Vec<Line> {
        match message.speaker {
            // A person's own words, what a sub-agent brings and what the system notes: each was told when it happened.
            Speaker::User | Speaker::SubAgent | Speaker::System => Vec::new(),
            Speaker::MainAgent => {
                self.last_reply = Some(message.text.clone());
                text_lines(at, &message.name, &message.text)
            }
        }
    }

    fn output(&mut self, at: Timestamp, generation: GenerationId, output: &AgentOutput) -> Vec<Line> {
        match output {
            AgentOutput::Message { text } => self.said(at, generation, text),
            AgentOutput::ToolCall { call } | AgentOutput::ToolCallUpdate { call } => {
                let mut lines = self.finish_speech(at, generation);
                lines.extend(self.tool(at, generation, call));
                lines
            }
            output => {
                let who = self.who(generation);
                let told = self.updates.tell(generation, output);
                told.into_iter().map(|text| Line { at, who: who.clone(), text }).collect()
            }
        }
    }

    fn who(&self, generation: GenerationId) -> String {
        let label = self.session_of(generation).and_then(|session| self.label(session));
        label.unwrap_or("agent").to_owned()
    }

    /// Whole lines of what was said so far; the rest is held until it is whole too.
    fn said(&mut self, at: Timestamp, generation: GenerationId, text: &str) -> Vec<Line> {
        let held = self.speech.entry(generation).or_default();
        held.push_str(text);
        let end = held.rfind('\n').map_or(0, |end| end + 1);
        let end = reports::open_block(held).map_or(end, |begin| begin.min(end));
        let rest = held.split_off(end);
        let whole = std::mem::replace(held, rest);
        text_lines(at, &self.who(generation), &reports::without(&whole))
    }

    fn finish_speech(&mut self, at: Timestamp, generation: GenerationId) -> Vec<Line> {
        match self.speech.remove(&generation) {
            Some(rest) => text_lines(at, &self.who(generation), &reports::without(&rest)),
            None => Vec::new(),
        }
    }

    fn tool(&mut self, at: Timestamp, generation: GenerationId, call: &ToolCallView) -> Vec<Line> {
        let who = self.who(generation);
        let key = (generation, call.tool_call_id.clone());
        let mut lines = Vec::new();
        let tool =
            self.tools.entry(key).or_insert_with(|| Tool { title: String::new(), began: at, ended: false });
        let title = call.title.as_deref().map(|title| tool_title(title, call.tool_kind.as_deref()));
        if let Some(title) = title.filter(|title| !title.is_empty() && *title != tool.title) {
            // An agent that learns more about its call while it goes on repeats it; once is enough.
            if tool.title.is_empty() {
                lines.push(Line { at, who: who.clone(), text: format!("▸ {title}") });
            }
            tool.title = title;
        }
        let ended = matches!(call.status.as_deref(), Some("completed" | "failed"));
        if ended && !tool.ended {
            tool.ended = true;
            let took = duration::words(at.since(tool.began));
            let failed = call.status.as_deref() == Some("failed");
            let word = if failed { "failed" } else { "finished" };
            lines.push(Line {
                at,
                who: who.clone(),
                text: format!("{word} after {took}: {}", brief(&tool.title, TITLE_AGAIN)),
            });
            if failed {
                lines.extend(tail_lines(at, &who, call.text.as_deref().unwrap_or_default()));
            }
        }
        lines
    }

    fn run_ended(
        &mut self,
        at: Timestamp,
        run: RunId,
        outcome: RunOutcome,
        reason: &OutcomeReason,
    ) -> Vec<Line> {
        let Some(session) = self.sessions_of_runs.get(&run).copied() else {
            return Vec::new();
        };
        let Some(label) = self.labels.get(&session).cloned() else {
            return Vec::new();
        };
        let generations: Vec<GenerationId> = self
            .sessions_of_generations
            .iter()
            .filter(|(_, of)| **of == session)
            .map(|(id, _)| *id)
            .collect();
        let mut lines: Vec<Line> =
            generations.into_iter().flat_map(|generation| self.finish_speech(at, generation)).collect();
        let text = match outcome {
            RunOutcome::Completed => "says that it is finished".to_owned(),
            outcome => format!("{}: {}", words::outcome(outcome), reason.words()),
        };
        lines.extend(text_lines(at, &label, &text));
        lines
    }

    fn checked(&self, evidence: &Evidence) -> String {
        let what = match evidence.procedure.as_str() {
            "" => self.criteria.get(&evidence.criterion_id).map_or("", String::as_str),
            procedure => procedure,
        };
        let took = duration::words(evidence.ended_at.since(evidence.started_at));
        let exit = evidence.exit_code.map(|code| format!("exit {code}, ")).unwrap_or_default();
        let mut text = format!("{}: {} ({exit}{took})", words::result(evidence.result), brief(what, 120));
        if evidence.result != EvidenceResult::Passed && !evidence.detail.trim().is_empty() {
            let last = evidence.detail.trim().lines().next_back().unwrap_or_default();
            text.push_str(": ");
            text.push_str(last);
        }
        text
    }
}

fn tool_title(title: &str, kind: Option<&str>) -> String {
    let title = brief(title, LINE_COLUMNS);
    match kind {
        Some("execute") if !title.starts_with("$ ") => format!("$ {}", title.trim_matches('`')),
        _ => title,
    }
}

fn text_lines(at: Timestamp, who: &str, text: &str) -> Vec<Line> {
    harmless(text, Shown::Whole)
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .map(|line| Line { at, who: who.to_owned(), text: line.to_owned() })
        .collect()
}

fn tail_lines(at: Timestamp, who: &str, text: &str) -> Vec<Line> {
    let mut lines = text_lines(at, who, text);
    lines.drain(..lines.len().saturating_sub(TOOL_LINES));
    for line in &mut lines {
        line.text = format!("  {}", brief(&line.text, LINE_COLUMNS));
    }
    lines
}

#[cfg(test)]
mod tests;
