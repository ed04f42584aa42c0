//! Gemini `generateContent`: what its requests say and how its answers look.
//! Shapes: the public API reference of the Gemini API, "Generating content".

use serde_json::{Value, json};

use super::cache::part;
use super::conversation::{Api, Conversation, Item, Tool, ToolForm, list, text};
use super::reply::{Content, Reply, Stream, Usage, data_event};
use super::tools::Arguments;

/// The model and whether the answer is streamed stand in the address.
pub(super) fn read(body: &Value, model: &str, stream: bool) -> Conversation {
    let mut items = Vec::new();
    for content in list(body, "contents") {
        let from_user = text(content, "role") != "model";
        for piece in list(content, "parts") {
            if let Some(call) = piece.get("functionCall") {
                items.push(Item::Call { tool: text(call, "name").to_owned() });
            } else if let Some(response) = piece.get("functionResponse") {
                items.push(Item::ToolResult(response_text(response.get("response").unwrap_or(&Value::Null))));
            } else if from_user {
                items.push(Item::User(text(piece, "text").to_owned()));
            } else {
                items.push(Item::Assistant);
            }
        }
    }
    let declared = list(body, "tools").iter().flat_map(|group| list(group, "functionDeclarations"));
    let mut parts: Vec<String> = list(body, "tools").iter().map(part).collect();
    parts.extend(body.get("systemInstruction").map(part));
    parts.extend(list(body, "contents").iter().map(part));
    Conversation {
        api: Api::Gemini,
        model: model.to_owned(),
        stream,
        tools: declared.map(tool).collect(),
        items,
        parts,
    }
}

fn response_text(response: &Value) -> String {
    match response.get("output").or_else(|| response.get("result")) {
        Some(Value::String(text)) => text.clone(),
        _ => response.to_string(),
    }
}

fn tool(value: &Value) -> Tool {
    let schema = value.get("parametersJsonSchema").or_else(|| value.get("parameters"));
    Tool {
        namespace: None,
        name: text(value, "name").to_owned(),
        schema: schema.cloned().unwrap_or(Value::Null),
        form: ToolForm::Object,
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "promptTokenCount": usage.whole_input(),
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.whole_input() + usage.output,
    })
}

fn candidate(reply: &Reply, parts: Value, ended: bool) -> Value {
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
    let mut answer = json!({ "modelVersion": reply.model, "responseId": format!("mock{:08}", reply.number) });
    if ended && let Some(fields) = candidate.as_object_mut() {
        fields.insert("finishReason".to_owned(), json!("STOP"));
    }
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("candidates".to_owned(), json!([candidate]));
        fields.insert("usageMetadata".to_owned(), usage(reply.usage));
    }
    answer
}

fn call_part(reply: &Reply) -> Option<Value> {
    let Content::Call(call) = &reply.content else { return None };
    let arguments = match &call.arguments {
        Arguments::Object(value) => value.clone(),
        Arguments::Text(text) => json!({ "input": text }),
    };
    Some(json!({ "functionCall": { "name": call.name, "args": arguments } }))
}

pub(super) fn whole(reply: &Reply) -> Value {
    let part = match (&reply.content, call_part(reply)) {
        (Content::Text(pieces), _) => json!({ "text": pieces.concat() }),
        (Content::Call(_), call) => json!(call),
    };
    candidate(reply, json!([part]), true)
}

pub(super) fn stream(reply: &Reply) -> Stream {
    match (&reply.content, call_part(reply)) {
        (Content::Text(pieces), _) => Stream {
            head: Vec::new(),
            pieces: pieces
                .iter()
                .map(|piece| data_event(&candidate(reply, json!([{ "text": piece }]), false)))
                .collect(),
            tail: vec![data_event(&candidate(reply, json!([{ "text": "" }]), true))],
        },
        (Content::Call(_), call) => Stream {
            head: Vec::new(),
            pieces: vec![data_event(&candidate(reply, json!([call]), true))],
            tail: Vec::new(),
        },
    }
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let name = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        400..=499 => "INVALID_ARGUMENT",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({ "error": { "code": status, "message": message, "status": name } })
}
