//! How to start and trust each kind of agent program, as data.
//!
//! The built-in profiles are the files in `profiles/`. A configuration may
//! change single keys of one or add its own:
//!
//! ```toml
//! [profiles.claude]
//! argv = ["/opt/claude-agent-acp"]
//!
//! [profiles.mine]
//! argv = ["my-agent", "--acp"]
//! envAllow = ["MY_*"]
//! ```
//!
//! What the built-in files say was seen by running those programs; their
//! comments give the reasons.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use rallypoint_model::command::AgentService;
use rallypoint_model::permission::Preset;
use rallypoint_model::usage::UsageKind;

mod environment;
mod find;
mod registry;

pub use environment::BASE_ENVIRONMENT;
pub use find::find_program;
pub use registry::{ProfileError, Registry};

/// Stands for the path of our own program in a profile's `argv`.
pub const OWN_PROGRAM: &str = "{rally}";

/// One kind of agent program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Profile {
    /// Its name: the `agentType` on the wire.
    #[serde(default)]
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Program and arguments; `{rally}` as a whole argument is our own program.
    pub argv: Vec<String>,
    /// Variables of the caller's environment that reach it, besides
    /// [`BASE_ENVIRONMENT`]: names, or beginnings of names followed by `*`.
    #[serde(default)]
    pub env_allow: Vec<String>,
    /// Variables that it is always given; they win over the caller's.
    #[serde(default)]
    pub env_set: BTreeMap<String, String>,
    /// Options of its conversation that are set before its first prompt, by id.
    #[serde(default)]
    pub config: BTreeMap<String, String>,
    /// What it may do without a person, where nobody asks for something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Preset>,
    /// Value of its option `mode` that makes it keep to a preset by itself.
    #[serde(default)]
    pub preset_modes: BTreeMap<Preset, String>,
    /// Whether it asks before everything that acts, so that the policy alone holds it.
    #[serde(default)]
    pub asks_always: bool,
    /// How its token numbers are to be read.
    #[serde(default = "no_usage")]
    pub usage: UsageKind,
    /// Whether a conversation that it loads after a cut can be gone on with.
    #[serde(default)]
    pub trusts_load: bool,
    /// Whether the same holds for one that it resumes, that is opens without repeating its history.
    #[serde(default)]
    pub trusts_resume: bool,
    /// Whether it takes a second `session/prompt` while one is open, works its words in and answers it.
    #[serde(default)]
    pub takes_words_in_turn: bool,
    /// The way to log in that it is told to take, by the id that it names; one that reads a key, never one that asks a
    /// person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_method: Option<String>,
    /// What is done for it: `fs` reads and writes text files of the work folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<AgentService>,
    /// Whether our tools are given to it, by a tool server that it starts in its conversation.
    #[serde(default = "given")]
    pub mcp: bool,
    /// What a person does when it wants a login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_hint: Option<String>,
    /// What shows that it is logged in; nothing where that can't be told.
    #[serde(default)]
    pub login: Login,
    /// Command that installs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_hint: Option<String>,
    /// What a person has to provide where no command installs it. Then `argv` may be empty until a configuration sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// Where its project documents it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs_url: Option<String>,
    /// Arguments with which its program prints its version and ends. Asked only where no package file says it.
    #[serde(default)]
    pub version_arguments: Vec<String>,
    /// Milliseconds it may take until its conversation is open, when not the usual limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_timeout_ms: Option<u64>,
    /// Milliseconds of silence in a turn that make it suspicious, when not the usual limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_ms: Option<u64>,
    /// Milliseconds from a cancel to its answer, when not the usual limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_grace_ms: Option<u64>,
    /// Milliseconds that it gets to exit by itself, when not the usual limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_grace_ms: Option<u64>,
    /// Not shown in lists; for demonstrations and tests.
    #[serde(default)]
    pub hidden: bool,
    /// Whether it comes with the program. Never read from a file.
    #[serde(default, skip_deserializing)]
    pub built_in: bool,
}

/// What shows that an agent is logged in. Only whether a variable is set or a file is there is looked at, never what is
/// in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Login {
    /// Variables of which one with a value is enough.
    pub variables: Vec<String>,
    /// Files of which one is enough: `~` is the home, `$NAME` at the beginning the folder that a variable names.
    pub files: Vec<String>,
}

impl Login {
    /// Whether nothing is known that could be looked at.
    pub fn is_unknown(&self) -> bool {
        self.variables.is_empty() && self.files.is_empty()
    }
}

fn given() -> bool {
    true
}

fn no_usage() -> UsageKind {
    UsageKind::None
}

impl Profile {
    /// Program and arguments, with our own program's path put in.
    pub fn argv_with(&self, own_program: &str) -> Vec<String> {
        let put_in = |argument: &String| match argument.as_str() {
            OWN_PROGRAM => own_program.to_owned(),
            other => other.to_owned(),
        };
        self.argv.iter().map(put_in).collect()
    }

    /// Whether the program is our own, so that there is nothing to look for on `PATH`.
    pub fn is_own_program(&self) -> bool {
        self.argv.first().is_some_and(|program| program == OWN_PROGRAM)
    }
}

#[cfg(test)]
mod tests;
