//! What a room reads of an event: one bracketed header, then the words as data.

use serde_json::{Map, Value};

use crate::consequences::Boundary;
use crate::router::RoutingKind;
use crate::text;
use rallypoint_model::routing::EventSource;

/// Fields that name the routing kind outright, strongest first.
const KIND_FIELDS: [&str; 4] = ["routingKind", "type", "kind", "purpose"];
/// Fields whose words may begin with a banner, first come first.
const BANNER_FIELDS: [&str; 6] = ["response", "finalText", "message", "question", "coordination", "prompt"];
/// The kinds that an agent can ask for.
const ASKED_FOR: [RoutingKind; 2] = [RoutingKind::QuestionForTaskCreator, RoutingKind::AgentCoordination];

/// The fields that came with an event. Blank text counts as missing.
#[derive(Clone, Debug, Default)]
pub struct Payload(pub Map<String, Value>);

impl Payload {
    /// A payload of one text.
    pub fn of(field: &str, text: &str) -> Self {
        Self(Map::from_iter([(field.to_owned(), Value::String(text.to_owned()))]))
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }
}

/// What an event says, once its payload is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Why it lands where it lands.
    pub kind: RoutingKind,
    /// Whether the runtime, a structured field or a banner said so.
    pub by: EventSource,
    /// The words without banner; a sentence of ours where there are none.
    pub body: String,
}

/// Reads the kind and the words of an event. Order of the kind: the event's own
/// name, a structured field, a banner at the start of the words, else by the event.
pub fn read(boundary: Boundary, payload: &Payload) -> Read {
    let own = match boundary {
        Boundary::QuestionForTaskCreator | Boundary::AgentCoordination => Some(RoutingKind::of(boundary)),
        Boundary::TaskComplete | Boundary::Error | Boundary::Blocked => None,
    };
    let field = || KIND_FIELDS.iter().filter_map(|field| payload.text(field)).find_map(kind_of_word);
    let banner = || BANNER_FIELDS.iter().filter_map(|field| payload.text(field)).find_map(kind_of_banner);
    let (kind, by) = match (own, field()) {
        (Some(kind), _) => (kind, EventSource::Runtime),
        (None, Some(kind)) => (kind, EventSource::Call),
        (None, None) => match banner() {
            Some(kind) => (kind, EventSource::Banner),
            None => (RoutingKind::of(boundary), EventSource::Runtime),
        },
    };
    let (fields, fallback): (&[&str], &str) = match boundary {
        Boundary::TaskComplete => {
            (&["response", "finalText"], "sub-agent reports task complete (no captured output).")
        }
        Boundary::Error => (&["message"], "sub-agent reported an error"),
        Boundary::Blocked => (&["message", "prompt"], "sub-agent is blocked and waiting for input"),
        Boundary::QuestionForTaskCreator => {
            (&["question", "message", "prompt"], "sub-agent has a question for the task creator")
        }
        Boundary::AgentCoordination => {
            (&["message", "coordination", "prompt"], "sub-agent posted a coordination update")
        }
    };
    let words = fields.iter().filter_map(|field| payload.text(field)).map(without_banner).next();
    let body = words.filter(|words| !words.is_empty()).unwrap_or(fallback).to_owned();
    Read { kind, by, body }
}

fn kind_of_word(word: &str) -> Option<RoutingKind> {
    let word = word.to_uppercase();
    ASKED_FOR.into_iter().find(|kind| kind.as_str() == word)
}

/// The kind that the text begins with, as a banner of its own: perhaps behind
/// heading marks or in bold, and followed by a colon, a space or nothing.
pub fn kind_of_banner(text: &str) -> Option<RoutingKind> {
    banner(text).map(|(kind, _)| kind)
}

/// The text without its banner.
pub fn without_banner(text: &str) -> &str {
    banner(text).map_or(text.trim(), |(_, rest)| rest)
}

fn banner(text: &str) -> Option<(RoutingKind, &str)> {
    let text = text.trim().trim_start_matches('#').trim_start();
    let bold = ["**", "__"].into_iter().find(|mark| text.starts_with(mark));
    let text = bold.and_then(|mark| text.strip_prefix(mark)).unwrap_or(text);
    let (kind, rest) =
        ASKED_FOR.into_iter().find_map(|kind| Some((kind, text.strip_prefix(kind.as_str())?)))?;
    let (rest, colon_before) = colon(rest);
    let rest = bold.and_then(|mark| rest.strip_prefix(mark)).unwrap_or(rest);
    let (rest, colon_behind) = colon(rest);
    let ends = colon_before || colon_behind || rest.chars().next().is_none_or(char::is_whitespace);
    ends.then_some((kind, rest.trim()))
}

fn colon(text: &str) -> (&str, bool) {
    text.strip_prefix(':').map_or((text, false), |rest| (rest, true))
}

/// What is told of an event.
#[derive(Clone, Debug)]
pub struct Narration<'a> {
    /// Name of the sub-agent.
    pub label: &'a str,
    /// Its profile.
    pub agent_type: &'a str,
    /// What happened.
    pub boundary: Boundary,
    /// Its words, the reason, or a sentence of ours.
    pub body: &'a str,
    /// At most this many bytes of them.
    pub head_bytes: usize,
}

/// The text: one bracketed header, then the child's words as data.
pub fn narrate(narration: &Narration<'_>) -> String {
    format!(
        "[sub-agent: {} ({}) — {}]\n{}",
        narration.label,
        narration.agent_type,
        narration.boundary.as_str(),
        text::head(&text::defuse(narration.body.trim()), narration.head_bytes)
    )
}

/// The single notice of a session over its cap.
pub fn narrate_cap(label: &str, agent_type: &str, count: u32, cap: u32) -> String {
    format!(
        "[sub-agent: {label} ({agent_type}) — round-trip cap exceeded]\n\
         {count} of {cap} round trips are used up, so the session was stopped. \
         Start a fresh session, ask a person, or drop the work."
    )
}
