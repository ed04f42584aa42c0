//! One request in the words of no provider in particular.

use serde::Serialize;
use serde_json::Value;

/// Which interface a request came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `POST /v1/messages`.
    AnthropicMessages,
    /// `POST /v1/chat/completions`.
    OpenaiChat,
    /// `POST /v1/responses`.
    OpenaiResponses,
    /// `POST /v1beta/models/{model}:generateContent` and its streaming sister.
    Gemini,
}

/// How the arguments of a tool are to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolForm {
    /// As an object after a JSON schema.
    Object,
    /// As free text (`custom` tools of the Responses interface).
    Text,
}

/// A tool that the agent offers.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    /// The group of tools that it belongs to, where the interface has such groups.
    pub(super) namespace: Option<String>,
    /// JSON schema of its arguments; null when it has none.
    pub(super) schema: Value,
    pub(super) form: ToolForm,
}

/// One piece of the history, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    User(String),
    Assistant,
    Call { tool: String },
    ToolResult(String),
}

/// What a request says.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    pub(super) api: Api,
    pub(super) model: String,
    pub(super) stream: bool,
    pub(super) tools: Vec<Tool>,
    pub(super) items: Vec<Item>,
    /// The parts that a provider's prompt cache works on, in the order in which it reads them.
    pub(super) parts: Vec<String>,
}

/// Beginnings of texts that agents put into the user's place by themselves.
const NOT_THE_USER: &[&str] =
    &["<system-reminder>", "Tool loaded.", "<environment_context>", "<user_instructions>"];

impl Conversation {
    /// The texts of the last turn of the user, and what came after it. What an agent put there by itself is no turn.
    pub(super) fn last_turn(&self) -> (Vec<&str>, &[Item]) {
        let is_user = |item: &Item| match item {
            Item::User(text) => {
                !NOT_THE_USER.iter().any(|beginning| text.trim_start().starts_with(beginning))
            }
            Item::Assistant | Item::Call { .. } | Item::ToolResult(_) => false,
        };
        let Some(last) = self.items.iter().rposition(is_user) else {
            return (Vec::new(), &[]);
        };
        let (until, after) = self.items.split_at(last + 1);
        let mut texts: Vec<&str> = until
            .iter()
            .rev()
            .map_while(|item| match item {
                Item::User(text) => Some(text.as_str()),
                Item::Assistant | Item::Call { .. } | Item::ToolResult(_) => None,
            })
            .collect();
        texts.reverse();
        (texts, after)
    }
}

/// The text of a content field, which is a string or a list of blocks with a `text` each.
pub(super) fn texts_of(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block.get("text")?.as_str()).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// The text of a field, empty when it is not there.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list field, none when it is not there.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
