//! Facts of agent processes and of what they put out.

use rallypoint_model::agent_io::{AgentInput, AgentOutput};
use rallypoint_model::agent_offer::AgentCapabilities;
use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::session::{GenerationStatus, SpoolCursor};

use super::native;
use crate::changes::{Changes, RowRef};
use crate::settings::{is_needed, set_by};
use crate::state::{Cleaned, Generation, InputEntry, InputKind, PromptProgress, Run, SetValue, State};

pub(super) fn generation_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    match &record.event {
        Event::GenerationStarted { generation_id, session_id, run_id } => {
            state.generations.insert(
                *generation_id,
                Generation {
                    id: *generation_id,
                    session_id: *session_id,
                    run_id: *run_id,
                    status: GenerationStatus::Launching,
                    started_at: record.at,
                    agent_session_id: None,
                    inputs: Vec::new(),
                    end: None,
                    cleaned: None,
                    seen_requests: std::collections::BTreeSet::new(),
                    capabilities: AgentCapabilities::default(),
                    set: Vec::new(),
                    tools: None,
                    tool_calls: Vec::new(),
                    junk_lines: 0,
                    stderr_tail: String::new(),
                    cursor: SpoolCursor::default(),
                    last_report_at: record.at,
                },
            );
            if let Some(session) = state.sessions.get_mut(session_id) {
                session.generation_id = Some(*generation_id);
                changes.touch(RowRef::Session(*session_id));
            }
            if let Some(run) = state.runs.get_mut(run_id) {
                run.attempts = run.attempts.saturating_add(1);
                changes.touch(RowRef::Run(*run_id));
            }
            changes.touch(RowRef::Generation(*generation_id));
        }
        Event::GenerationMoved { generation_id, status } => {
            if let Some(generation) = state.generations.get_mut(generation_id) {
                generation.status = *status;
                changes.touch(RowRef::Generation(*generation_id));
            }
        }
        Event::GenerationOpened { generation_id, agent_session_id } => {
            if let Some(generation) = state.generations.get_mut(generation_id) {
                generation.agent_session_id = Some(agent_session_id.clone());
                generation.status = GenerationStatus::Ready;
                changes.touch(RowRef::Generation(*generation_id));
                if let Some(session) = state.sessions.get_mut(&generation.session_id) {
                    session.agent_session_id = Some(agent_session_id.clone());
                    changes.touch(RowRef::Session(session.id));
                }
            }
        }
        Event::GenerationInitialized { generation_id, load_session, capabilities, .. } => {
            let Some(generation) = state.generations.get_mut(generation_id) else {
                return;
            };
            // The journal has the raw answer; nothing is decided by it.
            generation.capabilities =
                AgentCapabilities { raw: serde_json::Value::Null, ..capabilities.clone() };
            changes.touch(RowRef::Generation(*generation_id));
            if let Some(session) = state.sessions.get_mut(&generation.session_id) {
                session.can_load = *load_session;
                session.can_resume = capabilities.resume;
                changes.touch(RowRef::Session(session.id));
            }
        }
        Event::GenerationLoadFailed { generation_id, .. } => {
            let session_id = state.generations.get(generation_id).map(|generation| generation.session_id);
            if let Some(session) = session_id.and_then(|id| state.sessions.get_mut(&id)) {
                session.agent_session_id = None;
                changes.touch(RowRef::Session(session.id));
            }
        }
        Event::GenerationInput { generation_id, seq, input, run_id } => {
            let Some(generation) = state.generations.get_mut(generation_id) else {
                return;
            };
            generation.inputs.push(InputEntry {
                seq: *seq,
                kind: kind_of(input),
                input: Some(input.clone()),
                run_id: *run_id,
                accepted: false,
                answered: false,
                setting_id: set_by(input).map(|(key, _)| key),
            });
            if let Some((key, value)) = set_by(input) {
                generation.set.retain(|each| each.setting_id != key);
                generation.set.push(SetValue { setting_id: key, value: value.to_owned() });
            }
            match input {
                AgentInput::AnswerPermission { request_id, .. }
                | AgentInput::AnswerElicitation { request_id, .. }
                | AgentInput::ServeFile { request_id, .. }
                | AgentInput::RefuseMethod { request_id, .. } => {
                    generation.seen_requests.insert(request_id.clone());
                }
                _ => {}
            }
            changes.touch(RowRef::Generation(*generation_id));
            if matches!(input, AgentInput::Prompt { .. })
                && let Some(run) = run_id.and_then(|id| state.runs.get_mut(&id))
            {
                run.prompt = PromptProgress::Journalled;
                run.generation_id = Some(*generation_id);
                run.input_seq = Some(*seq);
                changes.touch(RowRef::Run(run.id));
            }
        }
        Event::GenerationInputAccepted { generation_id, seq } => {
            let Some(generation) = state.generations.get_mut(generation_id) else {
                return;
            };
            let mut prompt_of = None;
            for entry in &mut generation.inputs {
                if entry.seq == *seq {
                    entry.accepted = true;
                    entry.input = None;
                    if entry.kind == InputKind::Prompt {
                        prompt_of = entry.run_id;
                    }
                }
            }
            changes.touch(RowRef::Generation(*generation_id));
            if let Some(run) = prompt_of.and_then(|id| state.runs.get_mut(&id))
                && run.prompt == PromptProgress::Journalled
            {
                run.prompt = PromptProgress::Accepted;
                changes.touch(RowRef::Run(run.id));
            }
        }
        Event::GenerationNoted { generation_id, note, count, .. } => {
            if note == "junk"
                && let Some(generation) = state.generations.get_mut(generation_id)
            {
                generation.junk_lines = generation.junk_lines.saturating_add(*count);
                changes.touch(RowRef::Generation(*generation_id));
            }
        }
        Event::GenerationOptionSet { generation_id, seq, problem } => {
            if let Some(generation) = state.generations.get_mut(generation_id) {
                let mut key = None;
                for entry in generation.inputs.iter_mut().filter(|entry| entry.seq == *seq) {
                    entry.answered = true;
                    key.clone_from(&entry.setting_id);
                }
                // What a run can do without stays noted when refused, or it would be said before each prompt again.
                let needed = state.sessions.get(&generation.session_id).is_some_and(|session| {
                    let offer = session.offer.clone().unwrap_or_default();
                    let key = key.as_deref().unwrap_or_default();
                    session.launch.as_ref().is_some_and(|launch| is_needed(&launch.wanted, &offer, key))
                });
                if let Some(key) = key.filter(|_| needed && problem.is_some()) {
                    generation.set.retain(|each| each.setting_id != key);
                }
                changes.touch(RowRef::Generation(*generation_id));
            }
        }
        Event::GenerationEnded { generation_id, end } => {
            let Some(generation) = state.generations.get_mut(generation_id) else {
                return;
            };
            generation.status = GenerationStatus::Ended;
            generation.end = Some(end.clone());
            changes.touch(RowRef::Generation(*generation_id));
            if let Some(session) = state.sessions.get_mut(&generation.session_id)
                && session.generation_id == Some(*generation_id)
            {
                session.generation_id = None;
                native::process_ended(session);
                changes.touch(RowRef::Session(session.id));
            }
        }
        Event::GenerationCleaned { generation_id, swept, left } => {
            if let Some(generation) = state.generations.get_mut(generation_id) {
                generation.cleaned = Some(Cleaned { swept: *swept, left: *left });
                changes.touch(RowRef::Generation(*generation_id));
            }
        }
        Event::AgentOutput { generation_id, output: AgentOutput::NativeAgent { update }, .. } => {
            let session_id = state.generations.get(generation_id).map(|generation| generation.session_id);
            if let Some(session) = session_id.and_then(|id| state.sessions.get_mut(&id)) {
                native::take(session, update, changes);
            }
        }
        Event::AgentOutput { foreign_session: Some(_), .. } => {}
        Event::AgentOutput { last_frame, late, output, .. } => {
            let Some(run) = record.scope.run_id.and_then(|id| state.runs.get_mut(&id)) else {
                return;
            };
            if *late || !run.is_open() {
                return;
            }
            // Text alone does not rewrite the run's row: the journal holds it.
            hear(run, *last_frame, output, changes);
            // Not in `hear`: the row has this number, which is not counted again when the words are read again.
            if matches!(output, AgentOutput::ToolCall { .. }) {
                run.tools = run.tools.saturating_add(1);
                changes.touch(RowRef::Run(run.id));
            }
        }
        _ => {}
    }
}

/// Takes an output into what a run has said and what tools are at work.
pub fn hear(run: &mut Run, last_frame: u64, output: &AgentOutput, changes: &mut Changes) {
    run.said.last_frame = run.said.last_frame.max(last_frame);
    if run.prompt == PromptProgress::Accepted {
        run.prompt = PromptProgress::Seen;
        changes.touch(RowRef::Run(run.id));
    }
    match output {
        AgentOutput::Message { text } => run.said.text.push_str(text),
        AgentOutput::ToolCall { call } | AgentOutput::ToolCallUpdate { call } => {
            if !run.said.text.is_empty() && run.said.last_stretch != run.said.text.len() {
                if !run.said.text.ends_with('\n') {
                    run.said.text.push('\n');
                }
                run.said.last_stretch = run.said.text.len();
            }
            let was = run.open_tools.clone();
            match call.status.as_deref() {
                Some("completed" | "failed") => {
                    run.open_tools.remove(&call.tool_call_id);
                }
                _ => {
                    let title = call.title.clone().or_else(|| call.tool_kind.clone());
                    let known = run.open_tools.get(&call.tool_call_id).cloned();
                    let title = title.or(known).unwrap_or_else(|| call.tool_call_id.clone());
                    if matches!(call.status.as_deref(), Some("pending" | "in_progress"))
                        || matches!(output, AgentOutput::ToolCall { .. })
                    {
                        run.open_tools.insert(call.tool_call_id.clone(), title);
                    }
                }
            }
            if was != run.open_tools {
                changes.touch(RowRef::Run(run.id));
            }
        }
        AgentOutput::Usage { raw } => {
            if crate::usage::note(&mut run.noted, raw) {
                changes.touch(RowRef::Run(run.id));
            }
        }
        AgentOutput::Thought { .. }
        | AgentOutput::Plan { .. }
        | AgentOutput::PlanRemoved { .. }
        | AgentOutput::UserMessage { .. }
        | AgentOutput::Notice { .. }
        | AgentOutput::Compaction { .. }
        | AgentOutput::CompactionSummary { .. }
        | AgentOutput::NativeAgent { .. }
        | AgentOutput::SessionMessage { .. }
        | AgentOutput::Mode { .. }
        | AgentOutput::Title { .. }
        | AgentOutput::Commands { .. }
        | AgentOutput::Other { .. } => {}
    }
}

fn kind_of(input: &AgentInput) -> InputKind {
    match input {
        AgentInput::Initialize => InputKind::Initialize,
        AgentInput::NewSession { .. } => InputKind::NewSession,
        // One without history is answered, and fails, in the same way.
        AgentInput::LoadSession { .. } | AgentInput::ResumeSession { .. } => InputKind::LoadSession,
        AgentInput::CloseSession { .. } => InputKind::Close,
        AgentInput::Prompt { .. } => InputKind::Prompt,
        AgentInput::Steer { .. } => InputKind::Steer,
        AgentInput::Cancel { .. }
        | AgentInput::AnswerPermission { .. }
        | AgentInput::AnswerElicitation { .. }
        | AgentInput::ServeFile { .. }
        | AgentInput::RefuseMethod { .. } => InputKind::Other,
        AgentInput::Authenticate { .. } => InputKind::Authenticate,
        AgentInput::SetConfigOption { .. } | AgentInput::SetMode { .. } | AgentInput::SetModel { .. } => {
            InputKind::Option
        }
    }
}
