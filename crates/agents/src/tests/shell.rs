use std::time::{Duration, Instant};

use rallypoint_model::agent_io::{AgentItem, AgentOutput, PromptPart, ToolCallView};
use rallypoint_model::completion::ReportedStatus;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use super::harness::{Client, message, outputs, report, stop_reason};

fn shell() -> (Client, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::on_thread("shell", &[]);
    client.open(folder.path());
    (client, folder)
}

fn calls(items: &[AgentItem]) -> Vec<&ToolCallView> {
    outputs(items)
        .filter_map(|output| match output {
            AgentOutput::ToolCall { call } | AgentOutput::ToolCallUpdate { call } => Some(call),
            _ => None,
        })
        .collect()
}

fn streamed(items: &[AgentItem], id: &str) -> String {
    calls(items)
        .iter()
        .filter(|call| call.tool_call_id == id)
        .filter_map(|call| call.text.as_deref())
        .collect()
}

#[test]
fn commands_run_in_the_sessions_folder_and_are_reported_truthfully() {
    let (mut client, folder) = shell();
    let items = client.prompt("Do it:\n$ echo hello > out.txt\n```sh\ncat out.txt\npwd\n```\n");
    assert_eq!(std::fs::read_to_string(folder.path().join("out.txt")).unwrap(), "hello\n");
    assert_eq!(stop_reason(&items), "end_turn");
    let all = calls(&items);
    let first = all.first().unwrap();
    assert_eq!(
        (first.title.as_deref(), first.tool_kind.as_deref()),
        (Some("echo hello > out.txt"), Some("execute"))
    );
    assert_eq!(first.status.as_deref(), Some("in_progress"));
    let last = all.last().unwrap();
    assert_eq!((last.status.as_deref(), &last.raw["rawOutput"]["exitCode"]), (Some("completed"), &json!(0)));
    assert!(streamed(&items, "command-2").starts_with("hello\n/"));
    let text = message(&items);
    assert!(
        text.starts_with(
            "Ran 2 commands:\n\n- `echo hello > out.txt` exited with 0\n- `cat out.txt …` exited with 0\n"
        ),
        "{text}"
    );
    assert!(text.contains("    | hello\n"));
    let report = report(&items);
    assert_eq!(report.status, ReportedStatus::Completed);
    assert_eq!(report.diff_summary, "Ran 2 commands");
    assert_eq!(report.test_results.len(), 2);
    assert_eq!(report.test_results[0].command, "echo hello > out.txt");
}

#[test]
fn the_first_failure_stops_and_is_reported_with_its_last_output() {
    let (mut client, folder) = shell();
    let items = client.prompt("$ true\n$ echo '```'; echo bad >&2; exit 3\n$ touch never\n");
    assert!(!folder.path().join("never").exists());
    assert_eq!(stop_reason(&items), "end_turn");
    assert_eq!(calls(&items).last().unwrap().status.as_deref(), Some("failed"));
    let text = message(&items);
    assert!(text.starts_with("Ran 2 of 3 commands:"), "{text}");
    assert!(text.contains("exited with 3. Its last output:\n\n    | ```\n    | bad\n"), "{text}");
    let report = report(&items);
    assert_eq!(report.status, ReportedStatus::Failed);
    assert!(report.reason.ends_with("exited with 3"), "{}", report.reason);
    assert_eq!(report.test_results[1].exit_code, 3);
    assert_eq!(report.test_results[1].summary, "bad");
}

#[test]
fn a_block_stops_at_its_first_failing_line_and_a_signal_has_a_code() {
    let (mut client, folder) = shell();
    let items = client.prompt("```bash\nfalse\ntouch never\n```");
    assert!(!folder.path().join("never").exists());
    assert_eq!(report(&items).test_results[0].exit_code, 1);
    let items = client.prompt("$ kill -9 $$");
    assert_eq!(report(&items).reason, "`kill -9 $$` exited with 137");
}

#[test]
fn only_tasks_and_messages_are_acted_on_and_follow_ups_repeat() {
    let (mut client, folder) = shell();
    let touched = |name: &str| folder.path().join(name).exists();
    client.send_prompt(&[
        (PromptPart::Goal, "$ touch goal"),
        (PromptPart::Evidence, "$ touch evidence"),
        (PromptPart::Task, "$ touch task"),
    ]);
    client.until_answer();
    assert!(touched("task") && !touched("goal") && !touched("evidence"));
    std::fs::remove_file(folder.path().join("task")).unwrap();
    client.send_prompt(&[(PromptPart::Message, "not good yet"), (PromptPart::Evidence, "$ touch evidence")]);
    assert_eq!(report(&client.until_answer()).test_results[0].command, "touch task");
    assert!(touched("task") && !touched("evidence"));
}

#[test]
fn without_commands_it_asks_which() {
    let (mut client, _folder) = shell();
    let items = client.prompt("please fix everything");
    let report = report(&items);
    assert_eq!(report.status, ReportedStatus::Blocked);
    assert!(report.reason.starts_with("Which command should I run? "));
    assert!(calls(&items).is_empty());
}

#[test]
fn a_cancel_ends_the_whole_group_and_leaves_no_report() {
    let (mut client, folder) = shell();
    client.send_prompt(&[(PromptPart::Task, "$ sleep 60 & echo $! > pid; echo started; wait")]);
    client.until(|item| matches!(item, AgentItem::Output { output: AgentOutput::ToolCallUpdate { call }, .. } if call.text.is_some()));
    let pid: i32 = std::fs::read_to_string(folder.path().join("pid")).unwrap().trim().parse().unwrap();
    let started = Instant::now();
    client.cancel();
    let items = client.until_answer();
    assert_eq!(stop_reason(&items), "cancelled");
    assert_eq!(message(&items), "");
    assert!(started.elapsed() < Duration::from_millis(1500), "{:?}", started.elapsed());
    assert!(gone(pid));
}

#[test]
fn a_command_that_ignores_the_first_signal_is_killed() {
    let (mut client, _folder) = shell();
    client.send_prompt(&[(PromptPart::Task, "$ trap '' TERM; echo started; while :; do sleep 0.1; done")]);
    client.until(|item| matches!(item, AgentItem::Output { output: AgentOutput::ToolCallUpdate { call }, .. } if call.text.is_some()));
    let started = Instant::now();
    client.cancel();
    assert_eq!(stop_reason(&client.until_answer()), "cancelled");
    assert!(started.elapsed() >= Duration::from_secs(2) && started.elapsed() < Duration::from_secs(5));
}

#[test]
fn something_left_in_the_background_does_not_hold_the_turn() {
    let (mut client, folder) = shell();
    let started = Instant::now();
    let items = client
        .prompt("$ (while :; do echo noise; sleep 0.05; done) & echo $! > pid\n$ test -d /proc/$(cat pid)");
    assert_eq!(report(&items).status, ReportedStatus::Completed);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    let pid: i32 = std::fs::read_to_string(folder.path().join("pid")).unwrap().trim().parse().unwrap();
    assert!(!gone(pid));
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn much_output_is_streamed_to_a_limit_and_the_message_stays_small() {
    let (mut client, _folder) = shell();
    let items = client.prompt("$ seq 1 400000");
    let text = streamed(&items, "command-1");
    assert!(text.starts_with("1\n2\n3\n") && text.contains("bytes of output are not shown]"));
    let total: usize = (1..=400_000_u32).map(|number| number.to_string().len() + 1).sum();
    let cut: usize = text.rsplit_once("\n[").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(cut, total - 1024 * 1024);
    assert!(calls(&items).iter().filter_map(|call| call.text.as_ref()).all(|text| text.len() <= 4096));
    assert_eq!(calls(&items).last().unwrap().raw["rawOutput"]["outputBytes"], json!(total));
    let text = message(&items);
    assert!(text.len() < 16 * 1024 && text.contains("    | 400000\n") && text.contains("bytes left out]"));
    assert_eq!(report(&items).test_results[0].summary, "400000");
}

#[test]
fn many_outputs_do_not_make_a_message_without_end() {
    let (mut client, _folder) = shell();
    let items = client.prompt(&"$ seq 1 2000\n".repeat(20));
    let text = message(&items);
    assert!(text.len() < 40 * 1024, "{}", text.len());
    assert!(text.contains("`seq 1 2000` wrote 8893 bytes"));
    assert_eq!(report(&items).test_results.len(), 20);
}

#[test]
fn output_arrives_while_the_command_still_runs() {
    let (mut client, folder) = shell();
    client.send_prompt(&[(
        PromptPart::Task,
        "$ printf first; while [ ! -e go ]; do sleep 0.02; done; echo second",
    )]);
    let items = client
        .until(|item| matches!(item, AgentItem::Output { output: AgentOutput::ToolCallUpdate { .. }, .. }));
    assert_eq!(streamed(&items, "command-1"), "first");
    std::fs::write(folder.path().join("go"), "").unwrap();
    assert_eq!(streamed(&client.until_answer(), "command-1"), "second\n");
}

#[test]
fn a_folder_that_is_gone_is_a_failure_that_says_so() {
    let (mut client, folder) = shell();
    drop(folder);
    let items = client.prompt("$ true");
    assert!(message(&items).contains("cannot run `sh` in `/"), "{}", message(&items));
    assert_eq!(report(&items).reason, "`true` exited with 126");
}

/// Whether the process has ended; one that only waits to be collected has.
pub(super) fn gone(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
}
