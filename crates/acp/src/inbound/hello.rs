//! The answer to the hello: who the agent is and what it can do.

use serde_json::Value;

use rallypoint_model::agent_io::AgentItem;
use rallypoint_model::agent_offer::{AgentCapabilities, AuthMethod, PromptKinds, ToolServerKinds};

pub(super) fn initialized(raw: Value) -> AgentItem {
    let info = raw.get("agentInfo");
    let part = |name: &str| info.and_then(|info| info.get(name)).and_then(Value::as_str).unwrap_or_default();
    let agent = format!("{} {}", part("name"), part("version")).trim().to_owned();
    AgentItem::Initialized { agent, capabilities: capabilities(raw) }
}

fn capabilities(raw: Value) -> AgentCapabilities {
    let agent = raw.get("agentCapabilities");
    let group = |name: &str| agent.and_then(|agent| agent.get(name));
    let (session, prompt, mcp) =
        (group("sessionCapabilities"), group("promptCapabilities"), group("mcpCapabilities"));
    AgentCapabilities {
        load: has(agent, "loadSession"),
        resume: has(session, "resume"),
        fork: has(session, "fork"),
        list: has(session, "list"),
        close: has(session, "close"),
        delete: has(session, "delete"),
        prompt: PromptKinds {
            image: has(prompt, "image"),
            audio: has(prompt, "audio"),
            embedded_context: has(prompt, "embeddedContext"),
        },
        mcp: ToolServerKinds { http: has(mcp, "http"), sse: has(mcp, "sse"), acp: has(mcp, "acp") },
        auth_methods: raw
            .get("authMethods")
            .and_then(Value::as_array)
            .map(|methods| methods.iter().filter_map(auth_method).collect())
            .unwrap_or_default(),
        raw,
    }
}

/// A capability is there when it is `true` or an object with its details, which is empty as a rule.
fn has(group: Option<&Value>, name: &str) -> bool {
    matches!(group.and_then(|group| group.get(name)), Some(Value::Bool(true) | Value::Object(_)))
}

/// The kind stands in the method itself or, with older agents, in its `_meta`.
fn auth_method(method: &Value) -> Option<AuthMethod> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let id = text(method.get("id"))?;
    let kind =
        text(method.get("type")).or_else(|| text(method.get("_meta").and_then(|meta| meta.get("type"))));
    let name = text(method.get("name")).unwrap_or_else(|| id.clone());
    Some(AuthMethod { id, name, kind: kind.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn capabilities_are_true_or_an_object_and_nothing_else() {
        let said = capabilities(json!({
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": null},
                "sessionCapabilities": {"resume": {}, "fork": {}, "list": null, "close": true, "delete": false},
            },
            "authMethods": [
                {"id": "a", "name": "Log in", "type": "terminal"},
                {"id": "b", "_meta": {"type": "agent"}},
                {"name": "without an id"},
            ],
        }));
        assert!(said.load && said.resume && said.fork && said.close && !said.list && !said.delete);
        assert_eq!(said.prompt, PromptKinds { image: true, audio: false, embedded_context: true });
        assert_eq!(said.mcp, ToolServerKinds { http: true, sse: false, acp: false });
        let methods: Vec<String> = said
            .auth_methods
            .iter()
            .map(|method| format!("{}|{}|{}", method.id, method.name, method.kind))
            .collect();
        assert_eq!(methods, ["a|Log in|terminal", "b|b|agent"]);
        assert_eq!(said.raw["authMethods"][2]["name"], "without an id");
    }
}
