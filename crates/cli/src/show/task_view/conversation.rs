//! What agents offer in their conversations, and helpers that they have of their own.

use rallypoint_model::agent_offer::{ConversationOffer, OfferedValue};
use rallypoint_model::attachment::Attachment;
use rallypoint_ops::types::SessionView;

use crate::show::table::Table;
use crate::show::text::{brief, table_columns};

/// Columns of the list of values.
const VALUES: usize = 80;

/// What can be set in each conversation, how it stands, and what it takes.
pub(super) fn settings(sessions: &[SessionView]) -> Vec<String> {
    let mut table = Table::new(&["NAME", "SETTING", "NOW", "OFFERED"]);
    let mut any = false;
    for session in sessions {
        for (setting, now, values) in session.offer.as_ref().map(rows).unwrap_or_default() {
            any = true;
            table.row(&[&session.label, &setting, &now, &brief(&values, VALUES)]);
        }
    }
    if any { table.lines(table_columns().saturating_sub(2)) } else { Vec::new() }
}

/// Options first; the older blocks of modes and models where no option stands for them.
fn rows(offer: &ConversationOffer) -> Vec<(String, String, String)> {
    let words = |values: &[OfferedValue]| {
        values.iter().map(|each| each.value.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut rows: Vec<(String, String, String)> = offer
        .options
        .iter()
        .map(|option| {
            let values = match option.kind.as_str() {
                "boolean" => "true, false".to_owned(),
                _ => words(&option.values),
            };
            (option.id.clone(), option.current.clone(), values)
        })
        .collect();
    let has = |category: &str| offer.options.iter().any(|option| option.category == category);
    for (name, choice) in [("mode", &offer.modes), ("model", &offer.models)] {
        if let Some(choice) = choice.as_ref().filter(|_| !has(name)) {
            rows.push((name.to_owned(), choice.current.clone(), words(&choice.values)));
        }
    }
    rows
}

/// Files that went with the goal.
pub(super) fn files(attachments: &[Attachment]) -> Vec<String> {
    let line = |file: &Attachment| {
        brief(&format!("{} ({}, {} bytes)", file.path, file.mime_type, file.bytes), 2 * VALUES)
    };
    attachments.iter().map(line).collect()
}

/// Helpers of each agent.
pub(super) fn helpers(sessions: &[SessionView]) -> Vec<String> {
    let mut table = Table::new(&["NAME", "HELPER", "STATE", "TITLE"]);
    let mut any = false;
    for session in sessions {
        for helper in &session.native_agents {
            any = true;
            let state = match (&helper.stop_reason, helper.state.as_str()) {
                (Some(reason), "idle") => format!("idle, {reason}"),
                (_, "") => "unknown".to_owned(),
                (_, state) => state.to_owned(),
            };
            let title = helper.title.as_deref().or(helper.description.as_deref()).unwrap_or_default();
            table.row(&[&session.label, &helper.agent_session_id, &state, &brief(title, VALUES)]);
        }
    }
    if any { table.lines(table_columns().saturating_sub(2)) } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use rallypoint_model::agent_offer::{OfferedChoice, OfferedOption};

    use super::*;

    #[test]
    fn a_block_of_modes_is_shown_only_where_no_option_stands_for_it() {
        let values = |words: &[&str]| -> Vec<OfferedValue> {
            words.iter().map(|word| OfferedValue { value: (*word).to_owned(), name: String::new() }).collect()
        };
        let choice = || Some(OfferedChoice { current: "a".to_owned(), values: values(&["a", "b"]) });
        let mut offer = ConversationOffer { modes: choice(), models: choice(), options: vec![] };
        let names = |offer: &ConversationOffer| -> Vec<String> {
            rows(offer).into_iter().map(|(name, now, values)| format!("{name}={now} of {values}")).collect()
        };
        assert_eq!(names(&offer), ["mode=a of a, b", "model=a of a, b"]);
        offer.options.push(OfferedOption {
            id: "way".to_owned(),
            category: "mode".to_owned(),
            kind: "select".to_owned(),
            current: "b".to_owned(),
            values: values(&["b"]),
            ..OfferedOption::default()
        });
        assert_eq!(names(&offer), ["way=b of b", "model=a of a, b"]);
    }
}
