//! Ending trees: on request, at limits, and after the shim itself was killed.

use std::time::Duration;

use rallypoint_process::spool::RecordKind;
use rallypoint_process::sweep::{descendants_of, find_marked, find_marked_prefix, kill_identities, sweep};
use rallypoint_process::{ExitStatus, Signal, process_alive};

use crate::support::{Shim, read_all, wait_for};

/// Starts a descendant in a session of its own, whose parent is gone, and one more below it.
const SCATTER: &str = "setsid sh -c 'sleep 1000 & sleep 1000' & (setsid sleep 1000 &) ; echo scattered;";

/// Ignores SIGTERM, and so do its children.
const STUBBORN: &str = "trap '' TERM; echo stubborn; while true; do sleep 1000; done";

fn exit_of(shim: &Shim) -> ExitStatus {
    let records = read_all(&shim.folder);
    let record = records.iter().rev().find(|record| record.kind == RecordKind::Exit).expect("an exit");
    serde_json::from_slice(&record.bytes).unwrap()
}

#[tokio::test]
async fn kill_leaves_no_process_even_of_those_that_left_the_group_and_session() {
    let (shim, agent) = Shim::with_script(&format!("{SCATTER} exec sleep 1000")).await;
    shim.until_output("scattered").await;
    wait_for("the whole tree", || find_marked(&shim.marker).len() >= 4).await;
    let report = shim.handle.kill().await.unwrap();
    assert!(report.killed >= 4 && report.left == 0, "{report:?}");
    assert_eq!(find_marked(&shim.marker), Vec::new());
    assert_eq!(descendants_of(shim.process.pid), Vec::new());
    assert!(!process_alive(agent));
    shim.until_exited().await;
    assert_eq!(exit_of(&shim), ExitStatus { code: None, signal: Some(9) });
    shim.handle.finish().await.unwrap();
    shim.until_gone().await;
}

#[tokio::test]
async fn terminate_ends_an_agent_that_obeys_and_kill_one_that_does_not() {
    let (obedient, _) = Shim::with_script("echo up; exec sleep 1000").await;
    obedient.until_output("up").await;
    obedient.handle.terminate().await.unwrap();
    obedient.until_exited().await;
    assert_eq!(exit_of(&obedient), ExitStatus { code: None, signal: Some(15) });

    let (stubborn, agent) = Shim::with_script(STUBBORN).await;
    stubborn.until_output("stubborn").await;
    stubborn.handle.terminate().await.unwrap();
    // Answered after the signal was sent, so the agent has survived it.
    assert!(process_alive(agent));
    assert_eq!(stubborn.handle.kill().await.unwrap().left, 0);
    assert_eq!(find_marked(&stubborn.marker), Vec::new());
}

#[tokio::test]
async fn a_stopped_agent_is_killed_too() {
    let (shim, agent) = Shim::with_script("echo up; kill -STOP $$; sleep 1000").await;
    shim.until_output("up").await;
    assert_eq!(shim.handle.kill().await.unwrap().left, 0);
    assert!(!process_alive(agent));
}

#[tokio::test]
async fn term_to_the_shim_ends_the_tree_and_then_the_shim() {
    let shim = Shim::launch_with("g", &[("RALLY_SHIM_GRACE_MS", "50")]).await;
    shim.handle.start(shim.script(&format!("{SCATTER} {STUBBORN}"))).await.unwrap();
    shim.until_output("stubborn").await;
    kill_identities(&[shim.process], Signal::Terminate);
    shim.until_gone().await;
    assert_eq!(find_marked(&shim.marker), Vec::new());
    assert_eq!(exit_of(&shim).signal, Some(9));
    assert!(shim.text(RecordKind::Note).contains("told to terminate"));
}

#[tokio::test]
async fn term_to_a_shim_whose_agent_obeys_does_not_wait_for_the_grace_period() {
    // A grace period that the test would not survive.
    let shim = Shim::launch_with("g", &[("RALLY_SHIM_GRACE_MS", "600000")]).await;
    shim.handle
        .start(shim.script("trap 'exit 4' TERM; echo up; while true; do sleep 0.01; done"))
        .await
        .unwrap();
    shim.until_output("up").await;
    kill_identities(&[shim.process], Signal::Terminate);
    shim.until_gone().await;
    assert_eq!(exit_of(&shim).code, Some(4));
}

#[tokio::test]
async fn the_hard_deadline_ends_a_stubborn_agent_and_says_so_and_the_shim_stays() {
    let shim = Shim::launch_with("g", &[("RALLY_SHIM_GRACE_MS", "50")]).await;
    let mut spec = shim.script(STUBBORN);
    spec.hard_deadline_ms = 300;
    shim.handle.start(spec).await.unwrap();
    shim.until_exited().await;
    assert_eq!(exit_of(&shim).signal, Some(9));
    assert!(shim.text(RecordKind::Note).contains("hard deadline"));
    assert!(process_alive(shim.process));
    shim.handle.finish().await.unwrap();
    shim.until_gone().await;
}

#[tokio::test]
async fn without_a_daemon_the_tree_and_the_shim_end_at_the_ownerless_limit() {
    let shim = Shim::launch_with("g", &[("RALLY_SHIM_GRACE_MS", "50")]).await;
    let mut spec = shim.script(STUBBORN);
    spec.ownerless_max_ms = 100;
    shim.handle.start(spec).await.unwrap();
    shim.until_output("stubborn").await;
    // Attached, so the limit does not count: the answer proves it lives.
    assert!(shim.handle.recall_start().await.unwrap().is_some());
    shim.abandon().await;
    shim.until_gone().await;
    assert_eq!(find_marked(&shim.marker), Vec::new());
    let records = shim.records();
    assert!(records.iter().any(|record| record.kind == RecordKind::Exit));
    let note = records.iter().find(|record| record.kind == RecordKind::Note).unwrap();
    assert!(String::from_utf8_lossy(&note.bytes).contains("no daemon was attached"));
}

#[tokio::test]
async fn output_held_open_by_a_descendant_does_not_keep_the_exit_from_being_recorded() {
    let (shim, _) = Shim::with_script("setsid sleep 1000 & echo mine; exit 5").await;
    shim.until_exited().await;
    assert_eq!(exit_of(&shim).code, Some(5));
    assert_eq!(shim.text(RecordKind::Out), "mine\n");
    assert_eq!(find_marked(&shim.marker).len(), 1, "the descendant still runs");
    shim.handle.finish().await.unwrap();
    shim.until_gone().await;
    assert_eq!(find_marked(&shim.marker), Vec::new());
}

#[tokio::test]
async fn a_descendant_that_writes_without_end_does_not_keep_the_exit_from_being_recorded() {
    let (shim, _) = Shim::with_script("setsid yes & exit 6").await;
    shim.until_exited().await;
    assert_eq!(exit_of(&shim).code, Some(6));
    shim.handle.finish().await.unwrap();
}

#[tokio::test]
async fn a_sweep_ends_the_tree_of_a_shim_that_was_killed() {
    let (shim, agent) = Shim::with_script(&format!("{SCATTER} {STUBBORN}")).await;
    shim.until_output("stubborn").await;
    wait_for("the whole tree", || find_marked(&shim.marker).len() >= 5).await;
    kill_identities(&[shim.process], Signal::Kill);
    shim.until_gone().await;
    assert!(process_alive(agent), "the agent outlives its shim");
    assert!(find_marked_prefix(&shim.marker).contains(&agent));
    let report = sweep(&shim.marker, Duration::from_millis(50)).await;
    assert_eq!(report.left, Vec::new());
    assert!(report.found.contains(&agent) && report.killed.contains(&agent), "{report:?}");
    assert_eq!(find_marked(&shim.marker), Vec::new());
}

#[tokio::test]
async fn a_sweep_with_nothing_to_find_reports_nothing() {
    let report = sweep("no-such-marker", Duration::ZERO).await;
    assert_eq!((report.found, report.killed, report.left), (Vec::new(), Vec::new(), Vec::new()));
}

#[tokio::test]
async fn a_shim_whose_spool_is_full_still_ends_when_told_to_and_keeps_what_was_said() {
    let segment = 64 * 1024_u64;
    let switches = [("RALLY_SHIM_GRACE_MS", "50"), ("RALLY_SHIM_SEGMENT_BYTES", &segment.to_string())];
    let shim = Shim::launch_with("g", &switches).await;
    let mut spec = shim.script("trap '' TERM; yes");
    spec.spool_max_bytes = 2 * segment;
    shim.handle.start(spec).await.unwrap();
    let mut doorbell = shim.handle.doorbell();
    doorbell.wait_for(|doorbell| doorbell.spool_end > 2 * segment).await.unwrap();
    kill_identities(&[shim.process], Signal::Terminate);
    shim.until_gone().await;
    assert_eq!(exit_of(&shim).signal, Some(9));
    assert_eq!(find_marked(&shim.marker), Vec::new());
    let output = shim.text(RecordKind::Out);
    assert!(
        output.len() < 10 * segment as usize && output.lines().all(|line| line == "y" || line.is_empty())
    );
}

#[tokio::test]
async fn a_tree_that_grows_while_it_is_killed_is_killed_whole() {
    let (shim, _) =
        Shim::with_script("breed() { while true; do (setsid sleep 100 &); done; }; breed & breed").await;
    wait_for("a tree", || find_marked(&shim.marker).len() > 10).await;
    assert_eq!(shim.handle.kill().await.unwrap().left, 0);
    assert_eq!(find_marked(&shim.marker), Vec::new());
}
