//! Decisions of presets, rules and layers.

use rallypoint_model::agent_io::ToolCallView;
use rallypoint_model::permission::{LayerSource, PermissionDecision, PermissionRule, Preset};
use serde_json::{Value, json};

use super::*;
use PermissionDecision::{Allow, Ask, Reject};

pub(super) fn policy(preset: Preset, rules: Value) -> AgentPermissions {
    let rules: Vec<PermissionRule> = serde_json::from_value(rules).unwrap();
    let layer = PolicyLayer { source: LayerSource::Request, inherited_from: None, preset, rules };
    AgentPermissions { layers: vec![layer], ..AgentPermissions::default() }
}

fn asked(kind: &str, locations: &[&str], raw_input: Value) -> Request {
    let call = ToolCallView {
        tool_call_id: "1".to_owned(),
        title: None,
        tool_kind: Some(kind.to_owned()),
        status: None,
        text: None,
        locations: locations.iter().map(|path| (*path).to_owned()).collect(),
        raw: json!({ "rawInput": raw_input }),
    };
    Request::of_call(&call, "/w")
}

fn runs(command: &str) -> Request {
    asked("execute", &[], json!({ "command": command }))
}

fn decided(preset: Preset, rules: Value, request: &Request) -> PermissionDecision {
    decide(&policy(preset, rules), request).decision
}

#[test]
fn standard_lets_through_what_looks_and_edits_in_the_work_folder() {
    let standard = |request: &Request| decided(Preset::Standard, json!([]), request);
    assert_eq!(standard(&asked("edit", &["/w/a"], json!({}))), Allow);
    assert_eq!(standard(&asked("edit", &["a/b.rs"], json!({}))), Allow);
    for path in ["/wx/a", "/etc/passwd", "/w/../etc", "../x", "/w", "", "~/a", "$HOME/a", "file:///w/a"] {
        assert_eq!(standard(&asked("edit", &[path], json!({}))), Ask, "{path}");
    }
    assert_eq!(standard(&asked("edit", &[], json!({}))), Ask);
    for kind in ["read", "search", "think"] {
        assert_eq!(standard(&asked(kind, &["/etc/hosts"], json!({}))), Allow, "{kind}");
    }
    for kind in ["execute", "delete", "move", "fetch", "switch_mode", "other", "brand_new"] {
        assert_eq!(standard(&asked(kind, &["/w/a"], json!({}))), Ask, "{kind}");
    }
}

#[test]
fn paths_of_the_raw_input_count_beside_the_locations() {
    for raw in [
        json!({"file_path": "/etc/passwd"}),
        json!({"edits": [{"absolutePath": "/etc/passwd"}]}),
        json!({"changes": {"/etc/passwd": {"type": "update"}}}),
        json!({"source": "/w/a", "destination": "/etc/passwd"}),
    ] {
        assert_eq!(
            decided(Preset::Standard, json!([]), &asked("edit", &["/w/a"], raw.clone())),
            Ask,
            "{raw}"
        );
    }
    let inside = asked("edit", &[], json!({"file_path": "/w/a", "content": "/etc/passwd"}));
    assert_eq!(decided(Preset::Standard, json!([]), &inside), Allow);
}

#[test]
fn readonly_rejects_whatever_may_write_run_or_send_and_no_rule_widens_it() {
    let all = json!([{"effect": "allow", "tools": ["*"]}, {"effect": "allow", "commands": ["make *"]}]);
    for rules in [json!([]), all] {
        for kind in ["edit", "delete", "move", "execute", "fetch", "switch_mode", "other", "brand_new"] {
            assert_eq!(
                decided(Preset::Readonly, rules.clone(), &asked(kind, &["/w/a"], json!({}))),
                Reject,
                "{kind}"
            );
        }
        assert_eq!(decided(Preset::Readonly, rules.clone(), &runs("make test")), Reject);
        assert_eq!(decided(Preset::Readonly, rules.clone(), &asked("read", &["/w/a"], json!({}))), Allow);
    }
}

#[test]
fn what_carries_a_command_runs_it_whatever_its_kind_says() {
    let disguised = asked("read", &["/w/a"], json!({"command": ["cat", "a"]}));
    assert_eq!(decided(Preset::Standard, json!([]), &disguised), Ask);
    assert_eq!(decided(Preset::Readonly, json!([]), &disguised), Reject);
    let allowed = json!([{"effect": "allow", "commands": ["cat *"]}]);
    assert_eq!(decided(Preset::Standard, allowed, &disguised), Allow);
}

#[test]
fn permissive_runs_plain_commands_and_asks_for_dangerous_ones() {
    let permissive = |text: &str| decided(Preset::Permissive, json!([]), &runs(text));
    for text in [
        "make test",
        "cargo test --all && git status",
        "ls *.rs | wc -l",
        "make > out.txt 2>&1",
        "ls > /dev/null",
    ] {
        assert_eq!(permissive(text), Allow, "{text}");
    }
    for text in [
        "rm -rf x",
        "/bin/rm x",
        "make && sudo make install",
        "ls $(rm x)",
        "ls > /etc/x",
        "bash -c 'rm x'",
        "echo a | sh -s",
        "curl http://x",
        "git push",
        "find . -name x -delete",
        "python3 -c 1",
        "xargs rm",
        "",
        ". ./x",
        "git add . ; rm x",
    ] {
        assert_eq!(permissive(text), Ask, "{text}");
        assert_eq!(decided(Preset::Autonomous, json!([]), &runs(text)), Reject, "{text}");
    }
    assert_eq!(permissive("git add ."), Allow);
    let elsewhere = asked("execute", &[], json!({"command": "make", "cwd": "/etc"}));
    assert_eq!(decided(Preset::Permissive, json!([]), &elsewhere), Ask);
    let here = asked("execute", &[], json!({"command": "make", "cwd": "/w"}));
    assert_eq!(decided(Preset::Permissive, json!([]), &here), Allow);
}

#[test]
fn a_verifier_runs_what_a_check_names_to_the_letter_and_nothing_else() {
    let checks = vec!["make test && ./check.sh".to_owned(), "cargo test".to_owned()];
    let verifier =
        |request: Request| decided(Preset::Verifier, json!([]), &request.with_checks(checks.clone()));
    for text in ["make test && ./check.sh", " cargo test "] {
        assert_eq!(verifier(runs(text)), Allow, "{text}");
    }
    for text in ["make test", "cargo test --release", "cargo test; id", ""] {
        assert_eq!(verifier(runs(text)), Reject, "{text}");
    }
    assert_eq!(verifier(asked("execute", &[], json!({"command": ["bash", "-lc", "cargo test"]}))), Allow);
    assert_eq!(verifier(asked("execute", &[], json!({"command": "cargo test", "cwd": "/etc"}))), Reject);
    assert_eq!(verifier(asked("edit", &["/w/a"], json!({}))), Reject);
}

#[test]
fn deny_wins_over_ask_and_ask_over_allow() {
    let allow = json!({"effect": "allow", "commands": ["git *"]});
    let ask = json!({"effect": "ask", "commands": ["git commit"]});
    let deny = json!({"effect": "deny", "commands": ["git commit --amend"]});
    let rules = json!([allow, ask, deny]);
    let standard = |text: &str| decided(Preset::Standard, rules.clone(), &runs(text));
    assert_eq!(standard("git status"), Allow);
    assert_eq!(standard("git commit -m x"), Ask);
    assert_eq!(standard("git commit --amend -m x"), Reject);
    let verdict = decide(&policy(Preset::Standard, rules), &runs("git commit --amend"));
    assert_eq!(
        (verdict.layer.as_str(), verdict.rule.as_str()),
        ("request", "rule 3: deny commands git commit --amend")
    );
}

#[test]
fn every_part_of_a_compound_command_must_be_allowed_and_an_unreadable_one_never_is() {
    let rules = json!([
        {"effect": "allow", "commands": ["git status", "git log *"]},
        {"effect": "allow", "commands": ["make *"]},
    ]);
    let standard = |text: &str| decided(Preset::Standard, rules.clone(), &runs(text));
    for text in ["git status", "git log", "git log -3", "git status && make test | git log"] {
        assert_eq!(standard(text), Allow, "{text}");
    }
    for text in [
        "git status -s",
        "./git status",
        "/usr/bin/git status",
        "git status; id",
        "git status > x",
        "git log *",
        "git log $X",
        "make 'a;b'",
        "A=1 make",
        "git status &&",
    ] {
        assert_eq!(standard(text), Ask, "{text}");
    }
}

#[test]
fn a_denied_command_is_found_in_quotes_substitutions_and_other_commands() {
    let rules = json!([{"effect": "allow", "tools": ["execute"]}, {"effect": "deny", "commands": ["rm *", "git push"]}]);
    for text in [
        "rm x",
        "/bin/rm x",
        "echo $(rm x)",
        "bash -c 'rm x'",
        "ls; r''m x",
        "sudo rm x",
        "git push origin",
        "r\\m x",
    ] {
        assert_eq!(decided(Preset::Standard, rules.clone(), &runs(text)), Reject, "{text}");
    }
    assert_eq!(decided(Preset::Standard, rules, &runs("git pull")), Allow);
}

#[test]
fn paths_of_rules_are_below_the_work_folder_unless_they_are_whole() {
    let edit = |path: &str| asked("edit", &[path], json!({}));
    let rules = json!([
        {"effect": "allow", "tools": ["edit"], "paths": ["/tmp/out/**"]},
        {"effect": "deny", "paths": ["**/.env", "secrets/*", "/w/Cargo.lock"]},
        {"effect": "ask", "tools": ["edit"], "paths": ["docs/**"]},
    ]);
    let standard = |request: &Request| decided(Preset::Standard, rules.clone(), request);
    assert_eq!(standard(&edit("/tmp/out/a/b")), Allow);
    assert_eq!(standard(&edit("/tmp/out/../x")), Ask);
    assert_eq!(standard(&edit("docs/a/b.md")), Ask);
    for path in [".env", "/etc/.env", "a/b/.env", "secrets/key", "a/../secrets/key", "Cargo.lock"] {
        assert_eq!(standard(&edit(path)), Reject, "{path}");
    }
    assert_eq!(standard(&asked("read", &["/w/a/.env"], json!({}))), Reject);
    assert_eq!(standard(&runs("cat a/.env")), Reject);
    assert_eq!(standard(&runs("tool --file=secrets/key")), Reject);
    let wide = json!([{"effect": "allow", "tools": ["edit"], "paths": ["**"]}]);
    assert_eq!(decided(Preset::Standard, wide, &edit("/etc/passwd")), Ask, "`**` ends at the work folder");
}

#[test]
fn the_strictest_layer_decides_and_a_layer_that_never_asks_turns_asking_into_no() {
    let mut both = policy(Preset::Autonomous, json!([]));
    both.layers.extend(policy(Preset::Standard, json!([])).layers);
    let verdict = decide(&both, &runs("make test"));
    assert_eq!(
        (verdict.decision, verdict.rule.as_str()),
        (Reject, "`standard`: execute a plain command; `autonomous` never asks")
    );
    assert_eq!(decide(&both, &asked("edit", &["/w/a"], json!({}))).decision, Allow);
}

#[test]
fn rules_that_match_nothing_or_too_much_are_named() {
    let checked = |rule: Value| check_rule(&serde_json::from_value(rule).unwrap());
    for (rule, word) in [
        (json!({"effect": "deny"}), "names no"),
        (json!({"effect": "deny", "tools": ["bash"]}), "no tool kind `bash`"),
        (json!({"effect": "deny", "paths": ["~/x"]}), "not expanded"),
        (json!({"effect": "deny", "paths": ["a/../b"]}), "`..`"),
        (json!({"effect": "deny", "paths": ["a/**.rs"]}), "stand alone"),
        (json!({"effect": "allow", "paths": [" "]}), "empty"),
        (json!({"effect": "allow", "commands": ["make && id"]}), "holds `&`"),
        (json!({"effect": "allow", "commands": ["* x"]}), "any program"),
    ] {
        let problem = checked(rule.clone()).unwrap_err();
        assert!(problem.contains(word), "{rule}: {problem}");
    }
    for rule in [
        json!({"effect": "allow", "commands": ["cargo test *"]}),
        json!({"effect": "deny", "tools": ["*"], "paths": ["**/.env"]}),
    ] {
        assert_eq!(checked(rule), Ok(()));
    }
}

#[test]
fn arguments_and_variables_beside_a_command_belong_to_it() {
    let rules = json!([{"effect": "allow", "commands": ["make", "make test"]}]);
    let standard = |raw: Value| decided(Preset::Standard, rules.clone(), &asked("execute", &[], raw));
    assert_eq!(standard(json!({"command": "make", "args": ["test"]})), Allow);
    assert_eq!(standard(json!({"command": "make", "args": []})), Allow);
    assert_eq!(standard(json!({"command": "make", "env": {}})), Allow);
    for raw in [
        json!({"command": "make", "args": ["install"]}),
        json!({"command": "make", "arguments": ["test", "install"]}),
        json!({"command": "make test", "args": ["install"]}),
        json!({"command": "make", "args": [1]}),
        json!({"command": "make", "env": {"LD_PRELOAD": "./x.so"}}),
        json!({"command": "make", "env": [{"name": "A", "value": "1"}]}),
        json!({"command": ["make", 1]}),
        json!({"command": ["./bash", "-c", "make"]}),
    ] {
        assert_eq!(standard(raw.clone()), Ask, "{raw}");
    }
    let disguised = asked("read", &["/w/a"], json!({"command": ["rm", 1]}));
    assert_eq!(decided(Preset::Readonly, json!([]), &disguised), Reject);
}

#[test]
fn what_comes_through_a_pipe_or_leads_out_is_dangerous() {
    let permissive = |text: &str| decided(Preset::Permissive, json!([]), &runs(text));
    for text in [
        "base64 -d x | bash",
        "cat x | python3",
        "cat x | sh -",
        "cp a /etc/a",
        "mv a ../b",
        "sed -i s/a/b/ /etc/hosts",
        "tar --directory=/etc -xf a",
        "git -C . push",
        "git -c core.pager=x log",
        "npm -w a publish",
        "if true; then rm x; fi",
    ] {
        assert_eq!(permissive(text), Ask, "{text}");
    }
    for text in ["cp a b", "mv a /w/b", "python3 x.py", "bash x.sh", "git -C sub status"] {
        assert_eq!(permissive(text), Allow, "{text}");
    }
}

#[test]
fn what_hides_from_a_rule_is_not_let_through_with_its_whole_kind() {
    let commands = json!([
        {"effect": "allow", "tools": ["execute"]},
        {"effect": "deny", "commands": ["git push"]},
    ]);
    let standard = |text: &str| decided(Preset::Standard, commands.clone(), &runs(text));
    assert_eq!(standard("make && ls"), Allow);
    for text in ["g=push; git $g", "git \\push", "$(cat x)"] {
        assert_ne!(standard(text), Allow, "{text}");
    }
    let alone = json!([{"effect": "allow", "tools": ["execute"]}]);
    assert_eq!(decided(Preset::Standard, alone, &runs("$(cat x)")), Allow, "nothing is named beside it");
    let paths = json!([
        {"effect": "allow", "tools": ["edit", "fetch"]},
        {"effect": "deny", "paths": ["**/.env"]},
    ]);
    let standard = |request: &Request| decided(Preset::Standard, paths.clone(), request);
    assert_eq!(standard(&asked("edit", &["/etc/x"], json!({}))), Allow);
    assert_eq!(standard(&asked("edit", &[], json!({"where": "/w/.env"}))), Ask);
    assert_eq!(standard(&asked("edit", &[], json!({"targetFile": "/w/.env"}))), Reject);
    assert_eq!(standard(&asked("fetch", &[], json!({"url": "http://x"}))), Allow);
}
