use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn every_built_in_profile_is_valid_and_named_like_its_file() {
    let registry = Registry::built_in().unwrap();
    let names: Vec<&str> = registry.list().map(|profile| profile.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "claude",
            "codex",
            "command",
            "custom",
            "elizaos",
            "fast-agent",
            "gemini",
            "goose",
            "opencode",
            "pi",
            "pi-agent",
            "qwen",
            "scripted",
            "shell",
            "vibe"
        ]
    );
    for profile in registry.list() {
        assert!(profile.built_in, "{}", profile.name);
        assert!(!profile.title.is_empty(), "{}", profile.name);
        let way_in = profile.install_hint.is_some() || profile.needs.is_some();
        assert!(profile.is_own_program() || way_in, "{}", profile.name);
        assert!(profile.is_own_program() || profile.docs_url.is_some(), "{}", profile.name);
    }
    assert!(registry.get("scripted").unwrap().hidden);
}

#[test]
fn our_own_program_is_put_in() {
    let registry = Registry::built_in().unwrap();
    let shell = registry.get("shell").unwrap();
    assert!(shell.is_own_program());
    assert_eq!(shell.argv_with("/usr/bin/rally"), ["/usr/bin/rally", "agent-serve", "shell"]);
    assert_eq!(registry.get("fast-agent").unwrap().argv_with("x"), ["fast-agent", "acp", "-x"]);
}

#[test]
fn an_override_changes_single_keys_and_adds_profiles() {
    let text = "[server]\nport = 1\n[profiles.claude]\nargv = [\"/opt/c\"]\n\
                [profiles.mine]\nargv = [\"mine\", \"--acp\"]\nusage = \"last_call\"\nenvAllow = [\"MY_*\"]\n";
    let registry = Registry::with_overrides(text).unwrap();
    let claude = registry.get("claude").unwrap();
    assert_eq!(claude.argv, ["/opt/c"]);
    assert!(claude.trusts_load && claude.built_in);
    let mine = registry.get("mine").unwrap();
    assert_eq!((mine.title.as_str(), mine.usage, mine.built_in), ("mine", UsageKind::LastCall, false));
    assert!(mine.allows_variable("MY_KEY") && !mine.allows_variable("YOUR_KEY"));
}

#[test]
fn a_profile_that_waits_for_its_command_gets_it_from_the_configuration() {
    assert!(Registry::built_in().unwrap().get("custom").unwrap().argv.is_empty());
    let registry = Registry::with_overrides("[profiles.custom]\nargv = [\"mine\", \"acp\"]\n").unwrap();
    assert_eq!(registry.get("custom").unwrap().argv, ["mine", "acp"]);
}

#[test]
fn a_profile_names_modes_for_presets_it_knows_and_nothing_is_asks_always_by_itself() {
    let registry = Registry::built_in().unwrap();
    let claude = registry.get("claude").unwrap();
    assert_eq!(claude.preset_modes.get(&Preset::Readonly).map(String::as_str), Some("plan"));
    let gemini = registry.get("gemini").unwrap();
    assert_eq!(gemini.preset_modes.get(&Preset::Readonly).map(String::as_str), Some("plan"));
    // Its `plan` runs commands without asking, so nothing of it holds.
    assert!(registry.get("opencode").unwrap().preset_modes.is_empty());
    assert!(registry.list().all(|profile| !profile.asks_always));
    let text = "[profiles.mine]\nargv = [\"mine\"]\nasksAlways = true\npermissions = \"readonly\"\n\
                [profiles.mine.presetModes]\nreadonly = \"look\"\n";
    let registry = Registry::with_overrides(text).unwrap();
    let mine = registry.get("mine").unwrap();
    assert_eq!((mine.permissions, mine.asks_always), (Some(Preset::Readonly), true));
    let wrong =
        Registry::with_overrides(&text.replace("readonly = ", "readable = ")).unwrap_err().to_string();
    assert!(wrong.contains("profile `mine`") && wrong.contains("readable"), "{wrong}");
}

#[test]
fn mistakes_are_named() {
    let refused = |text: &str| Registry::with_overrides(text).unwrap_err().to_string();
    assert!(refused("[profiles.x]\nargv = [\"a\"]\nargs = []\n").contains("unknown field `args`"));
    assert!(refused("[profiles.x]\ntitle = \"a\"\n").contains("argv"));
    assert!(refused("[profiles.x]\nargv = []\n").contains("names no program"));
    assert!(refused("[profiles.x]\nargv = [\"a\"]\nname = \"y\"\n").contains("its `name` says `y`"));
    assert!(refused("[profiles.x]\nargv = [\"a\"]\nbuiltIn = true\n").contains("builtIn"));
    assert!(refused("[profiles.\"a b\"]\nargv = [\"a\"]\n").contains("letters"));
    assert!(refused("profiles = 3\n").contains("not a table"));
    assert!(refused("[profiles\n").contains("no valid TOML"));
}

#[test]
fn only_allowed_variables_reach_an_agent() {
    let registry = Registry::built_in().unwrap();
    let caller = [
        ("PATH", "/bin"),
        ("LC_ALL", "C"),
        ("ANTHROPIC_API_KEY", "k"),
        ("OPENAI_API_KEY", "k"),
        ("CLAUDECODE", "1"),
        ("CLAUDE_CODE_ENTRYPOINT", "cli"),
        ("NO_BROWSER", "0"),
        ("AWS_SECRET_ACCESS_KEY", "k"),
    ];
    let names = |name: &str| -> Vec<String> {
        registry.get(name).unwrap().environment(caller).into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names("claude"), ["PATH", "LC_ALL", "ANTHROPIC_API_KEY", "CLAUDE_CODE_MAX_RETRIES"]);
    assert_eq!(names("codex"), ["PATH", "LC_ALL", "OPENAI_API_KEY", "NO_BROWSER"]);
    assert_eq!(names("shell"), ["PATH", "LC_ALL"]);
    let codex = registry.get("codex").unwrap().environment(caller);
    assert!(codex.contains(&("NO_BROWSER".to_owned(), "1".to_owned())));
}

#[test]
fn a_program_is_found_only_where_it_can_be_executed() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("agent");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    let path = format!("/nowhere::relative:{}", folder.path().display());
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(find_program("agent", &path), None);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(find_program("agent", &path), Some(program.clone()));
    assert_eq!(find_program(program.to_str().unwrap(), ""), Some(program));
    assert_eq!(find_program("agent", ""), None);
    assert_eq!(find_program("", &path), None);
    assert_eq!(find_program(folder.path().to_str().unwrap(), ""), None);
}
