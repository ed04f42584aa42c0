//! One agent on the other end: which requests of ours are open, and what its lines mean.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use rallypoint_model::agent_io::{AgentInput, AgentItem, AgentOutput, ToolCallView};
use rallypoint_model::usage::UsageKind;

use super::{Understood, counts, elicitation, files, hello, lenient, offers, tools, understand, updates};
use crate::frames::Line;
use crate::{failures, rpc};

/// How many characters of a junk line are kept to show to a person.
const SAMPLE_CHARS: usize = 200;
/// How many characters of an error's message and of its details are kept.
const ERROR_CHARS: usize = 500;

/// What an open request of ours asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenRequest {
    /// The hello.
    Initialize,
    /// A conversation.
    SessionNew,
    /// An earlier conversation.
    SessionLoad,
    /// A turn.
    Prompt,
    /// An option of the conversation.
    SetOption,
    /// The end of the conversation.
    Close,
    /// A login.
    Authenticate,
}

/// What has to be kept about an agent process to go on reading it after a
/// restart of ours. To be committed together with the items and the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PeerState {
    /// Requests of ours that wait for an answer, by the number of the input.
    pub open: BTreeMap<u64, OpenRequest>,
    /// Highest number of an input that was expected.
    pub last_expected: u64,
    /// The agent's id of the conversation, once it opened one.
    pub agent_session_id: Option<String>,
    /// Answers that answered nothing open: duplicates and unknown ids.
    pub stray_answers: u64,
}

/// One agent on the other end.
#[derive(Clone, Debug)]
pub struct Peer {
    state: PeerState,
    usage: UsageKind,
}

impl Peer {
    /// Goes on from a kept state, or from the default one for a new process.
    pub fn new(state: PeerState, usage: UsageKind) -> Self {
        Self { state, usage }
    }

    /// What has to be kept.
    pub fn state(&self) -> &PeerState {
        &self.state
    }

    /// Whether it was asked to close its conversation and has not answered.
    pub fn is_closing(&self) -> bool {
        self.state.open.values().any(|request| *request == OpenRequest::Close)
    }

    fn has_open_prompt(&self) -> bool {
        self.state.open.values().any(|request| *request == OpenRequest::Prompt)
    }

    /// Notes that this input is on its way, so that its answer is recognised.
    ///
    /// Belongs in the transaction that journals the input. Numbers only go up;
    /// one that was expected before is not expected again, so that noting an
    /// input a second time after a restart cannot reopen an answered request.
    pub fn expect(&mut self, seq: u64, input: &AgentInput) {
        if seq <= self.state.last_expected {
            return;
        }
        self.state.last_expected = seq;
        if let AgentInput::LoadSession { agent_session_id, .. }
        | AgentInput::ResumeSession { agent_session_id, .. } = input
        {
            // Its answer does not say it again.
            self.state.agent_session_id = Some(agent_session_id.clone());
        }
        if let Some(request) = open_request(input) {
            self.state.open.insert(seq, request);
        }
    }

    /// What an assembled line means. Never fails.
    pub fn line_items(&mut self, line: &Line<'_>, frame: u64) -> Vec<AgentItem> {
        match line {
            Line::Whole(text) => self.items(text, frame),
            Line::Oversized { bytes, may_be_answer } => {
                vec![AgentItem::Oversized { bytes: *bytes, may_be_answer: *may_be_answer }]
            }
        }
    }

    /// What the text of a line means. Never fails.
    pub fn items(&mut self, line: &str, frame: u64) -> Vec<AgentItem> {
        match understand(line) {
            Understood::Answer { seq, outcome } => {
                let outcome = outcome.map(|raw| lenient::value(raw.get()));
                self.answer(seq, frame, outcome.map_err(|raw| lenient::value(raw.get())))
            }
            Understood::Request { request_id, method, params } => {
                let params = params.map_or(Value::Null, |raw| lenient::value(raw.get()));
                self.request(request_id, frame, method, params)
            }
            Understood::Notification { method, params } => {
                let params = params.map_or(Value::Null, |raw| lenient::value(raw.get()));
                self.notification(frame, method, params)
            }
            Understood::Junk => vec![AgentItem::Junk {
                count: 1,
                bytes: line.len() as u64,
                sample: lenient::shortened(line, SAMPLE_CHARS),
            }],
        }
    }

    fn answer(&mut self, seq: Option<u64>, frame: u64, outcome: Result<Value, Value>) -> Vec<AgentItem> {
        let open = seq.and_then(|seq| self.state.open.remove(&seq).map(|request| (seq, request)));
        let Some((seq, request)) = open else {
            self.state.stray_answers = self.state.stray_answers.saturating_add(1);
            return Vec::new();
        };
        // Tokens that a failed turn used are used all the same.
        let counted = match (request, &outcome) {
            (_, _) if self.usage == UsageKind::None => None,
            (OpenRequest::Prompt, Ok(result)) => counts::of_answer(result),
            (OpenRequest::Prompt, Err(error)) => counts::of_error(error),
            (
                OpenRequest::Initialize
                | OpenRequest::SessionNew
                | OpenRequest::SessionLoad
                | OpenRequest::SetOption
                | OpenRequest::Close
                | OpenRequest::Authenticate,
                _,
            ) => None,
        };
        let of_failure = |tokens| AgentItem::TokensUsed { frame, answers: Some(seq), tokens };
        let result = match outcome {
            Ok(result) => result,
            Err(error) => {
                return counted.map(of_failure).into_iter().chain([failed(seq, frame, &error)]).collect();
            }
        };
        let change = match request {
            OpenRequest::SessionNew | OpenRequest::SessionLoad => offers::of_opened(&result),
            OpenRequest::SetOption => offers::of_answer(&result),
            OpenRequest::Initialize
            | OpenRequest::Prompt
            | OpenRequest::Close
            | OpenRequest::Authenticate => None,
        };
        let item = match request {
            OpenRequest::Initialize => hello::initialized(result),
            OpenRequest::SessionNew => self.session_opened(seq, frame, result),
            OpenRequest::Prompt => {
                let stop_reason =
                    result.get("stopReason").and_then(Value::as_str).unwrap_or_default().to_owned();
                // A turn that was cancelled ended as it was asked to, whatever else went wrong in it.
                match failures::of_answer(&result).filter(|_| stop_reason != "cancelled") {
                    Some(failure) => {
                        let failed = AgentItem::RequestFailed {
                            seq,
                            frame,
                            code: failure.code,
                            message: lenient::shortened(&failure.message, ERROR_CHARS),
                        };
                        return counted.map(of_failure).into_iter().chain([failed]).collect();
                    }
                    None => AgentItem::PromptAnswered { seq, frame, stop_reason, usage: counted },
                }
            }
            OpenRequest::SessionLoad => AgentItem::SessionLoaded { seq, frame },
            OpenRequest::SetOption | OpenRequest::Close | OpenRequest::Authenticate => {
                AgentItem::RequestAnswered { seq, frame }
            }
        };
        // What is offered is known before the answer lets anything follow.
        let agent_session_id = self.state.agent_session_id.clone();
        let offered = change.map(|change| AgentItem::Offered { frame, agent_session_id, change });
        offered.into_iter().chain([item]).collect()
    }

    fn session_opened(&mut self, seq: u64, frame: u64, result: Value) -> AgentItem {
        let Some(id) = result.get("sessionId").and_then(Value::as_str).filter(|id| !id.is_empty()) else {
            return AgentItem::RequestFailed {
                seq,
                frame,
                code: rpc::INTERNAL_ERROR,
                message: "the agent opened a session without saying its `sessionId`".to_owned(),
            };
        };
        let agent_session_id = id.to_owned();
        self.state.agent_session_id = Some(agent_session_id.clone());
        AgentItem::SessionOpened { agent_session_id, raw: result }
    }

    fn request(&mut self, request_id: &str, frame: u64, method: String, params: Value) -> Vec<AgentItem> {
        let request_id = request_id.to_owned();
        match method.as_str() {
            "session/request_permission" => vec![permission(request_id, frame, params)],
            // An update that wants an answer is an update all the same; refusing
            // it keeps an agent that waits for the answer from hanging.
            "session/update" => {
                let mut items = self.notification(frame, method.clone(), params);
                items.push(AgentItem::UnknownRequest { request_id, frame, method });
                items
            }
            "fs/read_text_file" | "fs/write_text_file" => vec![match files::ask(&method, &params) {
                Some(ask) => AgentItem::FileAsked { request_id, frame, ask },
                None => AgentItem::UnknownRequest { request_id, frame, method },
            }],
            "elicitation/create" => vec![
                elicitation::asked(request_id, frame, &params)
                    .unwrap_or_else(|request_id| AgentItem::UnknownRequest { request_id, frame, method }),
            ],
            _ => vec![AgentItem::UnknownRequest { request_id, frame, method }],
        }
    }

    fn notification(&mut self, frame: u64, method: String, params: Value) -> Vec<AgentItem> {
        if method != "session/update" {
            let agent_session_id = params.get("sessionId").and_then(Value::as_str).map(str::to_owned);
            let output = AgentOutput::Other { name: method, raw: params };
            return vec![AgentItem::Output {
                first_frame: frame,
                last_frame: frame,
                agent_session_id,
                output,
            }];
        }
        let update = updates::read(params);
        let own = update.agent_session_id.is_none() || update.agent_session_id == self.state.agent_session_id;
        // What is told again while a conversation is opened was used by earlier turns.
        let counts = own && self.usage != UsageKind::None && self.has_open_prompt();
        let used = counts::of_meta_usage(update.meta.as_ref())
            .filter(|_| counts)
            .map(|tokens| AgentItem::TokensUsed { frame, answers: None, tokens });
        let agent_session_id = update.agent_session_id;
        let offered = update.offer.map(|change| AgentItem::Offered {
            frame,
            agent_session_id: agent_session_id.clone(),
            change,
        });
        let output = AgentItem::Output {
            first_frame: frame,
            last_frame: frame,
            agent_session_id,
            output: update.output,
        };
        offered.into_iter().chain([output]).chain(used).collect()
    }
}

fn open_request(input: &AgentInput) -> Option<OpenRequest> {
    match input {
        AgentInput::Initialize => Some(OpenRequest::Initialize),
        AgentInput::NewSession { .. } => Some(OpenRequest::SessionNew),
        AgentInput::LoadSession { .. } | AgentInput::ResumeSession { .. } => Some(OpenRequest::SessionLoad),
        AgentInput::CloseSession { .. } => Some(OpenRequest::Close),
        AgentInput::Authenticate { .. } => Some(OpenRequest::Authenticate),
        AgentInput::Prompt { .. } | AgentInput::Steer { .. } => Some(OpenRequest::Prompt),
        AgentInput::SetConfigOption { .. } | AgentInput::SetMode { .. } | AgentInput::SetModel { .. } => {
            Some(OpenRequest::SetOption)
        }
        AgentInput::Cancel { .. }
        | AgentInput::AnswerPermission { .. }
        | AgentInput::AnswerElicitation { .. }
        | AgentInput::ServeFile { .. }
        | AgentInput::RefuseMethod { .. } => None,
    }
}

fn permission(request_id: String, frame: u64, mut params: Value) -> AgentItem {
    let options = tools::options(params.get("options"));
    let call = match params.get_mut("toolCall").map(Value::take) {
        Some(Value::Object(call)) => {
            tools::view(call.clone()).unwrap_or_else(|| nameless(Value::Object(call)))
        }
        other => nameless(other.unwrap_or(Value::Null)),
    };
    let title = call
        .title
        .clone()
        .or_else(|| call.tool_kind.clone())
        .or_else(|| Some(call.tool_call_id.clone()).filter(|id| !id.is_empty()));
    AgentItem::PermissionAsked { request_id, frame, call: ToolCallView { title, ..call }, options }
}

fn nameless(raw: Value) -> ToolCallView {
    ToolCallView {
        tool_call_id: String::new(),
        title: raw.get("title").and_then(Value::as_str).map(str::to_owned),
        tool_kind: raw.get("kind").and_then(Value::as_str).map(str::to_owned),
        status: None,
        text: None,
        locations: Vec::new(),
        raw,
    }
}

fn failed(seq: u64, frame: u64, error: &Value) -> AgentItem {
    let code = match error.get("code") {
        Some(Value::String(code)) => code.parse().ok(),
        Some(code) => code.as_i64(),
        None => None,
    };
    let message = match error {
        Value::String(text) => text.as_str(),
        _ => error.get("message").and_then(Value::as_str).unwrap_or("no message"),
    };
    let mut message = lenient::shortened(message, ERROR_CHARS);
    if let Some(details) = error.get("data").and_then(details).filter(|details| !message.contains(&**details))
    {
        message.push_str(": ");
        message.push_str(&lenient::shortened(&details, ERROR_CHARS));
    }
    AgentItem::RequestFailed { seq, frame, code: code.unwrap_or(rpc::INTERNAL_ERROR), message }
}

/// The words in an error's `data`; the whole of it when it has none that are known.
fn details(data: &Value) -> Option<String> {
    match data {
        Value::Null => None,
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Object(members) if members.is_empty() => None,
        _ => ["details", "message", "reason", "error"]
            .iter()
            .find_map(|name| data.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()))
            .map_or_else(|| Some(data.to_string()), |text| Some(text.to_owned())),
    }
}
