//! The journal alone gives the stored projections.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::journal::Journal;
use crate::violation::{Rule, Violation};

pub(super) fn check(journal: &Journal) -> Vec<Violation> {
    let state = &journal.state;
    let mut replayed = BTreeMap::new();
    rows(&mut replayed, "worlds", state.world.iter().map(|world| (world.id.to_string(), world)));
    rows(&mut replayed, "rooms", state.rooms.iter().map(|(id, row)| (id.to_string(), row)));
    rows(&mut replayed, "tasks", state.tasks.iter().map(|(id, row)| (id.to_string(), row)));
    rows(&mut replayed, "sessions", state.sessions.iter().map(|(id, row)| (id.to_string(), row)));
    rows(&mut replayed, "runs", state.runs.iter().map(|(id, row)| (id.to_string(), row)));
    rows(&mut replayed, "generations", state.generations.iter().map(|(id, row)| (id.to_string(), row)));
    rows(&mut replayed, "questions", state.questions.iter().map(|(id, row)| (id.to_string(), row)));
    rows(&mut replayed, "deliveries", state.deliveries.iter().map(|(id, row)| (id.to_string(), row)));
    let mut violations = Vec::new();
    for (name, row) in &replayed {
        let stored = journal.projections.get(name).map(|text| serde_json::from_str::<Value>(text).ok());
        match stored {
            Some(Some(stored)) if stored == *row => {}
            Some(Some(stored)) => {
                let text = format!("{name} is stored otherwise than replayed: {}", fields(&stored, row));
                violations.push(Violation::new(Rule::Replay, text));
            }
            Some(None) => violations.push(Violation::new(Rule::Replay, format!("{name} is stored broken"))),
            None => violations.push(Violation::new(Rule::Replay, format!("{name} is not stored"))),
        }
    }
    for name in journal.projections.keys().filter(|name| !replayed.contains_key(*name)) {
        violations.push(Violation::new(Rule::Replay, format!("{name} is stored and not in the journal")));
    }
    violations
}

fn rows<'a, T: Serialize + 'a>(
    all: &mut BTreeMap<String, Value>,
    table: &str,
    rows: impl Iterator<Item = (String, &'a T)>,
) {
    for (id, row) in rows {
        // A row that can't be written has no form to compare; it then differs from what is stored.
        all.insert(format!("{table}/{id}"), serde_json::to_value(row).unwrap_or(Value::Null));
    }
}

/// The fields that differ, with both values.
fn fields(stored: &Value, replayed: &Value) -> String {
    let (Some(stored), Some(replayed)) = (stored.as_object(), replayed.as_object()) else {
        return format!("{stored} and {replayed}");
    };
    let names = stored.keys().chain(replayed.keys().filter(|name| !stored.contains_key(*name)));
    let differing: Vec<String> = names
        .filter(|name| stored.get(*name) != replayed.get(*name))
        .map(|name| {
            let text = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            format!("`{name}`: {} and {}", text(stored.get(name)), text(replayed.get(name)))
        })
        .collect();
    differing.join(", ")
}
