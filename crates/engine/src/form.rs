//! A person's answer to a form, held against its fields.

use rallypoint_model::question::{Answer, AskField, AskForm};
use serde_json::{Map, Number, Value};

/// The values of an answer by the name of their field. An error says what is missing or does not fit.
pub fn content_of(form: &AskForm, answer: &Answer) -> Result<Map<String, Value>, String> {
    let given = match answer {
        Answer::Value { value: Value::Object(given) } => given.clone(),
        Answer::Value { .. } => return Err("the values of a form are an object".to_owned()),
        Answer::Accept { .. } | Answer::Allow => Map::new(),
        Answer::Text { text } | Answer::Option { option_id: text } => match form.fields.as_slice() {
            [] => return Err("there is nothing to fill in".to_owned()),
            [only] => Map::from_iter([(only.name.clone(), Value::String(text.clone()))]),
            _ => return Err("the form has more than one field".to_owned()),
        },
        Answer::Decline { .. } => return Err("the form is declined".to_owned()),
    };
    if let Some(name) = given.keys().find(|name| !form.fields.iter().any(|field| field.name == **name)) {
        let known: Vec<&str> = form.fields.iter().map(|field| field.name.as_str()).collect();
        return Err(format!("there is no field `{name}`; the fields are: {}", known.join(", ")));
    }
    let mut content = Map::new();
    for field in &form.fields {
        match given.get(&field.name) {
            Some(value) => {
                content.insert(field.name.clone(), fitting(field, value)?);
            }
            None if field.required => return Err(format!("the field `{}` has to be filled in", field.name)),
            None => {}
        }
    }
    Ok(content)
}

/// Where to go and the command that answers, in words for a person.
pub fn how_to_answer(form: &AskForm, question_id: &str) -> String {
    let fields: Vec<String> = form.fields.iter().map(field_words).collect();
    let command = format!("rally question answer {question_id}");
    match (&form.url, fields.is_empty()) {
        (Some(url), _) => format!(
            "Open this address yourself if you trust it: {url}\nThen `{command} --accept`, or `--decline REASON`."
        ),
        (None, true) => format!("Answer with `{command} --accept` or `--decline REASON`."),
        (None, false) => {
            format!(
                "Answer with `{command}` and, for each field, `--field NAME=VALUE`: {}.",
                fields.join("; ")
            )
        }
    }
}

fn field_words(field: &AskField) -> String {
    let mut words = format!("`{}`", field.name);
    if let Some(title) = field.title.as_ref().filter(|title| **title != field.name) {
        words.push_str(&format!(" ({title})"));
    }
    if field.values.is_empty() {
        words.push_str(&format!(", {}", field.kind));
    } else {
        words.push_str(&format!(", one of {}", field.values.join(", ")));
    }
    if !field.required {
        words.push_str(", optional");
    }
    words
}

/// The value in the form that the field asks for. What a person types is text, so text that reads as a number or as
/// yes or no is taken for one.
fn fitting(field: &AskField, value: &Value) -> Result<Value, String> {
    let wrong = |what: &str| Err(format!("the field `{}` takes {what}", field.name));
    match (field.kind.as_str(), value) {
        ("boolean", Value::Bool(_)) => Ok(value.clone()),
        ("boolean", Value::String(text)) => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "y" => Ok(Value::Bool(true)),
            "false" | "no" | "n" => Ok(Value::Bool(false)),
            _ => wrong("true or false"),
        },
        ("integer", Value::Number(number)) if number.is_i64() => Ok(value.clone()),
        ("integer", Value::String(text)) => {
            text.trim().parse::<i64>().map(Value::from).or_else(|_| wrong("a whole number"))
        }
        ("number", Value::Number(_)) => Ok(value.clone()),
        ("number", Value::String(text)) => match text.trim().parse::<f64>().ok().and_then(Number::from_f64) {
            Some(number) => Ok(Value::Number(number)),
            None => wrong("a number"),
        },
        ("array", Value::Array(items)) => {
            items.iter().try_for_each(|item| one_of(field, item))?;
            Ok(value.clone())
        }
        ("array", Value::String(text)) => {
            let items: Vec<Value> = text
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| Value::String(item.to_owned()))
                .collect();
            items.iter().try_for_each(|item| one_of(field, item))?;
            Ok(Value::Array(items))
        }
        ("boolean", _) => wrong("true or false"),
        ("integer", _) => wrong("a whole number"),
        ("number", _) => wrong("a number"),
        ("array", _) => wrong("a list"),
        ("string", Value::String(_)) => one_of(field, value).map(|()| value.clone()),
        ("string", _) => wrong("text"),
        // A kind that is not known here goes to the agent as it was given.
        _ => Ok(value.clone()),
    }
}

fn one_of(field: &AskField, value: &Value) -> Result<(), String> {
    let text = value.as_str();
    if field.values.is_empty() || text.is_some_and(|text| field.values.iter().any(|each| each == text)) {
        return Ok(());
    }
    Err(format!("the field `{}` takes one of: {}", field.name, field.values.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(name: &str, kind: &str, required: bool, values: &[&str]) -> AskField {
        AskField {
            name: name.to_owned(),
            kind: kind.to_owned(),
            required,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            ..AskField::default()
        }
    }

    fn form() -> AskForm {
        AskForm {
            fields: vec![
                field("branch", "string", true, &["main", "next"]),
                field("depth", "integer", false, &[]),
                field("ratio", "number", false, &[]),
                field("push", "boolean", false, &[]),
                field("tags", "array", false, &["a", "b"]),
            ],
            url: None,
        }
    }

    #[test]
    fn typed_words_become_the_kind_of_their_field() {
        let value = json!({"branch": "main", "depth": "3", "ratio": "0.5", "push": "yes", "tags": "a, b"});
        let content = content_of(&form(), &Answer::Value { value }).unwrap();
        assert_eq!(
            Value::Object(content),
            json!({"branch": "main", "depth": 3, "ratio": 0.5, "push": true, "tags": ["a", "b"]})
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_field() {
        for (value, words) in [
            (json!({}), "`branch` has to be filled in"),
            (json!({"branch": "old"}), "`branch` takes one of: main, next"),
            (json!({"branch": "main", "depth": "deep"}), "`depth` takes a whole number"),
            (json!({"branch": "main", "ratio": true}), "`ratio` takes a number"),
            (json!({"branch": "main", "push": "perhaps"}), "`push` takes true or false"),
            (json!({"branch": "main", "tags": ["c"]}), "`tags` takes one of: a, b"),
            (json!({"branch": "main", "other": 1}), "there is no field `other`"),
            (json!([1]), "are an object"),
        ] {
            let problem = content_of(&form(), &Answer::Value { value: value.clone() }).unwrap_err();
            assert!(problem.contains(words), "{value}: {problem}");
        }
    }

    #[test]
    fn one_field_takes_words_and_no_field_takes_a_yes() {
        let one = AskForm { fields: vec![field("port", "integer", true, &[])], url: None };
        let text = |text: &str| Answer::Text { text: text.to_owned() };
        assert_eq!(Value::Object(content_of(&one, &text("80")).unwrap()), json!({"port": 80}));
        let none = AskForm { fields: Vec::new(), url: Some("https://example.org".to_owned()) };
        assert!(content_of(&none, &Answer::Allow).unwrap().is_empty());
        assert!(content_of(&none, &text("done")).is_err());
        assert!(content_of(&form(), &text("main")).is_err());
    }
}
