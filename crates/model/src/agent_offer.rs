//! What an agent says that it can do, what it offers in a conversation, and what is wanted of it.
//!
//! Shapes: Agent Client Protocol v1, "Initialization", "Session Config Options" and "Session Modes".

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an agent said about itself in its answer to the hello. Whatever it left out is `false`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCapabilities {
    /// It opens earlier conversations again and repeats their history.
    pub load: bool,
    /// It opens earlier conversations again and repeats nothing.
    pub resume: bool,
    /// It makes a second conversation out of one.
    pub fork: bool,
    /// It lists its conversations.
    pub list: bool,
    /// It ends a conversation on request.
    pub close: bool,
    /// It removes a conversation on request.
    pub delete: bool,
    /// What a prompt may hold besides text and links.
    pub prompt: PromptKinds,
    /// How tool servers may be reached besides standard input and output.
    pub mcp: ToolServerKinds,
    /// Ways to log in that it names.
    pub auth_methods: Vec<AuthMethod>,
    /// The answer, raw.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub raw: Value,
}

/// What a prompt may hold besides text and links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptKinds {
    /// Pictures.
    pub image: bool,
    /// Sound.
    pub audio: bool,
    /// Contents of files.
    pub embedded_context: bool,
}

/// How tool servers may be reached besides standard input and output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolServerKinds {
    /// Over HTTP.
    pub http: bool,
    /// Over server-sent events.
    pub sse: bool,
    /// Over the agent's own connection.
    pub acp: bool,
}

/// A way to log in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthMethod {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// `agent`, `terminal` or what else it said; empty when it said nothing.
    #[serde(default)]
    pub kind: String,
}

/// What an agent offers to set in a conversation, and how that stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConversationOffer {
    /// Its modes, from the block of that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<OfferedChoice>,
    /// Its models, from the block that older agents send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<OfferedChoice>,
    /// Its options, in its order; absent when it has none of the newer form.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<OfferedOption>,
}

/// One of several values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OfferedChoice {
    /// The value that holds.
    pub current: String,
    /// All of them, in the agent's order.
    pub values: Vec<OfferedValue>,
}

/// A value that an agent takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OfferedValue {
    /// The value.
    pub value: String,
    /// Its name for people.
    pub name: String,
}

/// An option of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OfferedOption {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// `mode`, `model`, `thought_level` or another word; empty when the agent said none.
    pub category: String,
    /// How it is chosen: `select`, `boolean`, or a kind that is not known here.
    pub kind: String,
    /// The value that holds; `true` or `false` for a boolean.
    pub current: String,
    /// What it takes; empty where that is not known.
    pub values: Vec<OfferedValue>,
}

/// What changed in an offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OfferChange {
    /// The conversation was opened, and this is all of it.
    Whole {
        /// The offer.
        offer: ConversationOffer,
    },
    /// The options stand like this now.
    Options {
        /// All of them.
        options: Vec<OfferedOption>,
    },
    /// Another mode holds.
    Mode {
        /// Its id.
        mode_id: String,
    },
}

impl ConversationOffer {
    /// Leaves open which values hold.
    pub fn forget_current(&mut self) {
        for choice in self.modes.iter_mut().chain(self.models.iter_mut()) {
            choice.current.clear();
        }
        for option in &mut self.options {
            option.current.clear();
        }
    }

    /// The offer after a change.
    pub fn changed(&self, change: &OfferChange) -> Self {
        let mut offer = self.clone();
        match change {
            OfferChange::Whole { offer: whole } => return whole.clone(),
            OfferChange::Options { options } => offer.options.clone_from(options),
            OfferChange::Mode { mode_id } => {
                if let Some(modes) = &mut offer.modes {
                    modes.current.clone_from(mode_id);
                }
                for option in offer.options.iter_mut().filter(|option| option.category == "mode") {
                    option.current.clone_from(mode_id);
                }
            }
        }
        offer
    }
}

/// What is wanted of a conversation besides options by their id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Wanted {
    /// Its mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How much it is to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
}

impl Wanted {
    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.mode.is_none() && self.model.is_none() && self.thinking.is_none()
    }

    /// These with what `newer` says laid over them.
    pub fn overlaid(&self, newer: &Self) -> Self {
        let pick = |new: &Option<String>, old: &Option<String>| new.clone().or_else(|| old.clone());
        Self {
            mode: pick(&newer.mode, &self.mode),
            model: pick(&newer.model, &self.model),
            thinking: pick(&newer.thinking, &self.thinking),
        }
    }
}

/// A conversation that an agent itself opened for a helper of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NativeAgent {
    /// The agent's id of the conversation.
    pub agent_session_id: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `running`, `idle`, `requires_action` or another word; empty when unknown.
    pub state: String,
    /// How its last turn ended, when it is idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Whether it can be cancelled by itself.
    pub can_cancel: bool,
}

/// What one frame says of such a conversation; what is absent stays as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NativeAgentUpdate {
    /// The agent's id of the conversation.
    pub agent_session_id: String,
    /// Its title; an empty one takes it away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for; an empty text takes it away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// How its last turn ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Whether it can be cancelled by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_cancel: Option<bool>,
}

impl NativeAgent {
    /// A conversation of which nothing is known but its id.
    pub fn unknown(agent_session_id: &str) -> Self {
        Self { agent_session_id: agent_session_id.to_owned(), ..Self::default() }
    }

    /// Takes an update in.
    pub fn take(&mut self, update: &NativeAgentUpdate) {
        if update.title.is_some() {
            self.title.clone_from(&update.title);
        }
        if update.description.is_some() {
            self.description.clone_from(&update.description);
        }
        if let Some(state) = &update.state {
            self.state.clone_from(state);
            self.stop_reason.clone_from(&update.stop_reason);
        }
        if let Some(can_cancel) = update.can_cancel {
            self.can_cancel = can_cancel;
        }
    }
}
