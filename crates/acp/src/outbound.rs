//! What we say to an agent, as one line each.
//!
//! Payloads are built from the schema crate's types, so that a member cannot
//! be misspelt; the envelope is our own, because an agent's request id has to
//! go back exactly as it came.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    CancelNotification, ClientCapabilities, ClientSessionCapabilities, ContentBlock, Error, Implementation,
    InitializeRequest, LoadSessionRequest, Meta, NewSessionRequest, NoticeCapabilities, PlanCapabilities,
    PromptRequest, RequestPermissionOutcome, RequestPermissionResponse, SelectedPermissionOutcome,
    SessionConfigValueId, SessionId, SetSessionConfigOptionRequest, SubagentCapabilities, TextContent,
};
use serde::Serialize;
use serde_json::value::RawValue;

use rallypoint_model::agent_io::{AgentInput, PART_META_KEY, PromptBlock};

use crate::failures;

/// Name under which we introduce ourselves.
const CLIENT_NAME: &str = "rallypoint";

/// The line for this input, its line end included.
///
/// The input's number is the request's id, so that an answer that arrives
/// after a restart of ours still finds what it answers.
pub fn encode(input: &AgentInput, seq: u64) -> Vec<u8> {
    match input {
        AgentInput::Initialize => request(seq, "initialize", initialize()),
        AgentInput::NewSession { cwd } => request(seq, "session/new", NewSessionRequest::new(cwd)),
        AgentInput::LoadSession { agent_session_id, cwd } => {
            request(seq, "session/load", LoadSessionRequest::new(session_id(agent_session_id), cwd))
        }
        AgentInput::Prompt { agent_session_id, blocks } => {
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
        AgentInput::SetConfigOption { agent_session_id, config_id, value } => {
            let params = SetSessionConfigOptionRequest::new(
                session_id(agent_session_id),
                config_id.clone(),
                SessionConfigValueId::new(value.as_str()),
            );
            request(seq, "session/set_config_option", params)
        }
    }
}

/// File access and terminals are not advertised: they are optional, agents do
/// their own work just as well, and the next protocol version removes them.
fn initialize() -> InitializeRequest {
    let session = ClientSessionCapabilities::new().notices(NoticeCapabilities::new());
    let capabilities = ClientCapabilities::new()
        .session(session)
        .plan(PlanCapabilities::new())
        .subagents(SubagentCapabilities::new())
        .meta(failures::capability());
    InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(capabilities)
        .client_info(Implementation::new(CLIENT_NAME, env!("CARGO_PKG_VERSION")))
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
struct Refusal<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: Error,
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
