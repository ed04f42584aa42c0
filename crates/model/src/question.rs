//! Questions: whatever waits for a person or a parent, one-shot.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    },
    /// A worker asks something before it can go on.
    Ask {
        /// The question.
        text: String,
    },
    /// A person accepts or rejects a result.
    Acceptance {
        /// What the person is asked.
        text: String,
    },
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
