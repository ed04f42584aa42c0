//! The tools, as agents see them.

use serde_json::{Value, json};

/// Their names.
pub(super) const NAMES: [&str; 4] = ["report_completion", "ask_user", "coordinate", "send"];

/// What an agent is told of them as a whole.
pub(super) const INSTRUCTIONS: &str = "You work on a task of Rallypoint. Ask with `ask_user` instead of guessing; the \
call returns with the answer, which may take long. Before you end the work, call `report_completion` once.";

/// Their declarations.
pub(super) fn list() -> Value {
    let text = |words: &str| json!({"type": "string", "description": words});
    let texts = |words: &str| json!({"type": "array", "items": {"type": "string"}, "description": words});
    let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let test = object(
        json!({"command": text("The command."), "exitCode": {"type": "integer"}, "summary": text("One line.")}),
        &["command", "exitCode"],
    );
    let criterion = object(
        json!({"criterion": text("Its text."), "met": {"type": "boolean"}, "evidence": text("What shows it.")}),
        &["criterion", "met"],
    );
    let report = json!({
        "status": {"type": "string", "enum": ["completed", "failed", "blocked"], "description": "How it ended."},
        "reason": text("Why it failed, or what you have to know when blocked."),
        "diffSummary": text("What changed, or the answer itself, in a few sentences."),
        "filesChanged": texts("Paths that changed."),
        "testResults": {"type": "array", "items": test, "description": "Tests that you ran."},
        "acceptanceCriteriaStatus": {"type": "array", "items": criterion, "description": "The criteria as you see them."},
        "residualRisks": texts("What may still be wrong."),
    });
    json!([
        {
            "name": "report_completion",
            "description": "Report how the work ended. What it says is checked. Call it once, before you end your last turn.",
            "inputSchema": object(report, &["diffSummary"]),
        },
        {
            "name": "ask_user",
            "description": "Ask whoever made the task, and wait for the answer.",
            "inputSchema": object(
                json!({"question": text("The question, complete in itself."), "options": texts("What may be answered; anything when left out.")}),
                &["question"],
            ),
        },
        {
            "name": "coordinate",
            "description": "Tell the others who work on this something that they should know. Nobody answers.",
            "inputSchema": object(json!({"text": text("The words.")}), &["text"]),
        },
        {
            "name": "send",
            "description": "Say something to one of those you work with.",
            "inputSchema": object(
                json!({"to": text("`parent`, `room`, or the name of another sub-agent."), "text": text("The words.")}),
                &["to", "text"],
            ),
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_declared_under_its_name_with_what_it_needs() {
        let list = list();
        let names: Vec<&str> =
            list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, NAMES);
        for tool in list.as_array().unwrap() {
            let schema = &tool["inputSchema"];
            for needed in schema["required"].as_array().unwrap() {
                assert!(schema["properties"].get(needed.as_str().unwrap()).is_some(), "{tool}");
            }
        }
    }
}
