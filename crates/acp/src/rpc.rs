//! JSON-RPC error objects and the codes that the protocol gives a meaning.

use serde_json::{Value, json};

/// The line was not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON was not a request that makes sense now.
pub const INVALID_REQUEST: i64 = -32600;
/// The method is not served.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are missing or wrong.
pub const INVALID_PARAMS: i64 = -32602;
/// The peer failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// The agent wants a login first (Agent Client Protocol, "Authentication").
pub const AUTH_REQUIRED: i64 = -32000;
/// The named session or file does not exist (Agent Client Protocol, error codes).
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// The request was cancelled (Agent Client Protocol, `$/cancel_request`).
pub const REQUEST_CANCELLED: i64 = -32800;

/// An error answer, sent or received.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// JSON-RPC code.
    pub code: i64,
    /// One line for a person.
    pub message: String,
    /// More of it, free in form.
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without `data`.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The error object on the wire.
    pub fn to_value(&self) -> Value {
        match &self.data {
            Some(data) => json!({"code": self.code, "message": self.message, "data": data}),
            None => json!({"code": self.code, "message": self.message}),
        }
    }
}
