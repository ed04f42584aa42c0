//! What an agent was seen to do, for the table in `docs/agents.md`.

use serde_json::json;

use crate::agent::{self, Agent};

/// Writes down that this agent did this when that ability was tried.
pub(crate) fn record(agent: &Agent, ability: &str, seen: &str) {
    let folder = agent::folder().unwrap().join("outcomes");
    std::fs::create_dir_all(&folder).unwrap();
    let row = json!({ "agent": agent.name, "ability": ability, "seen": seen });
    std::fs::write(folder.join(format!("{}.{ability}.json", agent.name)), row.to_string()).unwrap();
}
