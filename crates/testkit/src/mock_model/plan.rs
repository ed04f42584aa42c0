//! What the model does with a request. Pure.

use serde_json::{Map, Value};

use super::conversation::{Conversation, Item};
use super::marker::Marker;
use super::tools::{self, Arguments, Call};

/// What is answered when nothing is asked for.
pub const PLAIN_ANSWER: &str = "The mock model has nothing to add.";
/// Beginning of what is answered after a tool's result.
const CLOSING: &str = "The tool said:";
/// Characters of a tool's output that the closing sentence quotes.
const QUOTED: usize = 600;
/// Letters of a long answer, over and over.
const FILLING: &str = "All work and no play makes a long answer. ";

/// What the model does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plan {
    /// Answers these pieces, one a tick when it is slow.
    Text { pieces: Vec<String>, slow: bool },
    /// Calls a tool.
    Call(Call),
    /// Begins an answer and never ends it.
    Hang,
    /// Answers with an HTTP error.
    Error(u16),
}

impl Plan {
    fn text(text: impl Into<String>) -> Self {
        Self::Text { pieces: vec![text.into()], slow: false }
    }

    /// One word for the record.
    pub(super) fn word(&self) -> String {
        match self {
            Self::Text { .. } => "text".to_owned(),
            Self::Call(call) => format!("call {}", call.name),
            Self::Hang => "hang".to_owned(),
            Self::Error(status) => format!("error {status}"),
        }
    }
}

/// What the model does with this request. `used_up` tells whether a key of `hang-once` was met before.
pub(super) fn plan(conversation: &Conversation, mut used_up: impl FnMut(&str) -> bool) -> Plan {
    let (texts, after) = conversation.last_turn();
    let Some(marker) = texts.iter().rev().find_map(|text| Marker::last_in(text)) else {
        return Plan::text(PLAIN_ANSWER);
    };
    if let Marker::Error(status) = marker {
        return Plan::Error(status);
    }
    if conversation.tools.is_empty() {
        return Plan::text(PLAIN_ANSWER);
    }
    let last_result = after.iter().rev().find_map(|item| match item {
        Item::ToolResult(text) => Some(text.as_str()),
        Item::User(_) | Item::Assistant | Item::Call { .. } => None,
    });
    if let Marker::Mcp { tool, arguments } = &marker {
        return mcp(conversation, after, last_result, tool, arguments);
    }
    if let Some(result) = last_result {
        return closing(result);
    }
    let offered = &conversation.tools;
    let missing = |what: &str| Plan::text(format!("There is no tool to {what} with."));
    match marker {
        Marker::Say(text) => Plan::text(text),
        Marker::Shell(command) => {
            tools::shell(offered, &command, false).map_or_else(|| missing("run commands"), Plan::Call)
        }
        Marker::Escalate(command) => {
            tools::shell(offered, &command, true).map_or_else(|| missing("run commands"), Plan::Call)
        }
        Marker::Write { path, content } => {
            tools::write(offered, &path, &content).map_or_else(|| missing("write files"), Plan::Call)
        }
        Marker::Slow(pieces) => Plan::Text {
            pieces: (1..=pieces.max(1)).map(|number| format!("Piece {number}. ")).collect(),
            slow: true,
        },
        Marker::Hang => Plan::Hang,
        Marker::HangOnce(key) if !used_up(&key) => Plan::Hang,
        Marker::HangOnce(_) => Plan::text("It goes on after the cut."),
        Marker::Bytes(count) => Plan::text(FILLING.chars().cycle().take(count).collect::<String>()),
        // Both were dealt with above.
        Marker::Error(status) => Plan::Error(status),
        Marker::Mcp { .. } => Plan::text(PLAIN_ANSWER),
    }
}

fn closing(result: &str) -> Plan {
    let quoted: String = result.trim().chars().take(QUOTED).collect();
    Plan::text(format!("{CLOSING} {quoted}"))
}

/// Calls a tool of an MCP server: at once when it is offered, else after the agent's tool search found it.
fn mcp(
    conversation: &Conversation,
    after: &[Item],
    last_result: Option<&str>,
    wanted: &str,
    arguments: &str,
) -> Plan {
    let called = after.iter().any(|item| matches!(item, Item::Call { tool } if tool.ends_with(wanted)));
    if let Some(result) = last_result.filter(|_| called) {
        return closing(result);
    }
    let given: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
    if let Some(tool) = tools::ending_with(&conversation.tools, wanted) {
        return Plan::Call(tools::with_arguments(tool, given));
    }
    match last_result {
        // The search was made; some agents take the call by the name that it gave, without listing the tool.
        Some(found) => match tools::mentioned(found, wanted) {
            Some(name) => Plan::Call(Call {
                name: name.to_owned(),
                namespace: None,
                arguments: Arguments::Object(Value::Object(given)),
            }),
            None => Plan::text(format!("The search did not find a tool `{wanted}`.")),
        },
        None => tools::search(&conversation.tools, wanted)
            .map_or_else(|| Plan::text(format!("There is no tool `{wanted}`.")), Plan::Call),
    }
}
