//! The table of agents and abilities in `docs/agents.md`, made of what the tests with real agents wrote down.
//!
//! `cargo xtask agents-table FOLDER` writes it, `--check` compares it and changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;

/// The page with the table, between [`BEGIN`] and [`END`].
const PAGE: &str = "docs/agents.md";
const BEGIN: &str = "<!-- table: begin, written by `make agents-table` -->\n";
const END: &str = "<!-- table: end -->\n";

/// Columns: name in the outcomes, heading.
const AGENTS: &[(&str, &str)] = &[
    ("claude", "`claude` (claude-agent-acp 0.101.0)"),
    ("qwen", "`qwen` (Qwen Code 0.24.4)"),
    ("codex", "`codex` (codex-acp 2.6.0)"),
];

/// Rows: name in the outcomes, heading.
const ABILITIES: &[(&str, &str)] = &[
    ("answer", "answers a goal"),
    ("permission", "a command that is asked for and allowed"),
    ("declined", "a command that is declined"),
    ("readonly", "`--permissions readonly`"),
    ("cancel", "a cancel in mid-stream"),
    ("killed", "killed in mid-turn"),
    ("login", "the provider says 401"),
    ("error", "the provider says 500"),
    ("tools", "a tool of ours, `ask_user`"),
    ("usage", "tokens"),
];

/// What was not tried.
const NOT_TRIED: &str = "not tried";

type Outcomes = BTreeMap<(String, String), String>;

/// Writes or compares the table. True when the page has it.
pub(crate) fn run(root: &Path, folder: &Path, check: bool) -> anyhow::Result<bool> {
    let page = root.join(PAGE);
    let text = fs::read_to_string(&page).with_context(|| format!("`{PAGE}` can't be read"))?;
    let renewed = with_table(&text, &table(&read(folder)?))?;
    if !check {
        fs::write(&page, renewed)?;
        return Ok(true);
    }
    Ok(renewed == text)
}

fn read(folder: &Path) -> anyhow::Result<Outcomes> {
    let mut outcomes = Outcomes::new();
    let entries = fs::read_dir(folder)
        .with_context(|| format!("`{}` can't be read; run `make test-agents` first", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        let row: Value =
            serde_json::from_str(&text).with_context(|| format!("`{}` is no JSON", path.display()))?;
        let field = |name: &str| {
            let value = row.get(name).and_then(Value::as_str).map(str::to_owned);
            value.with_context(|| format!("`{}` has no `{name}`", path.display()))
        };
        let (agent, ability) = (field("agent")?, field("ability")?);
        let known = AGENTS.iter().any(|(name, _)| *name == agent)
            && ABILITIES.iter().any(|(name, _)| *name == ability);
        if !known {
            bail!("`{}` is about `{agent}` and `{ability}`, which the table does not have", path.display());
        }
        outcomes.insert((agent, ability), field("seen")?);
    }
    Ok(outcomes)
}

fn table(outcomes: &Outcomes) -> String {
    let row = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let mut table = row(std::iter::once("").chain(AGENTS.iter().map(|(_, heading)| *heading)).collect());
    table.push_str(&row(vec!["---"; AGENTS.len() + 1]));
    for (ability, heading) in ABILITIES {
        let seen = AGENTS.iter().map(|(agent, _)| {
            let key = ((*agent).to_owned(), (*ability).to_owned());
            outcomes.get(&key).map_or(NOT_TRIED, String::as_str)
        });
        table.push_str(&row(std::iter::once(*heading).chain(seen).collect()));
    }
    table
}

fn with_table(page: &str, table: &str) -> anyhow::Result<String> {
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, after)) = parts else {
        bail!("`{PAGE}` has no place for the table: `{}` and `{}`", BEGIN.trim(), END.trim());
    };
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_old_one_and_names_what_was_not_tried() {
        let outcomes = Outcomes::from([(("qwen".to_owned(), "cancel".to_owned()), "yes".to_owned())]);
        let table = table(&outcomes);
        assert!(table.contains("| a cancel in mid-stream | not tried | yes | not tried |\n"), "{table}");
        let page = format!("before\n{BEGIN}old\n{END}after\n");
        let renewed = with_table(&page, &table).unwrap();
        assert_eq!(renewed, format!("before\n{BEGIN}{table}{END}after\n"));
        assert_eq!(with_table(&renewed, &table).unwrap(), renewed);
        assert!(with_table("no place", &table).is_err());
    }

    #[test]
    fn outcomes_that_the_table_does_not_have_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        fs::write(&file, r#"{"agent":"qwen","ability":"usage","seen":"measured"}"#).unwrap();
        assert_eq!(read(folder.path()).unwrap().len(), 1);
        for text in [r#"{"agent":"who","ability":"usage","seen":"x"}"#, r#"{"agent":"qwen"}"#, "no"] {
            fs::write(&file, text).unwrap();
            assert!(read(folder.path()).is_err(), "{text}");
        }
        assert!(read(&folder.path().join("missing")).is_err());
    }
}
