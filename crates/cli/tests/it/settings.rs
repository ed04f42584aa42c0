//! Every verb has `--json`, and help says what there is.

use crate::help::Rally;

#[test]
fn every_listing_verb_answers_in_json() {
    let rally = Rally::new();
    assert_eq!(rally.run(&["run", "Go\n\n$ true", "--check", "true"]).code, Some(0));
    for arguments in [
        &["task", "list"][..],
        &["room", "list"],
        &["room", "show", "main"],
        &["agents"],
        &["question", "list"],
        &["daemon", "status"],
    ] {
        let value = rally.json(arguments);
        assert!(value.is_object() || value.is_array(), "{arguments:?}: {value}");
    }
    let doctor = rally.run(&["doctor", "--json"]);
    assert!(
        doctor.lines().iter().all(serde_json::Value::is_object) || doctor.out.starts_with('['),
        "{doctor:?}"
    );
}

#[test]
fn built_in_agents_are_ready_and_others_say_how_to_install_them() {
    let rally = Rally::new();
    let agents = rally.json(&["agents"]);
    let items = agents["items"].as_array().unwrap();
    let shell = items.iter().find(|agent| agent["name"] == "shell").unwrap();
    assert_eq!(shell["installed"], true);
    for agent in items.iter().filter(|agent| agent["installed"] == false) {
        assert_ne!(agent["installHint"], "", "{agent}");
    }
}

#[test]
fn options_are_set_before_the_first_prompt_and_a_refused_one_is_told() {
    let rally = Rally::new();
    let agent = Rally::scenario("options");
    let ended = rally.run(&[
        "run",
        "x",
        "--agent-cmd",
        &agent,
        "--set",
        "mode=plan",
        "--set",
        "unknown=1",
        "--check",
        "true",
        "--json",
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let run = ended.result()["runs"][0]["runId"].as_str().unwrap().to_owned();
    assert_eq!(rally.json(&["result", "get", &run])["text"], "options: mode=\"plan\"");
    let lines = ended.lines();
    let answers: Vec<_> = lines.iter().filter(|line| line["kind"] == "generation.option_set").collect();
    assert_eq!(answers.len(), 2);
    assert!(answers[1]["data"]["problem"].as_str().unwrap().contains("there is no option `unknown`"));
}

#[test]
fn a_link_for_a_browser_opens_a_port_that_was_closed() {
    let rally = Rally::new();
    assert_eq!(rally.json(&["daemon", "status"])["running"], false);
    let url = rally.json(&["open"])["url"].as_str().unwrap().to_owned();
    let listen = rally.json(&["daemon", "status"])["listen"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&format!("http://{listen}/open?code=")), "{url} {listen}");
    assert!(listen.starts_with("127.0.0.1:"), "{listen}");
}
