//! Checks with real processes in temporary folders.

#![expect(clippy::expect_used, reason = "the helpers of a test may stop it too")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rallypoint_model::ids::{CriterionId, EvidenceId};
use rallypoint_model::task::{Criterion, CriterionCheck, Evidence, EvidenceResult};
use rallypoint_model::time::Timestamp;
use rallypoint_verify::{EXCERPT_MAX_BYTES, VerifyContext, verify_all, verify_criterion};
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(60);

/// Ids cost no further dependency when they are made from their text.
fn uuid_text(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

fn criterion(number: u64, check: CriterionCheck) -> Criterion {
    let id: CriterionId = uuid_text(number).parse().expect("a well-formed id");
    Criterion { id, text: "holds".to_owned(), check }
}

fn command(text: &str) -> CriterionCheck {
    CriterionCheck::Command { command: text.to_owned() }
}

fn file(path: &str) -> CriterionCheck {
    CriterionCheck::File { path: path.to_owned() }
}

fn path_only() -> Vec<(String, String)> {
    vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]
}

/// Checks all in `cwd` with a clock that goes on by one second at each look, counted ids, and one known secret.
async fn check_in(cwd: &Path, timeout: Duration, checks: Vec<CriterionCheck>) -> Vec<Evidence> {
    let clock = AtomicI64::new(0);
    let ids = AtomicU64::new(100);
    let env = path_only();
    let context = VerifyContext {
        cwd,
        env: &env,
        timeout,
        now: &|| Timestamp(clock.fetch_add(1000, Ordering::Relaxed)),
        new_id: &|| -> EvidenceId {
            uuid_text(ids.fetch_add(1, Ordering::Relaxed)).parse().expect("a well-formed id")
        },
        redact: &|text: &str| text.replace("sk-0123456789", "[redacted:KEY]"),
    };
    let criteria: Vec<Criterion> =
        (0..).zip(checks).map(|(number, check)| criterion(number, check)).collect();
    verify_all(&criteria, &context).await
}

async fn run(text: &str) -> Evidence {
    let folder = TempDir::new().expect("a temporary folder");
    check_in(folder.path(), LONG, vec![command(text)]).await.remove(0)
}

#[tokio::test]
async fn evidence_carries_all_that_was_seen() {
    let seen = run("echo to stdout; echo to stderr >&2").await;
    let expected = Evidence {
        id: uuid_text(100).parse().expect("a well-formed id"),
        criterion_id: uuid_text(0).parse().expect("a well-formed id"),
        result: EvidenceResult::Passed,
        procedure: "echo to stdout; echo to stderr >&2".to_owned(),
        exit_code: Some(0),
        started_at: Timestamp(0),
        ended_at: Timestamp(1000),
        detail: "exit code 0\nstdout:\nto stdout\nstderr:\nto stderr".to_owned(),
    };
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn another_exit_code_fails() {
    let seen = run("echo 2 tests failed; exit 3").await;
    assert_eq!((seen.result, seen.exit_code), (EvidenceResult::Failed, Some(3)));
    assert_eq!(seen.detail, "exit code 3\nstdout:\n2 tests failed");
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_named_so() {
    let seen = run("no-such-program-anywhere --version").await;
    assert_eq!((seen.result, seen.exit_code), (EvidenceResult::Failed, Some(127)));
    assert!(seen.detail.starts_with("check command not found (exit code 127)\nstderr:\n"), "{}", seen.detail);
}

#[tokio::test]
async fn a_command_that_is_not_executable_is_named_so() {
    let folder = TempDir::new().expect("a temporary folder");
    let script = folder.path().join("check.sh");
    std::fs::write(&script, "#!/bin/sh\nexit 0\n").expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o644)).expect("permissions");
    let seen = check_in(folder.path(), LONG, vec![command("./check.sh")]).await.remove(0);
    assert_eq!((seen.result, seen.exit_code), (EvidenceResult::Failed, Some(126)));
    assert!(seen.detail.starts_with("check command not executable (exit code 126)"), "{}", seen.detail);
}

#[tokio::test]
async fn a_command_beyond_its_time_cannot_tell() {
    let folder = TempDir::new().expect("a temporary folder");
    let begin = Instant::now();
    let checks = vec![command("echo started; sleep 600")];
    let seen = check_in(folder.path(), Duration::from_millis(300), checks).await.remove(0);
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert_eq!((seen.result, seen.exit_code), (EvidenceResult::Inconclusive, None));
    let expected = "the check command was ended at its time limit of 300 ms (timed out)\nstdout:\nstarted";
    assert_eq!(seen.detail, expected);
}

#[tokio::test]
async fn a_crash_fails_and_a_kill_from_outside_cannot_tell() {
    for (signal, result, reason) in [
        ("SEGV", EvidenceResult::Failed, "the check command crashed with signal 11"),
        ("ABRT", EvidenceResult::Failed, "the check command crashed with signal 6"),
        ("KILL", EvidenceResult::Inconclusive, "the check command was ended from outside by signal 9"),
        ("TERM", EvidenceResult::Inconclusive, "the check command was ended from outside by signal 15"),
    ] {
        let seen = run(&format!("ulimit -c 0; kill -{signal} $$; sleep 600")).await;
        assert_eq!((seen.result, seen.exit_code, seen.detail.as_str()), (result, None, reason), "{signal}");
    }
}

#[tokio::test]
async fn an_empty_command_proves_nothing() {
    for text in ["", "  \n\t"] {
        let seen = run(text).await;
        assert_eq!(seen.result, EvidenceResult::Inconclusive);
        assert_eq!(seen.detail, "the check command is empty");
    }
}

#[tokio::test]
async fn a_command_with_a_nul_byte_cannot_tell() {
    let seen = run("true\0false").await;
    assert_eq!((seen.result, seen.exit_code), (EvidenceResult::Inconclusive, None));
}

#[tokio::test]
async fn a_missing_work_folder_cannot_tell() {
    let folder = TempDir::new().expect("a temporary folder");
    let gone = folder.path().join("gone");
    let seen = check_in(&gone, LONG, vec![command("true"), file("README.md")]).await;
    let results: Vec<_> = seen.iter().map(|evidence| (evidence.result, evidence.exit_code)).collect();
    assert_eq!(results, [(EvidenceResult::Inconclusive, None); 2]);
    assert!(seen.iter().all(|evidence| evidence.detail.contains("folder")), "{seen:?}");
}

#[tokio::test]
async fn a_work_folder_that_is_a_file_cannot_tell() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("file");
    std::fs::write(&path, "text").expect("a file");
    let seen = check_in(&path, LONG, vec![command("true")]).await.remove(0);
    assert_eq!(seen.result, EvidenceResult::Inconclusive);
}

#[tokio::test]
async fn runs_in_the_work_folder_with_the_given_environment_only() {
    let folder = TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("marker"), "").expect("a file");
    let checks = vec![
        command("test -f marker"),
        command("env | grep -v -e ^PATH= -e ^PWD= -e ^OLDPWD= -e ^SHLVL= -e ^_="),
    ];
    let seen = check_in(folder.path(), LONG, checks).await;
    assert_eq!(seen[0].result, EvidenceResult::Passed);
    // Nothing is left for `grep` to find: the test runner's own variables did not pass.
    assert_eq!((seen[1].exit_code, seen[1].detail.as_str()), (Some(1), "exit code 1"));
}

#[tokio::test]
async fn input_is_empty_and_closed() {
    assert_eq!(run("read line").await.exit_code, Some(1));
}

#[tokio::test]
async fn much_output_is_shortened_and_the_cut_is_named() {
    let seen = run("yes 0123456789 | head -c 4999995; echo the end; echo error >&2; exit 1").await;
    assert_eq!(seen.exit_code, Some(1));
    assert!(seen.detail.starts_with("exit code 1\nstdout:\n0123456789\n"), "{}", seen.detail);
    let expected_cut = 4_999_995 + "the end\n".len() - EXCERPT_MAX_BYTES;
    assert!(seen.detail.contains(&format!("\n[{expected_cut} bytes cut]\n")), "{}", seen.detail);
    assert!(seen.detail.ends_with("\nthe end\nstderr:\nerror"), "{}", seen.detail);
    assert!(seen.detail.len() < EXCERPT_MAX_BYTES + 200);
}

#[tokio::test]
async fn output_that_is_no_text_is_still_shown() {
    let seen = run(r"printf 'a\377b'").await;
    assert_eq!(seen.detail, "exit code 0\nstdout:\na\u{fffd}b");
}

#[tokio::test]
async fn secrets_in_output_are_hidden() {
    let seen = run("echo key=sk-0123456789; echo sk-0123456789 >&2").await;
    assert_eq!(seen.detail, "exit code 0\nstdout:\nkey=[redacted:KEY]\nstderr:\n[redacted:KEY]");
}

#[tokio::test]
async fn a_background_process_does_not_hold_the_check_up() {
    let begin = Instant::now();
    let seen = run("sleep 600 & echo done").await;
    assert_eq!(seen.result, EvidenceResult::Passed);
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_file_check_makes_evidence_too() {
    let folder = TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("out.txt"), "four").expect("a file");
    let seen = check_in(folder.path(), LONG, vec![file("out.txt"), file("missing.txt")]).await;
    let short: Vec<_> = seen
        .iter()
        .map(|one| (one.result, one.procedure.as_str(), one.exit_code, one.detail.as_str()))
        .collect();
    assert_eq!(
        short,
        [
            (EvidenceResult::Passed, "out.txt", None, "`out.txt` exists, 4 bytes"),
            (EvidenceResult::Failed, "missing.txt", None, "`missing.txt` does not exist"),
        ]
    );
}

#[tokio::test]
async fn all_are_checked_in_order_and_persons_are_left_out() {
    let folder = TempDir::new().expect("a temporary folder");
    let checks = vec![
        command("echo 1 >> order; exit 1"),
        CriterionCheck::Human { text: "Is it good?".to_owned() },
        file("order"),
        command("echo 2 >> order"),
        command("test \"$(cat order)\" = \"$(printf '1\\n2')\""),
    ];
    let seen = check_in(folder.path(), LONG, checks).await;
    let results: Vec<_> =
        seen.iter().map(|evidence| (evidence.criterion_id.to_string(), evidence.result)).collect();
    assert_eq!(
        results,
        [
            (uuid_text(0), EvidenceResult::Failed),
            (uuid_text(2), EvidenceResult::Passed),
            (uuid_text(3), EvidenceResult::Passed),
            (uuid_text(4), EvidenceResult::Passed),
        ]
    );
}

#[tokio::test]
async fn nothing_to_check_gives_no_evidence() {
    assert_eq!(check_in(Path::new("/"), LONG, Vec::new()).await, Vec::new());
}

/// The shell around the checks spawns them as tasks.
#[test]
fn the_future_can_move_between_threads() {
    fn movable<T: Send>(_: &T) {}
    let context = VerifyContext {
        cwd: Path::new("/"),
        env: &[],
        timeout: LONG,
        now: &|| Timestamp(0),
        new_id: &|| -> EvidenceId { uuid_text(0).parse().expect("a well-formed id") },
        redact: &|text: &str| text.to_owned(),
    };
    let criterion = criterion(0, command("true"));
    movable(&verify_criterion(&criterion, &context));
}
