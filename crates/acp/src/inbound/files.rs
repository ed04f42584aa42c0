//! Files that an agent wants to be read or written.
//!
//! Shapes: Agent Client Protocol v1, "File System".

use serde_json::Value;

use rallypoint_model::agent_io::FileAsk;

use super::lenient;

/// What is asked; `None` where the path or the content is missing.
pub(super) fn ask(method: &str, params: &Value) -> Option<FileAsk> {
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
    let count = |name: &str| params.get(name).and_then(lenient::count);
    let path = text("path")?;
    match method {
        "fs/read_text_file" => Some(FileAsk::Read { path, line: count("line"), limit: count("limit") }),
        "fs/write_text_file" => Some(FileAsk::Write { path, content: text("content")? }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_needs_a_path_and_a_write_its_content() {
        let read =
            ask("fs/read_text_file", &json!({"sessionId": "s", "path": "/w/a", "line": 2, "limit": null}));
        assert_eq!(read, Some(FileAsk::Read { path: "/w/a".to_owned(), line: Some(2), limit: None }));
        let write = ask("fs/write_text_file", &json!({"path": "/w/a", "content": ""}));
        assert_eq!(write, Some(FileAsk::Write { path: "/w/a".to_owned(), content: String::new() }));
        assert_eq!(ask("fs/write_text_file", &json!({"path": "/w/a"})), None);
        assert_eq!(ask("fs/read_text_file", &json!({"path": 5})), None);
    }
}
