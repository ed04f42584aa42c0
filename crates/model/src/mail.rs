//! Mail: what is said to a session while it may be busy, and how it is taken.

use serde::{Deserialize, Serialize};

use crate::ids::SessionId;

/// How a session's mail is taken while it is in a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MailMode {
    /// Into the turn at its next tool call, where the agent can take it; else as `followup`.
    Steer,
    /// One turn for each, after the one at work.
    Followup,
    /// All that waits in one turn, after the one at work.
    #[default]
    Collect,
    /// The turn at work is cancelled, and the newest is taken; what no turn had taken before is dropped, and that is
    /// told.
    Interrupt,
}

impl MailMode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Steer, Self::Followup, Self::Collect, Self::Interrupt];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Steer => "steer",
            Self::Followup => "followup",
            Self::Collect => "collect",
            Self::Interrupt => "interrupt",
        }
    }
}

/// What a sub-agent is to its parent and its siblings, when they talk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ConversationMode {
    /// Whether it may speak to other sub-agents of the same parent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub siblings: bool,
    /// How what is said to it is taken while it is in a turn.
    pub mode: MailMode,
}

/// What a piece of mail is. The order is that of taking.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum MailKind {
    /// The result of a call that the session's own turn made.
    ToolResult,
    /// Rides along with the next turn and asks for none.
    Background,
    /// Asks for a turn.
    Active,
}

/// Who sends a piece of mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MailFrom {
    /// A person.
    User {
        /// Name.
        name: String,
    },
    /// The session that it works for.
    Parent,
    /// One that works for it.
    Child {
        /// Name.
        name: String,
        /// Its session.
        #[serde(rename = "sessionId")]
        session_id: SessionId,
    },
    /// One that works for the same parent.
    Sibling {
        /// Name.
        name: String,
        /// Its session.
        #[serde(rename = "sessionId")]
        session_id: SessionId,
    },
    /// The platform.
    System,
}

/// A piece of mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mail {
    /// Unique: what comes again under it is not taken in.
    pub key: String,
    /// What it is.
    pub kind: MailKind,
    /// Who sends it.
    pub from: MailFrom,
    /// The words, without attribution.
    pub text: String,
}
