//! Running commands to their end.

use std::path::PathBuf;
use std::time::Duration;

use rallypoint_process::ExitStatus;
use rallypoint_process::command::{CommandError, CommandSpec, OutputMode, run_captured};
use rallypoint_process::sweep::{RUN_MARKER_VARIABLE, find_marked};

use crate::support::{PATIENCE, wait_for};

fn script(script: &str) -> CommandSpec {
    CommandSpec {
        argv: vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()],
        cwd: PathBuf::from("/"),
        env: vec![("PATH".to_owned(), std::env::var("PATH").unwrap())],
        timeout: PATIENCE,
        keep_bytes: 1 << 16,
        stdin: None,
        output: OutputMode::Separate,
    }
}

fn marked(mut spec: CommandSpec, marker: &str) -> CommandSpec {
    spec.env.push((RUN_MARKER_VARIABLE.to_owned(), marker.to_owned()));
    spec
}

#[tokio::test]
async fn streams_are_kept_apart_or_in_the_order_of_writing() {
    let mut spec = script("pwd; echo err >&2; cat; exit 3");
    spec.stdin = Some(b"input".to_vec());
    spec.cwd = PathBuf::from("/usr");
    let finished = run_captured(spec.clone()).await.unwrap();
    assert_eq!(finished.exit, ExitStatus { code: Some(3), signal: None });
    assert_eq!((finished.stdout.text().as_str(), finished.stderr.text().as_str()), ("/usr\ninput", "err\n"));
    assert!(!finished.timed_out && finished.ended_at_ms >= finished.started_at_ms);
    spec.output = OutputMode::Merged;
    let finished = run_captured(spec).await.unwrap();
    assert_eq!((finished.stdout.text().as_str(), finished.stderr.text().as_str()), ("/usr\nerr\ninput", ""));
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_and_counted_and_input_is_fed_meanwhile() {
    let mut spec = script("cat");
    spec.stdin = Some(b"0123456789".repeat(100_000));
    spec.keep_bytes = 10;
    let finished = run_captured(spec).await.unwrap();
    assert_eq!((finished.stdout.head.as_str(), finished.stdout.tail.as_str()), ("01234", "56789"));
    assert_eq!(finished.stdout.cut_bytes, 999_990);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced_and_a_signal_is_told_from_a_code() {
    let finished = run_captured(script("printf 'a\\377b'; kill -9 $$")).await.unwrap();
    assert_eq!(finished.stdout.text(), "a\u{fffd}b");
    assert_eq!(finished.exit, ExitStatus { code: None, signal: Some(9) });
}

#[tokio::test]
async fn at_the_time_limit_the_whole_group_is_killed_and_its_output_kept() {
    let marker = format!("command-timeout-{}", std::process::id());
    let mut spec = marked(script("trap '' TERM; echo started; sleep 1000 & sleep 1000"), &marker);
    spec.timeout = Duration::from_millis(300);
    let finished = run_captured(spec).await.unwrap();
    assert!(finished.timed_out);
    assert_eq!(finished.exit.signal, Some(9));
    assert_eq!(finished.stdout.text(), "started\n");
    wait_for("the group's end", || find_marked(&marker).is_empty()).await;
}

#[tokio::test]
async fn a_command_that_is_no_longer_waited_for_is_killed_with_its_group() {
    let marker = format!("command-drop-{}", std::process::id());
    let running = tokio::spawn(run_captured(marked(script("sleep 1000 & sleep 1000"), &marker)));
    wait_for("the command", || find_marked(&marker).len() >= 3).await;
    running.abort();
    wait_for("the group's end", || find_marked(&marker).is_empty()).await;
}

#[tokio::test]
async fn a_background_process_neither_holds_up_the_result_nor_stays() {
    let marker = format!("command-background-{}", std::process::id());
    let finished = run_captured(marked(script("sleep 1000 & echo done"), &marker)).await.unwrap();
    assert_eq!((finished.exit.code, finished.stdout.text().as_str()), (Some(0), "done\n"));
    wait_for("the group's end", || find_marked(&marker).is_empty()).await;
}

#[tokio::test]
async fn what_cannot_be_run_is_named_by_kind() {
    let mut spec = script("true");
    spec.argv = vec!["no-such-program-anywhere".to_owned()];
    assert!(matches!(run_captured(spec.clone()).await, Err(CommandError::NotFound { .. })));
    spec.argv = Vec::new();
    assert!(matches!(run_captured(spec.clone()).await, Err(CommandError::NotFound { .. })));
    spec.argv = vec!["/etc/passwd".to_owned()];
    assert!(matches!(run_captured(spec.clone()).await, Err(CommandError::NotExecutable { .. })));
    spec.cwd = PathBuf::from("/no/such/folder");
    assert!(matches!(run_captured(spec).await, Err(CommandError::BadCwd { .. })));
}
