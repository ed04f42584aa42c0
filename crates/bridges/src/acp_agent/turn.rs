//! One prompt of an editor: begun as work of the daemon, followed to its end, permissions asked on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rallypoint_acp::agent_side::{Cancel, PromptEnd, Turn};
use rallypoint_acp::rpc::{AUTH_REQUIRED, INTERNAL_ERROR, RpcError};
use rallypoint_client::ClientError;
use rallypoint_model::agent_io::AgentOutput;
use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::ids::{QuestionId, SessionId, TaskId};
use rallypoint_model::question::{Answer, ApprovalOption, QuestionKind};
use rallypoint_model::run::{OutcomeReason, RunOutcome};
use rallypoint_model::session::SessionKind;
use rallypoint_model::task::{EvidenceResult, TaskStatus};
use rallypoint_ops::types::{
    AnswerInput, CreateTaskInput, Empty, EventPage, EventsInput, QuestionView, RetryTaskInput, TaskRef,
    TaskView,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::updates::{self, Told, call_id};
use super::{Rallypoint, refused};

/// How often it is looked whether the editor has cancelled.
const CANCEL_CHECK: Duration = Duration::from_millis(20);
/// Silence after which the task is looked at anyway.
const LOOK_AFTER: Duration = Duration::from_secs(2);
/// Events that were read and not passed on yet.
const FORWARDED: usize = 64;
/// Events read at once.
const PAGE: u32 = 500;

/// Works on a prompt until nothing more happens by itself.
pub(super) async fn carry_out(agent: &Rallypoint, turn: &Turn, words: &str) -> Result<PromptEnd, RpcError> {
    let (task_id, after) = begin(agent, turn, words).await.map_err(refused)?;
    agent.state().open.insert(task_id);
    let (sender, choices) = unbounded_channel();
    let mut following = Following {
        agent,
        turn,
        task_id,
        last: after,
        main: None,
        shows_sub_agents: agent.state().shows_sub_agents,
        told: Told::default(),
        children: BTreeSet::new(),
        calls: BTreeMap::new(),
        asked: BTreeMap::new(),
        stop_asked: false,
        sender,
    };
    let settled = following.followed_to_the_end(choices).await;
    for cancel in following.asked.values() {
        cancel.set();
    }
    let last = following.last;
    let mut state = agent.state();
    state.open.remove(&task_id);
    if let Some(talk) = state.talks.get_mut(&turn.session.session_id) {
        talk.after = talk.after.max(last);
    }
    drop(state);
    let view = settled.map_err(refused)?;
    following.end(&view)
}

/// Begins the work: an answer to what the last task asks, one more run of it, or another task.
async fn begin(agent: &Rallypoint, turn: &Turn, words: &str) -> Result<(TaskId, i64), ClientError> {
    let session = &turn.session;
    let talk = agent.state().talks.get(&session.session_id).copied().unwrap_or_default();
    if let Some(task_id) = talk.task {
        let view: TaskView = agent.call("task.get", &TaskRef { task_id }).await?;
        let after = if talk.after > 0 { talk.after } else { last_event(agent, task_id).await? };
        if go_on(agent, &view, words).await? {
            return Ok((task_id, after));
        }
    }
    let input = CreateTaskInput {
        goal: words.to_owned(),
        cwd: Some(session.cwd.display().to_string()),
        room_id: session.session_id.parse().ok(),
        idempotency_key: Some(uuid::Uuid::new_v4().to_string()),
        ..agent.shared.daemon.request.clone()
    };
    let view: TaskView = agent.call("task.create", &input).await?;
    let mut state = agent.state();
    let talk = state.talks.entry(session.session_id.clone()).or_default();
    (talk.task, talk.after) = (Some(view.task_id), 0);
    Ok((view.task_id, 0))
}

/// Says the words to the last task, if it can take them.
async fn go_on(agent: &Rallypoint, view: &TaskView, words: &str) -> Result<bool, ClientError> {
    let by = agent.shared.daemon.request.requested_by.clone();
    if let Some(question) = view.open_questions.iter().find(|open| is_in_words(open)) {
        let answer = Answer::Text { text: words.to_owned() };
        let input = AnswerInput { question_id: question.question_id, answer, by, agent: None };
        let Empty {} = agent.call("question.answer", &input).await?;
        return Ok(true);
    }
    if !view.sessions.first().is_some_and(|session| session.can_go_on) {
        return Ok(false);
    }
    let input = RetryTaskInput {
        task_id: view.task_id,
        text: Some(words.to_owned()),
        environment: agent.shared.daemon.request.environment.clone(),
        by,
    };
    match agent.call::<_, TaskView>("task.retry", &input).await {
        Ok(_) => Ok(true),
        // It is in another state by now, or may use no more.
        Err(ClientError::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_in_words(open: &QuestionView) -> bool {
    matches!(open.question, QuestionKind::Ask { .. })
}

/// Number of the last event of a task.
async fn last_event(agent: &Rallypoint, task_id: TaskId) -> Result<i64, ClientError> {
    let mut after = 0;
    loop {
        let page = page(agent, task_id, after).await?;
        let seq = page.items.last().and_then(|item| item.get("seq")).and_then(Value::as_i64);
        after = seq.unwrap_or(after);
        if page.next_after.is_none() || page.items.is_empty() {
            return Ok(after);
        }
    }
}

async fn page(agent: &Rallypoint, task_id: TaskId, after: i64) -> Result<EventPage, ClientError> {
    let input =
        EventsInput { task_id: Some(task_id), after: Some(after), limit: Some(PAGE), ..Default::default() };
    agent.call("event.list", &input).await
}

/// What the editor chose: the option, or nothing.
type Choice = (QuestionId, Option<String>);

struct Following<'a> {
    agent: &'a Rallypoint,
    turn: &'a Turn,
    task_id: TaskId,
    /// Last event that was passed on.
    last: i64,
    /// The session that the editor takes for the agent itself.
    main: Option<SessionId>,
    shows_sub_agents: bool,
    told: Told,
    /// Sub-agents that were announced.
    children: BTreeSet<SessionId>,
    /// Ids of tool calls by who makes them and what they are called: a permission names no call.
    calls: BTreeMap<(SessionId, String), String>,
    /// Permissions that the editor is asked for.
    asked: BTreeMap<QuestionId, Cancel>,
    stop_asked: bool,
    sender: UnboundedSender<Choice>,
}

impl Following<'_> {
    async fn followed_to_the_end(
        &mut self,
        mut choices: UnboundedReceiver<Choice>,
    ) -> Result<TaskView, ClientError> {
        let input = EventsInput { task_id: Some(self.task_id), after: Some(self.last), ..Default::default() };
        let hook = (self.agent.shared.daemon.reconnect)();
        let mut stream = self.agent.client().follow(input).on_reconnect(hook);
        // Read by a task of its own: a stream that is dropped in the middle of connecting begins anew, and the checks
        // for a cancel would drop it again and again on a busy machine.
        let (forward, mut records) = channel(FORWARDED);
        let reading = tokio::spawn(async move {
            loop {
                let record = stream.next().await;
                let is_last = record.is_err();
                if forward.send(record).await.is_err() || is_last {
                    return;
                }
            }
        });
        let settled = self.follow(&mut records, &mut choices).await;
        reading.abort();
        settled
    }

    async fn follow(
        &mut self,
        records: &mut Receiver<Result<EventRecord, ClientError>>,
        choices: &mut UnboundedReceiver<Choice>,
    ) -> Result<TaskView, ClientError> {
        let mut cancel_check = interval(CANCEL_CHECK);
        cancel_check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let first: TaskView = self.agent.call("task.get", &TaskRef { task_id: self.task_id }).await?;
        if self.last > 0 {
            self.main = first.sessions.first().map(|session| session.session_id);
        }
        // Made anew only by an event: a check for a cancel is no news.
        let mut silence = Box::pin(sleep(LOOK_AFTER));
        loop {
            let look = tokio::select! {
                Some(record) = records.recv() => {
                    silence.set(sleep(LOOK_AFTER));
                    self.show(&record?)
                }
                Some(choice) = choices.recv() => {
                    self.chosen(choice).await?;
                    false
                }
                () = &mut silence => {
                    silence.set(sleep(LOOK_AFTER));
                    true
                }
                _ = cancel_check.tick() => {
                    self.cancel_if_asked().await?;
                    false
                }
            };
            if look && let Some(view) = self.look().await? {
                return Ok(view);
            }
        }
    }

    async fn cancel_if_asked(&mut self) -> Result<(), ClientError> {
        if self.stop_asked || !(self.turn.cancel.is_set() || self.turn.client.is_gone()) {
            return Ok(());
        }
        self.stop_asked = true;
        match self.agent.stop(self.task_id).await {
            // It has ended by itself.
            Ok(_) | Err(ClientError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The task, when nothing more happens by itself and the editor is asked nothing.
    async fn look(&mut self) -> Result<Option<TaskView>, ClientError> {
        let view: TaskView = self.agent.call("task.get", &TaskRef { task_id: self.task_id }).await?;
        let asks = |open: &QuestionView| matches!(open.question, QuestionKind::Approval { .. });
        if !view.settled || view.open_questions.iter().any(asks) {
            return Ok(None);
        }
        // What was committed before that look has not all come over the stream.
        loop {
            let page = page(self.agent, self.task_id, self.last).await?;
            let more = page.next_after.is_some() && !page.items.is_empty();
            for item in page.items {
                let record: EventRecord = serde_json::from_value(item).map_err(|error| {
                    ClientError::Protocol(format!("an event has an unknown form: {error}"))
                })?;
                self.show(&record);
            }
            if !more {
                return Ok(Some(view));
            }
        }
    }

    /// Passes an event on, and says whether it may be the last one.
    fn show(&mut self, record: &EventRecord) -> bool {
        if record.seq <= self.last {
            return false;
        }
        self.last = record.seq;
        match &record.event {
            Event::SessionCreated { session_id, session_kind: SessionKind::SubAgent, launch, .. } => {
                if self.main.is_none() {
                    self.main = Some(*session_id);
                } else {
                    let label = launch.as_ref().map(|launch| launch.label.clone()).unwrap_or_default();
                    self.begin_child(*session_id, &label);
                }
                false
            }
            Event::AgentOutput { replay: false, foreign_session, output, .. } => {
                if let Some(session_id) = record.scope.session_id {
                    let run = record.scope.run_id.map(|id| id.to_string()).unwrap_or_default();
                    self.output(session_id, &run, foreign_session.as_deref(), output);
                }
                false
            }
            Event::QuestionOpened { question_id, question, session_id, .. } => {
                if let QuestionKind::Approval { title, tool_kind, options, .. } = question {
                    self.ask(*question_id, session_id.or(self.main), title, tool_kind, options);
                }
                true
            }
            Event::QuestionClosed { question_id, .. } => {
                if let Some(cancel) = self.asked.remove(question_id) {
                    cancel.set();
                }
                true
            }
            Event::RunEnded { outcome, summary, .. } => {
                if let Some(child) = record.scope.session_id.filter(|id| self.children.contains(id)) {
                    self.end_child(child, *outcome, summary);
                }
                true
            }
            event => matches!(
                event,
                Event::TaskStatusChanged { .. }
                    | Event::TaskVerified { .. }
                    | Event::TaskOverridden { .. }
                    | Event::TurnActionDone { .. }
                    | Event::RunMoved { .. }
                    | Event::GenerationEnded { .. }
                    | Event::GenerationCleaned { .. }
            ),
        }
    }

    fn output(&mut self, session_id: SessionId, run: &str, foreign: Option<&str>, output: &AgentOutput) {
        let is_main = self.main == Some(session_id);
        if let AgentOutput::NativeAgent { update } = output {
            if self.shows_sub_agents {
                self.send(&self.whose(session_id), updates::helper(update));
            }
            return;
        }
        if let AgentOutput::ToolCall { call } | AgentOutput::ToolCallUpdate { call } = output
            && let Some(title) = &call.title
        {
            self.calls.insert((session_id, title.clone()), call_id(run, &call.tool_call_id));
        }
        // Whoever shows no sub-agents sees of them that they work, and what it came to.
        if (!is_main || foreign.is_some()) && !self.shows_sub_agents {
            return;
        }
        let whose = foreign.map_or_else(|| self.whose(session_id), str::to_owned);
        if let Some(update) = self.told.update(run, output) {
            self.send(&whose, update);
        }
    }

    /// Under which session of the editor a session of ours is shown.
    fn whose(&self, session_id: SessionId) -> String {
        if self.main == Some(session_id) || !self.shows_sub_agents {
            self.turn.session.session_id.clone()
        } else {
            session_id.to_string()
        }
    }

    fn send(&self, session_id: &str, update: Value) {
        self.turn.client.notify("session/update", json!({"sessionId": session_id, "update": update}));
    }

    fn begin_child(&mut self, child: SessionId, label: &str) {
        self.children.insert(child);
        let update = if self.shows_sub_agents {
            updates::sub_agent(&child.to_string(), Some(label), None)
        } else {
            json!({"sessionUpdate": "tool_call", "toolCallId": child.to_string(), "kind": "other",
                "title": format!("Sub-agent {label}"), "status": "in_progress"})
        };
        self.turn.send_update(update);
    }

    fn end_child(&self, child: SessionId, outcome: RunOutcome, summary: &str) {
        let went_well = outcome == RunOutcome::Completed;
        let update = if self.shows_sub_agents {
            let reason = if outcome == RunOutcome::Cancelled { "cancelled" } else { "end_turn" };
            updates::sub_agent(&child.to_string(), None, Some(reason))
        } else {
            json!({"sessionUpdate": "tool_call_update", "toolCallId": child.to_string(),
                "status": if went_well { "completed" } else { "failed" },
                "content": [{"type": "content", "content": {"type": "text", "text": summary}}]})
        };
        self.turn.send_update(update);
    }

    /// Asks the editor, on a thread of its own.
    fn ask(
        &mut self,
        question_id: QuestionId,
        of: Option<SessionId>,
        title: &str,
        tool_kind: &str,
        options: &[ApprovalOption],
    ) {
        let call = of.and_then(|of| self.calls.get(&(of, title.to_owned())).cloned());
        let options: Vec<Value> = options
            .iter()
            .map(|option| json!({"optionId": option.option_id, "name": option.name, "kind": option.kind}))
            .collect();
        let params = json!({
            "sessionId": of.map_or_else(|| self.turn.session.session_id.clone(), |of| self.whose(of)),
            "toolCall": {
                "toolCallId": call.unwrap_or_else(|| question_id.to_string()),
                "title": title, "kind": updates::tool_kind(tool_kind), "status": "pending",
            },
            "options": options,
        });
        let cancel = Cancel::default();
        self.asked.insert(question_id, cancel.clone());
        let (editor, sender) = (self.turn.client.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            // Nothing when the question was closed elsewhere, or the turn has ended.
            let Some(answer) = editor.request_until("session/request_permission", params, &cancel) else {
                return;
            };
            let chosen = answer.ok().and_then(|answer| {
                let outcome = answer.get("outcome")?;
                let selected = outcome.get("outcome").and_then(Value::as_str) == Some("selected");
                outcome.get("optionId").and_then(Value::as_str).filter(|_| selected).map(str::to_owned)
            });
            // Nobody waits for it once the turn has ended.
            let _late = sender.send((question_id, chosen));
        });
    }

    async fn chosen(&mut self, (question_id, option_id): Choice) -> Result<(), ClientError> {
        if self.asked.remove(&question_id).is_none() {
            return Ok(());
        }
        // A turn that is cancelled takes its questions back by itself.
        if option_id.is_none() && (self.turn.cancel.is_set() || self.stop_asked) {
            return Ok(());
        }
        let answer = match option_id {
            Some(option_id) => Answer::Option { option_id },
            None => Answer::Decline { reason: "the editor made no choice".to_owned() },
        };
        let by = self.agent.shared.daemon.request.requested_by.clone();
        match self.agent.call("question.answer", &AnswerInput { question_id, answer, by, agent: None }).await
        {
            // Somebody else was faster: the work goes on either way.
            Ok(Empty {}) | Err(ClientError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// How the prompt is answered.
    fn end(&self, view: &TaskView) -> Result<PromptEnd, RpcError> {
        if self.stop_asked || self.turn.cancel.is_set() {
            return Ok(PromptEnd::stopped("cancelled"));
        }
        if let Some(question) = view.open_questions.iter().find(|open| is_in_words(open)) {
            if let QuestionKind::Ask { text, form } = &question.question {
                let values: Vec<&str> = form
                    .iter()
                    .flat_map(|form| &form.fields)
                    .flat_map(|field| &field.values)
                    .map(String::as_str)
                    .collect();
                let one_of = if values.is_empty() {
                    String::new()
                } else {
                    format!("\n\nOne of: {}", values.join(", "))
                };
                self.turn.send_message_chunk(&format!("\n\n{text}{one_of}"));
            }
            return Ok(PromptEnd::stopped("end_turn"));
        }
        let run = view.runs.iter().rev().find(|run| Some(run.session_id) == self.main);
        let reason = run.and_then(|run| run.reason.as_ref());
        let told = view.last_reply.clone().unwrap_or_default();
        match (view.status, reason) {
            (TaskStatus::Done, _) => {
                let proven = checks(view);
                if !proven.is_empty() {
                    self.turn.send_message_chunk(&format!("\n\n{proven}"));
                }
                Ok(PromptEnd::stopped("end_turn"))
            }
            (_, Some(OutcomeReason::Refusal)) => Ok(PromptEnd::stopped("refusal")),
            (_, Some(OutcomeReason::AgentLimit { limit }))
                if matches!(limit.as_str(), "max_tokens" | "max_turn_requests") =>
            {
                Ok(PromptEnd::stopped(limit.clone()))
            }
            (_, Some(OutcomeReason::StopAsked { .. })) => Ok(PromptEnd::stopped("cancelled")),
            (_, Some(OutcomeReason::LoginNeeded { .. })) => Err(RpcError::new(AUTH_REQUIRED, told)),
            (TaskStatus::WaitingOnUser | TaskStatus::Blocked, _) => {
                self.turn.send_message_chunk(&format!("\n\n{told}"));
                Ok(PromptEnd::stopped("end_turn"))
            }
            _ => Err(RpcError::new(INTERNAL_ERROR, told)),
        }
    }
}

/// What was proven, one check a line.
fn checks(view: &TaskView) -> String {
    let line = |evidence: &rallypoint_model::task::Evidence| {
        let word = match evidence.result {
            EvidenceResult::Passed => "passed",
            EvidenceResult::Failed => "failed",
            EvidenceResult::Inconclusive => "could not tell",
        };
        format!("- check `{}` {word}", evidence.procedure)
    };
    view.evidence.iter().map(line).collect::<Vec<_>>().join("\n")
}
