//! What we say to an agent, as one line each.
//!
//! Payloads are built from the schema crate's types, so that a member cannot
//! be misspelt; the envelope is our own, because an agent's request id has to
//! go back exactly as it came.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AuthMethodId, AuthenticateRequest, BooleanConfigOptionCapabilities, CancelNotification,
    ClientCapabilities, ClientSessionCapabilities, CloseSessionRequest, CompactionCapabilities, ContentBlock,
    ElicitationCapabilities, ElicitationFormCapabilities, ElicitationUrlCapabilities, EnvVariable, Error,
    FileSystemCapabilities, Implementation, InitializeRequest, LoadSessionRequest, McpServer, McpServerStdio,
    Meta, NewSessionRequest, NoticeCapabilities, PlanCapabilities, PromptRequest, RequestPermissionOutcome,
    RequestPermissionResponse, ResumeSessionRequest, SelectedPermissionOutcome, SessionConfigOptionValue,
    SessionConfigOptionsCapabilities, SessionConfigValueId, SessionId, SessionModeId,
    SetSessionConfigOptionRequest, SetSessionModeRequest, SubagentCapabilities, TextContent,
};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use rallypoint_model::agent_io::{AgentInput, ElicitationAction, PART_META_KEY, PromptBlock};
use rallypoint_model::command::AgentService;

use crate::rpc::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};

pub use attachments::Contents;

mod attachments;

use crate::failures;

/// Name under which we introduce ourselves.
const CLIENT_NAME: &str = "rallypoint";
/// Name of our tool server, which agents put before the names of its tools.
const SERVER_NAME: &str = "rallypoint";

/// The line for this input, its line end included.
///
/// The input's number is the request's id, so that an answer that arrives
/// after a restart of ours still finds what it answers.
pub fn encode(input: &AgentInput, seq: u64) -> Vec<u8> {
    encode_with(input, seq, &Beside::default())
}

/// What a line needs besides its input.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Contents of the files that a prompt refers to.
    pub contents: Contents,
    /// What is done for the agent, for the hello.
    pub services: Vec<AgentService>,
    /// Our tool server, for an agent that is to start it. Its token is nowhere else.
    pub tools: Option<ToolServer>,
    /// What became of a file that was to be read or written, for its answer.
    pub file: Option<Result<Value, RpcError>>,
}

/// How an agent starts our tool server.
#[derive(Clone)]
pub struct ToolServer {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment, the token of the generation among it.
    pub environment: Vec<(String, String)>,
}

impl std::fmt::Debug for ToolServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ToolServer").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

/// The same with what stands beside the input.
pub fn encode_with(input: &AgentInput, seq: u64, beside: &Beside) -> Vec<u8> {
    match input {
        AgentInput::Initialize => request(seq, "initialize", initialize(&beside.services)),
        AgentInput::Authenticate { method_id } => {
            request(seq, "authenticate", AuthenticateRequest::new(AuthMethodId::new(method_id.as_str())))
        }
        AgentInput::ServeFile { request_id, refused, .. } => {
            let not_done = || RpcError::new(INTERNAL_ERROR, "the file was not looked at");
            let outcome = match (refused, &beside.file) {
                (Some(why), _) => Err(RpcError::new(INVALID_PARAMS, why.as_str())),
                (None, Some(outcome)) => outcome.clone(),
                (None, None) => Err(not_done()),
            };
            let id = raw_id(request_id);
            match outcome {
                Ok(result) => line(&Answer { jsonrpc: "2.0", id: &id, result }),
                Err(error) => line(&Refusal { jsonrpc: "2.0", id: &id, error: error.to_value() }),
            }
        }
        AgentInput::NewSession { cwd, tools } => {
            let params = NewSessionRequest::new(cwd).mcp_servers(servers(*tools, beside));
            request(seq, "session/new", params)
        }
        AgentInput::LoadSession { agent_session_id, cwd, tools } => {
            let params = LoadSessionRequest::new(session_id(agent_session_id), cwd);
            request(seq, "session/load", params.mcp_servers(servers(*tools, beside)))
        }
        AgentInput::ResumeSession { agent_session_id, cwd, tools } => {
            // Servers are left out when there are none, which this request allows.
            let params = ResumeSessionRequest::new(session_id(agent_session_id), cwd);
            request(seq, "session/resume", params.mcp_servers(servers(*tools, beside)))
        }
        AgentInput::CloseSession { agent_session_id } => {
            request(seq, "session/close", CloseSessionRequest::new(session_id(agent_session_id)))
        }
        AgentInput::Prompt { agent_session_id, blocks, attachments } => {
            let files = attachments.iter().map(|file| attachments::block(file, &beside.contents));
            let prompt = blocks.iter().map(content_block).chain(files).collect();
            request(seq, "session/prompt", PromptRequest::new(session_id(agent_session_id), prompt))
        }
        AgentInput::Steer { agent_session_id, blocks } => {
            let prompt = blocks.iter().map(content_block).collect();
            request(seq, "session/prompt", PromptRequest::new(session_id(agent_session_id), prompt))
        }
        AgentInput::Cancel { agent_session_id } => {
            let params = CancelNotification::new(session_id(agent_session_id));
            line(&Notification { jsonrpc: "2.0", method: "session/cancel", params })
        }
        AgentInput::AnswerPermission { request_id, option_id } => {
            let outcome = match option_id {
                Some(id) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id.clone())),
                None => RequestPermissionOutcome::Cancelled,
            };
            let id = raw_id(request_id);
            line(&Answer { jsonrpc: "2.0", id: &id, result: RequestPermissionResponse::new(outcome) })
        }
        AgentInput::RefuseMethod { request_id, method } => {
            let mut error = Error::method_not_found();
            error.message = format!("`{method}` is not served by this client");
            line(&Refusal { jsonrpc: "2.0", id: &raw_id(request_id), error })
        }
        AgentInput::AnswerElicitation { request_id, action } => {
            line(&Answer { jsonrpc: "2.0", id: &raw_id(request_id), result: elicitation_answer(action) })
        }
        AgentInput::SetConfigOption { agent_session_id, config_id, value, boolean } => {
            let value = if *boolean {
                SessionConfigOptionValue::Boolean { value: value == "true" }
            } else {
                SessionConfigValueId::new(value.as_str()).into()
            };
            let params =
                SetSessionConfigOptionRequest::new(session_id(agent_session_id), config_id.clone(), value);
            request(seq, "session/set_config_option", params)
        }
        AgentInput::SetMode { agent_session_id, mode_id } => {
            let params = SetSessionModeRequest::new(
                session_id(agent_session_id),
                SessionModeId::new(mode_id.as_str()),
            );
            request(seq, "session/set_mode", params)
        }
        AgentInput::SetModel { agent_session_id, model_id } => {
            // Gone from the schema; agents that still offer a block of models take it.
            let params = json!({"sessionId": agent_session_id, "modelId": model_id});
            request(seq, "session/set_model", params)
        }
    }
}

/// File access is advertised only to agents whose profile needs it, and
/// terminals to none: they are optional, agents do their own work just as well,
/// and the next protocol version removes them.
fn initialize(services: &[AgentService]) -> InitializeRequest {
    let options = SessionConfigOptionsCapabilities::new().boolean(BooleanConfigOptionCapabilities::new());
    let session = ClientSessionCapabilities::new()
        .notices(NoticeCapabilities::new())
        .compaction(CompactionCapabilities::new())
        .config_options(options);
    let elicitation = ElicitationCapabilities::new()
        .form(ElicitationFormCapabilities::new())
        .url(ElicitationUrlCapabilities::new());
    let fs = services.contains(&AgentService::Fs);
    let capabilities = ClientCapabilities::new()
        .fs(FileSystemCapabilities::new().read_text_file(fs).write_text_file(fs))
        .session(session)
        .plan(PlanCapabilities::new())
        .elicitation(elicitation)
        .subagents(SubagentCapabilities::new())
        .meta(failures::capability());
    InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(capabilities)
        .client_info(Implementation::new(CLIENT_NAME, env!("CARGO_PKG_VERSION")))
}

/// The servers that an agent is to start: ours, where the input says so and the caller says how.
fn servers(tools: bool, beside: &Beside) -> Vec<McpServer> {
    let Some(server) = beside.tools.as_ref().filter(|_| tools) else { return Vec::new() };
    let environment =
        server.environment.iter().map(|(name, value)| EnvVariable::new(name.as_str(), value.as_str()));
    let stdio = McpServerStdio::new(SERVER_NAME, &server.program)
        .args(server.arguments.clone())
        .env(environment.collect());
    vec![McpServer::Stdio(stdio)]
}

/// The content is our own map, checked against the form that was asked: the schema's type keeps no order and no numbers
/// that it does not know.
fn elicitation_answer(action: &ElicitationAction) -> Value {
    match action {
        ElicitationAction::Accept { content: Some(content) } => {
            json!({"action": "accept", "content": content})
        }
        ElicitationAction::Accept { content: None } => json!({"action": "accept"}),
        ElicitationAction::Decline => json!({"action": "decline"}),
        ElicitationAction::Cancel => json!({"action": "cancel"}),
    }
}

fn session_id(text: &str) -> SessionId {
    SessionId::new(text)
}

fn content_block(block: &PromptBlock) -> ContentBlock {
    let mut meta = Meta::new();
    meta.insert(PART_META_KEY.to_owned(), block.part.as_str().into());
    ContentBlock::Text(TextContent::new(block.text.as_str()).meta(meta))
}

#[derive(Serialize)]
struct Request<P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'static str,
    params: P,
}

#[derive(Serialize)]
struct Notification<P> {
    jsonrpc: &'static str,
    method: &'static str,
    params: P,
}

#[derive(Serialize)]
struct Answer<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: R,
}

#[derive(Serialize)]
struct Refusal<'a, E> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: E,
}

fn request(seq: u64, method: &'static str, params: impl Serialize) -> Vec<u8> {
    line(&Request { jsonrpc: "2.0", id: seq, method, params })
}

/// The agent's id as it came; text that is no JSON can only be a caller's
/// mistake, and goes back as a string rather than breaking the line.
fn raw_id(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned())
        .or_else(|_| serde_json::value::to_raw_value(text))
        .unwrap_or_default()
}

/// Serialising cannot fail: every map has string keys and every payload is ours.
fn line(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(message).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests;
