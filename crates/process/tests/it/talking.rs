//! Starting an agent, input, output, exit.

use std::path::PathBuf;

use rallypoint_process::client::{ControlError, SendError, StartError};
use rallypoint_process::spool::RecordKind;
use rallypoint_process::sweep::RUN_MARKER_VARIABLE;
use rallypoint_process::{ExitStatus, INPUT_MAX_BYTES};
use sha2::{Digest, Sha256};

use crate::support::{Shim, joined};

#[tokio::test]
async fn input_comes_back_from_cat_and_the_exit_is_recorded_last() {
    let (shim, agent) = Shim::with_script("cat; echo problem >&2; exit 7").await;
    shim.handle.send(1, b"hello\n".to_vec()).await.unwrap();
    shim.handle.send(2, b"world\n".to_vec()).await.unwrap();
    shim.handle.close_stdin().await.unwrap();
    shim.until_exited().await;

    let records = shim.records();
    assert_eq!(joined(&records, RecordKind::Out), b"hello\nworld\n");
    assert_eq!(joined(&records, RecordKind::Err), b"problem\n");
    let inputs: Vec<_> = records.iter().filter(|r| r.kind == RecordKind::In).collect();
    assert_eq!(
        inputs.iter().map(|r| (r.seq, r.bytes.as_slice())).collect::<Vec<_>>(),
        [(1, b"hello\n".as_slice()), (2, b"world\n")]
    );
    assert_eq!(records.iter().filter(|r| r.kind == RecordKind::StdinClosed).count(), 1);
    let first = String::from_utf8(records.first().unwrap().bytes.clone()).unwrap();
    assert!(first.contains(&format!("\"pid\":{}", agent.pid)) && first.contains("/bin/sh"), "{first}");
    let last = records.last().unwrap();
    assert_eq!(last.kind, RecordKind::Exit);
    let status: ExitStatus = serde_json::from_slice(&last.bytes).unwrap();
    assert_eq!(status, ExitStatus { code: Some(7), signal: None });

    assert!(matches!(shim.handle.send(3, b"late".to_vec()).await, Err(SendError::Exited)));
    shim.handle.finish().await.unwrap();
    shim.until_closed().await;
    shim.until_gone().await;
}

#[tokio::test]
async fn a_repeated_input_is_acknowledged_and_not_given_to_the_agent_again_and_a_gap_is_refused() {
    let (shim, _) = Shim::with_script("cat").await;
    shim.handle.send(1, b"one\n".to_vec()).await.unwrap();
    shim.handle.send(1, b"one\n".to_vec()).await.unwrap();
    assert!(matches!(shim.handle.send(3, b"three\n".to_vec()).await, Err(SendError::Gap { expected: 2 })));
    assert!(matches!(shim.handle.send(0, b"zero\n".to_vec()).await, Err(SendError::Gap { expected: 2 })));
    shim.handle.send(2, b"two\n".to_vec()).await.unwrap();
    shim.handle.close_stdin().await.unwrap();
    assert!(matches!(
        shim.handle.send(3, b"three\n".to_vec()).await,
        Err(SendError::StdinClosed | SendError::Exited)
    ));
    shim.until_exited().await;
    assert_eq!(shim.text(RecordKind::Out), "one\ntwo\n");
    assert_eq!(shim.text(RecordKind::In), "one\ntwo\n");
}

#[tokio::test]
async fn input_larger_than_a_pipe_waits_in_the_shim_and_arrives_whole() {
    let (shim, _) = Shim::with_script("read go; wc -c; cat >/dev/null").await;
    shim.handle.send(1, b"go\n".to_vec()).await.unwrap();
    let piece = vec![b'x'; 1 << 20];
    for seq in 2..=5 {
        shim.handle.send(seq, piece.clone()).await.unwrap();
    }
    shim.handle.close_stdin().await.unwrap();
    shim.until_exited().await;
    assert_eq!(shim.text(RecordKind::Out).trim(), (4_u32 << 20).to_string());
}

#[tokio::test]
async fn an_agent_that_does_not_read_is_not_fed_without_end() {
    let (shim, _) = Shim::with_script("exec sleep 1000").await;
    let piece = vec![b'x'; INPUT_MAX_BYTES];
    shim.handle.send(1, piece.clone()).await.unwrap();
    // The pipe took the first few bytes, so that a second piece just fits.
    shim.handle.send(2, piece.clone()).await.unwrap();
    assert!(matches!(shim.handle.send(3, piece.clone()).await, Err(SendError::Overloaded { .. })));
    let too_long = vec![b'x'; INPUT_MAX_BYTES + 1];
    assert!(matches!(shim.handle.send(3, too_long).await, Err(SendError::TooLong { .. })));
    // The refused piece was not taken, so its number is still free.
    assert_eq!(shim.records().iter().filter(|r| r.kind == RecordKind::In).count(), 2);
}

#[tokio::test]
async fn an_agent_that_closes_its_input_is_noted_and_told_to_the_sender() {
    let (shim, _) = Shim::with_script("exec <&-; echo closed; exec sleep 1000").await;
    shim.until_output("closed").await;
    shim.handle.send(1, b"lost\n".to_vec()).await.unwrap();
    assert!(matches!(shim.handle.send(2, b"more\n".to_vec()).await, Err(SendError::StdinClosed)));
    assert!(shim.text(RecordKind::Note).contains("5 bytes did not reach it"));
}

#[tokio::test]
async fn eight_mebibytes_of_output_are_intact_over_many_segments() {
    let shim = Shim::launch_with("g", &[("RALLY_SHIM_SEGMENT_BYTES", "1000000")]).await;
    // Different bytes everywhere, so that a swapped or doubled piece shows.
    let script = "i=0; while [ $i -lt 8 ]; do seq -w $((i*131072)) $((i*131072+131071)); i=$((i+1)); done";
    shim.handle.start(shim.script(script)).await.unwrap();
    shim.until_exited().await;
    let mut expected = Sha256::new();
    let mut length = 0;
    for block in 0..8_u32 {
        let width = (block * 131_072 + 131_071).to_string().len();
        for number in block * 131_072..(block + 1) * 131_072 {
            let line = format!("{number:0width$}\n");
            length += line.len();
            expected.update(line);
        }
    }
    let output = shim.bytes(RecordKind::Out);
    assert_eq!(output.len(), length);
    assert_eq!(Sha256::digest(&output), expected.finalize());
    let spool_file = |entry: std::fs::DirEntry| entry.path().extension().is_some_and(|ext| ext == "spool");
    let segments = std::fs::read_dir(&shim.folder)
        .unwrap()
        .filter_map(|entry| spool_file(entry.unwrap()).then_some(()))
        .count();
    assert!(segments > 7, "{segments} segments");
}

#[tokio::test]
async fn the_agent_gets_exactly_the_environment_folder_and_marker_it_was_given() {
    let shim = Shim::launch_with("g", &[("RALLY_SHIM_GRACE_MS", "100")]).await;
    let mut spec = shim.command(&["env"]);
    spec.env.push(("GREETING".to_owned(), "hello".to_owned()));
    shim.handle.start(spec.clone()).await.unwrap();
    shim.until_exited().await;
    let text = shim.text(RecordKind::Out);
    let mut names: Vec<_> = text.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["GREETING", "PATH", RUN_MARKER_VARIABLE]);
    assert!(text.contains(&format!("{RUN_MARKER_VARIABLE}={}\n", shim.marker)));
    assert_eq!(shim.handle.recall_start().await.unwrap(), Some(spec));
}

#[tokio::test]
async fn an_agent_inherits_no_ignored_or_blocked_signal_and_leads_its_own_group() {
    let (shim, agent) =
        Shim::with_script("grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; ps -o pgid= -p $$").await;
    shim.until_exited().await;
    let text = shim.text(RecordKind::Out);
    // Only the signals a program can know by name: the test's own starter may ignore the C library's two.
    let named = |prefix: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(prefix)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap() & 0x7fff_ffff
    };
    assert_eq!((named("SigIgn:"), named("SigBlk:")), (0, 0), "{text}");
    assert_eq!(text.lines().last().unwrap().trim(), agent.pid.to_string());
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named_by_kind_and_the_shim_ends() {
    for (argv, cwd, expected) in [
        (&["no-such-program-anywhere"][..], "/", "not found"),
        (&["/no/such/program"], "/", "not found"),
        (&[], "/", "not found"),
        (&["/etc/passwd"], "/", "cannot be executed"),
        (&["/bin/true"], "/no/such/folder", "folder"),
        (&["/bin/true"], "relative", "folder"),
    ] {
        let shim = Shim::launch().await;
        let mut spec = shim.command(argv);
        spec.cwd = PathBuf::from(cwd);
        let error = shim.handle.start(spec).await.unwrap_err();
        assert!(
            matches!(
                (&error, expected),
                (StartError::NotFound { .. }, "not found")
                    | (StartError::NotExecutable { .. }, "cannot be executed")
                    | (StartError::BadCwd { .. }, "folder")
            ),
            "{argv:?} in {cwd}: {error}"
        );
        shim.until_closed().await;
        shim.until_gone().await;
    }
}

#[tokio::test]
async fn a_script_without_its_interpreter_is_not_executable_rather_than_not_found() {
    use std::os::unix::fs::PermissionsExt;
    let shim = Shim::launch().await;
    let script = shim.folder.join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    let error = shim.handle.start(shim.command(&[script.to_str().unwrap()])).await.unwrap_err();
    assert!(matches!(error, StartError::NotExecutable { .. }), "{error}");
}

#[tokio::test]
async fn a_second_start_is_refused_and_names_the_agent() {
    let (shim, agent) = Shim::with_script("exec sleep 1000").await;
    match shim.handle.start(shim.script("exec sleep 1000")).await {
        Err(StartError::AlreadyStarted { process }) => assert_eq!(process, agent),
        other => panic!("{other:?}"),
    }
    assert!(matches!(shim.handle.finish().await, Err(ControlError::StillRunning)));
}

#[tokio::test]
async fn nothing_can_be_asked_of_an_agent_that_was_not_started() {
    let shim = Shim::launch().await;
    assert!(matches!(shim.handle.send(1, Vec::new()).await, Err(SendError::NotStarted)));
    assert!(matches!(shim.handle.terminate().await, Err(ControlError::NotStarted)));
    assert!(matches!(shim.handle.kill().await, Err(ControlError::NotStarted)));
    assert_eq!(shim.handle.recall_start().await.unwrap(), None);
    shim.handle.finish().await.unwrap();
    shim.until_gone().await;
}

#[tokio::test]
async fn output_stops_being_read_while_the_spool_is_full_and_goes_on_once_segments_are_removed() {
    let segment = 256 * 1024_u64;
    let shim = Shim::launch_with("g", &[("RALLY_SHIM_SEGMENT_BYTES", &segment.to_string())]).await;
    let total = 4 << 20;
    let mut spec = shim.command(&["head", "-c", &total.to_string(), "/dev/zero"]);
    spec.spool_max_bytes = 2 * segment;
    shim.handle.start(spec).await.unwrap();

    // Reads and removes as the daemon does; each segment may be removed only once it is read.
    let mut doorbell = shim.handle.doorbell();
    let mut reader = rallypoint_process::spool::SpoolReader::open(&shim.folder, 0).unwrap();
    let (mut output, mut exited, mut largest) = (0, false, 0);
    while !exited {
        while let Some(record) = reader.next().unwrap() {
            match record.kind {
                RecordKind::Out => output += record.bytes.len(),
                RecordKind::Exit => exited = true,
                _ => {}
            }
        }
        let mut on_disk = 0;
        for entry in std::fs::read_dir(&shim.folder).unwrap() {
            on_disk += entry.unwrap().metadata().unwrap().len();
        }
        largest = largest.max(on_disk);
        rallypoint_process::spool::remove_segments_before(&shim.folder, reader.position()).unwrap();
        if !exited {
            tokio::time::timeout(crate::support::PATIENCE, doorbell.changed()).await.unwrap().unwrap();
        }
    }
    assert_eq!(output, total);
    assert!(largest < 4 * segment, "{largest} bytes were on disk");
}
