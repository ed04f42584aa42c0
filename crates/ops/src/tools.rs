//! Input and output types of the operations that the tool server of a session calls. Wire form: camelCase.

use rallypoint_model::ids::SessionId;
use rallypoint_model::tool_call::ToolAnswer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Variable in which a tool server gets the token of its session.
pub const TOKEN_VARIABLE: &str = "RALLY_SESSION_TOKEN";

/// The tool server of a session is there.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolsInput {
    /// The session.
    pub session_id: SessionId,
    /// A UUID that names this hello of the server.
    pub process: String,
    /// Name and version of what speaks to the server, as it says.
    pub client: String,
}

/// One call of a tool.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallInput {
    /// The session.
    pub session_id: SessionId,
    /// The hello that it came after.
    pub process: String,
    /// Its JSON-RPC id, raw JSON text: the same id after the same hello is the same call.
    pub request_id: String,
    /// Name of the tool.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Value,
    /// How long the answer may take, in milliseconds, 20 000 at most.
    #[serde(default)]
    pub wait_ms: u64,
}

/// Names a call.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallRef {
    /// The session.
    pub session_id: SessionId,
    /// The hello that it came after.
    pub process: String,
    /// Its JSON-RPC id, raw JSON text.
    pub request_id: String,
}

/// How a call stands.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallView {
    /// What it came to; absent while somebody is still asked. Then the same call is to be made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ToolAnswer>,
}
