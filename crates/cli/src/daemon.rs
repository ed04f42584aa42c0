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
    let process = connector.running().await?.map(|status| status.pid);
    if let Some(process) = process {
        match connector.client().call::<_, Empty>("daemon.stop", &Empty {}).await {
            Ok(_) | Err(ClientError::Lost | ClientError::NoDaemon) => {}
            Err(error) => return Err(error.into()),
        }
        wait_for_the_end(process).await?;
    }
    if output.is_json() {
        output.json(&json!({ "stopped": process.is_some() }))?;
    } else if process.is_some() {
        output.line("the daemon has ended; agents that work go on and are found again by the next one")?;
    } else {
        output.line("no daemon was running")?;
    }
    Ok(0)
}

/// Waits for the process and not for the socket alone: until it is gone, the data folder is in use.
async fn wait_for_the_end(process: u32) -> Result<(), Failure> {
    let deadline = Instant::now() + STOP_DEADLINE;
    while lives(process) {
        if Instant::now() > deadline {
            let message =
                format!("the daemon (process {process}) did not end within {} s", STOP_DEADLINE.as_secs());
            return Err(Failure::failed(message).with_hint("`rally daemon status` shows what it holds"));
        }
        sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// Whether it runs. One that is dead and only not taken note of by its parent does not.
fn lives(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, fields)| fields.trim_start().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_one_that_ended_does_not() {
        assert!(lives(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while lives(child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!lives(child.id()));
    }
}
