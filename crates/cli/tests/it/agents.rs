//! Which agents there are, which one a task gets, and where its program is found.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::help::{Rally, write};

/// A `rally` that sees only these programs, each of which is the scenario agent.
struct Machine {
    rally: Rally,
    folder: tempfile::TempDir,
}

impl Machine {
    fn with(programs: &[&str], config: &str, variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for program in programs {
            agent_at(&folder.path().join(program));
        }
        std::os::unix::fs::symlink("/bin/sh", folder.path().join("sh")).unwrap();
        let place = folder.path().to_str().unwrap();
        let mut rally = Rally::with_config(config).with_variable("PATH", place).with_variable("HOME", place);
        for (name, value) in variables {
            rally = rally.with_variable(name, value);
        }
        Self { rally, folder }
    }

    /// The profile that a goal without an agent gets, and why, or what is said instead.
    fn choice(&self, goal: &str) -> String {
        let ended = self.rally.run(&["run", goal, "--unchecked", "--json"]);
        if ended.code == Some(0) {
            let task = self.rally.json(&["task", "show", ended.result()["taskId"].as_str().unwrap()]);
            let agent = task["sessions"][0]["agentType"].as_str().unwrap().to_owned();
            return format!("{agent}: {}", task["agentChoice"].as_str().unwrap_or("named"));
        }
        format!("{}{}", ended.out.lines().last().unwrap_or_default(), ended.err)
    }
}

fn agent_at(path: &Path) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write(path, &format!("#!/bin/sh\nexec {}\n", Rally::scenario("good")));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_owned()
}

#[test]
fn a_task_without_an_agent_gets_one_for_a_reason_that_is_kept() {
    let keys = [("ANTHROPIC_API_KEY", "key-one"), ("CODEX_API_KEY", "key-two")];
    let both = ["claude-agent-acp", "codex-acp"];
    let cases = [
        (&both[..], "defaultAgent = \"codex\"\n", &keys[..], "Do it", "codex: configured"),
        (&both[..1], "", &keys[..], "Do it", "claude: only_ready"),
        // Built-in agents are no candidates, and one without a login is none beside one with.
        (&both[..], "", &keys[1..], "Do it", "codex: only_ready"),
        (&both[..1], "", &[][..], "Do it", "claude: only_installed"),
        (&both[..], "", &keys[..], "Go\n\n$ true", "shell: commands"),
    ];
    for (programs, config, variables, goal, expected) in cases {
        assert_eq!(Machine::with(programs, config, variables).choice(goal), expected);
    }
}

#[test]
fn without_one_that_may_be_taken_the_task_is_refused_with_a_list() {
    let keys = [("ANTHROPIC_API_KEY", "key-one"), ("CODEX_API_KEY", "key-two")];
    let several = Machine::with(&["claude-agent-acp", "codex-acp"], "", &keys).choice("Do it");
    assert!(several.contains("more than one is ready") && several.contains("claude, codex"), "{several}");
    let dry = Machine::with(&["claude-agent-acp", "codex-acp"], "", &[]).choice("Do it");
    assert!(dry.contains("none of which shows a login") && dry.contains("claude, codex"), "{dry}");
    let none = Machine::with(&[], "", &[]).choice("Do it");
    assert!(none.contains("none is installed") && none.contains("rally agents"), "{none}");
}

#[test]
fn the_choice_is_shown_with_the_task() {
    let machine = Machine::with(&["claude-agent-acp"], "", &[("ANTHROPIC_API_KEY", "key-one")]);
    let ended = machine.rally.run(&["run", "Do it", "--unchecked", "--json"]);
    let task = ended.result()["taskId"].as_str().unwrap().to_owned();
    let shown = machine.rally.run(&["task", "show", &task]).out;
    assert!(shown.contains("agent     claude, the only one that is ready"), "{shown}");
}

#[test]
fn a_program_that_is_not_on_the_path_is_found_where_it_is_said_to_be() {
    let machine = Machine::with(&[], "", &[]);
    let program = agent_at(&machine.folder.path().join("elsewhere/agent"));
    let path = program.to_str().unwrap();
    let goal = ["run", "Do it", "--unchecked", "--agent", "codex"];
    let refused = machine.rally.run(&goal);
    assert_ne!(refused.code, Some(0));
    assert!(refused.err.contains("--agent-path"), "{refused:?}");
    let named = [&goal[..], &["--agent-path", path]].concat();
    assert_eq!(machine.rally.run(&named).code, Some(0));
    let missing = machine.rally.run(&[&goal[..], &["--agent-path", "/no/such/agent"]].concat());
    assert_eq!(missing.code, Some(2), "{missing:?}");
    let configured = Machine::with(&[], &format!("[profiles.codex]\nargv = [{path:?}]\n"), &[]);
    assert_eq!(configured.rally.run(&goal).code, Some(0));
}

#[test]
fn a_spawned_agent_is_found_where_its_program_is_said_to_be() {
    let machine = Machine::with(&[], "", &[]);
    let program = agent_at(&machine.folder.path().join("elsewhere/agent"));
    let path = program.to_str().unwrap();
    let waits = Rally::scenario("waits-for-file go");
    let started =
        machine.rally.run(&["run", "Do it", "--unchecked", "--agent-cmd", &waits, "--detach", "--json"]);
    let task = started.result()["taskId"].as_str().unwrap().to_owned();
    let spawn = ["task", "spawn", &task, "--agent", "codex"];
    let refused = machine.rally.run(&spawn);
    assert_ne!(refused.code, Some(0));
    assert!(refused.err.contains("--agent-path"), "{refused:?}");
    let missing = machine.rally.run(&[&spawn[..], &["--agent-path", "/no/such/agent"]].concat());
    assert_eq!(missing.code, Some(2), "{missing:?}");
    let alone = machine.rally.run(&["task", "spawn", &task, "--agent-cmd", &waits, "--agent-path", path]);
    assert_eq!(alone.code, Some(2), "{alone:?}");
    let spawned = machine.rally.json(&[&spawn[..], &["--agent-path", path]].concat());
    let run = spawned["runId"].clone();
    let ended = || {
        let shown = machine.rally.json(&["task", "show", &task]);
        let runs = shown["runs"].as_array().unwrap().clone();
        runs.into_iter().any(|each| each["runId"] == run && each["outcome"] == "completed")
    };
    Rally::until("the spawned agent has worked", ended);
    write(&machine.rally.path("go"), "go");
}

#[test]
fn agents_show_version_login_and_next_step_and_no_secret() {
    let machine = Machine::with(&["codex-acp"], "", &[("CODEX_API_KEY", "very-secret-key")]);
    let program = agent_at(&machine.folder.path().join("lib/claude/dist/index"));
    write(&machine.folder.path().join("lib/claude/package.json"), r#"{"version":"0.101.0"}"#);
    std::os::unix::fs::symlink(program, machine.folder.path().join("claude-agent-acp")).unwrap();
    let listed = machine.rally.json(&["agents"]);
    let agent = |name: &str| {
        let items = listed["items"].as_array().unwrap();
        items.iter().find(|agent| agent["name"] == name).unwrap().clone()
    };
    let claude = agent("claude");
    assert_eq!((&claude["version"], &claude["login"]), (&"0.101.0".into(), &"absent".into()));
    assert_eq!(claude["ready"], false);
    let codex = agent("codex");
    assert_eq!((&codex["login"], &codex["loginShownBy"]), (&"present".into(), &"CODEX_API_KEY".into()));
    for name in ["gemini", "custom", "elizaos", "pi-agent", "goose"] {
        let missing = agent(name);
        assert_eq!(missing["installed"], false, "{missing}");
        assert_ne!(missing["installHint"], "", "{missing}");
        assert!(missing["docsUrl"].as_str().unwrap().starts_with("https://"), "{missing}");
    }
    let table = machine.rally.run(&["agents", "claude", "codex"]).out;
    assert!(table.contains("0.101.0") && table.contains("by CODEX_API_KEY"), "{table}");
    assert!(table.contains("https://github.com/agentclientprotocol/codex-acp"), "{table}");
    assert!(!table.contains("gemini"), "{table}");
    assert!(!format!("{listed}{table}").contains("very-secret"), "{listed}");
    let unknown = machine.rally.run(&["agents", "nobody"]);
    assert!(unknown.code != Some(0) && unknown.err.contains("there is no agent `nobody`"), "{unknown:?}");
}
