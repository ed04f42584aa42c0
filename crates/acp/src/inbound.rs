//! What a line of an agent means.
//!
//! [`understand`] looks at the envelope only. [`Peer`] knows which requests of
//! ours are open and turns lines into [`AgentItem`]s. Both take any input
//! without failing: what has no known form is kept raw, what is no JSON-RPC is
//! junk, and nothing is dropped because a field has an unknown value.
//!
//! Joining consecutive chunks, numbering frames and deciding what an item means
//! for a run are the caller's business.
//!
//! [`AgentItem`]: rallypoint_model::agent_io::AgentItem

mod counts;
mod elicitation;
mod files;
mod hello;
mod lenient;
mod native;
mod offers;
mod peer;
mod tools;
mod updates;

use serde::Deserialize;
use serde_json::value::RawValue;

pub use peer::{OpenRequest, Peer, PeerState};

/// The envelope of one line, its contents still raw.
#[derive(Clone, Debug)]
pub enum Understood<'a> {
    /// Answers a request of ours.
    Answer {
        /// The number in its `id`, when there is one that may be ours.
        seq: Option<u64>,
        /// The result, or the raw error object.
        outcome: Result<&'a RawValue, &'a RawValue>,
    },
    /// Asks us for something and waits for the answer.
    Request {
        /// Its id as raw JSON text, to be sent back as it came.
        request_id: &'a str,
        /// The method.
        method: String,
        /// The parameters, when given.
        params: Option<&'a RawValue>,
    },
    /// Tells us something.
    Notification {
        /// The method.
        method: String,
        /// The parameters, when given.
        params: Option<&'a RawValue>,
    },
    /// No frame of the protocol: log output, a banner, other JSON.
    Junk,
}

/// Reads the envelope of a line.
///
/// Agents print log lines to standard output, some of them as JSON with an
/// `id` or a `method` of their own. Without the `jsonrpc` member a line only
/// counts when its method is one of the protocol's, or when it has a result or
/// an error.
pub fn understand(line: &str) -> Understood<'_> {
    let line = line.trim_start_matches('\u{feff}');
    let Some(envelope) = Envelope::read(line) else {
        return Understood::Junk;
    };
    let id = envelope.id.filter(|id| id.get() != "null");
    let method = envelope.method.and_then(|method| lenient::string(method.get()));
    if let Some(method) = method {
        if !envelope.json_rpc && !is_protocol_method(&method) {
            return Understood::Junk;
        }
        let params = envelope.params.filter(|params| params.get() != "null");
        return match id {
            Some(id) => Understood::Request { request_id: id.get(), method, params },
            None => Understood::Notification { method, params },
        };
    }
    let error = envelope.error.filter(|error| error.get() != "null");
    let seq = id.and_then(|id| lenient::our_number(id.get()));
    if let Some(error) = error {
        return Understood::Answer { seq, outcome: Err(error) };
    }
    match (envelope.result, id) {
        (Some(result), _) => Understood::Answer { seq, outcome: Ok(result) },
        // An undefined result vanishes when a JavaScript agent serialises its answer.
        (None, Some(_)) if envelope.json_rpc => Understood::Answer { seq, outcome: Ok(RawValue::NULL) },
        (None, _) => Understood::Junk,
    }
}

fn is_protocol_method(method: &str) -> bool {
    ["session/", "fs/", "terminal/", "elicitation/", "$/", "_"]
        .iter()
        .any(|prefix| method.starts_with(prefix))
}

/// Members of the outermost object. With a name given twice the last one wins.
#[derive(Default)]
struct Envelope<'a> {
    json_rpc: bool,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    JsonRpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

impl<'a> Envelope<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut reader = serde_json::Deserializer::from_str(line);
        let envelope = serde::Deserializer::deserialize_map(&mut reader, EnvelopeVisitor).ok()?;
        reader.end().ok()?;
        Some(envelope)
    }
}

struct EnvelopeVisitor;

impl<'de> serde::de::Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope<'de>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON-RPC object")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(member) = members.next_key::<Member>()? {
            let value = members.next_value::<&'de RawValue>()?;
            match member {
                Member::JsonRpc => envelope.json_rpc = true,
                Member::Id => envelope.id = Some(value),
                Member::Method => envelope.method = Some(value),
                Member::Params => envelope.params = Some(value),
                Member::Result => envelope.result = Some(value),
                Member::Error => envelope.error = Some(value),
                Member::Other => {}
            }
        }
        Ok(envelope)
    }
}

#[cfg(test)]
mod tests;
