//! The wire of the tool server: what a line asks for, and the answers that need nobody else.

use rallypoint_acp::rpc::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, RpcError};
use serde_json::{Value, json};
use uuid::Uuid;

use super::tools;

/// Revisions of the protocol in which tools look alike, newest first.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Characters that are kept of the name of what speaks to us.
const CLIENT_CHARS: usize = 120;

/// What a line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Reaction {
    /// Nothing.
    Nothing,
    /// This answer.
    Answer(Value),
    /// This answer, and the daemon is to hear of it.
    Hello { answer: Value, process: String, client: String },
    /// The daemon.
    Call(Call),
    /// A call is given up.
    Cancel { process: String, id: String },
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    /// Its JSON-RPC id.
    pub(super) id: Value,
    /// Names the hello that it came after.
    pub(super) process: String,
    pub(super) tool: String,
    pub(super) arguments: Value,
    /// Under which the caller wants to hear that it still goes on.
    pub(super) progress_token: Option<Value>,
}

/// What is known of the other side.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// Names the last hello: ids of calls begin anew with each.
    process: Option<String>,
}

impl Server {
    /// Takes in a line. `is_open` knows ids, as JSON text, of calls that are not answered.
    pub(super) fn take(&mut self, line: &str, is_open: impl Fn(&str) -> bool) -> Reaction {
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            Err(error) => return refused(&Value::Null, PARSE_ERROR, format!("the line is no JSON: {error}")),
        };
        let Value::Object(members) = &message else {
            let what = if message.is_array() { "batches are not taken" } else { "the line is no object" };
            return refused(&Value::Null, INVALID_REQUEST, what);
        };
        let id = members.get("id");
        let Some(method) = members.get("method").and_then(Value::as_str) else {
            // We ask nothing, so whatever answers is not for us.
            if members.contains_key("result") || members.contains_key("error") {
                return Reaction::Nothing;
            }
            return refused(&fit_for_answer(id), INVALID_REQUEST, "the object has no method");
        };
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return refused(&fit_for_answer(id), INVALID_REQUEST, "`jsonrpc` has to be \"2.0\"");
        }
        let params = members.get("params").unwrap_or(&Value::Null);
        match id {
            None => self.notification(method, params),
            Some(id) if id.is_string() || id.is_number() => self.request(method, id, params, is_open),
            Some(_) => refused(&Value::Null, INVALID_REQUEST, "`id` has to be a string or a number"),
        }
    }

    fn request(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
        is_open: impl Fn(&str) -> bool,
    ) -> Reaction {
        match (method, &self.process) {
            ("initialize", _) => self.initialize(id, params),
            ("ping", _) => answered(id, json!({})),
            ("tools/list", _) => answered(id, json!({ "tools": tools::list() })),
            ("tools/call", None) => refused(id, INVALID_REQUEST, "`initialize` comes before the first call"),
            ("tools/call", Some(_)) if is_open(&id.to_string()) => {
                refused(id, INVALID_REQUEST, format!("the call `{id}` is not answered yet"))
            }
            ("tools/call", Some(process)) => {
                let Some(tool) = params.get("name").and_then(Value::as_str) else {
                    return refused(id, INVALID_PARAMS, "`name` is missing");
                };
                if !tools::NAMES.contains(&tool) {
                    return refused(id, INVALID_PARAMS, format!("there is no tool `{tool}`"));
                }
                Reaction::Call(Call {
                    id: id.clone(),
                    process: process.clone(),
                    tool: tool.to_owned(),
                    arguments: params.get("arguments").cloned().unwrap_or_else(|| json!({})),
                    progress_token: params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned(),
                })
            }
            _ => refused(id, METHOD_NOT_FOUND, format!("`{method}` is not served here")),
        }
    }

    fn initialize(&mut self, id: &Value, params: &Value) -> Reaction {
        let wanted = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let revision = REVISIONS.into_iter().find(|known| *known == wanted).unwrap_or(REVISIONS[0]);
        let said = |name: &str| params.pointer(&format!("/clientInfo/{name}")).and_then(Value::as_str);
        let words = format!("{} {}", said("name").unwrap_or("unknown"), said("version").unwrap_or_default());
        let process = Uuid::new_v4().to_string();
        self.process = Some(process.clone());
        let answer = json!({
            "protocolVersion": revision,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "rallypoint", "version": env!("CARGO_PKG_VERSION")},
            "instructions": tools::INSTRUCTIONS,
        });
        Reaction::Hello {
            answer: json!({"jsonrpc": "2.0", "id": id, "result": answer}),
            process,
            client: words.trim().chars().take(CLIENT_CHARS).collect(),
        }
    }

    fn notification(&self, method: &str, params: &Value) -> Reaction {
        match (method, &self.process, params.get("requestId")) {
            ("notifications/cancelled", Some(process), Some(id)) => {
                Reaction::Cancel { process: process.clone(), id: id.to_string() }
            }
            _ => Reaction::Nothing,
        }
    }
}

/// What is said of a line that was thrown away.
pub(super) fn too_long(bytes: u64, cap: usize) -> Reaction {
    refused(&Value::Null, PARSE_ERROR, format!("the line has {bytes} bytes, at most {cap} are read"))
}

/// The result of a call.
pub(super) fn tool_result(id: &Value, text: &str, failed: bool) -> Value {
    let result = json!({"content": [{"type": "text", "text": text}], "isError": failed});
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// That a call still goes on.
pub(super) fn progress(token: &Value, count: u64) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": count, "message": "waiting for an answer"},
    })
}

fn answered(id: &Value, result: Value) -> Reaction {
    Reaction::Answer(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn refused(id: &Value, code: i64, message: impl Into<String>) -> Reaction {
    let error = RpcError::new(code, message).to_value();
    Reaction::Answer(json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn fit_for_answer(id: Option<&Value>) -> Value {
    id.filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(server: &mut Server, line: &str) -> Reaction {
        server.take(line, |id| id == "9")
    }

    fn greeted(version: &str) -> (Server, Value, String) {
        let mut server = Server::default();
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
        let line = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
        match take(&mut server, &line) {
            Reaction::Hello { answer, process, client } => {
                assert_eq!(client, "a 1");
                (server, answer, process)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_revision_that_is_known_is_taken_and_any_other_gets_the_newest() {
        for (wanted, given) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-06-18", "2025-06-18"),
            ("2031-01-01", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            assert_eq!(greeted(wanted).1["result"]["protocolVersion"], given, "{wanted}");
        }
    }

    #[test]
    fn junk_gets_errors_and_never_silence_or_an_end() {
        let mut server = Server::default();
        for (line, id, code) in [
            ("{nope", json!(null), PARSE_ERROR),
            ("[]", json!(null), INVALID_REQUEST),
            ("7", json!(null), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1}"#, json!(1), INVALID_REQUEST),
            (r#"{"id":1,"method":"ping"}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, json!(null), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, json!(null), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":"a","method":"resources/list"}"#, json!("a"), METHOD_NOT_FOUND),
            (
                r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"send"}}"#,
                json!(2),
                INVALID_REQUEST,
            ),
        ] {
            let Reaction::Answer(frame) = take(&mut server, line) else { panic!("{line}") };
            assert_eq!((&frame["id"], &frame["error"]["code"]), (&id, &json!(code)), "{line}");
        }
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        ] {
            assert_eq!(take(&mut server, line), Reaction::Nothing, "{line}");
        }
    }

    #[test]
    fn calls_are_named_by_the_hello_before_them_and_unknown_tools_are_refused() {
        let (mut server, _, first) = greeted("2025-06-18");
        let call = |id: u64, tool: &str| {
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                   "params": {"name": tool, "arguments": {"text": "x"}, "_meta": {"progressToken": 4}}})
            .to_string()
        };
        let Reaction::Call(taken) = take(&mut server, &call(1, "coordinate")) else { panic!("no call") };
        assert_eq!((taken.process.as_str(), taken.id), (first.as_str(), json!(1)));
        assert_eq!((taken.arguments, taken.progress_token), (json!({"text": "x"}), Some(json!(4))));
        for (line, code) in [(call(2, "dance"), INVALID_PARAMS), (call(9, "coordinate"), INVALID_REQUEST)] {
            let Reaction::Answer(frame) = take(&mut server, &line) else { panic!("{line}") };
            assert_eq!(frame["error"]["code"], code, "{line}");
        }
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#;
        assert_eq!(
            take(&mut server, cancel),
            Reaction::Cancel { process: first.clone(), id: "\"a\"".to_owned() }
        );
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
        let Reaction::Hello { process, .. } = take(&mut server, hello) else { panic!("no hello") };
        assert_ne!(process, first);
    }
}
