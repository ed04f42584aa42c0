//! What agents in memory answer besides prompts.

use rallypoint_model::agent_io::{AgentInput, AgentItem, ElicitationAction};
use rallypoint_model::agent_offer::{AgentCapabilities, ConversationOffer, OfferChange};
use serde_json::json;

/// A frame that is always a new one.
pub(crate) const LATER: u64 = 1 << 40;

/// An agent that can load, and nothing else.
pub(crate) fn loads() -> AgentCapabilities {
    AgentCapabilities { load: true, ..AgentCapabilities::default() }
}

/// The offer as it comes with the answer that opens a conversation.
pub(crate) fn whole(offer: &ConversationOffer) -> AgentItem {
    AgentItem::Offered {
        frame: LATER,
        agent_session_id: None,
        change: OfferChange::Whole { offer: offer.clone() },
    }
}

/// What an agent answers to a value: `refused` is refused.
pub(crate) fn setting_answer(seq: u64, value: &str) -> AgentItem {
    match value {
        "refused" => AgentItem::RequestFailed { seq, frame: 2, code: -32602, message: "not this".to_owned() },
        _ => AgentItem::RequestAnswered { seq, frame: 2 },
    }
}

/// An input in words, for those that tests here look at.
pub(crate) fn told(input: &AgentInput) -> Option<String> {
    match input {
        AgentInput::SetConfigOption { config_id, value, .. } => Some(format!("{config_id}={value}")),
        AgentInput::SetMode { mode_id, .. } => Some(format!("mode {mode_id}")),
        AgentInput::SetModel { model_id, .. } => Some(format!("model {model_id}")),
        AgentInput::ResumeSession { agent_session_id, .. } => Some(format!("resume {agent_session_id}")),
        AgentInput::LoadSession { agent_session_id, .. } => Some(format!("load {agent_session_id}")),
        AgentInput::CloseSession { agent_session_id } => Some(format!("close {agent_session_id}")),
        AgentInput::Cancel { agent_session_id } => Some(format!("cancel {agent_session_id}")),
        AgentInput::AnswerElicitation { action, .. } => Some(match action {
            ElicitationAction::Accept { content } => format!("accept {}", json!(content)),
            ElicitationAction::Decline => "decline".to_owned(),
            ElicitationAction::Cancel => "cancel the question".to_owned(),
        }),
        AgentInput::Authenticate { method_id } => Some(format!("log in by {method_id}")),
        AgentInput::ServeFile { ask, refused, .. } => {
            Some(format!("{} {} {refused:?}", ask.method(), ask.path()))
        }
        AgentInput::Initialize
        | AgentInput::NewSession { .. }
        | AgentInput::Prompt { .. }
        | AgentInput::AnswerPermission { .. }
        | AgentInput::Steer { .. }
        | AgentInput::RefuseMethod { .. } => None,
    }
}
