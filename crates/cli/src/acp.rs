//! `rally acp`: Rallypoint as the agent of an editor, over standard input and output.

use std::io::BufReader;
use std::sync::Arc;

use rallypoint_bridges::acp_agent::{Daemon, Rallypoint};
use rallypoint_ops::types::CreateTaskInput;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::AcpArguments;
use crate::autostart::Connector;
use crate::environment;
use crate::failure::{Failure, INTERRUPTED};
use crate::run::request::{named_agent, person};

/// Serves until the input ends, or somebody wants this process to end. Work that a prompt waits for ends either way.
pub(crate) async fn carry_out(arguments: &AcpArguments, connector: &Connector) -> Result<u8, Failure> {
    let agent = named_agent(arguments.agent.as_deref(), arguments.agent_cmd.as_deref(), &arguments.pass_env)?;
    let request = CreateTaskInput {
        agents: agent.into_iter().collect(),
        checks: arguments.check.clone(),
        unchecked: arguments.check.is_empty(),
        permissions: arguments.permissions,
        environment: environment::for_agents(connector.data_folder(), &arguments.pass_env),
        requested_by: person(),
        source: Some("acp".to_owned()),
        ..Default::default()
    };
    let client = connector.ready().await?;
    let again = connector.clone();
    let daemon = Daemon { client, reconnect: Arc::new(move || again.reconnect_hook()), request };
    let rallypoint = Rallypoint::new(daemon, Handle::current());
    let serving = rallypoint.clone();
    let served = tokio::task::spawn_blocking(move || {
        serving.serve(BufReader::new(std::io::stdin()), std::io::stdout())
    });
    let cannot = |error: std::io::Error| Failure::failed(format!("signals can't be taken: {error}"));
    let mut terminated = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(cannot)?;
    tokio::select! {
        ended = served => match ended {
            Ok(Ok(())) => return Ok(0),
            Ok(Err(error)) => return Err(Failure::failed(format!("the input can't be read: {error}"))),
            Err(error) => return Err(Failure::failed(format!("the serving has failed: {error}"))),
        },
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    rallypoint.stop_all().await;
    Ok(INTERRUPTED)
}
