//! The input of an operation from path, query and body: one JSON object, whatever way its fields came.

use std::sync::OnceLock;

use rallypoint_ops::{OPERATIONS, Operation};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::problems::Refused;

/// What the schema says of one field, as far as a text has to be turned into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldForm {
    Integer,
    Boolean,
    Other,
}

/// Fields of an operation's input by name.
type Fields = Vec<(String, FieldForm)>;

/// Puts the three sources together. A field may come one way only, and none may be unknown: a misspelt filter that
/// is silently ignored would answer with everything.
pub(crate) fn merge(
    operation: &Operation,
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    body: &[u8],
) -> Result<Value, Refused> {
    let fields = fields_of(operation);
    let mut input = body_object(body)?;
    for (name, text) in path {
        insert_once(&mut input, &name, Value::String(text))?;
    }
    for (name, text) in query {
        let form =
            fields.iter().find(|(field, _)| *field == name).map_or(FieldForm::Other, |(_, form)| *form);
        insert_once(&mut input, &name, from_text(&name, &text, form)?)?;
    }
    match input.keys().find(|name| !fields.iter().any(|(field, _)| field == *name)) {
        Some(name) => Err(unknown_field(operation, name, fields)),
        None => Ok(Value::Object(input)),
    }
}

fn body_object(body: &[u8]) -> Result<Map<String, Value>, Refused> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Refused::invalid("the body is JSON but not an object")),
        Err(error) => Err(Refused::invalid(format!("the body is not JSON: {error}"))),
    }
}

fn insert_once(input: &mut Map<String, Value>, name: &str, value: Value) -> Result<(), Refused> {
    match input.insert(name.to_owned(), value) {
        // A client that repeats the id of the path in the body says nothing new.
        Some(before) if Some(&before) != input.get(name) => {
            Err(Refused::invalid(format!("`{name}` is given twice with different values")))
        }
        _ => Ok(()),
    }
}

fn from_text(name: &str, text: &str, form: FieldForm) -> Result<Value, Refused> {
    match form {
        FieldForm::Integer => text
            .parse::<i64>()
            .map(Value::from)
            .map_err(|_| Refused::invalid(format!("`{name}` is `{text}`, but must be a whole number"))),
        FieldForm::Boolean => text
            .parse::<bool>()
            .map(Value::from)
            .map_err(|_| Refused::invalid(format!("`{name}` is `{text}`, but must be `true` or `false`"))),
        FieldForm::Other => Ok(Value::String(text.to_owned())),
    }
}

fn unknown_field(operation: &Operation, name: &str, fields: &Fields) -> Refused {
    let names: Vec<String> = fields.iter().map(|(field, _)| format!("`{field}`")).collect();
    let known =
        if names.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", names.join(", ")) };
    Refused::invalid(format!("`{}` has no field `{name}`; {known}", operation.name))
}

/// Compiled once: schemas are made by walking types, which is no work for every call.
fn fields_of(operation: &Operation) -> &'static Fields {
    static TABLE: OnceLock<Vec<(&'static str, Fields)>> = OnceLock::new();
    static NONE: Fields = Vec::new();
    TABLE
        .get_or_init(|| OPERATIONS.iter().map(|each| (each.name, read_fields(each))).collect())
        .iter()
        .find(|(name, _)| *name == operation.name)
        .map_or(&NONE, |(_, fields)| fields)
}

fn read_fields(operation: &Operation) -> Fields {
    let mut generator =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true).into_generator();
    let schema = (operation.input)(&mut generator);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    properties.iter().map(|(name, field)| (name.clone(), form_of(field))).collect()
}

fn form_of(field: &Value) -> FieldForm {
    let is = |wanted: &str| match field.get("type") {
        Some(Value::String(one)) => one == wanted,
        Some(Value::Array(several)) => several.iter().any(|each| each == wanted),
        _ => false,
    };
    if is("integer") {
        FieldForm::Integer
    } else if is("boolean") {
        FieldForm::Boolean
    } else {
        FieldForm::Other
    }
}

#[cfg(test)]
mod tests {
    use rallypoint_ops::registry::find;
    use serde_json::json;

    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn refused(result: Result<Value, Refused>) -> String {
        format!("{:?}", result.unwrap_err())
    }

    #[test]
    fn query_texts_become_what_the_schema_wants() {
        let query = pairs(&[("limit", "20"), ("cursor", "7"), ("status", "done")]);
        let input = merge(find("task.list").unwrap(), Vec::new(), query, b"").unwrap();
        assert_eq!(input, json!({"limit": 20, "cursor": "7", "status": "done"}));
    }

    #[test]
    fn path_and_body_are_one_object_and_an_empty_body_is_an_empty_object() {
        let retry = find("task.retry").unwrap();
        let input = merge(retry, pairs(&[("taskId", "a")]), Vec::new(), br#"{"text":"go on"}"#).unwrap();
        assert_eq!(input, json!({"taskId": "a", "text": "go on"}));
        let input = merge(retry, pairs(&[("taskId", "a")]), Vec::new(), b" \n").unwrap();
        assert_eq!(input, json!({"taskId": "a"}));
        let input = merge(retry, pairs(&[("taskId", "a")]), Vec::new(), br#"{"taskId":"a"}"#).unwrap();
        assert_eq!(input, json!({"taskId": "a"}));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        let list = find("task.list").unwrap();
        let retry = find("task.retry").unwrap();
        let taken = |query: &[(&str, &str)]| refused(merge(list, Vec::new(), pairs(query), b""));
        assert!(taken(&[("limit", "many")]).contains("`limit` is `many`"));
        assert!(taken(&[("state", "done")]).contains("no field `state`"));
        let twice = merge(retry, pairs(&[("taskId", "a")]), Vec::new(), br#"{"taskId":"b"}"#);
        assert!(refused(twice).contains("`taskId` is given twice"));
        assert!(refused(merge(retry, Vec::new(), Vec::new(), b"[1]")).contains("not an object"));
        assert!(refused(merge(retry, Vec::new(), Vec::new(), b"{")).contains("not JSON"));
    }
}
