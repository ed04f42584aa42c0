//! Input and output of the operations on permissions. Wire form: camelCase.

use rallypoint_model::ids::SessionId;
use rallypoint_model::permission::{PermissionDecision, PolicyLayer, Preset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What would be decided about a tool of an agent or of a session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExplainInput {
    /// Agent or profile, as it would be started now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// A session, with what was frozen when it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Tool kind, such as `edit`; an unknown one counts as `other`.
    pub tool_kind: String,
    /// Path that the tool names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Command that the tool runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Absolute work folder; a session's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Preset that is asked for, with an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Preset>,
}

/// What was decided, and what made it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainView {
    /// What is decided.
    pub decision: PermissionDecision,
    /// Layer that decided.
    pub layer: String,
    /// Rule or preset that decided.
    pub rule: String,
    /// The narrowest preset of its layers.
    pub preset: Preset,
    /// Mode of the agent that is set for it, when there is one.
    pub mode: Option<String>,
    /// Whether the agent can be held to the preset; one that can't is not started.
    pub startable: bool,
    /// Every layer, the topmost agent's first.
    pub layers: Vec<PolicyLayer>,
}
