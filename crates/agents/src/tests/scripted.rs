use rallypoint_model::agent_io::{AgentInput, AgentItem, AgentOutput};
use serde_json::json;

use super::harness::{Client, message, outputs, report, stop_reason, thought};

const SCRIPT: &str = r#"
[[turns]]
steps = [
    { think = "hm" },
    { plan = ["look", "write"] },
    { say = "Looking.\n" },
    { run = "echo made > made.txt; cat made.txt" },
    { write = { path = "notes/a.md", text = "new\n" } },
    { ask_permission = { title = "touch it", kind = "execute" } },
    { await_file = { path = "go", deadline_ms = 10000 } },
    { report = { diffSummary = "one note", filesChanged = ["notes/a.md"] } },
]
[[turns]]
steps = [{ say = "again" }, { stop = "max_tokens" }, { say = "never" }]
"#;

fn start(script: &str) -> (Client, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script.toml");
    std::fs::write(&file, script).unwrap();
    let mut client = Client::on_thread("scripted", &[file.to_str().unwrap()]);
    client.open(folder.path());
    (client, folder)
}

fn allow(client: &mut Client, choice: &str) -> Vec<AgentItem> {
    let items = client.until(|item| matches!(item, AgentItem::PermissionAsked { .. }));
    let Some(AgentItem::PermissionAsked { request_id, .. }) = items.last() else { panic!() };
    client.send(AgentInput::AnswerPermission {
        request_id: request_id.clone(),
        option_id: Some(choice.to_owned()),
    });
    items
}

#[test]
fn a_script_does_real_work_and_its_last_turn_repeats() {
    let (mut client, folder) = start(SCRIPT);
    client.send_prompt(&[]);
    let mut items = allow(&mut client, "allow");
    std::fs::write(folder.path().join("go"), "").unwrap();
    items.extend(client.until_answer());
    assert_eq!(std::fs::read_to_string(folder.path().join("made.txt")).unwrap(), "made\n");
    assert_eq!(std::fs::read_to_string(folder.path().join("notes/a.md")).unwrap(), "new\n");
    assert_eq!(thought(&items), "hm");
    assert!(message(&items).starts_with("Looking.\n"));
    assert!(
        outputs(&items).any(
            |output| matches!(output, AgentOutput::Plan { entries } if entries[1]["content"] == "write")
        )
    );
    let diff = outputs(&items).find_map(|output| match output {
        AgentOutput::ToolCallUpdate { call } => call.raw.pointer("/content/0/newText"),
        _ => None,
    });
    assert_eq!(diff, Some(&json!("new\n")));
    assert_eq!(report(&items).files_changed, ["notes/a.md"]);
    for _ in 0..2 {
        let items = client.prompt("more");
        assert_eq!((message(&items).as_str(), stop_reason(&items)), ("again", "max_tokens"));
    }
}

#[test]
fn a_permission_that_is_not_given_ends_the_turn() {
    let (mut client, _folder) = start(SCRIPT);
    client.send_prompt(&[]);
    allow(&mut client, "reject");
    let items = client.until_answer();
    assert_eq!(message(&items), "Permission was not given: touch it\n");
    assert_eq!(stop_reason(&items), "end_turn");
}

#[test]
fn a_file_that_does_not_appear_is_an_error_and_a_cancel_ends_a_pause() {
    let script = "[[turns]]\nsteps = [{ await_file = { path = \"never\", deadline_ms = 50 } }]\n\
                  [[turns]]\nsteps = [{ say = \"x\" }, { pause_ms = 60000 }, { say = \"never\" }]\n";
    let (mut client, _folder) = start(script);
    let items = client.prompt("x");
    assert!(
        matches!(items.last(), Some(AgentItem::RequestFailed { code: -32603, message, .. }) if message.contains("did not appear"))
    );
    client.send_prompt(&[]);
    client.until(|item| matches!(item, AgentItem::Output { .. }));
    client.cancel();
    assert_eq!(stop_reason(&client.until_answer()), "cancelled");
}

#[test]
fn a_script_with_mistakes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for script in [
        "turns = []",
        "[[turns]]\nsteps = [{ shout = \"x\" }]",
        "[[turns]]\nsteps = [{ say = \"a\", run = \"b\" }]",
        "no toml",
    ] {
        let file = folder.path().join("script.toml");
        std::fs::write(&file, script).unwrap();
        let args = [file.to_str().unwrap().to_owned()];
        assert!(crate::scripted::ScriptedAgent::from_args(&args).is_err(), "{script}");
    }
}
