//! Tool calls as far as one frame describes them, and the choices of a permission request.

use serde_json::{Map, Value};

use rallypoint_model::agent_io::ToolCallView;
use rallypoint_model::question::ApprovalOption;

use super::lenient;

/// The view of a `tool_call`, a `tool_call_update` or the `toolCall` of a
/// permission request. `None` without an id, since updates are upserts by it.
pub(super) fn view(mut object: Map<String, Value>) -> Option<ToolCallView> {
    let tool_call_id = lenient::take_string(&mut object, "toolCallId")?;
    object.shift_remove("sessionUpdate");
    let title = lenient::take_string(&mut object, "title");
    let tool_kind = lenient::take_string(&mut object, "kind");
    let status = lenient::take_string(&mut object, "status");
    let text = take_text(&mut object);
    let locations = take_locations(&mut object);
    object.retain(|_, value| !value.is_null());
    let raw = if object.is_empty() { Value::Null } else { Value::Object(object) };
    Some(ToolCallView { tool_call_id, title, tool_kind, status, text, locations, raw })
}

/// The choices of a permission request, in the agent's order.
pub(super) fn options(value: Option<&Value>) -> Vec<ApprovalOption> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(option).collect()
}

fn option(item: &Value) -> Option<ApprovalOption> {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    let option_id = text("optionId").or_else(|| text("id"))?;
    Some(ApprovalOption {
        option_id: option_id.to_owned(),
        name: text("name").or_else(|| text("label")).unwrap_or(option_id).to_owned(),
        kind: text("kind").unwrap_or_default().to_owned(),
    })
}

/// Takes the content out when all of it is text; what a reader cannot see in
/// the text (the two sides of a diff, a terminal) stays raw beside it.
fn take_text(object: &mut Map<String, Value>) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut all_text = true;
    match object.get("content") {
        Some(Value::Array(items)) => {
            for item in items {
                let (part, is_text) = content_text(item);
                parts.extend(part);
                all_text &= is_text;
            }
        }
        Some(Value::String(text)) => parts.push(text.clone()),
        Some(Value::Null) | None => {}
        Some(single) => {
            let (part, is_text) = content_text(single);
            parts.extend(part);
            all_text &= is_text;
        }
    }
    if all_text {
        object.shift_remove("content");
    }
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// Text of one content item, and whether it says all there is.
fn content_text(item: &Value) -> (Option<String>, bool) {
    let member = |name: &str| item.get(name).and_then(Value::as_str);
    match member("type") {
        Some("content") => item.get("content").map_or((None, false), content_text),
        Some("text") => (member("text").map(str::to_owned), member("text").is_some()),
        Some("diff") => (member("path").map(|path| format!("changed `{path}`")), false),
        Some("resource_link") => (member("uri").map(str::to_owned), false),
        _ => (None, false),
    }
}

fn take_locations(object: &mut Map<String, Value>) -> Vec<String> {
    let items = object.get("locations").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let locations: Vec<String> = items
        .iter()
        .filter_map(|item| item.get("path").unwrap_or(item).as_str().map(str::to_owned))
        .collect();
    let only_paths = items.iter().all(|item| item.as_object().is_none_or(|members| members.len() == 1));
    if only_paths && locations.len() == items.len() {
        object.shift_remove("locations");
    }
    locations
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn viewed(value: Value) -> ToolCallView {
        let Value::Object(object) = value else { unreachable!() };
        view(object).unwrap()
    }

    #[test]
    fn text_is_joined_and_the_rest_is_kept_raw() {
        let call = viewed(json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": "edit", "kind": "edit",
            "status": "completed", "rawInput": {"a": 1}, "_meta": {"tool_name": "bash"}, "rawOutput": null,
            "content": [
                {"type": "content", "content": {"type": "text", "text": "one"}},
                {"type": "diff", "path": "/w/a.rs", "oldText": "x", "newText": "y"},
            ],
            "locations": [{"path": "/w/a.rs"}],
        }));
        assert_eq!(call.text.as_deref(), Some("one\nchanged `/w/a.rs`"));
        assert_eq!(call.locations, ["/w/a.rs"]);
        assert_eq!(call.status.as_deref(), Some("completed"));
        let names: Vec<&String> = call.raw.as_object().unwrap().keys().collect();
        assert_eq!(names, ["rawInput", "_meta", "content"]);
    }

    #[test]
    fn an_update_may_say_almost_nothing() {
        let call = viewed(json!({"toolCallId": "c1", "title": null, "content": []}));
        assert_eq!((call.title, call.text, call.raw), (None, None, Value::Null));
    }

    #[test]
    fn values_of_an_unknown_form_stay_raw() {
        let call = viewed(
            json!({"toolCallId": "c1", "status": 5, "kind": "teleport", "locations": [{"path": "/a", "line": 3}]}),
        );
        assert_eq!(call.status, None);
        assert_eq!(call.tool_kind.as_deref(), Some("teleport"));
        assert_eq!(call.raw, json!({"status": 5, "locations": [{"path": "/a", "line": 3}]}));
        assert_eq!(call.locations, ["/a"]);
    }

    #[test]
    fn options_keep_their_order_and_unknown_kinds() {
        let raw = json!([{"optionId": "no", "name": "No", "kind": "reject_once"}, {"optionId": "x", "kind": "maybe"}, {"name": "lost"}, 7]);
        let found = options(Some(&raw));
        let seen: Vec<(&str, &str, &str)> =
            found.iter().map(|option| (&*option.option_id, &*option.name, &*option.kind)).collect();
        assert_eq!(seen, [("no", "No", "reject_once"), ("x", "x", "maybe")]);
    }
}
