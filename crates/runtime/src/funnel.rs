//! The one funnel of text: every event passes it before it is applied, stored or shown.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use rallypoint_engine::decide::Funnel;
use rallypoint_model::event::Event;
use rallypoint_model::ids::GenerationId;
use rallypoint_ops::tools::TOKEN_VARIABLE;
use rallypoint_secrets::Redactor;
use serde_json::Value;

/// Keys whose values are ids, names of things or protocol words; never rewritten.
const STRUCTURAL_KEYS: [&str; 22] = [
    "kind",
    "part",
    "status",
    "from",
    "to",
    "trigger",
    "outcome",
    "verdict",
    "result",
    "toolCallId",
    "toolKind",
    "optionId",
    "requestId",
    "agentSessionId",
    "method",
    "digest",
    "speaker",
    "source",
    "purpose",
    "acceptance",
    "action",
    "profile",
];

/// Secrets known so far, shared by everything that stores or shows text.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedRedactor {
    known: Arc<RwLock<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// Secrets that are known for good.
    lasting: Redactor,
    /// Seals of living agent processes, which are worth nothing once those have ended.
    seals: BTreeMap<GenerationId, String>,
    /// All of them.
    current: Redactor,
}

impl Known {
    fn renew(&mut self) {
        let seals = self.seals.values().map(|seal| (TOKEN_VARIABLE.to_owned(), seal.clone()));
        self.current = self.lasting.with_added(seals);
    }
}

impl SharedRedactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let shared = Self::default();
        shared.add(secrets);
        shared
    }

    /// Makes more secrets known. Must be done before text that may hold them is read.
    pub(crate) fn add(&self, secrets: impl IntoIterator<Item = (String, String)>) {
        let pairs: Vec<(String, String)> = secrets.into_iter().collect();
        if pairs.is_empty() {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.lasting = known.lasting.with_added(pairs);
        known.renew();
    }

    /// Makes what is secret of an agent process's token known, until [`SharedRedactor::forget_seal`].
    pub(crate) fn add_seal(&self, generation_id: GenerationId, seal: String) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.seals.insert(generation_id, seal);
        known.renew();
    }

    /// Its process has ended and all that it said was read.
    pub(crate) fn forget_seal(&self, generation_id: GenerationId) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.seals.remove(&generation_id).is_some() {
            known.renew();
        }
    }

    /// The redactor as it is now.
    pub(crate) fn current(&self) -> Redactor {
        self.known.read().unwrap_or_else(PoisonError::into_inner).current.clone()
    }
}

impl Funnel for SharedRedactor {
    fn clean(&self, event: Event) -> Event {
        let redactor = self.current();
        if redactor.is_empty() {
            return event;
        }
        let Ok(text) = serde_json::to_string(&event) else {
            return event;
        };
        if !redactor.contains_secret(&text) {
            return event;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(&text) else {
            return event;
        };
        clean_value(&mut value, &redactor);
        // Only free text was changed, so the shape is still that of the event.
        serde_json::from_value(value).unwrap_or(event)
    }
}

pub(crate) fn clean_value(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(clean) = redactor.redact(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clean_value(item, redactor)),
        Value::Object(map) => {
            for (key, item) in map.iter_mut() {
                let structural = item.is_string()
                    && (STRUCTURAL_KEYS.contains(&key.as_str()) || key.ends_with("Id") || key == "id");
                if !structural {
                    clean_value(item, redactor);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_model::agent_io::AgentOutput;

    #[test]
    fn a_secret_in_child_text_never_reaches_an_event() {
        let funnel = SharedRedactor::new([("API_KEY".to_owned(), "sk-123456789".to_owned())]);
        let event = Event::AgentOutput {
            generation_id: GenerationId(uuid::Uuid::nil()),
            first_frame: 1,
            last_frame: 1,
            late: false,
            replay: false,
            foreign_session: None,
            output: AgentOutput::Message { text: "the key is sk-123456789, really".to_owned() },
        };
        let clean = serde_json::to_string(&funnel.clean(event)).unwrap();
        assert!(!clean.contains("sk-123456789"), "{clean}");
        assert!(clean.contains("[redacted:API_KEY]"), "{clean}");
    }

    #[test]
    fn a_seal_is_hidden_as_long_as_its_process_lives() {
        let funnel = SharedRedactor::default();
        let id = GenerationId(uuid::Uuid::nil());
        funnel.add_seal(id, "0123456789abcdef".to_owned());
        funnel.add([("OTHER".to_owned(), "sk-123456789".to_owned())]);
        let words = "0123456789abcdef sk-123456789";
        let hidden = "[redacted:RALLY_SESSION_TOKEN] [redacted:OTHER]";
        assert_eq!(funnel.current().redact(words), hidden);
        funnel.forget_seal(id);
        assert_eq!(funnel.current().redact(words), "0123456789abcdef [redacted:OTHER]");
    }
}
