//! What the policy decides about an agent's request for permission, without a person.
//!
//! A request has up to two faces: the kind that its agent gives it, and, when
//! it carries a command, the running of that command, whatever its kind says.
//! Each layer decides on each face: a deny rule first, then what its preset
//! rejects for good, an ask rule, allow rules, and last the preset's default.
//! The strictest answer of all faces and layers holds.
//!
//! Only requests can be decided. What an agent does without asking is not seen
//! here; see [`holding`] for how a preset holds there.

use rallypoint_model::permission::{AgentPermissions, PermissionDecision, PolicyLayer, RuleEffect};
use rallypoint_model::question::ApprovalOption;

mod command_line;
pub mod holding;
mod matching;
mod presets;
mod request;
mod rules;

pub use command_line::{CommandLine, METACHARACTERS};
pub use presets::{Aspect, default_of};
pub use request::{Request, ToolKind};
pub use rules::check_rule;

use request::Face;

/// A decision and what made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What is decided.
    pub decision: PermissionDecision,
    /// Title of the layer that decided.
    pub layer: String,
    /// The rule, by its number from 1, or the preset with the line of its table.
    pub rule: String,
    /// Name of the agent above whose layer it is.
    pub inherited_from: Option<String>,
}

/// Decides about a request. The first of the strictest answers is the one that is named.
pub fn decide(permissions: &AgentPermissions, request: &Request) -> Verdict {
    let fallback = AgentPermissions::default();
    let layers = if permissions.layers.is_empty() { &fallback.layers } else { &permissions.layers };
    let mut strictest: Option<Verdict> = None;
    for layer in layers {
        for face in &request.faces {
            let verdict = decide_face(layer, request, face);
            if strictest.as_ref().is_none_or(|before| before.decision < verdict.decision) {
                strictest = Some(verdict);
            }
        }
    }
    let mut verdict = strictest.unwrap_or_else(|| Verdict {
        decision: PermissionDecision::Reject,
        layer: "configuration".to_owned(),
        rule: "the request says nothing".to_owned(),
        inherited_from: None,
    });
    if verdict.decision == PermissionDecision::Ask
        && let Some(silent) = layers.iter().find(|layer| layer.preset.never_asks())
    {
        verdict.decision = PermissionDecision::Reject;
        verdict.rule = format!("{}; `{}` never asks", verdict.rule, silent.preset.as_str());
    }
    verdict
}

fn decide_face(layer: &PolicyLayer, request: &Request, face: &Face) -> Verdict {
    let verdict = |decision, rule| Verdict {
        decision,
        layer: layer.title(),
        rule,
        inherited_from: layer.inherited_from.clone(),
    };
    let first = |effect: RuleEffect| {
        let mut numbered = (1_usize..).zip(&layer.rules).filter(|(_, rule)| rule.effect == effect);
        numbered.find(|(_, rule)| matching::touches(rule, request, face))
    };
    let named = |(number, rule): (usize, &rallypoint_model::permission::PermissionRule)| {
        format!("rule {number}: {rule}")
    };
    if let Some(found) = first(RuleEffect::Deny) {
        return verdict(PermissionDecision::Reject, named(found));
    }
    let aspect = request.aspect(face);
    let default = default_of(layer.preset, aspect);
    let preset = format!("`{}`: {}", layer.preset.as_str(), aspect.words());
    if default == PermissionDecision::Reject && layer.preset.must_be_held() {
        return verdict(default, preset);
    }
    if let Some(found) = first(RuleEffect::Ask) {
        return verdict(PermissionDecision::Ask, named(found));
    }
    if let Some(number) = matching::allows(&layer.rules, request, face)
        && let Some(rule) = layer.rules.get(number)
    {
        return verdict(PermissionDecision::Allow, named((number.saturating_add(1), rule)));
    }
    verdict(default, preset)
}

/// The first option of this kind. Ids and order differ in every agent, kinds don't.
pub fn option_of_kind<'a>(options: &'a [ApprovalOption], kind: &str) -> Option<&'a ApprovalOption> {
    options.iter().find(|option| option.kind == kind)
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
