//! Forms of an agent, answered at the keyboard.

use rallypoint_model::question::{Answer, AskForm};
use serde_json::{Map, Value};

/// How a form is answered.
pub(super) const HOW: &str = "type NAME=VALUE for each field with `;` between them, or `n` to refuse";

/// Lines that say what is to be filled in or opened.
pub(super) fn prompt(form: &AskForm) -> Vec<String> {
    if form.fields.is_empty() {
        return vec!["type `y` once it is done, or `n` to refuse".to_owned()];
    }
    let mut lines: Vec<String> = form
        .fields
        .iter()
        .map(|field| {
            let any = field.values.is_empty();
            let what = if any { field.kind.clone() } else { field.values.join(", ") };
            let optional = if field.required { "" } else { ", may be left out" };
            crate::show::text::brief(&format!("  {}: {what}{optional}", field.name), super::COLUMNS)
        })
        .collect();
    lines.push(match form.fields.as_slice() {
        [_] => "type the value, or `n` to refuse".to_owned(),
        _ => HOW.to_owned(),
    });
    lines
}

/// The answer that a line means; `None` for one that means none, a no included.
pub(super) fn understood(form: &AskForm, line: &str) -> Option<Answer> {
    let word = line.to_lowercase();
    match form.fields.as_slice() {
        [] => matches!(word.as_str(), "y" | "yes").then(|| Answer::Accept { reason: String::new() }),
        [_] if !line.is_empty() && !matches!(word.as_str(), "n" | "no") && !line.contains('=') => {
            Some(Answer::Text { text: line.to_owned() })
        }
        _ => {
            let mut values = Map::new();
            for pair in line.split(';').map(str::trim).filter(|pair| !pair.is_empty()) {
                let (name, value) = pair.split_once('=')?;
                values.insert(name.trim().to_owned(), Value::String(value.trim().to_owned()));
            }
            (!values.is_empty()).then_some(Answer::Value { value: Value::Object(values) })
        }
    }
}

#[cfg(test)]
mod tests {
    use rallypoint_model::question::AskField;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_fills_in_what_the_form_has() {
        let field = |name: &str| AskField { name: name.to_owned(), ..AskField::default() };
        let form =
            |names: &[&str]| AskForm { fields: names.iter().map(|name| field(name)).collect(), url: None };
        let value = |value: Value| Some(Answer::Value { value });
        assert_eq!(understood(&form(&["a", "b"]), "a=1; b = two"), value(json!({"a": "1", "b": "two"})));
        assert_eq!(understood(&form(&["a", "b"]), "only words"), None);
        assert_eq!(understood(&form(&["a"]), "80"), Some(Answer::Text { text: "80".to_owned() }));
        assert_eq!(understood(&form(&["a"]), "n"), None);
        assert_eq!(understood(&form(&[]), "Y"), Some(Answer::Accept { reason: String::new() }));
        assert_eq!(understood(&form(&[]), "maybe"), None);
    }
}
