use std::path::Path;

use rallypoint_model::agent_io::{AgentInput, AgentItem, AgentOutput};
use rallypoint_model::usage::TokenCounts;

use super::harness::{Client, message, outputs, report, stop_reason};

fn opened(args: &[&str]) -> Client {
    let mut client = Client::on_thread("scenario", args);
    client.open(Path::new("/"));
    client
}

fn played(args: &[&str]) -> Vec<AgentItem> {
    opened(args).prompt("work")
}

fn junk_lines(items: &[AgentItem]) -> usize {
    items.iter().filter(|item| matches!(item, AgentItem::Junk { .. })).count()
}

#[test]
fn ends_are_as_their_names_say() {
    for (name, said, reason) in [
        ("good", "hello", "end_turn"),
        ("empty", "", "end_turn"),
        ("unknown-stop", "as far as I came", "banana"),
        ("max-tokens", "as far as I came", "max_tokens"),
        ("refusal", "as far as I came", "refusal"),
        ("bad-utf8", "broken [\u{fffd}\u{fffd}(] text", "end_turn"),
    ] {
        let items = played(&[name]);
        assert_eq!((message(&items).as_str(), stop_reason(&items)), (said, reason), "{name}");
    }
    assert_eq!(report(&played(&["claims"])).files_changed, ["src/everything.rs"]);
}

#[test]
fn errors_are_as_their_names_say() {
    for (name, expected) in [("login-in-prompt", -32000), ("error-in-prompt", -32603)] {
        let items = played(&[name]);
        assert!(
            matches!(items.last(), Some(AgentItem::RequestFailed { code, .. }) if *code == expected),
            "{name}"
        );
    }
    let mut client = Client::on_thread("scenario", &["login"]);
    client.hello();
    client.send(AgentInput::NewSession { cwd: "/".to_owned(), tools: false });
    let items = client.until(|item| matches!(item, AgentItem::RequestFailed { .. }));
    assert!(matches!(items.last(), Some(AgentItem::RequestFailed { code: -32000, .. })));
}

#[test]
fn garbage_is_all_junk() {
    let mut client = Client::on_thread("scenario", &["garbage"]);
    let items = client.rest();
    assert_eq!(junk_lines(&items), items.len());
    let bytes: u64 =
        items.iter().map(|item| if let AgentItem::Junk { bytes, .. } = item { *bytes } else { 0 }).sum();
    assert!(bytes > 190 * 1024, "{bytes}");
}

#[test]
fn silence_lasts_until_the_input_ends() {
    let mut client = Client::on_thread("scenario", &["silent"]);
    client.send(AgentInput::Initialize);
    client.close();
    assert!(client.rest().is_empty());
}

#[test]
fn junk_between_frames_costs_nothing() {
    let mut client = Client::on_thread("scenario", &["junk-lines"]);
    client.open(Path::new("/"));
    let items = client.prompt("work");
    assert_eq!(message(&items), "between the lines");
    assert_eq!(junk_lines(&items), 5);
}

#[test]
fn unknown_kinds_are_kept_and_the_request_has_to_be_refused() {
    let mut client = opened(&["unknown-kinds"]);
    client.send_prompt(&[]);
    let items = client.until(|item| matches!(item, AgentItem::UnknownRequest { .. }));
    let names: Vec<&str> = outputs(&items)
        .map(|output| match output {
            AgentOutput::Other { name, .. } => name.as_str(),
            AgentOutput::ToolCallUpdate { call } => call.status.as_deref().unwrap_or_default(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["hologram", "agent_message_chunk", "dreaming", "vendor/notify"]);
    let Some(AgentItem::UnknownRequest { request_id, method, .. }) = items.last().cloned() else { panic!() };
    client.send(AgentInput::RefuseMethod { request_id, method });
    assert_eq!(message(&client.until_answer()), "it was answered with -32601");
}

#[test]
fn a_prompt_is_noted_once_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::on_thread("scenario", &["counts", "notes.txt", "3", "30"]);
    client.open(folder.path());
    let items = client.prompt("work");
    assert_eq!(message(&items), "chunk 1 of 3\nchunk 2 of 3\nchunk 3 of 3\n");
    assert_eq!(outputs(&items).filter(|output| matches!(output, AgentOutput::ToolCall { .. })).count(), 2);
    client.prompt("more");
    let notes = std::fs::read_to_string(folder.path().join("notes.txt")).unwrap();
    let expected = format!("{} rallypoint-scenario-", std::process::id());
    assert_eq!(notes.lines().filter(|line| line.starts_with(&expected)).count(), 2);
}

#[test]
fn a_second_answer_means_nothing() {
    let mut client = opened(&["double-answer"]);
    let items = client.prompt("work");
    assert_eq!(message(&items), "only once");
    client.close();
    let rest = client.rest();
    assert_eq!((message(&rest).as_str(), rest.len()), ("only once", 1));
}

#[test]
fn what_comes_late_still_comes() {
    let mut client = opened(&["late"]);
    assert_eq!(message(&client.prompt("work")), "in time");
    let items = client.until(|item| matches!(item, AgentItem::Output { .. }));
    assert_eq!(message(&items), ", and late");
}

#[test]
fn permission_is_asked_with_the_choices_in_odd_order() {
    for name in ["permission", "permission-wait"] {
        let mut client = opened(&[name]);
        for (choice, said) in [(Some("once"), "the option was once"), (None, "no option was given")] {
            client.send_prompt(&[]);
            let items = client.until(|item| matches!(item, AgentItem::PermissionAsked { .. }));
            let Some(AgentItem::PermissionAsked { request_id, options, call, .. }) = items.last().cloned()
            else {
                panic!()
            };
            assert_eq!(
                (options[0].kind.as_str(), call.title.as_deref()),
                ("reject_once", Some("touch a file"))
            );
            client.send(AgentInput::AnswerPermission { request_id, option_id: choice.map(str::to_owned) });
            assert_eq!(message(&client.until_answer()), said);
        }
    }
}

#[test]
fn one_agent_gives_up_its_question_when_cancelled_and_one_waits_for_the_answer() {
    let ask = |name: &str| {
        let mut client = opened(&[name]);
        client.send_prompt(&[]);
        let items = client.until(|item| matches!(item, AgentItem::PermissionAsked { .. }));
        client.cancel();
        match items.last() {
            Some(AgentItem::PermissionAsked { request_id, .. }) => (client, request_id.clone()),
            item => panic!("{item:?}"),
        }
    };
    let (mut client, _) = ask("permission");
    assert_eq!(stop_reason(&client.until_answer()), "cancelled");
    let (mut client, request_id) = ask("permission-wait");
    client.send(AgentInput::AnswerPermission { request_id, option_id: None });
    assert_eq!(stop_reason(&client.until_answer()), "cancelled");
}

#[test]
fn a_file_is_waited_for_and_a_cancel_ends_the_wait() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::on_thread("scenario", &["waits-for-file", "go"]);
    client.open(folder.path());
    client.send_prompt(&[]);
    client.until(|item| matches!(item, AgentItem::Output { .. }));
    client.cancel();
    assert_eq!(stop_reason(&client.until_answer()), "cancelled");
    client.send_prompt(&[]);
    client.until(|item| matches!(item, AgentItem::Output { .. }));
    std::fs::write(folder.path().join("go"), "").unwrap();
    assert_eq!(message(&client.until_answer()), "done waiting\n");
}

#[test]
fn a_process_is_left_behind_in_a_session_of_its_own() {
    let text = message(&played(&["forks"]));
    let pid: i32 = text.split(' ').nth(1).unwrap().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    assert_eq!(rustix::process::getsid(Some(pid)), Ok(pid));
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn amounts_are_as_asked() {
    assert_eq!(message(&played(&["huge-line", "300000"])).len(), 300_000);
    let items = played(&["flood", "2000"]);
    assert!(message(&items).ends_with("chunk 1999\n"));
    let items = played(&["split-secret", "sk-secret-ä-1"]);
    assert_eq!(message(&items), "sk-secret-ä-1");
    assert!(outputs(&items).all(|output| matches!(output, AgentOutput::Message { text } if text.len() <= 3)));
    let items = played(&["usage"]);
    let expected = TokenCounts { input: 1200, output: 300, cache_read: 1000, ..TokenCounts::default() };
    assert!(
        matches!(items.last(), Some(AgentItem::PromptAnswered { usage: Some(usage), .. }) if *usage == expected)
    );
}

#[test]
fn every_scenario_in_the_list_exists() {
    for (name, what) in crate::SCENARIOS {
        assert!(!what.is_empty());
        // These need no server or turn into another program.
        if matches!(*name, "garbage" | "silent" | "dies-at-once" | "ignores-term") {
            continue;
        }
        let args = match *name {
            "spends" => vec!["calls".to_owned(), "1".to_owned()],
            _ => vec!["1".to_owned()],
        };
        let code = crate::serve_on(
            "scenario",
            &[vec![(*name).to_owned()], args].concat(),
            std::io::empty(),
            std::io::sink(),
        );
        assert_eq!(format!("{code:?}"), format!("{:?}", std::process::ExitCode::SUCCESS), "{name}");
    }
}
