//! Sees that nothing is left of a generation: no process, no spool.
//!
//! Repeating it is harmless: what is gone stays gone.

use std::time::Duration;

use rallypoint_model::command::Command;
use rallypoint_model::ids::GenerationId;
use rallypoint_process::client::{AttachError, ShimHandle, shim_is_gone};
use rallypoint_process::fault_point::pass;
use rallypoint_process::sweep::sweep;

use crate::attendant::{Attending, submit};

/// Time that a process with the run marker has to go after TERM.
const SWEEP_GRACE: Duration = Duration::from_secs(2);
/// Looks at the shim's lock before its folder is left for the next start.
const SHIM_LOOKS: u32 = 40;
/// Pause between them.
const SHIM_PAUSE: Duration = Duration::from_millis(50);

/// Ends what is left and removes the folder.
pub(crate) async fn clean(shared: &Attending, id: GenerationId) {
    let folder = shared.folders.generation(id);
    if shared.faults.no_sweep {
        submit(shared, Command::GenerationCleaned { generation_id: id, swept: 0, left: 0 }).await;
        return;
    }
    pass("cleaning:begin");
    let mut gone = false;
    for _ in 0..SHIM_LOOKS {
        if shim_is_gone(&folder).unwrap_or(true) {
            gone = true;
            break;
        }
        match ShimHandle::attach(&folder, shared.epoch).await {
            Ok((handle, _)) => {
                if let Err(error) = handle.finish().await {
                    tracing::debug!(%error, "the shim does not finish; its agent is killed");
                    if let Err(error) = handle.kill().await {
                        tracing::debug!(%error, "the agent can't be killed through its shim");
                    }
                }
            }
            Err(AttachError::Refused { .. }) => return,
            Err(error) => tracing::debug!(%error, "the shim can't be reached for cleaning"),
        }
        tokio::time::sleep(SHIM_PAUSE).await;
    }
    let report = sweep(&shared.folders.marker(id), SWEEP_GRACE).await;
    if !report.found.is_empty() {
        tracing::warn!(generation = %id, found = report.found.len(), "processes outlived their agent and were swept");
    }
    if gone && report.left.is_empty() && shared.retention.spool_days.unless_off().is_none() {
        let removing = folder.clone();
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(removing)).await;
        match removed {
            Ok(Ok(())) => {}
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {}
            Ok(Err(error)) => tracing::warn!(%error, folder = %folder.display(), "a spool can't be removed"),
            Err(error) => tracing::warn!(%error, "removing a spool was cut off"),
        }
    }
    pass("cleaning:removed");
    let left = report.left.len() + usize::from(!gone);
    let command = Command::GenerationCleaned {
        generation_id: id,
        swept: u32::try_from(report.found.len()).unwrap_or(u32::MAX),
        left: u32::try_from(left).unwrap_or(u32::MAX),
    };
    submit(shared, command).await;
}
