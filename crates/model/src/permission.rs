//! What agents may do without a person: presets, rules, and the layers they come from.
//!
//! Only the nouns stand here; what they decide is computed by the engine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Id of the conversation option that holds an agent's mode, as the agents with modes name it.
pub const MODE_OPTION: &str = "mode";

/// What holds where no rule says otherwise. In order: what stands first lets through the least.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// Looks, and neither writes, runs nor sends anything. Never asks.
    Readonly,
    /// Looks, and runs what the checks of its task name, to the letter. Never asks.
    Verifier,
    /// Edits inside the work folder; everything else that acts is asked.
    Standard,
    /// Edits and runs commands; what is dangerous or unknown is asked.
    Permissive,
    /// Works alone: what is not allowed is rejected. Never asks.
    Autonomous,
}

impl Preset {
    /// Every preset, for tables and their tests.
    pub const ALL: [Self; 5] =
        [Self::Readonly, Self::Verifier, Self::Standard, Self::Permissive, Self::Autonomous];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Readonly => "readonly",
            Self::Verifier => "verifier",
            Self::Standard => "standard",
            Self::Permissive => "permissive",
            Self::Autonomous => "autonomous",
        }
    }

    /// Whether nothing under it is ever asked: what is not allowed is rejected.
    pub fn never_asks(self) -> bool {
        match self {
            Self::Readonly | Self::Verifier | Self::Autonomous => true,
            Self::Standard | Self::Permissive => false,
        }
    }

    /// Whether an agent that acts without asking must not be started under it.
    pub fn must_be_held(self) -> bool {
        match self {
            Self::Readonly | Self::Verifier => true,
            Self::Standard | Self::Permissive | Self::Autonomous => false,
        }
    }
}

impl std::str::FromStr for Preset {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|preset| preset.as_str() == word).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.into_iter().map(Self::as_str).collect();
            format!("there is no preset `{word}`; the presets are {}", known.join(", "))
        })
    }
}

/// What is decided about a request. In order: what stands later is stricter.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PermissionDecision {
    /// It may, once.
    Allow,
    /// A person or parent is asked.
    Ask,
    /// It may not.
    Reject,
}

impl PermissionDecision {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Reject => "reject",
        }
    }
}

/// What a rule does with what it matches. `deny` wins over `ask`, and `ask` over `allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleEffect {
    /// Let it through.
    Allow,
    /// Ask, also where the preset would allow.
    Ask,
    /// Reject it, whatever else says otherwise.
    Deny,
}

impl RuleEffect {
    /// The word in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// One rule. A list that is empty does not narrow it; those that are not must all match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PermissionRule {
    /// What it does.
    pub effect: RuleEffect,
    /// Tool kinds, such as `edit`; `other` stands for every unknown one, `*` for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Path globs: relative ones below the work folder, `**` for any number of folders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Commands, word by word; `*` stands for any part of a word, and last for any further words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

impl std::fmt::Display for PermissionRule {
    /// One line, as in `deny tools edit, paths **/.env`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.effect.as_str())?;
        let lists = [("tools", &self.tools), ("paths", &self.paths), ("commands", &self.commands)];
        let mut separator = " ";
        for (name, list) in lists {
            if !list.is_empty() {
                write!(formatter, "{separator}{name} {}", list.join(" | "))?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// Who chose the preset of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LayerSource {
    /// Nobody: it is the default, or stands in the configuration for all agents.
    #[default]
    Configuration,
    /// The profile of the agent.
    Profile,
    /// Whoever asked for the task or the sub-agent.
    Request,
}

/// A preset with the rules beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyLayer {
    /// Who chose its preset.
    pub source: LayerSource,
    /// Name of the agent above whose layer it is; absent for an agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited_from: Option<String>,
    /// What holds where no rule says otherwise.
    pub preset: Preset,
    /// The rules, in the order of the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PermissionRule>,
}

impl PolicyLayer {
    /// What it is called where a decision is explained.
    pub fn title(&self) -> String {
        let source = match self.source {
            LayerSource::Configuration => "configuration",
            LayerSource::Profile => "profile",
            LayerSource::Request => "request",
        };
        match &self.inherited_from {
            Some(label) => format!("{source} of its parent `{label}`"),
            None => source.to_owned(),
        }
    }
}

/// What binds one agent, frozen when it is asked for. The strictest layer decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentPermissions {
    /// From the topmost agent's down to its own; never empty.
    pub layers: Vec<PolicyLayer>,
    /// Value of [`MODE_OPTION`] that makes the agent itself keep to a preset.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub preset_modes: BTreeMap<Preset, String>,
    /// Whether the agent asks before everything that acts.
    #[serde(default)]
    pub asks_always: bool,
}

impl Default for AgentPermissions {
    /// What held before permissions could be configured.
    fn default() -> Self {
        Self {
            layers: vec![PolicyLayer {
                source: LayerSource::Configuration,
                inherited_from: None,
                preset: Preset::Standard,
                rules: Vec::new(),
            }],
            preset_modes: BTreeMap::new(),
            asks_always: false,
        }
    }
}

impl AgentPermissions {
    /// The preset among its layers that lets through the least.
    pub fn narrowest(&self) -> Preset {
        self.layers.iter().map(|layer| layer.preset).min().unwrap_or(Preset::Standard)
    }
}
