//! Questions of an agent to a person.
//!
//! Shapes: Agent Client Protocol v1, "Elicitation": a form is a flat JSON schema, a visit is an address.

use serde_json::Value;

use rallypoint_model::agent_io::AgentItem;
use rallypoint_model::question::{AskField, AskForm};

use super::lenient;

/// Most characters of an address that is shown.
const URL_CHARS: usize = 2000;

/// The question, or the id back when it is of a mode that is not known here.
pub(super) fn asked(request_id: String, frame: u64, params: &Value) -> Result<AgentItem, String> {
    let form = match params.get("mode").and_then(Value::as_str) {
        Some("form") => AskForm { fields: fields(params.get("requestedSchema")), url: None },
        Some("url") => match params.get("url").and_then(Value::as_str) {
            Some(url) => AskForm { fields: Vec::new(), url: Some(lenient::shortened(url, URL_CHARS)) },
            None => return Err(request_id),
        },
        _ => return Err(request_id),
    };
    let title = params.get("requestedSchema").and_then(|schema| schema.get("title")).and_then(Value::as_str);
    let text = params.get("message").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let text = text.or(title).unwrap_or("asks for values").to_owned();
    Ok(AgentItem::ElicitationAsked { request_id, frame, text, form })
}

fn fields(schema: Option<&Value>) -> Vec<AskField> {
    let required: Vec<&str> = schema
        .and_then(|schema| schema.get("required"))
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let text = |key: &str| property.get(key).and_then(Value::as_str).map(str::to_owned);
            AskField {
                name: name.clone(),
                title: text("title"),
                description: text("description"),
                required: required.contains(&name.as_str()),
                kind: text("type").unwrap_or_default(),
                values: values(property),
                raw: property.clone(),
            }
        })
        .collect()
}

/// What a field takes: listed plainly, or each with a title, for one choice or for several.
fn values(property: &Value) -> Vec<String> {
    let plain = |holder: &Value| -> Option<Vec<String>> {
        let items = holder.get("enum").and_then(Value::as_array)?;
        Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    };
    let titled = |holder: &Value, key: &str| -> Option<Vec<String>> {
        let items = holder.get(key).and_then(Value::as_array)?;
        Some(items.iter().filter_map(|item| item.get("const")?.as_str().map(str::to_owned)).collect())
    };
    let items = property.get("items");
    plain(property)
        .or_else(|| titled(property, "oneOf"))
        .or_else(|| items.and_then(plain))
        .or_else(|| items.and_then(|items| titled(items, "anyOf").or_else(|| titled(items, "oneOf"))))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(params: Value) -> (String, AskForm) {
        match asked("7".to_owned(), 3, &params) {
            Ok(AgentItem::ElicitationAsked { request_id, frame: 3, text, form }) if request_id == "7" => {
                (text, form)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_form_keeps_its_fields_their_order_and_their_choices() {
        let (text, form) =
            form(json!({"sessionId": "s", "mode": "form", "message": "How?", "requestedSchema": {
            "type": "object", "required": ["way"], "properties": {
                "way": {"type": "string", "title": "Way", "enum": ["a", "b"]},
                "other": {"type": "string", "oneOf": [{"const": "x", "title": "X"}]},
                "many": {"type": "array", "items": {"type": "string", "enum": ["p", "q"]}},
                "more": {"type": "array", "items": {"anyOf": [{"const": "r", "title": "R"}]}},
                "depth": {"type": "integer", "minimum": 1},
            }}}));
        assert_eq!(text, "How?");
        let seen: Vec<String> = form
            .fields
            .iter()
            .map(|field| format!("{} {} {} {:?}", field.name, field.kind, field.required, field.values))
            .collect();
        assert_eq!(
            seen,
            [
                r#"way string true ["a", "b"]"#,
                r#"other string false ["x"]"#,
                r#"many array false ["p", "q"]"#,
                r#"more array false ["r"]"#,
                "depth integer false []",
            ]
        );
        assert_eq!(form.fields[4].raw["minimum"], 1);
    }

    #[test]
    fn an_address_is_kept_and_another_mode_is_not_known() {
        let (text, form) = form(json!({"mode": "url", "message": "Log in", "url": "https://example.org/x"}));
        assert_eq!((text.as_str(), form.url.as_deref()), ("Log in", Some("https://example.org/x")));
        for params in [json!({"mode": "voice", "message": "?"}), json!({"mode": "url"}), json!(null)] {
            assert!(asked("7".to_owned(), 3, &params).is_err());
        }
    }
}
