use std::process::{Command, ExitCode};

use rallypoint_model::agent_io::{AgentItem, AgentOutput, PromptPart};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::harness::{CHILD_VARIABLE, Client, message, outputs, stop_reason};
use super::shell::gone;

/// Not a test of its own: the body of the processes that the tests here start.
#[test]
fn serves_when_it_is_a_child() {
    let Ok(line) = std::env::var(CHILD_VARIABLE) else {
        return;
    };
    let args: Vec<String> = line.split('\n').map(str::to_owned).collect();
    let code: ExitCode = crate::serve(&args[0], &args[1..]);
    std::process::exit(code.number());
}

trait Number {
    fn number(self) -> i32;
}

impl Number for ExitCode {
    /// An exit code can be compared in its debug form only.
    fn number(self) -> i32 {
        let text = format!("{self:?}");
        text.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(1)
    }
}

#[test]
fn agents_that_die_do_so_with_their_code() {
    for (name, code, said) in
        [("dies-in-prompt", 9, "I have begun"), ("exits-zero-in-prompt", 0, "I have begun")]
    {
        let mut client = Client::as_child("scenario", &[name]);
        client.open(std::path::Path::new("/"));
        client.send_prompt(&[]);
        assert_eq!(message(&client.rest()), said);
        assert_eq!(client.wait().code(), Some(code), "{name}");
    }
    let mut client = Client::as_child("scenario", &["dies-at-once"]);
    assert_eq!(client.wait().code(), Some(3));
}

#[test]
fn a_last_frame_without_line_end_is_read() {
    let mut client = Client::as_child("scenario", &["no-newline"]);
    client.open(std::path::Path::new("/"));
    client.send_prompt(&[]);
    let items = client.rest();
    assert_eq!(stop_reason(&items), "end_turn");
    assert_eq!(client.wait().code(), Some(0));
}

#[test]
fn an_agent_that_ignores_everything_ends_by_force_only() {
    let mut client = Client::as_child("scenario", &["ignores-cancel"]);
    client.open(std::path::Path::new("/"));
    client.send_prompt(&[]);
    client.cancel();
    client.close();
    for _ in 0..3 {
        client.until(|item| matches!(item, AgentItem::Output { .. }));
    }
    let pid = Pid::from_child(client.child.as_ref().unwrap());
    assert!(test_kill_process(pid).is_ok());
    kill_process(pid, Signal::KILL).unwrap();
    assert_eq!(client.wait().code(), None);
}

#[test]
fn much_noise_on_standard_error_does_not_stop_the_answer() {
    let mut client = Client::as_child("scenario", &["stderr-flood"]);
    client.open(std::path::Path::new("/"));
    assert_eq!(message(&client.prompt("x")), "said after a lot of noise");
    client.close();
    assert_eq!(client.wait().code(), Some(0));
}

#[test]
fn a_shell_agent_whose_input_ends_leaves_no_command_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::as_child("shell", &[]);
    client.open(folder.path());
    client.send_prompt(&[(PromptPart::Task, "$ echo $$; sleep 60; true")]);
    let items = client
        .until(|item| matches!(item, AgentItem::Output { output: AgentOutput::ToolCallUpdate { .. }, .. }));
    let pid: i32 = outputs(&items)
        .find_map(|output| match output {
            AgentOutput::ToolCallUpdate { call } => call.text.as_deref()?.trim().parse().ok(),
            _ => None,
        })
        .unwrap();
    client.close();
    assert_eq!(stop_reason(&client.rest()), "cancelled");
    assert_eq!(client.wait().code(), Some(0));
    assert!(gone(pid));
}

#[test]
fn a_signal_ignored_by_a_shell_stays_ignored() {
    // What `ignores-term` relies on.
    let status = Command::new("sh")
        .args(["-c", "trap '' TERM; exec \"$0\" \"$@\"", "sh", "-c", "kill -TERM $$; exit 7"])
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(7));
}
