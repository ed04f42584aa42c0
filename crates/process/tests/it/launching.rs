//! Launching shims, and folders in which none may run.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rallypoint_process::client::{AttachError, LaunchError, ShimHandle, launch_shim, revoke};
use rallypoint_process::spool::RecordKind;
use rallypoint_process::{ProcessIdentity, process_alive};
use tempfile::TempDir;

use crate::support::{Shim, launch, wait_for};

#[tokio::test]
async fn a_folder_and_socket_that_only_their_owner_can_use_and_a_session_of_its_own() {
    let shim = Shim::launch().await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&shim.folder), 0o700);
    assert_eq!(mode(&shim.folder.join("sock")), 0o600);
    assert_eq!((shim.attached.last_input_seq, shim.attached.started), (0, None));
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", shim.process.pid)).unwrap();
    let session = stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(3).unwrap().to_owned();
    assert_eq!(session, shim.process.pid.to_string());
    let environment = std::fs::read(format!("/proc/{}/environ", shim.process.pid)).unwrap();
    assert!(environment.starts_with(b"PATH=") && !environment.windows(5).any(|window| window == b"HOME="));
}

#[tokio::test]
async fn a_folder_with_a_path_longer_than_a_socket_path_may_be() {
    let name = format!("{}/{}", "long".repeat(40), "longer".repeat(30));
    let shim = Shim::launch_with(&name, &[]).await;
    assert!(shim.folder.as_os_str().len() > 300);
    shim.handle.start(shim.script("echo here")).await.unwrap();
    shim.until_exited().await;
    assert_eq!(shim.text(RecordKind::Out), "here\n");
}

#[tokio::test]
async fn a_shim_that_is_told_nothing_ends_and_leaves_no_zombie() {
    let root = TempDir::new().unwrap();
    let folder = root.path().join("g");
    let pid = launch(&folder, &[("RALLY_SHIM_START_MS", "1")]);
    wait_for("the shim's end", || !Path::new(&format!("/proc/{pid}")).exists()).await;
    assert!(std::fs::read_to_string(folder.join("shim.log")).unwrap().contains("no start came"));
    assert!(matches!(ShimHandle::attach(&folder, 1).await, Err(AttachError::NoShim)));
}

#[tokio::test]
async fn no_shim_runs_in_a_revoked_folder_a_used_one_or_beside_another() {
    let root = TempDir::new().unwrap();
    let revoked = root.path().join("revoked");
    std::fs::create_dir(&revoked).unwrap();
    drop(revoke(&revoked).unwrap());
    let used = Shim::launch().await;
    used.handle.start(used.script("exit 0")).await.unwrap();
    used.until_exited().await;
    used.handle.finish().await.unwrap();
    used.until_gone().await;
    let busy = Shim::launch().await;
    for (folder, reason) in
        [(&revoked, "revoked"), (&used.folder, "earlier shim"), (&busy.folder, "holds the folder's lock")]
    {
        let process = ProcessIdentity::of(launch(folder, &[]));
        wait_for("the second shim's end", || !process.is_some_and(process_alive)).await;
        let log = std::fs::read_to_string(folder.join("shim.log")).unwrap();
        assert!(log.contains(reason), "{log}");
    }
    // The first was not disturbed.
    busy.handle.start(busy.script("echo ok")).await.unwrap();
    busy.until_exited().await;
}

#[tokio::test]
async fn a_shim_waits_for_a_lock_that_somebody_only_looks_at() {
    let root = TempDir::new().unwrap();
    let folder = root.path().join("g");
    std::fs::create_dir(&folder).unwrap();
    let lock = std::fs::File::create(folder.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let process = ProcessIdentity::of(launch(&folder, &[])).unwrap();
    // It is at the lock once it has opened the file.
    let fds = format!("/proc/{}/fd", process.pid);
    wait_for("the shim at the lock", || {
        std::fs::read_dir(&fds).unwrap().any(|entry| {
            std::fs::read_link(entry.unwrap().path()).is_ok_and(|target| target == folder.join("lock"))
        })
    })
    .await;
    assert!(matches!(ShimHandle::attach(&folder, 1).await, Err(AttachError::NoShim)));
    drop(lock);
    let (handle, _) = ShimHandle::attach_launched(&folder, 1).await.unwrap();
    handle.finish().await.unwrap();
    wait_for("the shim's end", || !process_alive(process)).await;
}

#[test]
fn outside_of_a_runtime_nothing_is_launched() {
    let root = TempDir::new().unwrap();
    assert!(matches!(
        launch_shim(Path::new("/bin/true"), &root.path().join("g")),
        Err(LaunchError::NoRuntime)
    ));
}

#[tokio::test]
async fn a_missing_program_is_told_at_once() {
    let root = TempDir::new().unwrap();
    let outcome = launch_shim(Path::new("/no/such/program"), &root.path().join("g"));
    assert!(matches!(outcome, Err(LaunchError::Spawn { .. })), "{outcome:?}");
}
