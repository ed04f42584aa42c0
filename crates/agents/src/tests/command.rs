use std::process::ExitCode;
use std::time::{Duration, Instant};

use rallypoint_model::agent_io::{AgentItem, AgentOutput, PromptPart};
use rallypoint_model::completion::ReportedStatus;
use tempfile::TempDir;

use super::harness::{Client, message, report, stop_reason, thought};

fn command(args: &[&str]) -> (Client, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::on_thread("command", args);
    client.open(folder.path());
    (client, folder)
}

#[test]
fn the_prompt_goes_in_and_the_output_comes_out() {
    let (mut client, _folder) = command(&["--", "cat"]);
    client.send_prompt(&[
        (PromptPart::Goal, "a goal"),
        (PromptPart::Frame, "a frame"),
        (PromptPart::Task, "a task\n"),
        (PromptPart::Evidence, "evidence"),
    ]);
    let items = client.until_answer();
    assert_eq!(message(&items), "a goal\n\na task\n\nevidence\n");
    assert_eq!(stop_reason(&items), "end_turn");
    let (mut client, folder) =
        command(&["--arg", "--", "sh", "-c", "pwd; echo \"$1\"; echo aside >&2", "name"]);
    let items = client.prompt("as an argument");
    let expected = format!("{}\nas an argument\n\n", folder.path().canonicalize().unwrap().display());
    assert_eq!(message(&items), expected);
    assert_eq!(thought(&items), "aside\n");
}

#[test]
fn silence_with_exit_0_stays_silence() {
    let (mut client, _folder) = command(&["--stdin", "--", "true"]);
    let items = client.prompt("x");
    assert_eq!((message(&items).as_str(), stop_reason(&items)), ("", "end_turn"));
}

#[test]
fn a_failure_is_reported_even_behind_an_open_fence() {
    let (mut client, _folder) = command(&["sh", "-c", "printf '```sh\\nhalf'; exit 4"]);
    let items = client.prompt("x");
    assert_eq!(stop_reason(&items), "end_turn");
    assert!(
        message(&items).starts_with("```sh\nhalf\n```\n\n`sh` exited with 4\n\n```json\n"),
        "{}",
        message(&items)
    );
    let report = report(&items);
    assert_eq!((report.status, report.reason.as_str()), (ReportedStatus::Failed, "`sh` exited with 4"));
}

#[test]
fn a_program_that_is_not_there_is_a_clear_failure() {
    let (mut client, _folder) = command(&["--", "no-such-program-here"]);
    let report = report(&client.prompt("x"));
    assert_eq!(report.status, ReportedStatus::Failed);
    assert!(report.reason.starts_with("cannot start `no-such-program-here` in `/"), "{}", report.reason);
}

#[test]
fn a_cancel_ends_the_program() {
    let (mut client, _folder) = command(&["--", "sh", "-c", "echo begun; sleep 60"]);
    client.send_prompt(&[(PromptPart::Task, "x")]);
    client.until(|item| matches!(item, AgentItem::Output { output: AgentOutput::Message { .. }, .. }));
    let started = Instant::now();
    client.cancel();
    assert_eq!(stop_reason(&client.until_answer()), "cancelled");
    assert!(started.elapsed() < Duration::from_millis(1500));
}

#[test]
fn a_command_line_that_cannot_be_used_is_refused() {
    for (name, args) in
        [("command", &["--"][..]), ("command", &["--what"]), ("scripted", &[]), ("nothing", &[])]
    {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let code = crate::serve_on(name, &args, std::io::empty(), std::io::sink());
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(2)));
    }
}
