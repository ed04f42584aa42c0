//! How an agent is held to its permissions when it is asked for: layers are
//! joined with those of its parent, and where the agent has modes, the mode
//! that fits is set.
//!
//! The policy sees requests only. An agent that acts without asking keeps to
//! `readonly` or `verifier` only by a mode of its own, so one that has none and
//! does not always ask is refused instead of trusted.

use rallypoint_model::command::AgentLaunch;
use rallypoint_model::permission::{AgentPermissions, LayerSource, MODE_OPTION, PolicyLayer, Preset};
use rallypoint_model::refusal::{Refusal, RefusalCode};

/// The launch with its permissions frozen, below a parent where it has one.
pub fn hold(launch: &AgentLaunch, parent: Option<&AgentLaunch>) -> Result<AgentLaunch, Refusal> {
    let mut held = launch.clone();
    if let Some(parent) = parent {
        held.permissions.layers = joined(&parent.permissions, &parent.label, &launch.permissions);
    }
    let preset = held.permissions.narrowest();
    let option = launch.config.iter().find(|(id, _)| id == MODE_OPTION).map(|(_, mode)| mode.clone());
    let asked = launch.wanted.mode.clone().or(option);
    let Some(mode) = held.permissions.preset_modes.get(&preset).cloned() else {
        if preset.must_be_held() && !held.permissions.asks_always {
            return Err(cannot_hold(launch, preset));
        }
        return Ok(held);
    };
    match asked {
        Some(ref asked) if *asked == mode => {}
        // Whoever starts work may choose a mode; what is below another agent must not choose its way out.
        Some(ref asked) if preset.must_be_held() || parent.is_some() => {
            return Err(Refusal::new(
                RefusalCode::Invalid,
                format!(
                    "the preset `{}` sets the mode of `{}` to `{mode}`, and `{asked}` is asked for",
                    preset.as_str(),
                    launch.label
                ),
            )
            .with_hint("leave out the mode"));
        }
        Some(_) => return Ok(held),
        None => {}
    }
    if preset.must_be_held() {
        // A mode that is wanted and not taken ends the run before its prompt.
        held.wanted.mode = Some(mode);
    } else if asked.is_none() {
        held.config.push((MODE_OPTION.to_owned(), mode));
    }
    Ok(held)
}

/// Whether a session's mode may be changed to this: one that is held to its preset by a mode keeps that.
pub fn may_take(launch: &AgentLaunch, mode: &str) -> Result<(), Refusal> {
    let preset = launch.permissions.narrowest();
    match launch.permissions.preset_modes.get(&preset) {
        Some(held) if preset.must_be_held() && held != mode => Err(Refusal::new(
            RefusalCode::Invalid,
            format!("`{}` is held to `{}` by its mode `{held}`", launch.label, preset.as_str()),
        )
        .with_hint("start another sub-agent with other permissions")),
        _ => Ok(()),
    }
}

/// The agent that bounds one which joins a task later without a parent: where
/// permissions were asked for with the task, the one of its agents that may do most.
pub fn ceiling(agents: &[AgentLaunch]) -> Option<&AgentLaunch> {
    let asked = |launch: &&AgentLaunch| {
        launch.permissions.layers.iter().any(|layer| layer.source == LayerSource::Request)
    };
    if !agents.iter().all(|launch| asked(&launch)) {
        return None;
    }
    agents.iter().max_by_key(|launch| launch.permissions.narrowest())
}

/// The layers of a child. One that asks for nothing of its own is bound as its parent is.
fn joined(parent: &AgentPermissions, label: &str, own: &AgentPermissions) -> Vec<PolicyLayer> {
    let from_parent = parent.layers.iter().map(|layer| PolicyLayer {
        inherited_from: layer.inherited_from.clone().or_else(|| Some(label.to_owned())),
        ..layer.clone()
    });
    let asks_for_more = |layer: &&PolicyLayer| match layer.source {
        LayerSource::Configuration => false,
        LayerSource::Profile | LayerSource::Request => true,
    };
    from_parent.chain(own.layers.iter().filter(asks_for_more).cloned()).collect()
}

fn cannot_hold(launch: &AgentLaunch, preset: Preset) -> Refusal {
    Refusal::new(
        RefusalCode::Invalid,
        format!(
            "`{}` can't be held to `{}`: its profile `{}` names no mode for it, and does not say that it asks \
             before everything that acts",
            launch.label,
            preset.as_str(),
            launch.profile
        ),
    )
    .with_hint(format!(
        "take another agent, or set `presetModes.{}` or `asksAlways = true` in `[profiles.{}]`",
        preset.as_str(),
        launch.profile
    ))
}
