//! Launching a shim so that it outlives whoever launched it.

use std::fs::{DirBuilder, OpenOptions, Permissions, set_permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf, absolute};
use std::process::Stdio;

use tokio::process::Command;
use tokio::runtime::Handle;

/// Its standard error: what it said before it could say it to anyone.
const LOG_FILE: &str = "shim.log";

/// Why a shim was not launched.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("the shim's folder `{path}` cannot be made: {source}", path = path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("the program `{path}` cannot be run: {source}", path = path.display())]
    Spawn { path: PathBuf, source: io::Error },
    /// Without one nobody would wait for the shim, and it would stay a zombie once it ends.
    #[error("a shim can only be launched within a tokio runtime")]
    NoRuntime,
}

/// Runs `program shim <folder>` and returns its pid; attach with [`crate::client::ShimHandle::attach_launched`].
///
/// The folder is made if need be, with mode 0700. The shim gets `PATH` and no other variable, no open file of ours,
/// and a session of its own as its first act. When it ends before the caller does, tokio reaps it on the next
/// SIGCHLD, so it is a zombie for a moment only; when the caller ends first, init has it.
pub fn launch_shim(program: &Path, folder: &Path) -> Result<u32, LaunchError> {
    launch_shim_with_environment(program, folder, &[])
}

/// Like [`launch_shim`], with more variables for the shim itself; they do not reach the agent.
pub fn launch_shim_with_environment(
    program: &Path,
    folder: &Path,
    extra_environment: &[(String, String)],
) -> Result<u32, LaunchError> {
    if Handle::try_current().is_err() {
        return Err(LaunchError::NoRuntime);
    }
    let folder_failed = |source| LaunchError::Folder { path: folder.to_path_buf(), source };
    // The shim's working folder is another than ours.
    let folder = absolute(folder).map_err(folder_failed)?;
    let program = if program.components().count() > 1 {
        absolute(program).unwrap_or_else(|_| program.to_path_buf())
    } else {
        program.to_path_buf()
    };
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(folder_failed)?;
    set_permissions(&folder, Permissions::from_mode(0o700)).map_err(folder_failed)?;
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(folder.join(LOG_FILE));
    let log = log.map_err(folder_failed)?;
    let child = Command::new(&program)
        .arg("shim")
        .arg(&folder)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .envs(extra_environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(false)
        .spawn()
        .map_err(|source| LaunchError::Spawn { path: program.clone(), source })?;
    // It cannot have been waited for yet, so it has a pid. Dropping it hands it to tokio's queue of orphans.
    Ok(child.id().unwrap_or_default())
}
