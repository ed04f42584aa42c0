//! `rally daemon`: the one that a command started, or `rally serve`.

use std::time::Duration;

use rallypoint_client::ClientError;
use rallypoint_ops::types::{DaemonStatus, Empty};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::arguments::DaemonVerb;
use crate::autostart::Connector;
use crate::failure::{FAILED, Failure};
use crate::output::Output;
use crate::show::time;

/// Time a daemon has to end: it lets open answers finish and writes what has queued.
const STOP_DEADLINE: Duration = Duration::from_secs(15);
/// Time between two looks at whether it has.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(crate) async fn carry_out(
    verb: DaemonVerb,
    connector: &Connector,
    output: &mut Output,
) -> Result<u8, Failure> {
    match verb {
        DaemonVerb::Status => status(connector, output).await,
        DaemonVerb::Stop => stop(connector, output).await,
    }
}

async fn status(connector: &Connector, output: &mut Output) -> Result<u8, Failure> {
    let Some(status) = connector.running().await? else {
        let folder = connector.data_folder();
        if output.is_json() {
            output.json(&json!({ "running": false, "dataFolder": folder }))?;
        } else {
            output.line(&format!("no daemon is running for `{}`", folder.display()))?;
        }
        return Ok(FAILED);
    };
    if output.is_json() {
        output.json(&status)?;
    } else {
        for line in lines(&status) {
            output.line(&line)?;
        }
    }
    Ok(0)
}

fn lines(status: &DaemonStatus) -> Vec<String> {
    let end = if status.ends_when_idle { "ends when idle" } else { "stays" };
    let mut lines = vec![
        format!("daemon       version {}, process {}, {end}", status.version, status.pid),
        format!("data folder  {}", status.data_folder),
        format!("since        {}", time::day_and_clock(status.started_at)),
        format!("open runs    {}, with {} agent processes", status.open_runs, status.generations),
        format!("questions    {}", status.open_questions),
        format!("journal      {} events, term {}", status.last_seq, status.epoch),
    ];
    if let Some(address) = &status.listen {
        lines.push(format!("listening    http://{address}"));
    }
    if status.unclean_generations > 0 {
        let count = status.unclean_generations;
        lines.push(format!("not clean    {count} agents left processes behind that could not be ended"));
    }
    lines
}

async fn stop(connector: &Connector, output: &mut Output) -> Result<u8, Failure> {
    let was_running = match connector.client().call::<_, Empty>("daemon.stop", &Empty {}).await {
        Ok(_) | Err(ClientError::Lost) => true,
        Err(ClientError::NoDaemon) => false,
        Err(error) => return Err(error.into()),
    };
    let deadline = Instant::now() + STOP_DEADLINE;
    while was_running && !matches!(connector.running().await, Ok(None)) {
        if Instant::now() > deadline {
            let message = format!("the daemon did not end within {} s", STOP_DEADLINE.as_secs());
            return Err(Failure::failed(message).with_hint("`rally daemon status` shows its process"));
        }
        sleep(LOOK_AGAIN).await;
    }
    if output.is_json() {
        output.json(&json!({ "stopped": was_running }))?;
    } else if was_running {
        output.line("the daemon has ended; agents that work go on and are found again by the next one")?;
    } else {
        output.line("no daemon was running")?;
    }
    Ok(0)
}
