//! What a rule of a configuration may not look like.

use rallypoint_model::permission::{PermissionRule, RuleEffect};

use super::command_line::METACHARACTERS;
use super::request::ToolKind;

/// Says what is wrong with a rule, when something is: it would match nothing, or more than it seems to.
pub fn check_rule(rule: &PermissionRule) -> Result<(), String> {
    if rule.tools.is_empty() && rule.paths.is_empty() && rule.commands.is_empty() {
        return Err(
            "it names no `tools`, `paths` or `commands`; write `tools = [\"*\"]` to mean all".to_owned()
        );
    }
    for tool in &rule.tools {
        if tool != "*" && !ToolKind::ALL.iter().any(|kind| kind.as_str() == tool) {
            let known: Vec<&str> = ToolKind::ALL.into_iter().map(ToolKind::as_str).collect();
            return Err(format!(
                "there is no tool kind `{tool}`; the kinds are {}, and `other` stands for unknown ones",
                known.join(", ")
            ));
        }
    }
    for path in &rule.paths {
        if path.trim().is_empty() {
            return Err("a path is empty".to_owned());
        }
        if path.starts_with('~') || path.starts_with('$') {
            return Err(format!("the path `{path}` is not expanded; write it whole"));
        }
        if path.split('/').any(|segment| segment == "..") {
            return Err(format!("the path `{path}` has a `..`, and paths are compared without any"));
        }
        let halves = |segment: &str| segment.contains("**") && segment != "**";
        if path.split('/').any(halves) {
            return Err(format!("in the path `{path}`, `**` must stand alone between slashes"));
        }
    }
    for command in &rule.commands {
        if command.trim().is_empty() {
            return Err("a command is empty".to_owned());
        }
        let special = |letter: char| {
            (METACHARACTERS.contains(letter) && !matches!(letter, '*' | '?')) || matches!(letter, '\'' | '"')
        };
        // A dot as a program is a word like any other; these never are.
        if let Some(letter) = command.chars().find(|letter| special(*letter)) {
            return Err(format!(
                "the command `{command}` holds `{letter}`, which no single command does; \
                 write a rule for each of its parts"
            ));
        }
        if rule.effect == RuleEffect::Allow
            && command.split_whitespace().next().is_some_and(|word| word.contains('*'))
        {
            return Err(format!(
                "the command `{command}` would allow any program; write `tools = [\"execute\"]` to mean that"
            ));
        }
    }
    Ok(())
}
