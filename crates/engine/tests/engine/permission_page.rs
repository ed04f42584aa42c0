//! `docs/permissions.md` shows the table of presets and worked examples, word for word as they are computed.

use std::fmt::Write as _;

use rallypoint_engine::permission::{Aspect, CommandLine, Request, check_rule, decide, default_of};
use rallypoint_model::permission::{
    AgentPermissions, LayerSource, PermissionDecision, PermissionRule, PolicyLayer, Preset,
};

const PAGE: &str = include_str!("../../../../docs/permissions.md");

fn shown(name: &str) -> Option<&'static str> {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->\n"));
    let rest = PAGE.split_once(&begin)?.1;
    Some(rest.split_once(&end)?.0)
}

fn word(decision: PermissionDecision) -> &'static str {
    match decision {
        PermissionDecision::Allow => "allowed",
        PermissionDecision::Ask => "**asked**",
        PermissionDecision::Reject => "rejected",
    }
}

fn presets() -> String {
    let heads: Vec<String> = Preset::ALL.iter().map(|preset| format!("`{}`", preset.as_str())).collect();
    let mut table = format!("| what is asked for | {} |\n", heads.join(" | "));
    let _ = writeln!(table, "| --- |{}", " --- |".repeat(heads.len()));
    for aspect in Aspect::ALL {
        let cells = Preset::ALL.map(|preset| word(default_of(preset, aspect)));
        let _ = writeln!(table, "| {} | {} |", aspect.words(), cells.join(" | "));
    }
    table
}

struct Example {
    title: &'static str,
    rules: &'static str,
    requests: &'static [(&'static str, &'static str, &'static str)],
}

/// Requests as kind, path and command; an empty one is not there.
const EXAMPLES: &[Example] = &[
    Example {
        title: "By kind of tool",
        rules: r#"[{"effect":"allow","tools":["fetch"]},{"effect":"ask","tools":["read","search"]}]"#,
        requests: &[
            ("fetch", "", ""),
            ("read", "src/main.rs", ""),
            ("edit", "src/main.rs", ""),
            ("frobnicate", "", ""),
        ],
    },
    Example {
        title: "By path",
        rules: r#"[{"effect":"allow","tools":["edit"],"paths":["/tmp/out/**"]},{"effect":"deny","paths":["**/.env"]},{"effect":"ask","tools":["edit"],"paths":["docs/**"]}]"#,
        requests: &[
            ("edit", "src/main.rs", ""),
            ("edit", "docs/a.md", ""),
            ("edit", "/tmp/out/a", ""),
            ("edit", "/tmp/out/../a", ""),
            ("edit", "/etc/hosts", ""),
            ("read", "sub/.env", ""),
            ("execute", "", "cat sub/.env"),
        ],
    },
    Example {
        title: "By command",
        rules: r#"[{"effect":"allow","commands":["cargo test *","git status"]},{"effect":"deny","commands":["git * push"]}]"#,
        requests: &[
            ("execute", "", "cargo test --all"),
            ("execute", "", "cargo test && git status"),
            ("execute", "", "cargo test; curl example.org"),
            ("execute", "", "RUSTFLAGS=x cargo test"),
            ("execute", "", "cargo test $(id)"),
            ("execute", "", "(cargo test)"),
            ("execute", "", "cargo test > log"),
            ("execute", "", "git -C . push"),
            ("execute", "", "bash -c 'git push'"),
        ],
    },
];

fn examples() -> String {
    let mut text = String::new();
    for example in EXAMPLES {
        let rules: Vec<PermissionRule> = serde_json::from_str(example.rules).expect("rules");
        let _ = writeln!(text, "**{}**, under `standard`, with these rules:\n", example.title);
        for (number, rule) in (1..).zip(&rules) {
            assert_eq!(check_rule(rule), Ok(()));
            let _ = writeln!(text, "{number}. `{rule}`");
        }
        let layer = PolicyLayer {
            source: LayerSource::Configuration,
            inherited_from: None,
            preset: Preset::Standard,
            rules,
        };
        let permissions = AgentPermissions { layers: vec![layer], ..AgentPermissions::default() };
        text.push_str("\n| request | decision | because of |\n| --- | --- | --- |\n");
        for (kind, path, command) in example.requests {
            let named: Vec<&str> = [*path, *command].into_iter().filter(|part| !part.is_empty()).collect();
            let paths = Some(*path).filter(|path| !path.is_empty()).map(str::to_owned).into_iter().collect();
            let line = Some(*command).filter(|text| !text.is_empty()).map(CommandLine::of_text);
            let verdict = decide(&permissions, &Request::new(kind, paths, line, "/w"));
            let what = if named.is_empty() { String::new() } else { format!(" `{}`", named.join(" ")) };
            let why = verdict.rule.split(": ").next().filter(|rule| rule.starts_with("rule "));
            let why = why.unwrap_or(&verdict.rule);
            let _ = writeln!(text, "| {kind}{what} | {} | {why} |", word(verdict.decision));
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_page_on_permissions_shows_what_presets_do() {
    let wanted = presets();
    assert_eq!(shown("presets"), Some(wanted.as_str()), "put this between the marks of the page:\n{wanted}");
}

#[test]
fn the_page_on_permissions_shows_examples_as_they_are_decided() {
    let wanted = examples();
    assert_eq!(shown("examples"), Some(wanted.as_str()), "put this between the marks of the page:\n{wanted}");
}
