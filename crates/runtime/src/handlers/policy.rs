//! What an agent may do without a person: frozen for its launch, and explained.

use rallypoint_acp::profiles::Profile;
use rallypoint_engine::permission::{CommandLine, Request, decide};
use rallypoint_engine::state::State;
use rallypoint_model::permission::{AgentPermissions, LayerSource, PolicyLayer, Preset};
use rallypoint_model::refusal::Refusal;
use rallypoint_model::task::CriterionCheck;
use rallypoint_ops::Problem;
use rallypoint_ops::policy::{ExplainInput, ExplainView};

use super::create_task::unknown_agent;
use crate::config::Permissions;
use crate::daemon::Shared;

/// The permissions of an agent with this profile. What was asked for wins over
/// the profile, and the profile over the configuration; its rules hold beside each.
pub(super) fn permissions(
    configured: &Permissions,
    profile: &Profile,
    asked: Option<Preset>,
) -> AgentPermissions {
    let (source, preset) = match (asked, profile.permissions) {
        (Some(asked), _) => (LayerSource::Request, asked),
        (None, Some(preset)) => (LayerSource::Profile, preset),
        (None, None) => (LayerSource::Configuration, configured.preset),
    };
    let rules = configured.rules.clone();
    AgentPermissions {
        layers: vec![PolicyLayer { source, inherited_from: None, preset, rules }],
        preset_modes: profile.preset_modes.clone(),
        asks_always: profile.asks_always,
    }
}

/// Says what would be decided about a tool, and by what.
pub(super) async fn explain(shared: &Shared, input: ExplainInput) -> Result<ExplainView, Problem> {
    let session_id = input.session_id;
    let bound = shared.decider.look(move |state| session_id.map(|id| bound(state, id))).await?;
    let (permissions, workdir, checks) = match (bound, &input.agent) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid("an agent and a session are named; name one of them"));
        }
        (None, None) => return Err(Problem::invalid("neither an agent nor a session is named")),
        (Some(None), None) => {
            let id = session_id.map(|id| id.to_string()).unwrap_or_default();
            return Err(Refusal::not_found("session", id).into());
        }
        (Some(Some(_)), None) if input.permissions.is_some() => {
            return Err(Problem::invalid(
                "the permissions of a session are frozen; name an agent to try others",
            ));
        }
        (Some(Some(bound)), None) => bound,
        (None, Some(agent)) => {
            let profile = shared.config.profiles.get(agent).ok_or_else(|| unknown_agent(shared, agent))?;
            let permissions = permissions(&shared.config.permissions, profile, input.permissions);
            (permissions, String::new(), Vec::new())
        }
    };
    let workdir = input.cwd.unwrap_or(workdir);
    let command = input.command.as_deref().map(CommandLine::of_text);
    let request = Request::new(&input.tool_kind, input.path.into_iter().collect(), command, &workdir)
        .with_checks(checks);
    let verdict = decide(&permissions, &request);
    let preset = permissions.narrowest();
    Ok(ExplainView {
        decision: verdict.decision,
        layer: verdict.layer,
        rule: verdict.rule,
        preset,
        mode: permissions.preset_modes.get(&preset).cloned(),
        startable: !preset.must_be_held()
            || permissions.asks_always
            || permissions.preset_modes.contains_key(&preset),
        layers: permissions.layers,
    })
}

type Bound = (AgentPermissions, String, Vec<String>);

/// Permissions, work folder and checks of a session that there is.
fn bound(state: &State, session_id: rallypoint_model::ids::SessionId) -> Option<Bound> {
    let session = state.sessions.get(&session_id)?;
    let launch = session.launch.as_ref()?;
    let task = state.tasks.get(&session.task_id?)?;
    let checks = task.criteria.iter().filter_map(|criterion| match &criterion.check {
        CriterionCheck::Command { command } => Some(command.clone()),
        CriterionCheck::File { .. } | CriterionCheck::Human { .. } => None,
    });
    Some((launch.permissions.clone(), task.cwd.clone(), checks.collect()))
}
