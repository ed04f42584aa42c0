//! Daemons that come and go.

use rallypoint_process::client::{AttachError, SendError, ShimHandle, revoke, shim_is_gone};
use rallypoint_process::spool::RecordKind;
use rallypoint_process::{Signal, process_alive};

use crate::support::{Shim, until_closed, wait_for};

#[tokio::test]
async fn an_older_epoch_is_refused_and_does_not_disturb_the_newer() {
    let (shim, _) = Shim::with_script("cat").await;
    let (newer, attached) = ShimHandle::attach(&shim.folder, 5).await.unwrap();
    assert_eq!(attached.last_input_seq, 0);
    match ShimHandle::attach(&shim.folder, 4).await {
        Err(AttachError::Refused { epoch }) => assert_eq!(epoch, 5),
        other => panic!("{other:?}"),
    }
    newer.send(1, b"still here\n".to_vec()).await.unwrap();
    shim.until_output("still here").await;
}

#[tokio::test]
async fn a_newer_attach_drops_the_older_connection_and_goes_on_after_its_last_input() {
    let (shim, agent) = Shim::with_script("cat").await;
    shim.handle.send(1, b"one\n".to_vec()).await.unwrap();
    let (newer, attached) = ShimHandle::attach(&shim.folder, 2).await.unwrap();
    until_closed(&shim.handle).await;
    assert!(matches!(shim.handle.send(2, b"stale\n".to_vec()).await, Err(SendError::Closed)));
    assert_eq!((attached.last_input_seq, attached.started, attached.exited), (1, Some(agent), None));
    newer.send(1, b"one\n".to_vec()).await.unwrap();
    newer.send(2, b"two\n".to_vec()).await.unwrap();
    shim.until_output("two").await;
    assert_eq!(shim.text(RecordKind::Out), "one\ntwo\n");
}

#[tokio::test]
async fn a_daemon_that_dies_while_sending_finds_on_return_what_was_taken_and_loses_nothing() {
    let (shim, _) = Shim::with_script("cat").await;
    let total = 200_u64;
    let line = |seq: u64| format!("line {seq}\n").into_bytes();
    let (mut next, mut epoch) = (1, 1);
    while next <= total {
        epoch += 1;
        let (handle, attached) = ShimHandle::attach(&shim.folder, epoch).await.unwrap();
        next = attached.last_input_seq + 1;
        // Dies after a few acknowledged lines with one more under way whose fate it never learns.
        for _ in 0..7 {
            if next <= total {
                handle.send(next, line(next)).await.unwrap();
                next += 1;
            }
        }
        let dying = handle.clone();
        let task = tokio::spawn(async move { dying.send(next, line(next)).await });
        tokio::task::yield_now().await;
        task.abort();
        drop(handle);
    }
    let (handle, attached) = ShimHandle::attach(&shim.folder, epoch + 1).await.unwrap();
    handle.close_stdin().await.unwrap();
    let mut doorbell = handle.doorbell();
    doorbell.wait_for(|doorbell| doorbell.exited).await.unwrap();
    let expected: Vec<u8> = (1..=attached.last_input_seq).flat_map(line).collect();
    assert!(attached.last_input_seq >= total);
    assert_eq!(shim.bytes(RecordKind::Out), expected);
}

#[tokio::test]
async fn an_agent_that_ended_while_nobody_was_attached_is_reported_on_attach() {
    let shim = Shim::launch().await;
    let gate = shim.folder.join("gate");
    let script = format!("until [ -e {} ]; do sleep 0.01; done; exit 3", gate.display());
    shim.handle.start(shim.script(&script)).await.unwrap();
    shim.abandon().await;
    std::fs::write(&gate, "").unwrap();
    wait_for("the exit", || shim.records().iter().any(|record| record.kind == RecordKind::Exit)).await;
    let (handle, attached) = ShimHandle::attach(&shim.folder, u64::MAX).await.unwrap();
    assert_eq!(attached.exited.unwrap().code, Some(3));
    assert!(handle.doorbell().borrow().exited);
    handle.finish().await.unwrap();
    shim.until_gone().await;
    assert!(matches!(ShimHandle::attach(&shim.folder, u64::MAX).await, Err(AttachError::NoShim)));
}

#[tokio::test]
async fn the_lock_tells_a_living_shim_from_one_that_was_killed() {
    let (shim, _) = Shim::with_script("exec sleep 1000").await;
    assert!(!shim_is_gone(&shim.folder).unwrap());
    assert!(revoke(&shim.folder).is_err());
    rallypoint_process::sweep::kill_identities(&[shim.process], Signal::Kill);
    wait_for("the lock", || shim_is_gone(&shim.folder).unwrap()).await;
    wait_for("the shim's end", || !process_alive(shim.process)).await;
    let guard = revoke(&shim.folder).unwrap();
    assert!(revoke(&shim.folder).is_err(), "the guard holds the lock");
    drop(guard);
    assert!(shim_is_gone(&shim.folder).unwrap());
    assert!(shim_is_gone(&shim.folder.join("nowhere")).unwrap());
}

#[tokio::test]
async fn a_stranger_that_does_not_speak_the_protocol_is_dropped_and_disturbs_nobody() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    let (shim, _) = Shim::with_script("cat").await;
    for bytes in [b"\xff\xff\xff\xff\x01".as_slice(), b"\x00\x00\x00\x00\x06", b"\x00\x00\x00\x00\x63"] {
        let mut stranger = UnixStream::connect(shim.folder.join("sock")).unwrap();
        stranger.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
        stranger.write_all(bytes).unwrap();
        // Dropped: an end or a reset, but no answer.
        assert_eq!(stranger.read(&mut [0; 16]).unwrap_or(0), 0);
    }
    shim.handle.send(1, b"hello\n".to_vec()).await.unwrap();
    shim.until_output("hello").await;
}

#[tokio::test]
async fn without_the_check_of_epochs_a_deposed_daemon_takes_an_agent_back() {
    let shim = Shim::launch_with("g", &[("RALLY_SHIM_FAULT", "no-epoch-check")]).await;
    shim.handle.start(shim.script("cat")).await.unwrap();
    let (newer, _) = ShimHandle::attach(&shim.folder, 5).await.unwrap();
    newer.send(1, b"from the newer\n".to_vec()).await.unwrap();
    let (older, attached) = ShimHandle::attach(&shim.folder, 4).await.unwrap();
    until_closed(&newer).await;
    older.send(attached.last_input_seq + 1, b"from the older\n".to_vec()).await.unwrap();
    shim.until_output("from the older").await;
    assert!(matches!(newer.send(2, b"lost\n".to_vec()).await, Err(SendError::Closed)));
}

#[tokio::test]
async fn without_the_check_of_input_numbers_a_repeat_reaches_the_agent() {
    for (switches, expected) in
        [(&[][..], "one\n"), (&[("RALLY_SHIM_FAULT", "no-input-seq")][..], "one\none\n")]
    {
        let shim = Shim::launch_with("g", switches).await;
        shim.handle.start(shim.script("cat")).await.unwrap();
        shim.handle.send(1, b"one\n".to_vec()).await.unwrap();
        shim.handle.send(1, b"one\n".to_vec()).await.unwrap();
        shim.handle.close_stdin().await.unwrap();
        shim.until_exited().await;
        assert_eq!(shim.text(RecordKind::Out), expected);
    }
}
