//! OpenAI Chat Completions: what its requests say and how its answers look.
//! Shapes: the public API reference of OpenAI, "Chat" and "Streaming".

use serde_json::{Value, json};

use super::cache::part;
use super::conversation::{Api, Conversation, Item, Tool, ToolForm, list, text, texts_of};
use super::reply::{Content, Reply, Stream, Usage, data_event};
use super::tools::Arguments;

pub(super) fn read(body: &Value) -> Conversation {
    let mut items = Vec::new();
    for message in list(body, "messages") {
        let content = message.get("content").unwrap_or(&Value::Null);
        match text(message, "role") {
            "user" => items.extend(texts_of(content).into_iter().map(Item::User)),
            "tool" => items.push(Item::ToolResult(texts_of(content).join("\n"))),
            "assistant" => {
                items.push(Item::Assistant);
                items.extend(list(message, "tool_calls").iter().map(|call| Item::Call {
                    tool: text(call.get("function").unwrap_or(&Value::Null), "name").to_owned(),
                }));
            }
            _ => {}
        }
    }
    Conversation {
        api: Api::OpenaiChat,
        model: text(body, "model").to_owned(),
        stream: body.get("stream") == Some(&Value::Bool(true)),
        tools: list(body, "tools").iter().filter_map(|tool| tool.get("function")).map(function).collect(),
        items,
        parts: list(body, "tools").iter().chain(list(body, "messages")).map(part).collect(),
    }
}

fn function(value: &Value) -> Tool {
    Tool {
        namespace: None,
        name: text(value, "name").to_owned(),
        schema: value.get("parameters").cloned().unwrap_or(Value::Null),
        form: ToolForm::Object,
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.whole_input(),
        "completion_tokens": usage.output,
        "total_tokens": usage.whole_input() + usage.output,
        "prompt_tokens_details": { "cached_tokens": usage.cache_read },
    })
}

/// The calls of an answer, and why it ended.
fn calls(reply: &Reply) -> (Option<Value>, &'static str) {
    match &reply.content {
        Content::Text(_) => (None, "stop"),
        Content::Call(call) => {
            let arguments = match &call.arguments {
                Arguments::Object(value) => value.to_string(),
                Arguments::Text(text) => text.clone(),
            };
            let call = json!({
                "index": 0,
                "id": format!("call_mock{:08}", reply.number),
                "type": "function",
                "function": { "name": call.name, "arguments": arguments },
            });
            (Some(json!([call])), "tool_calls")
        }
    }
}

fn envelope(reply: &Reply, object: &str, choices: Value) -> Value {
    json!({
        "id": format!("chatcmpl-mock{:08}", reply.number),
        "object": object,
        "created": 0,
        "model": reply.model,
        "choices": choices,
    })
}

pub(super) fn whole(reply: &Reply) -> Value {
    let (calls, finish) = calls(reply);
    let message = match (&reply.content, calls) {
        (Content::Text(pieces), _) => json!({ "role": "assistant", "content": pieces.concat() }),
        (Content::Call(_), calls) => json!({ "role": "assistant", "content": null, "tool_calls": calls }),
    };
    let choices = json!([{ "index": 0, "message": message, "finish_reason": finish }]);
    let mut whole = envelope(reply, "chat.completion", choices);
    if let Some(fields) = whole.as_object_mut() {
        fields.insert("usage".to_owned(), usage(reply.usage));
    }
    whole
}

pub(super) fn stream(reply: &Reply) -> Stream {
    let (calls, finish) = calls(reply);
    let chunk = |delta: Value, finish: Value| {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
        data_event(&envelope(reply, "chat.completion.chunk", choices))
    };
    let pieces = match (&reply.content, calls) {
        (Content::Text(pieces), _) => {
            pieces.iter().map(|piece| chunk(json!({ "content": piece }), Value::Null)).collect()
        }
        (Content::Call(_), calls) => vec![chunk(json!({ "tool_calls": calls }), Value::Null)],
    };
    let mut last = envelope(reply, "chat.completion.chunk", json!([]));
    if let Some(fields) = last.as_object_mut() {
        fields.insert("usage".to_owned(), usage(reply.usage));
    }
    Stream {
        head: vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)],
        pieces,
        tail: vec![chunk(json!({}), json!(finish)), data_event(&last), "data: [DONE]\n\n".to_owned()],
    }
}

/// Errors of both OpenAI interfaces.
pub(super) fn error(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", json!("invalid_api_key")),
        429 => ("rate_limit_error", json!("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", Value::Null),
        _ => ("server_error", Value::Null),
    };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}
