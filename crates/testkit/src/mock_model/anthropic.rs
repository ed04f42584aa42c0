//! Anthropic Messages: what its requests say and how its answers look.
//! Shapes: the public API reference of Anthropic, "Messages" and "Streaming messages".

use serde_json::{Value, json};

use super::cache::part;
use super::conversation::{Api, Conversation, Item, Tool, ToolForm, list, text, texts_of};
use super::reply::{Content, Reply, Stream, Usage, named_event};
use super::tools::Arguments;

pub(super) fn read(body: &Value) -> Conversation {
    let mut items = Vec::new();
    let mut parts: Vec<String> = list(body, "tools").iter().map(part).collect();
    parts.extend(blocks(body.get("system").unwrap_or(&Value::Null)).iter().map(part));
    for message in list(body, "messages") {
        let from_user = text(message, "role") != "assistant";
        for block in blocks(message.get("content").unwrap_or(&Value::Null)) {
            parts.push(format!("{from_user} {}", part(&block)));
            items.push(match text(&block, "type") {
                "tool_use" => Item::Call { tool: text(&block, "name").to_owned() },
                "tool_result" => Item::ToolResult(result_text(block.get("content").unwrap_or(&Value::Null))),
                "text" if from_user => Item::User(text(&block, "text").to_owned()),
                _ => Item::Assistant,
            });
        }
    }
    Conversation {
        api: Api::AnthropicMessages,
        model: text(body, "model").to_owned(),
        stream: body.get("stream") == Some(&Value::Bool(true)),
        tools: list(body, "tools").iter().map(tool).collect(),
        items,
        parts,
    }
}

/// A content field as blocks; a bare string is one block of text.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

/// Text of a tool's result; a found tool is named in a reference instead.
fn result_text(content: &Value) -> String {
    let references = content.as_array().map_or(&[][..], Vec::as_slice).iter();
    let names = references.filter_map(|block| block.get("tool_name")?.as_str()).map(str::to_owned);
    texts_of(content).into_iter().chain(names).collect::<Vec<_>>().join("\n")
}

fn tool(value: &Value) -> Tool {
    Tool {
        name: text(value, "name").to_owned(),
        namespace: None,
        schema: value.get("input_schema").cloned().unwrap_or(Value::Null),
        form: ToolForm::Object,
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    })
}

/// Content block, its streamed beginning, and the stop reason.
fn shape(reply: &Reply) -> (Value, Value, &'static str) {
    match &reply.content {
        Content::Text(pieces) => {
            let begin = json!({ "type": "text", "text": "" });
            (json!({ "type": "text", "text": pieces.concat() }), begin, "end_turn")
        }
        Content::Call(call) => {
            let id = format!("toolu_mock{:08}", reply.number);
            let input = match &call.arguments {
                Arguments::Object(value) => value.clone(),
                Arguments::Text(text) => json!({ "input": text }),
            };
            let block =
                |input: Value| json!({ "type": "tool_use", "id": id, "name": call.name, "input": input });
            (block(input), block(json!({})), "tool_use")
        }
    }
}

fn message(reply: &Reply) -> Value {
    json!({
        "id": format!("msg_mock{:08}", reply.number),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(Usage { output: 1, ..reply.usage }),
    })
}

pub(super) fn whole(reply: &Reply) -> Value {
    let (block, _, stop) = shape(reply);
    let mut message = message(reply);
    if let Some(fields) = message.as_object_mut() {
        fields.insert("content".to_owned(), json!([block]));
        fields.insert("stop_reason".to_owned(), json!(stop));
        fields.insert("usage".to_owned(), usage(reply.usage));
    }
    message
}

pub(super) fn stream(reply: &Reply) -> Stream {
    let (block, begin, stop) = shape(reply);
    let delta =
        |delta: Value| named_event(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }));
    let pieces = match &reply.content {
        Content::Text(pieces) => {
            pieces.iter().map(|piece| delta(json!({ "type": "text_delta", "text": piece }))).collect()
        }
        Content::Call(_) => {
            let input = block.get("input").unwrap_or(&Value::Null).to_string();
            vec![delta(json!({ "type": "input_json_delta", "partial_json": input }))]
        }
    };
    Stream {
        head: vec![
            named_event(&json!({ "type": "message_start", "message": message(reply) })),
            named_event(&json!({ "type": "content_block_start", "index": 0, "content_block": begin })),
        ],
        pieces,
        tail: vec![
            named_event(&json!({ "type": "content_block_stop", "index": 0 })),
            named_event(&json!({
                "type": "message_delta",
                "delta": { "stop_reason": stop, "stop_sequence": null },
                "usage": usage(reply.usage),
            })),
            named_event(&json!({ "type": "message_stop" })),
        ],
    }
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}
