//! The OpenAPI document, made from the registry.

use rallypoint_ops::{Delivery, Method, OPERATIONS, Operation, ProblemBody};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Describes every operation as OpenAPI 3.1.
pub fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let problem = generator.subschema_for::<ProblemBody>().to_value();
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let method = match operation.method {
            Method::Get => "get",
            Method::Post => "post",
            Method::Patch => "patch",
        };
        let described = describe(operation, &mut generator, &problem);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(method.to_owned(), described);
        }
    }
    let schemas = Value::Object(generator.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rallypoint",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn describe(operation: &Operation, generator: &mut SchemaGenerator, problem: &Value) -> Value {
    let output = (operation.output)(generator).to_value();
    let input = resolved((operation.input)(generator).to_value(), generator);
    let (path_fields, other_fields) = split(&input, operation.path);
    let mut parameters: Vec<Value> =
        path_fields.iter().map(|(name, schema)| parameter("path", name, schema, true)).collect();
    let mut described = json!({
        "operationId": operation.name,
        "summary": operation.summary,
        "x-role": operation.role.as_str(),
        "responses": {
            "200": { "description": "Done", "content": content(operation.delivery, output) },
            "default": {
                "description": "Refused: what happened, to what, what to do next",
                "content": { "application/problem+json": { "schema": problem } },
            },
        },
    });
    let Some(fields) = described.as_object_mut() else {
        return described;
    };
    match operation.method {
        Method::Get => parameters.extend(
            other_fields
                .iter()
                .map(|(name, schema)| parameter("query", name, schema, is_required(&input, name))),
        ),
        Method::Post | Method::Patch if other_fields.is_empty() => {}
        Method::Post | Method::Patch => {
            let body = body_schema(&input, other_fields);
            let required = body.get("required").is_some();
            fields.insert(
                "requestBody".to_owned(),
                json!({ "required": required, "content": { "application/json": { "schema": body } } }),
            );
        }
    }
    if operation.method != Method::Get {
        parameters.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "description": "The same key and input are carried out once and answered alike; another input under it is refused with `key_reused`.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        }));
    }
    if !parameters.is_empty() {
        fields.insert("parameters".to_owned(), Value::Array(parameters));
    }
    if operation.destructive {
        fields.insert("x-destructive".to_owned(), Value::Bool(true));
    }
    described
}

fn content(delivery: Delivery, output: Value) -> Value {
    match delivery {
        Delivery::Body => json!({ "application/json": { "schema": output } }),
        Delivery::Stream => json!({ "text/event-stream": { "schema": { "type": "string" } } }),
    }
}

fn parameter(place: &str, name: &str, schema: &Value, required: bool) -> Value {
    json!({ "name": name, "in": place, "required": required, "schema": schema })
}

/// The input's own schema, since its fields are spread over path, query and body.
fn resolved(schema: Value, generator: &SchemaGenerator) -> Value {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    match name.and_then(|name| generator.definitions().get(name)) {
        Some(definition) => definition.clone(),
        None => schema,
    }
}

type Fields = Map<String, Value>;

fn split(input: &Value, path: &str) -> (Fields, Fields) {
    let fields = input.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    fields.into_iter().partition(|(name, _)| path.contains(&format!("{{{name}}}")))
}

fn is_required(input: &Value, name: &str) -> bool {
    required_names(input).any(|each| each == name)
}

fn required_names(input: &Value) -> impl Iterator<Item = &str> {
    input.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn body_schema(input: &Value, fields: Fields) -> Value {
    let required: Vec<&str> = required_names(input).filter(|name| fields.contains_key(*name)).collect();
    let mut body = json!({ "type": "object", "properties": fields, "additionalProperties": false });
    if let Some(body) = body.as_object_mut().filter(|_| !required.is_empty()) {
        body.insert("required".to_owned(), json!(required));
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_described_and_every_reference_leads_somewhere() {
        let document = document();
        let mut described: Vec<String> = Vec::new();
        for path in document["paths"].as_object().unwrap().values() {
            for operation in path.as_object().unwrap().values() {
                described.push(operation["operationId"].as_str().unwrap().to_owned());
            }
        }
        described.sort();
        let mut declared: Vec<String> = OPERATIONS.iter().map(|each| each.name.to_owned()).collect();
        declared.sort();
        assert_eq!(described, declared);

        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }

    /// Whoever builds on it sees in its changes what changes for them. `RALLY_WRITE_OPENAPI=1` writes it anew.
    #[test]
    fn the_description_that_is_checked_in_is_the_one_that_is_served() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let served = format!("{}\n", serde_json::to_string_pretty(&document()).unwrap());
        if std::env::var_os("RALLY_WRITE_OPENAPI").is_some() {
            std::fs::write(path, &served).unwrap();
        }
        let checked_in = std::fs::read_to_string(path).unwrap();
        let differs = checked_in.lines().zip(served.lines()).find(|(known, now)| known != now);
        assert!(
            checked_in == served,
            "`docs/openapi.json` is not what is served ({differs:?}); run this test with `RALLY_WRITE_OPENAPI=1`"
        );
    }

    #[test]
    fn a_field_of_the_path_is_not_in_the_body_too() {
        let document = document();
        let retry = &document["paths"]["/v1/tasks/{taskId}/retry"]["post"];
        assert_eq!(retry["parameters"][0]["name"], "taskId");
        let body = &retry["requestBody"]["content"]["application/json"]["schema"];
        assert!(body["properties"].get("taskId").is_none());
        assert!(body["properties"].get("text").is_some());
        assert!(body.get("required").is_none());
    }
}
