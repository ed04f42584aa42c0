//! Questions: whatever waits for a person or a parent, one-shot.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::SessionId;

/// What is being asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum QuestionKind {
    /// An agent wants to use a tool.
    Approval {
        /// What it wants to do.
        title: String,
        /// Tool kind as the protocol names it.
        tool_kind: String,
        /// The choices, in the agent's order.
        options: Vec<ApprovalOption>,
        /// What of the policy made it ask. Absent in journals from before it was kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<PolicyReason>,
    },
    /// A worker asks something before it can go on.
    Ask {
        /// The question.
        text: String,
        /// What is to be filled in or opened; absent where words are the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        form: Option<AskForm>,
    },
    /// A person accepts or rejects a result.
    Acceptance {
        /// What the person is asked.
        text: String,
    },
}

/// What of the policy left a request to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyReason {
    /// Title of the layer that decided.
    pub layer: String,
    /// The rule with its number, or the preset with the line of its table.
    pub rule: String,
    /// Name of the agent above whose layer it is; absent for the asking agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited_from: Option<String>,
}

impl std::fmt::Display for PolicyReason {
    /// As in ``rule 2: ask tools fetch (configuration)``.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", self.rule, self.layer)
    }
}

/// What a person is to fill in, or where to go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AskForm {
    /// Fields to be filled in, in the agent's order.
    pub fields: Vec<AskField>,
    /// An address for the person, which is shown and never opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// One field of a form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AskField {
    /// Its name in the answer.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it has to be filled in.
    pub required: bool,
    /// `string`, `number`, `integer`, `boolean`, `array` or a word that is not known here.
    pub kind: String,
    /// What it takes; empty where anything of its kind is.
    pub values: Vec<String>,
    /// Its schema as it came.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub raw: Value,
}

/// One choice of an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalOption {
    /// Id as the agent gave it.
    pub option_id: String,
    /// Name as the agent gave it.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always` or unknown.
    pub kind: String,
}

/// Where a question stands; everything but `open` is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionStatus {
    /// Waits.
    Open,
    /// Answered with a value.
    Answered,
    /// Answered with no.
    Declined,
    /// Its deadline passed.
    Expired,
    /// What asked is gone.
    Withdrawn,
}

impl QuestionStatus {
    /// Every status, for tables and their tests.
    pub const ALL: [Self; 5] = [Self::Open, Self::Answered, Self::Declined, Self::Expired, Self::Withdrawn];
}

/// What may close a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionTrigger {
    /// An answer came.
    Answer,
    /// A no came.
    Decline,
    /// The deadline passed.
    Expire,
    /// The asking run ended or was stopped.
    Withdraw,
}

impl QuestionTrigger {
    /// Every trigger, for tables and their tests.
    pub const ALL: [Self; 4] = [Self::Answer, Self::Decline, Self::Expire, Self::Withdraw];
}

/// An agent that answers what another one asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AnsweringAgent {
    /// The main agent of the room that asked for the task.
    MainAgent,
    /// A session above the one that asks.
    Session {
        /// Its id.
        #[serde(rename = "sessionId")]
        session_id: SessionId,
    },
}

/// An answer as a person or parent gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Answer {
    /// Take this option of an approval.
    Option {
        /// Its id.
        #[serde(rename = "optionId")]
        option_id: String,
    },
    /// Allow once, whatever the option's id is.
    Allow,
    /// No, with a reason that the asker is told.
    Decline {
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Words, for an `ask`.
    Text {
        /// The words.
        text: String,
    },
    /// Accept the result.
    Accept {
        /// Why, when said.
        #[serde(default)]
        reason: String,
    },
    /// A value of another form.
    Value {
        /// The value.
        value: Value,
    },
}
