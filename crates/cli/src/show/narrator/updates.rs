//! Updates of an agent that are neither words nor tools: plans, notices, its memory, its mode, helpers of its own.

use std::collections::BTreeMap;

use rallypoint_model::agent_io::AgentOutput;
use rallypoint_model::agent_offer::NativeAgent;
use rallypoint_model::ids::GenerationId;
use serde_json::Value;

use crate::show::text::brief;

/// Columns of a title.
const TITLE: usize = 120;

/// What was told so far, so that a repeat is not told again.
#[derive(Debug, Default)]
pub(super) struct Updates {
    plans: BTreeMap<GenerationId, String>,
    helpers: BTreeMap<(GenerationId, String), NativeAgent>,
}

impl Updates {
    /// What a reader should know of an update. Thoughts, numbers and what is not known here are in the log.
    pub(super) fn tell(&mut self, generation: GenerationId, output: &AgentOutput) -> Option<String> {
        match output {
            AgentOutput::Plan { entries } => {
                let text = plan_words(entries)?;
                let before = self.plans.insert(generation, text.clone());
                (before.as_ref() != Some(&text)).then_some(text)
            }
            AgentOutput::PlanRemoved { .. } => {
                self.plans.remove(&generation);
                Some("follows its plan no longer".to_owned())
            }
            AgentOutput::Notice { severity, title, description } => {
                let word = if severity.is_empty() { "notice" } else { severity };
                let more = description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
                Some(brief(&format!("{word}: {title}{more}"), 2 * TITLE))
            }
            AgentOutput::Compaction { status, error, .. } => match (status.as_str(), error) {
                ("completed", _) => Some("has shortened its memory of the conversation".to_owned()),
                ("failed", Some(error)) => Some(format!("can't shorten its memory: {}", brief(error, TITLE))),
                ("failed", None) => Some("can't shorten its memory".to_owned()),
                _ => None,
            },
            AgentOutput::NativeAgent { update } => {
                let key = (generation, update.agent_session_id.clone());
                let fresh = !self.helpers.contains_key(&key);
                let helper =
                    self.helpers.entry(key).or_insert_with(|| NativeAgent::unknown(&update.agent_session_id));
                let before = helper.state.clone();
                helper.take(update);
                let title = helper.title.as_deref().filter(|title| !title.is_empty());
                let name = brief(title.unwrap_or("without a title"), TITLE);
                let ended = helper.state == "idle" && before != "idle";
                match (fresh, ended) {
                    (_, true) => Some(format!("its own helper has finished: {name}")),
                    (true, false) => Some(format!("has a helper of its own: {name}")),
                    (false, false) => None,
                }
            }
            AgentOutput::Mode { mode_id } => Some(format!("works in the mode `{}`", brief(mode_id, TITLE))),
            AgentOutput::Message { .. }
            | AgentOutput::ToolCall { .. }
            | AgentOutput::ToolCallUpdate { .. }
            | AgentOutput::Thought { .. }
            | AgentOutput::UserMessage { .. }
            | AgentOutput::CompactionSummary { .. }
            | AgentOutput::SessionMessage { .. }
            | AgentOutput::Title { .. }
            | AgentOutput::Commands { .. }
            | AgentOutput::Usage { .. }
            | AgentOutput::Other { .. } => None,
        }
    }
}

/// How far a plan is, and what is done now.
fn plan_words(entries: &Value) -> Option<String> {
    let entries = entries.as_array().filter(|entries| !entries.is_empty())?;
    let status = |entry: &Value| entry.get("status").and_then(Value::as_str).map(str::to_owned);
    let done = entries.iter().filter(|entry| status(entry).as_deref() == Some("completed")).count();
    let now = entries.iter().find(|entry| status(entry).as_deref() == Some("in_progress"));
    let now = now.and_then(|entry| entry.get("content")).and_then(Value::as_str);
    let now = now.map(|text| format!(", now: {}", brief(text, TITLE))).unwrap_or_default();
    Some(format!("plan: {done} of {} done{now}", entries.len()))
}

#[cfg(test)]
mod tests {
    use rallypoint_model::agent_offer::NativeAgentUpdate;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn what_changes_is_told_once() {
        let mut updates = Updates::default();
        let generation = GenerationId(Uuid::nil());
        let plan = |status: &str| AgentOutput::Plan {
            entries: json!([{"content": "look", "status": status}, {"content": "write", "status": "pending"}]),
        };
        let helper = |state: &str| AgentOutput::NativeAgent {
            update: NativeAgentUpdate {
                agent_session_id: "c".to_owned(),
                title: Some("look around".to_owned()),
                state: Some(state.to_owned()),
                ..NativeAgentUpdate::default()
            },
        };
        let notice = AgentOutput::Notice {
            severity: "warning".to_owned(),
            title: "slow".to_owned(),
            description: Some("the model is busy".to_owned()),
        };
        let told: Vec<String> = [
            plan("in_progress"),
            plan("in_progress"),
            plan("completed"),
            helper("running"),
            helper("running"),
            helper("idle"),
            notice,
            AgentOutput::Mode { mode_id: "plan".to_owned() },
            AgentOutput::Thought { text: "hm".to_owned() },
        ]
        .iter()
        .filter_map(|output| updates.tell(generation, output))
        .collect();
        assert_eq!(
            told,
            [
                "plan: 0 of 2 done, now: look",
                "plan: 1 of 2 done",
                "has a helper of its own: look around",
                "its own helper has finished: look around",
                "warning: slow: the model is busy",
                "works in the mode `plan`",
            ]
        );
    }
}
