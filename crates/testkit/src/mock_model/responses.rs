//! OpenAI Responses: what its requests say and how its answers look.
//! Shapes: the public API reference of OpenAI, "Responses" and "Streaming events".

use serde_json::{Value, json};

use super::cache::part;
use super::conversation::{Api, Conversation, Item, Tool, ToolForm, list, text, texts_of};
use super::reply::{Content, Reply, Stream, Usage, named_event};
use super::tools::Arguments;

pub(super) fn read(body: &Value) -> Conversation {
    let mut items = Vec::new();
    let input = body.get("input").unwrap_or(&Value::Null);
    if let Value::String(text) = input {
        items.push(Item::User(text.clone()));
    }
    let history = list(body, "input");
    for entry in history {
        match text(entry, "type") {
            "function_call" | "custom_tool_call" | "local_shell_call" => {
                items.push(Item::Call { tool: text(entry, "name").to_owned() });
            }
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                items.push(Item::ToolResult(output_text(entry.get("output").unwrap_or(&Value::Null))));
            }
            "message" | "" if text(entry, "role") == "user" => {
                let content = entry.get("content").unwrap_or(&Value::Null);
                items.extend(texts_of(content).into_iter().map(Item::User));
            }
            "message" | "" if text(entry, "role") == "assistant" => items.push(Item::Assistant),
            _ => {}
        }
    }
    let mut parts: Vec<String> = list(body, "tools").iter().map(part).collect();
    parts.extend(body.get("instructions").map(part));
    parts.extend(history.iter().map(part));
    Conversation {
        api: Api::OpenaiResponses,
        model: text(body, "model").to_owned(),
        stream: body.get("stream") == Some(&Value::Bool(true)),
        tools: list(body, "tools").iter().flat_map(tools).collect(),
        items,
        parts,
    }
}

/// The tools of an entry: itself, or those of a namespace, such as an MCP server's.
fn tools(value: &Value) -> Vec<Tool> {
    let form = match text(value, "type") {
        "function" => ToolForm::Object,
        "custom" => ToolForm::Text,
        "namespace" => {
            let namespace = text(value, "name");
            let within = list(value, "tools").iter().flat_map(tools);
            return within.map(|tool| Tool { namespace: Some(namespace.to_owned()), ..tool }).collect();
        }
        _ => return Vec::new(),
    };
    let schema = value.get("parameters").cloned().unwrap_or(Value::Null);
    vec![Tool { name: text(value, "name").to_owned(), namespace: None, schema, form }]
}

fn output_text(output: &Value) -> String {
    match output {
        Value::Array(_) => texts_of(output).join("\n"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.whole_input(),
        "input_tokens_details": { "cached_tokens": usage.cache_read },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": usage.whole_input() + usage.output,
    })
}

/// The output item of an answer: as it begins and as it ends.
fn output_item(reply: &Reply) -> (Value, Value) {
    match &reply.content {
        Content::Text(pieces) => {
            let id = format!("msg_mock{:08}", reply.number);
            let item = |status: &str, content: Value| json!({ "type": "message", "id": id, "role": "assistant", "status": status, "content": content });
            let whole = json!([{ "type": "output_text", "text": pieces.concat(), "annotations": [] }]);
            (item("in_progress", json!([])), item("completed", whole))
        }
        Content::Call(call) => {
            let (id, call_id) =
                (format!("fc_mock{:08}", reply.number), format!("call_mock{:08}", reply.number));
            let mut item = match &call.arguments {
                Arguments::Object(value) => json!({
                    "type": "function_call", "id": id, "call_id": call_id, "status": "completed",
                    "name": call.name, "arguments": value.to_string(),
                }),
                Arguments::Text(text) => json!({
                    "type": "custom_tool_call", "id": id, "call_id": call_id, "status": "completed",
                    "name": call.name, "input": text,
                }),
            };
            if let (Some(namespace), Some(item)) = (&call.namespace, item.as_object_mut()) {
                item.insert("namespace".to_owned(), json!(namespace));
            }
            (item.clone(), item)
        }
    }
}

fn response(reply: &Reply, status: &str, output: Value) -> Value {
    json!({
        "id": format!("resp_mock{:08}", reply.number),
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": reply.model,
        "output": output,
        "usage": if status == "completed" { usage(reply.usage) } else { Value::Null },
    })
}

pub(super) fn whole(reply: &Reply) -> Value {
    response(reply, "completed", json!([output_item(reply).1]))
}

pub(super) fn stream(reply: &Reply) -> Stream {
    let (begun, ended) = output_item(reply);
    let id = text(&begun, "id").to_owned();
    let pieces = match &reply.content {
        Content::Text(pieces) => pieces
            .iter()
            .map(|piece| {
                named_event(&json!({
                    "type": "response.output_text.delta", "item_id": id,
                    "output_index": 0, "content_index": 0, "delta": piece,
                }))
            })
            .collect(),
        Content::Call(_) => Vec::new(),
    };
    let started = response(reply, "in_progress", json!([]));
    let completed = response(reply, "completed", json!([ended]));
    Stream {
        head: vec![
            named_event(&json!({ "type": "response.created", "response": started })),
            named_event(&json!({ "type": "response.output_item.added", "output_index": 0, "item": begun })),
        ],
        pieces,
        tail: vec![
            named_event(&json!({ "type": "response.output_item.done", "output_index": 0, "item": ended })),
            named_event(&json!({ "type": "response.completed", "response": completed })),
        ],
    }
}
