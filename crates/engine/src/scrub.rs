//! Content taken out of facts and rows, their skeleton left standing.
//!
//! Purging a task keeps what happened and when: numbers, ids, times, states and protocol words. Free text becomes
//! empty, raw data of agents becomes null. The same rules run over the journal and over the projections, so that a
//! journal that was purged still gives the stored rows.

use rallypoint_model::task::TaskReason;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Keys whose texts are states, names or protocol words. They are kept only where they look like one.
const WORD_KEYS: [&str; 33] = [
    "acceptance",
    "action",
    "agentId",
    "by",
    "decision",
    "digest",
    "effect",
    "from",
    "how",
    "kind",
    "label",
    "limit",
    "machine",
    "method",
    "mode",
    "note",
    "outcome",
    "part",
    "preset",
    "profile",
    "purpose",
    "requestedBy",
    "result",
    "role",
    "source",
    "speaker",
    "state",
    "status",
    "stopReason",
    "stopRequestedBy",
    "to",
    "trigger",
    "verdict",
];
/// Those of them that name people and agents, and so may hold spaces.
const NAME_KEYS: [&str; 6] = ["agentId", "by", "label", "profile", "requestedBy", "stopRequestedBy"];
/// Longest of them.
const WORD_CHARS: usize = 128;
/// Keys whose whole values come from agents in whatever form.
const RAW_KEYS: [&str; 3] = ["raw", "entries", "value"];
/// Lists and texts that are kept as they are: they hold ids, keys, digests and places.
const KEPT_KEYS: [&str; 14] = [
    "account",
    "channel",
    "cwd",
    "deliveryKey",
    "digests",
    "idempotencyKey",
    "key",
    "keys",
    "peer",
    "seenRequests",
    "sessionKey",
    "subAgentTextKey",
    "thread",
    "usageKind",
];

/// The value without content. Its form stays, so that it can still be read.
pub fn scrubbed<T: Serialize + DeserializeOwned + Clone>(value: &T) -> Option<T> {
    let before = serde_json::to_value(value).ok()?;
    let fits = |value: &Value| T::deserialize(value).is_ok();
    T::deserialize(&scrubbed_value(before, fits)).ok()
}

/// The same for data whose type the caller knows: `fits` says whether it can still be read.
pub fn scrubbed_value(before: Value, fits: impl Fn(&Value) -> bool) -> Value {
    let mut after = before.clone();
    walk(&mut after, "", Around::default());
    if fits(&after) || !fits(&before) {
        return after;
    }
    // A word that is not in the lists above belongs to the form. Each text goes alone, so that only such words stay.
    let mut careful = before;
    let mut pointers = Vec::new();
    texts(&careful, String::new(), &mut pointers);
    for pointer in pointers {
        let wanted = after.pointer(&pointer).cloned();
        let Some(place) = careful.pointer_mut(&pointer) else { continue };
        let kept = place.take();
        *place = wanted.unwrap_or(Value::Null);
        if !fits(&careful)
            && let Some(place) = careful.pointer_mut(&pointer)
        {
            *place = kept;
        }
    }
    careful
}

/// What is known of the object that a field stands in.
#[derive(Clone, Copy, Default)]
struct Around {
    /// It is a message, whose name is its speaker's.
    message: bool,
}

fn walk(value: &mut Value, key: &str, around: Around) {
    match value {
        Value::String(text) => {
            if !is_kept(text, key, around) {
                text.clear();
            }
        }
        Value::Array(items) => {
            if !KEPT_KEYS.contains(&key) {
                for item in items {
                    walk(item, key, around);
                }
            }
        }
        Value::Object(map) => object(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn object(map: &mut Map<String, Value>) {
    let around = Around { message: map.contains_key("speaker") };
    for (key, value) in map.iter_mut() {
        if RAW_KEYS.contains(&key.as_str()) && !(value.is_string() && is_word(value.as_str())) {
            *value = Value::Null;
        } else {
            walk(value, key, around);
        }
    }
}

fn is_kept(text: &str, key: &str, around: Around) -> bool {
    if is_id(text) || KEPT_KEYS.contains(&key) {
        return true;
    }
    if key == "reason" {
        return serde_json::from_value::<TaskReason>(Value::String(text.to_owned())).is_ok();
    }
    let word = WORD_KEYS.contains(&key) && (NAME_KEYS.contains(&key) || !text.contains(char::is_whitespace));
    let named = word
        || key == "id"
        || key.ends_with("Id")
        || key.ends_with("_id")
        || (key == "name" && around.message);
    named && text.chars().count() <= WORD_CHARS
}

/// 8-4-4-4-12 hexadecimal digits.
fn is_id(text: &str) -> bool {
    uuid::Uuid::try_parse(text).is_ok() && text.len() == 36
}

fn is_word(text: Option<&str>) -> bool {
    text.is_some_and(is_id)
}

/// Places of all texts and raw data, as JSON pointers.
fn texts(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                texts(item, format!("{at}/{index}"), found);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                let place = format!("{at}/{escaped}");
                if RAW_KEYS.contains(&key.as_str()) {
                    found.push(place);
                } else {
                    texts(item, place, found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use rallypoint_model::agent_io::{AgentOutput, ToolCallView};
    use rallypoint_model::event::{Event, PlannedAction, ReplyRole};
    use rallypoint_model::ids::{GenerationId, RunId, SessionId, TaskId};
    use rallypoint_model::mail::{Mail, MailFrom, MailKind};
    use rallypoint_model::run::{OutcomeReason, RunOutcome};
    use rallypoint_model::task::{TaskStatus, TaskTrigger};
    use uuid::Uuid;

    use super::*;

    fn text(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn words_and_raw_data_of_an_agent_go_and_its_frames_and_states_stay() {
        let call = ToolCallView {
            tool_call_id: "call-1".to_owned(),
            title: Some("SECRET title".to_owned()),
            tool_kind: Some("SECRET".to_owned()),
            status: Some("completed".to_owned()),
            text: Some("SECRET".to_owned()),
            locations: vec!["/SECRET".to_owned()],
            raw: serde_json::json!({ "SECRET": ["SECRET"] }),
        };
        let event = Event::AgentOutput {
            generation_id: GenerationId(Uuid::from_u128(1)),
            first_frame: 3,
            last_frame: 4,
            late: false,
            replay: false,
            foreign_session: None,
            output: AgentOutput::ToolCall { call },
        };
        let after = scrubbed(&event).unwrap();
        assert!(!text(&after).contains("SECRET"), "{after:?}");
        assert!(text(&after).contains("\"status\":\"completed\""), "{after:?}");
        assert!(text(&after).contains("\"lastFrame\":4"), "{after:?}");
    }

    #[test]
    fn a_sentence_where_a_protocol_word_should_be_is_no_word() {
        let run_id = RunId(Uuid::from_u128(2));
        let answered = |reason: &str| Event::RunAnswered {
            run_id,
            stop_reason: reason.to_owned(),
            frame: 1,
            usage: None,
        };
        assert_eq!(scrubbed(&answered("the SECRET is")), Some(answered("")));
        assert_eq!(scrubbed(&answered("end_turn")), Some(answered("end_turn")));
    }

    #[test]
    fn the_words_of_mail_go_and_its_keys_stay_so_that_it_is_still_taken() {
        let session_id = SessionId(Uuid::from_u128(1));
        let mail = Mail {
            key: "spoke|1".to_owned(),
            kind: MailKind::Active,
            from: MailFrom::User { name: "SECRET".to_owned() },
            text: "SECRET".to_owned(),
        };
        let received = Event::SessionMailReceived { session_id, mail };
        let after = text(&scrubbed(&received).unwrap());
        assert!(!after.contains("SECRET") && after.contains("spoke|1"), "{after}");
        let taken = Event::SessionMailTaken {
            session_id,
            keys: vec!["spoke|1".to_owned()],
            run_id: None,
            why: String::new(),
        };
        assert_eq!(scrubbed(&taken), Some(taken));
    }

    #[test]
    fn states_reasons_and_actions_stay_and_free_reasons_go() {
        let task_id = TaskId(Uuid::from_u128(1));
        let run_id = RunId(Uuid::from_u128(2));
        let moved = Event::TaskStatusChanged {
            task_id,
            from: TaskStatus::Validating,
            to: TaskStatus::Done,
            trigger: TaskTrigger::ValidationPassed,
            reason: Some(TaskReason::Proven),
        };
        assert_eq!(scrubbed(&moved), Some(moved));
        let ended = Event::RunEnded {
            run_id,
            outcome: RunOutcome::Failed,
            reason: OutcomeReason::Reported { reason: "SECRET".to_owned() },
            result: None,
            claim: None,
            summary: "SECRET".to_owned(),
            last_frame: 7,
        };
        assert!(!text(&scrubbed(&ended).unwrap()).contains("SECRET"));
        let planned = Event::TurnPlanned {
            run_id,
            actions: vec![PlannedAction::Reply { text: "SECRET".to_owned(), role: ReplyRole::Terminal }],
        };
        let empty = vec![PlannedAction::Reply { text: String::new(), role: ReplyRole::Terminal }];
        assert_eq!(scrubbed(&planned), Some(Event::TurnPlanned { run_id, actions: empty }));
    }

    #[test]
    fn a_word_that_the_form_needs_stays_although_no_list_names_it() {
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Colour {
            Red,
        }
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        struct Thing {
            colour: Colour,
            text: String,
        }
        let after = scrubbed(&Thing { colour: Colour::Red, text: "SECRET".to_owned() });
        assert_eq!(after, Some(Thing { colour: Colour::Red, text: String::new() }));
    }
}
