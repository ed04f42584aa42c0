//! `rally policy`: what agents may do without a person.

use rallypoint_ops::policy::{ExplainInput, ExplainView};

use crate::arguments::policy::PolicyVerb;
use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::run::request::work_folder;

pub(crate) async fn carry_out(
    verb: PolicyVerb,
    connector: &Connector,
    output: &mut Output,
) -> Result<u8, Failure> {
    let client = connector.ready().await?;
    let PolicyVerb::Explain { agent, session, tool, path, command, permissions, cwd } = verb;
    let session_id = match &session {
        Some(session) => Some(resolve::session(&client, session).await?),
        None => None,
    };
    let cwd = match (&cwd, session_id) {
        (None, Some(_)) => None,
        (cwd, _) => Some(work_folder(cwd.as_deref())?),
    };
    let input = ExplainInput { agent, session_id, tool_kind: tool, path, command, cwd, permissions };
    let view: ExplainView = client.call("policy.explain", &input).await?;
    if output.is_json() {
        output.json(&view)?;
        return Ok(0);
    }
    output.line(&format!("{} by {} ({})", view.decision.as_str(), view.rule, view.layer))?;
    for layer in &view.layers {
        let rules = match layer.rules.len() {
            0 => String::new(),
            1 => " and 1 rule".to_owned(),
            many => format!(" and {many} rules"),
        };
        output.line(&format!("layer {}: `{}`{rules}", layer.title(), layer.preset.as_str()))?;
    }
    match (&view.mode, view.startable) {
        (Some(mode), _) => output.line(&format!("the agent's own mode is set to `{mode}`"))?,
        (None, true) => {}
        (None, false) => output.line(&format!(
            "it is not started so: nothing holds it to `{}` where it does not ask",
            view.preset.as_str()
        ))?,
    }
    Ok(0)
}
