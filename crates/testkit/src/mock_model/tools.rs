//! Finding the tool that a marker means, and arguments that its schema takes.

use serde_json::{Map, Value, json};

use super::conversation::{Tool, ToolForm, list, text};

/// Names of tools that run a command, first choice first.
const SHELL: &[&str] = &[
    "bash",
    "exec_command",
    "run_shell_command",
    "shell_command",
    "shell",
    "execute_command",
    "execute",
    "local_shell",
];
/// Names of tools that write a whole file.
const WRITE: &[&str] = &["write", "write_file", "create_file", "apply_patch"];
/// Names of tools that find hidden tools.
const SEARCH: &[&str] = &["toolsearch", "tool_search"];

/// A tool to be called, with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    /// The group that it belongs to.
    pub(super) namespace: Option<String>,
    pub(super) arguments: Arguments,
}

/// Arguments in the form that the tool takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Arguments {
    Object(Value),
    Text(String),
}

fn named<'a>(tools: &'a [Tool], names: &[&str]) -> Option<&'a Tool> {
    names.iter().find_map(|name| tools.iter().find(|tool| tool.name.eq_ignore_ascii_case(name)))
}

/// The call that runs a command.
pub(super) fn shell(tools: &[Tool], command: &str, escalate: bool) -> Option<Call> {
    let tool = named(tools, SHELL)?;
    let mut arguments = Map::new();
    for key in ["command", "cmd", "script"] {
        if let Some(property) = property(tool, key) {
            let value = if text(property, "type") == "array" {
                json!(["bash", "-c", command])
            } else {
                json!(command)
            };
            arguments.insert(key.to_owned(), value);
            break;
        }
    }
    if arguments.is_empty() {
        arguments.insert("command".to_owned(), json!(command));
    }
    if escalate && property(tool, "sandbox_permissions").is_some() {
        arguments.insert("sandbox_permissions".to_owned(), json!("require_escalated"));
        arguments.insert("justification".to_owned(), json!("a test asks for it"));
    }
    Some(call(tool, arguments))
}

/// The call that writes a file.
pub(super) fn write(tools: &[Tool], path: &str, content: &str) -> Option<Call> {
    let tool = named(tools, WRITE)?;
    if tool.form == ToolForm::Text || property(tool, "input").is_some() {
        let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n");
        let arguments = match tool.form {
            ToolForm::Text => Arguments::Text(patch),
            ToolForm::Object => Arguments::Object(json!({ "input": patch })),
        };
        let (name, namespace) = (tool.name.clone(), tool.namespace.clone());
        return Some(Call { name, namespace, arguments });
    }
    let mut arguments = Map::new();
    let path_key = ["file_path", "filePath", "path", "absolute_path"]
        .into_iter()
        .find(|key| property(tool, key).is_some())
        .unwrap_or("file_path");
    arguments.insert(path_key.to_owned(), json!(path));
    arguments.insert("content".to_owned(), json!(content));
    Some(call(tool, arguments))
}

/// The call that looks for a hidden tool.
pub(super) fn search(tools: &[Tool], wanted: &str) -> Option<Call> {
    let tool = named(tools, SEARCH)?;
    let mut arguments = Map::new();
    arguments.insert("query".to_owned(), json!(wanted));
    Some(call(tool, arguments))
}

/// The name of the offered tool that ends so.
pub(super) fn ending_with<'a>(tools: &'a [Tool], end: &str) -> Option<&'a Tool> {
    tools.iter().find(|tool| tool.name.ends_with(end))
}

/// The first word of a text that ends so and is longer: how the answer of a tool search names the tool.
pub(super) fn mentioned<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.')))
        .find(|word| word.ends_with(end) && word.len() > end.len())
}

/// Arguments given by a test, with what else the tool requires.
pub(super) fn with_arguments(tool: &Tool, arguments: Map<String, Value>) -> Call {
    call(tool, arguments)
}

fn property<'a>(tool: &'a Tool, key: &str) -> Option<&'a Value> {
    tool.schema.get("properties")?.get(key)
}

/// Puts in whatever else the schema requires.
fn call(tool: &Tool, mut arguments: Map<String, Value>) -> Call {
    for key in list(&tool.schema, "required").iter().filter_map(Value::as_str) {
        if !arguments.contains_key(key) {
            arguments.insert(key.to_owned(), filler(property(tool, key).unwrap_or(&Value::Null)));
        }
    }
    let (name, namespace) = (tool.name.clone(), tool.namespace.clone());
    Call { name, namespace, arguments: Arguments::Object(Value::Object(arguments)) }
}

/// Some value that a schema takes.
fn filler(schema: &Value) -> Value {
    if let Some(first) = list(schema, "enum").first() {
        return first.clone();
    }
    match text(schema, "type").to_ascii_lowercase().as_str() {
        "boolean" => json!(false),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "array" => json!([]),
        "object" => json!({}),
        _ => json!("for a test"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: Value) -> Tool {
        Tool { name: name.to_owned(), namespace: None, schema, form: ToolForm::Object }
    }

    #[test]
    fn a_command_goes_to_whatever_tool_runs_commands_in_the_form_that_it_takes() {
        let cases = [
            (json!({ "properties": { "command": { "type": "string" } } }), json!({ "command": "ls" })),
            (
                json!({ "properties": { "command": { "type": "array" }, "timeout": { "type": "number" } } }),
                json!({ "command": ["bash", "-c", "ls"] }),
            ),
            (
                json!({ "properties": { "cmd": {}, "is_background": { "type": "boolean" } }, "required": ["cmd", "is_background"] }),
                json!({ "cmd": "ls", "is_background": false }),
            ),
        ];
        for (schema, expected) in cases {
            let offered = [tool("read_file", json!({})), tool("run_shell_command", schema)];
            let call = shell(&offered, "ls", true).unwrap();
            assert_eq!(call.name, "run_shell_command");
            assert_eq!(call.arguments, Arguments::Object(expected));
        }
        assert_eq!(shell(&[tool("read_file", json!({}))], "ls", false), None);
    }

    #[test]
    fn a_hidden_tool_is_read_out_of_what_the_search_says() {
        let found = "<functions>{\"name\": \"mcp__rally__ask_user\"}</functions> ask_user";
        assert_eq!(mentioned(found, "ask_user"), Some("mcp__rally__ask_user"));
        assert_eq!(mentioned("nothing: ask_user", "ask_user"), None);
    }
}
