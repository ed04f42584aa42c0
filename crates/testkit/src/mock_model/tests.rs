//! The server from outside: each interface, plain and streamed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;

fn start() -> MockModel {
    MockModel::start(MockOptions { tick: Duration::from_millis(5), ..MockOptions::default() }).unwrap()
}

/// Status and body of one request.
fn post(server: &MockModel, path: &str, body: &Value) -> (u16, String) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let body = body.to_string();
    let length = body.len();
    // HTTP/1.0 ends a body with the connection, so nothing has to be unchunked.
    let head =
        format!("POST {path} HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// The same small conversation for each interface: a user's text, and what a tool answered after it.
fn conversation(api: Api, text: &str, result: Option<&str>, stream: bool) -> (String, Value) {
    let schema = json!({ "type": "object", "properties": { "command": { "type": "string" } }, "required": ["command"] });
    match api {
        Api::AnthropicMessages => {
            let mut messages = vec![json!({ "role": "user", "content": text })];
            if let Some(result) = result {
                messages.push(json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "1", "name": "Bash", "input": {} }] }));
                messages.push(json!({ "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "1", "content": [{ "type": "text", "text": result }] },
                    { "type": "text", "text": "<system-reminder>be good</system-reminder>" },
                ] }));
            }
            let tools = json!([{ "name": "Bash", "input_schema": schema }]);
            (
                "/v1/messages".to_owned(),
                json!({ "model": "m", "stream": stream, "tools": tools, "messages": messages }),
            )
        }
        Api::OpenaiChat => {
            let mut messages = vec![
                json!({ "role": "system", "content": "s" }),
                json!({ "role": "user", "content": [{ "type": "text", "text": text }] }),
            ];
            if let Some(result) = result {
                messages
                    .push(json!({ "role": "assistant", "tool_calls": [{ "function": { "name": "bash" } }] }));
                messages.push(json!({ "role": "tool", "tool_call_id": "1", "content": result }));
            }
            let tools = json!([{ "type": "function", "function": { "name": "bash", "parameters": schema } }]);
            (
                "/v1/chat/completions".to_owned(),
                json!({ "model": "m", "stream": stream, "tools": tools, "messages": messages }),
            )
        }
        Api::OpenaiResponses => {
            let mut input = vec![
                json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] }),
            ];
            if let Some(result) = result {
                input.push(json!({ "type": "function_call", "name": "exec_command", "arguments": "{}" }));
                input.push(json!({ "type": "function_call_output", "call_id": "1", "output": result }));
            }
            let tools = json!([{ "type": "function", "name": "exec_command", "parameters": schema }]);
            (
                "/v1/responses".to_owned(),
                json!({ "model": "m", "stream": stream, "tools": tools, "input": input }),
            )
        }
        Api::Gemini => {
            let mut contents = vec![json!({ "role": "user", "parts": [{ "text": text }] })];
            if let Some(result) = result {
                contents.push(json!({ "role": "model", "parts": [{ "functionCall": { "name": "run_shell_command" } }] }));
                contents.push(json!({ "role": "user", "parts": [{ "functionResponse": { "response": { "output": result } } }] }));
            }
            let verb = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            let tools =
                json!([{ "functionDeclarations": [{ "name": "run_shell_command", "parameters": schema }] }]);
            (format!("/v1beta/models/m:{verb}"), json!({ "tools": tools, "contents": contents }))
        }
    }
}

const APIS: [Api; 4] = [Api::AnthropicMessages, Api::OpenaiChat, Api::OpenaiResponses, Api::Gemini];

fn ask(server: &MockModel, api: Api, text: &str, result: Option<&str>, stream: bool) -> (u16, String) {
    let (path, body) = conversation(api, text, result, stream);
    post(server, &path, &body)
}

#[test]
fn every_interface_answers_plain_and_streamed() {
    let server = start();
    for api in APIS {
        for stream in [false, true] {
            let (status, body) = ask(&server, api, "hello", None, stream);
            assert_eq!(status, 200, "{api:?}: {body}");
            assert!(body.contains(PLAIN_ANSWER), "{api:?}: {body}");
            assert_eq!(body.starts_with('{'), !stream, "{api:?}: {body}");
        }
    }
    assert_eq!(server.requests().len(), 8);
}

#[test]
fn a_tool_is_called_and_its_output_is_quoted_in_the_next_answer() {
    let server = start();
    for api in APIS {
        for stream in [false, true] {
            let text = "[[mock:shell echo marked]]";
            let (_, body) = ask(&server, api, text, None, stream);
            assert!(body.contains("echo marked"), "{api:?}: {body}");
            let (_, body) = ask(&server, api, text, Some("marked output"), stream);
            assert!(body.contains("The tool said: marked output"), "{api:?}: {body}");
        }
    }
    assert!(server.requests().iter().step_by(2).all(|request| request.done.starts_with("call ")));
}

#[test]
fn errors_slow_answers_and_long_ones_come_as_asked() {
    let server = start();
    for api in APIS {
        let (status, body) = ask(&server, api, "[[mock:error 401]]", None, true);
        assert_eq!(status, 401, "{api:?}");
        assert!(body.contains("error 401"), "{api:?}: {body}");
        let (_, body) = ask(&server, api, "[[mock:slow 3]]", None, true);
        assert!(body.contains("Piece 1") && body.contains("Piece 3"), "{api:?}: {body}");
        let (_, body) = ask(&server, api, "[[mock:bytes 30000]]", None, false);
        assert!(body.len() > 30_000, "{api:?}: {}", body.len());
    }
}

#[test]
fn a_key_of_hang_once_hangs_once() {
    let server = start();
    let (path, body) = conversation(Api::OpenaiChat, "[[mock:hang-once k]]", None, true);
    let mut hanging = TcpStream::connect(server.address()).unwrap();
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.0\r\ncontent-length: {}\r\n\r\n", body.len());
    hanging.write_all(head.as_bytes()).unwrap();
    hanging.write_all(body.as_bytes()).unwrap();
    let mut first = [0; 1];
    hanging.read_exact(&mut first).unwrap();
    let (_, second) = ask(&server, Api::OpenaiChat, "[[mock:hang-once k]]", None, true);
    assert!(second.contains("goes on after the cut"), "{second}");
    let done: Vec<String> = server.requests().into_iter().map(|request| request.done).collect();
    assert_eq!(done, ["hang", "text"]);
    drop(server);
    // The end of the server ends what hangs.
    hanging.read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_shared_prefix_is_counted_as_read_from_the_cache_and_a_changed_one_is_not() {
    let server = start();
    let ask = |system: &str, text: &str| {
        let long = system.repeat(1_000);
        let body = json!({ "model": "m", "system": long, "messages": [{ "role": "user", "content": text }] });
        post(&server, "/v1/messages", &body);
        server.requests().pop().unwrap().usage
    };
    let first = ask("same words ", "one");
    let second = ask("same words ", "two");
    let third = ask("other words ", "one");
    assert!(first.cache_read == 0 && first.cache_write > 2_000, "{first:?}");
    assert!(second.cache_read > 2_000 && second.cache_write < 100, "{second:?}");
    assert_eq!(third.cache_read, 0, "{third:?}");
    assert_eq!(first.whole_input(), second.whole_input());
}

#[test]
fn a_hidden_tool_is_searched_for_and_then_called() {
    let server = start();
    let ask = |messages: Value| {
        let tools = json!([{ "name": "ToolSearch", "input_schema": { "properties": { "query": {} } } }]);
        post(&server, "/v1/messages", &json!({ "model": "m", "tools": tools, "messages": messages })).1
    };
    let user = json!({ "role": "user", "content": "[[mock:mcp ask_user {\"text\":\"why\"}]]" });
    assert!(ask(json!([user])).contains("\"name\":\"ToolSearch\""));
    let search = json!({ "role": "assistant", "content": [{ "type": "tool_use", "name": "ToolSearch", "input": {} }] });
    let found = json!({ "role": "user", "content": [{ "type": "tool_result", "content": [{ "type": "tool_reference", "tool_name": "mcp__rally__ask_user" }] }, { "type": "text", "text": "Tool loaded." }] });
    let call = ask(json!([user, search, found]));
    assert!(call.contains("\"name\":\"mcp__rally__ask_user\"") && call.contains("why"), "{call}");
    let called = json!({ "role": "assistant", "content": [{ "type": "tool_use", "name": "mcp__rally__ask_user", "input": {} }] });
    let result = json!({ "role": "user", "content": [{ "type": "tool_result", "content": "because" }] });
    assert!(ask(json!([user, search, found, called, result])).contains("The tool said: because"));
}

#[test]
fn a_tool_of_a_group_is_called_with_the_name_of_its_group() {
    let server = start();
    let tool = json!({ "type": "function", "name": "ask_user", "parameters": { "required": ["question"] } });
    let tools = json!([{ "type": "namespace", "name": "mcp__rally", "tools": [tool] }]);
    let input = json!([{ "type": "message", "role": "user", "content": "[[mock:mcp ask_user {\"question\":\"why\"}]]" }]);
    let answer = post(&server, "/v1/responses", &json!({ "model": "m", "tools": tools, "input": input })).1;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["output"][0]["name"], "ask_user", "{answer}");
    assert_eq!(answer["output"][0]["namespace"], "mcp__rally", "{answer}");
}

#[test]
fn requests_are_appended_to_a_file_without_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.jsonl");
    let options = MockOptions { record: Some(file.clone()), ..MockOptions::default() };
    let server = MockModel::start(options).unwrap();
    ask(&server, Api::OpenaiResponses, "hello", None, false);
    ask(&server, Api::Gemini, "hello", None, false);
    let lines: Vec<Value> = std::fs::read_to_string(&file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["api"], "openai_responses");
    assert_eq!(lines[1]["lastTurn"], json!(["hello"]));
    assert_eq!(lines[1]["hasKey"], false);
}
