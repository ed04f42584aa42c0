//! The agents that are tried, and how each is set up against the mock model.
//!
//! Set-up: public documentation of each agent; each variable and file was tried with the pinned version.

use std::path::{Path, PathBuf};

/// Where `make test-agents` installed them; nothing when it did not.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os("RALLY_TEST_AGENTS").map(PathBuf::from).filter(|folder| !folder.as_os_str().is_empty())
}

/// Files of its home, variables, and how its profile starts it.
pub(crate) struct SetUp {
    pub(crate) files: Vec<(&'static str, String)>,
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// One agent.
pub(crate) struct Agent {
    /// The profile.
    pub(crate) name: &'static str,
    /// Program in `node_modules/.bin`, and its arguments.
    pub(crate) program: &'static str,
    pub(crate) arguments: &'static [&'static str],
    /// Variables that the profile does not let through by itself.
    pub(crate) pass: &'static [&'static str],
    /// The mode in which it asks before it runs a command.
    pub(crate) asking_mode: &'static str,
    /// Marker word for a command that it has to ask for.
    pub(crate) command_word: &'static str,
    /// Whether its profile trusts it to go on with a conversation after a cut.
    pub(crate) goes_on: bool,
    pub(crate) set_up: fn(home: &Path, url: &str) -> SetUp,
}

pub(crate) const CLAUDE: Agent = Agent {
    name: "claude",
    program: "claude-agent-acp",
    arguments: &[],
    pass: &[],
    asking_mode: "default",
    command_word: "shell",
    goes_on: true,
    set_up: claude,
};

pub(crate) const QWEN: Agent = Agent {
    name: "qwen",
    program: "qwen",
    arguments: &["--acp"],
    pass: &[],
    asking_mode: "default",
    command_word: "shell",
    goes_on: false,
    set_up: qwen,
};

pub(crate) const CODEX: Agent = Agent {
    name: "codex",
    program: "codex-acp",
    arguments: &[],
    pass: &["MOCK_KEY"],
    asking_mode: "read-only",
    command_word: "escalate",
    goes_on: true,
    set_up: codex,
};

/// All of them.
pub(crate) const AGENTS: [&Agent; 3] = [&CLAUDE, &QWEN, &CODEX];

/// A key that opens nothing.
const KEY: &str = "key-for-a-mock";

fn claude(home: &Path, url: &str) -> SetUp {
    SetUp {
        files: Vec::new(),
        variables: vec![
            ("ANTHROPIC_BASE_URL", url.to_owned()),
            ("ANTHROPIC_API_KEY", KEY.to_owned()),
            ("CLAUDE_CONFIG_DIR", home.join(".claude").display().to_string()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("IS_SANDBOX", "1".to_owned()),
        ],
    }
}

fn qwen(_home: &Path, url: &str) -> SetUp {
    let settings = r#"{
        "security": { "auth": { "selectedType": "openai" } },
        "telemetry": { "enabled": false },
        "privacy": { "usageStatisticsEnabled": false },
        "general": { "enableAutoUpdate": false, "disableAutoUpdate": true },
        "model": { "generationConfig": { "maxRetries": 0 } }
    }"#;
    SetUp {
        files: vec![(".qwen/settings.json", settings.to_owned())],
        variables: vec![
            ("OPENAI_API_KEY", KEY.to_owned()),
            ("OPENAI_BASE_URL", format!("{url}/v1")),
            ("OPENAI_MODEL", "mock-model".to_owned()),
        ],
    }
}

fn codex(home: &Path, url: &str) -> SetUp {
    let config = format!(
        "model = \"mock-model\"\nmodel_provider = \"mock\"\n\n[model_providers.mock]\nname = \"mock\"\n\
         base_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"MOCK_KEY\"\n\
         request_max_retries = 0\nstream_max_retries = 0\n"
    );
    SetUp {
        files: vec![(".codex/config.toml", config)],
        variables: vec![
            ("CODEX_HOME", home.join(".codex").display().to_string()),
            ("MOCK_KEY", KEY.to_owned()),
        ],
    }
}
