//! What goes to an agent besides words: files with its goal, and how it is to work.

use std::collections::BTreeMap;

use rallypoint_model::agent_offer::Wanted;
use rallypoint_model::ids::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Want something else of a session from its next prompt on. What the agent does not offer is refused with what it
/// does; while it has not said yet what it offers, the next run is held against it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigureInput {
    /// Which.
    pub session_id: SessionId,
    /// Mode, model, thought level; what is absent stays.
    #[serde(default, skip_serializing_if = "Wanted::is_empty")]
    pub wanted: Wanted,
    /// Options by id; those that are not named stay.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A file that goes with a goal. The daemon reads it when the task is made; later changes do not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttachmentInput {
    /// Absolute path.
    pub path: String,
}
