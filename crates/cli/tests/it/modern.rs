//! Agents that offer options, ask forms, have helpers of their own, and resume and close conversations.

use crate::help::{Ended, Rally};

fn run(rally: &Rally, scenario: &str, goal: &str, more: &[&str]) -> Ended {
    let agent = Rally::scenario(&format!("{scenario} notes"));
    let mut arguments = vec!["run", goal, "--agent-cmd", agent.as_str(), "--unchecked"];
    arguments.extend(more);
    rally.run(&arguments)
}

fn notes(rally: &Rally) -> Vec<String> {
    let text = std::fs::read_to_string(rally.path("notes")).unwrap_or_default();
    text.lines()
        .map(|line| if line.starts_with("session/new") { "session/new" } else { line }.to_owned())
        .collect()
}

/// What the agent said in the first run of a task.
fn said(rally: &Rally, ended: &Ended) -> String {
    let run = ended.result()["runs"][0]["runId"].as_str().unwrap().to_owned();
    rally.json(&["result", "get", &run])["text"].as_str().unwrap().to_owned()
}

fn only(rally: &Rally, what: &str) -> String {
    let task = rally.json(&["task", "list"])["items"][0]["taskId"].as_str().unwrap().to_owned();
    match what {
        "task" => task,
        "session" => {
            rally.json(&["task", "show", &task])["sessions"][0]["sessionId"].as_str().unwrap().to_owned()
        }
        _ => rally.json(&["question", "list"])["items"][0]["questionId"].as_str().unwrap().to_owned(),
    }
}

fn finished(rally: &Rally, task: &str) -> serde_json::Value {
    Rally::until("the task is done", || rally.json(&["task", "show", task])["status"] == "done");
    rally.json(&["task", "show", task])
}

#[test]
fn model_mode_and_thought_level_are_set_before_the_prompt_in_an_order_that_fits() {
    let rally = Rally::new();
    // Thinking that much is offered with that model only, and a name for people will do.
    let more = ["--model", "BIG", "--thinking", "high", "--mode", "plan", "--set", "fast=true", "--json"];
    let ended = run(&rally, "modern", "x", &more);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(said(&rally, &ended), "model=big mode=plan effort=high fast=true");
    Rally::until("the conversation is closed", || {
        notes(&rally).last().is_some_and(|it| it == "session/close")
    });
    let expected = [
        "session/new",
        "set model=big",
        "set mode=plan",
        "set effort=high",
        "set fast=true",
        "session/prompt",
        "session/close",
    ];
    assert_eq!(notes(&rally), expected);
    let session = &rally.json(&["task", "show", &only(&rally, "task")])["sessions"][0];
    let options = session["offer"]["options"].as_array().unwrap();
    let now: Vec<&str> = options.iter().map(|option| option["current"].as_str().unwrap()).collect();
    assert_eq!(now, ["big", "plan", "high", "true"]);
    let shown = rally.run(&["task", "show", &only(&rally, "task")]);
    assert!(shown.out.contains("settings") && shown.out.contains("small, big"), "{}", shown.out);
}

#[test]
fn what_is_not_offered_fails_before_the_prompt_and_says_what_is() {
    for (scenario, option, value, words) in [
        ("modern", "--model", "huge", "the model `huge` is not offered; the agent offers: small, big"),
        ("modern", "--thinking", "high", "the thought level `high` is not offered; the agent offers: low"),
        ("older", "--mode", "yolo", "the mode `yolo` is not offered; the agent offers: auto, plan"),
        ("older", "--thinking", "high", "the agent offers no choice of thought level"),
    ] {
        let rally = Rally::new();
        let ended = run(&rally, scenario, "x", &[option, value, "--json"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let result = ended.result();
        let reason = &result["runs"][0]["reason"];
        assert_eq!(reason["kind"], "not_offered");
        assert!(reason["message"].as_str().unwrap().contains(words), "{reason}");
        assert!(!notes(&rally).contains(&"session/prompt".to_owned()), "{:?}", notes(&rally));
    }
}

#[test]
fn modes_and_models_from_before_there_were_options_are_set_in_their_own_way() {
    let rally = Rally::new();
    let ended = run(&rally, "older", "x", &["--model", "big", "--mode", "plan", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(said(&rally, &ended), "model=big mode=plan effort=low fast=false");
}

#[test]
fn a_cut_conversation_is_resumed_where_that_is_trusted_and_loaded_else() {
    for (trusted, expected) in [(true, "session/resume"), (false, "session/load")] {
        let rally = Rally::new();
        let argv: Vec<String> =
            Rally::scenario("modern notes").split(' ').map(|word| format!("\"{word}\"")).collect();
        let profile = format!(
            "[profiles.fragile]\nargv = [{}]\ntrustsLoad = true\ntrustsResume = {trusted}\n",
            argv.join(", ")
        );
        std::fs::write(rally.data.path().join("rally.toml"), profile).unwrap();
        let ended = rally.run(&["run", "do-cut", "--agent", "fragile", "--unchecked", "--json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(notes(&rally)[..4], ["session/new", "session/prompt", expected, "session/prompt"]);
    }
}

#[test]
fn a_form_waits_for_a_person_and_its_values_go_back_into_the_same_turn() {
    let rally = Rally::new();
    let asked = run(&rally, "modern", "do-form", &[]);
    assert_eq!(asked.code, Some(3), "{asked:?}");
    let (task, question) = (only(&rally, "task"), only(&rally, "question"));
    let wrong = rally.run(&["question", "answer", &question, "--field", "port=many"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("`port` takes a whole number"), "{}", wrong.err);
    assert_eq!(rally.run(&["question", "answer", &question, "--field", "port=80"]).code, Some(0));
    let view = finished(&rally, &task);
    assert_eq!(view["runs"].as_array().map(Vec::len), Some(1));
    let run = view["runs"][0]["runId"].as_str().unwrap().to_owned();
    let text = rally.json(&["result", "get", &run])["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with(r#"the answer was {"action":"accept","content":{"port":80}}"#), "{text}");
}

#[test]
fn an_address_is_shown_and_a_no_is_told_to_the_agent() {
    let rally = Rally::new();
    let asked = run(&rally, "modern", "do-visit", &[]);
    assert_eq!(asked.code, Some(3), "{asked:?}");
    let listed = rally.run(&["question", "list"]);
    assert!(listed.out.contains("https://example.org/login"), "{}", listed.out);
    let (task, question) = (only(&rally, "task"), only(&rally, "question"));
    assert_eq!(rally.run(&["question", "answer", &question, "--decline", "not here"]).code, Some(0));
    let view = finished(&rally, &task);
    let run = view["runs"][0]["runId"].as_str().unwrap().to_owned();
    let text = rally.json(&["result", "get", &run])["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with(r#"the answer was {"action":"decline"}"#), "{text}");
}

#[test]
fn an_open_form_is_cancelled_with_its_task() {
    let rally = Rally::new();
    assert_eq!(run(&rally, "modern", "do-form", &[]).code, Some(3));
    let (task, question) = (only(&rally, "task"), only(&rally, "question"));
    assert_eq!(rally.run(&["task", "stop", &task, "--wait"]).code, Some(0));
    let log = rally.run(&["task", "log", &task, "--json"]);
    let answers: Vec<serde_json::Value> = log
        .lines()
        .into_iter()
        .filter(|line| line["data"]["input"]["kind"] == "answer_elicitation")
        .collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["data"]["input"]["action"]["action"], "cancel");
    assert_eq!(rally.run(&["question", "answer", &question, "--field", "port=80"]).code, Some(1));
}

#[test]
fn a_helper_of_the_agent_is_shown_and_its_words_are_not_the_result() {
    let rally = Rally::new();
    let ended = run(&rally, "modern", "do-helper", &["--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(said(&rally, &ended), "model=small mode=auto effort=low fast=false");
    let lines = ended.lines();
    let of_helper: Vec<&serde_json::Value> =
        lines.iter().filter(|line| line["data"]["foreignSession"] == "modern-helper").collect();
    assert_eq!(of_helper.len(), 2, "its words before and after the reply: {of_helper:?}");
    let task = only(&rally, "task");
    let view = rally.json(&["task", "show", &task]);
    let helper = &view["sessions"][0]["nativeAgents"][0];
    assert_eq!(
        (helper["title"].as_str(), helper["state"].as_str(), helper["stopReason"].as_str()),
        (Some("look around"), Some("idle"), Some("end_turn"))
    );
    let shown = rally.run(&["task", "show", &task]);
    assert!(shown.out.contains("helpers") && shown.out.contains("look around"), "{}", shown.out);
}

#[test]
fn plans_notices_and_other_updates_are_told_and_none_is_an_answer() {
    let rally = Rally::new();
    let ended = run(&rally, "modern", "do-updates", &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for words in [
        "plan: 0 of 2 done, now: look",
        "follows its plan no longer",
        "warning: The cache is cold",
        "has shortened its memory",
        "works in the mode `plan`",
    ] {
        assert!(ended.out.contains(words), "{words}: {}", ended.out);
    }
    let view = rally.json(&["task", "show", &only(&rally, "task")]);
    // What the agent says of its mode is what is shown of it.
    assert_eq!(view["sessions"][0]["offer"]["options"][1]["current"], "plan");
    let run = view["runs"][0]["runId"].as_str().unwrap().to_owned();
    assert_eq!(rally.json(&["result", "get", &run])["text"], "model=small mode=auto effort=low fast=false");
}

#[test]
fn another_model_is_set_on_a_live_session_before_its_next_prompt() {
    let rally = Rally::with_config("[limits]\ncorrectiveRounds = 1\n");
    let agent = Rally::scenario("modern notes");
    let asked = rally.run(&["run", "do-form", "--agent-cmd", &agent, "--check", "false"]);
    assert_eq!(asked.code, Some(3), "{asked:?}");
    let session = only(&rally, "session");
    let refused = rally.run(&["task", "set", &session, "--model", "huge"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("the agent offers: small, big"), "{}", refused.err);
    assert_eq!(rally.run(&["task", "set", &session, "--model", "big"]).code, Some(0));
    assert_eq!(rally.run(&["question", "answer", &only(&rally, "question"), "--text", "80"]).code, Some(0));
    Rally::until("the corrective prompt was given", || {
        notes(&rally).iter().filter(|line| *line == "session/prompt").count() == 2
    });
    assert_eq!(notes(&rally), ["session/new", "session/prompt", "set model=big", "session/prompt"]);
}

#[test]
fn files_go_along_as_what_the_agent_takes_and_as_addresses_else() {
    const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\nno more of it";
    for (scenario, expected) in [("modern", "image resource"), ("older", "resource_link resource_link")] {
        let rally = Rally::new();
        std::fs::write(rally.path("picture"), PICTURE).unwrap();
        std::fs::write(rally.path("notes.md"), "# what to do").unwrap();
        let ended = run(&rally, scenario, "x", &["--attach", "picture", "--attach", "notes.md", "--json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let text = said(&rally, &ended);
        assert!(text.ends_with(&format!("fast=false {expected}")), "{text}");
        let task = rally.json(&["task", "show", &only(&rally, "task")]);
        let types: Vec<&str> = task["attachments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["mimeType"].as_str().unwrap())
            .collect();
        assert_eq!(types, ["image/png", "text/markdown"]);
    }
}

#[test]
fn a_file_that_is_missing_or_too_long_starts_nothing() {
    let rally = Rally::with_config("[limits]\nattachmentBytes = 4\n");
    std::fs::write(rally.path("long"), "12345").unwrap();
    for (file, words) in
        [("missing", "does not exist"), (".", "is no file"), ("long", "the limit `attachmentBytes` is 4")]
    {
        let refused = run(&rally, "modern", "x", &["--attach", file]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert!(refused.err.contains(words), "{file}: {}", refused.err);
    }
    assert_eq!(rally.json(&["task", "list"])["items"].as_array().map(Vec::len), Some(0));
}

#[test]
fn files_of_the_work_folder_are_served_to_a_profile_that_needs_it_and_nothing_else() {
    for (services, expected) in [
        ("[\"fs\"]", [r#"{"content":"two\n"}"#, "{}", "is not in the work folder", "is not let through"]),
        ("[]", ["is not served"; 4]),
    ] {
        let rally = Rally::new();
        let argv: Vec<String> =
            Rally::scenario("modern notes").split(' ').map(|word| format!("\"{word}\"")).collect();
        let profile = format!("[profiles.needy]\nargv = [{}]\nservices = {services}\n", argv.join(", "));
        std::fs::write(rally.data.path().join("rally.toml"), profile).unwrap();
        std::fs::write(rally.path("given"), "one\ntwo\nthree\n").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", rally.path("link")).unwrap();
        let ended = rally.run(&["run", "do-files", "--agent", "needy", "--unchecked", "--json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let text = said(&rally, &ended);
        for (line, words) in text.lines().zip(expected) {
            assert!(line.contains(words), "{services}: {words}: {text}");
        }
        let written = std::fs::read_to_string(rally.path("made")).ok();
        assert_eq!(written.as_deref(), (services != "[]").then_some("written for it"));
    }
}

#[test]
fn a_file_that_would_hold_a_known_secret_is_not_written_with_holes() {
    // What the agent writes is what the variable holds.
    let rally = Rally::new().with_variable("NEEDY_TOKEN", "written for it");
    let argv: Vec<String> =
        Rally::scenario("modern notes").split(' ').map(|word| format!("\"{word}\"")).collect();
    let profile = format!("[profiles.needy]\nargv = [{}]\nservices = [\"fs\"]\n", argv.join(", "));
    std::fs::write(rally.data.path().join("rally.toml"), profile).unwrap();
    let arguments =
        ["run", "do-files", "--agent", "needy", "--pass-env", "NEEDY_TOKEN", "--unchecked", "--json"];
    let ended = rally.run(&arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = said(&rally, &ended);
    assert!(text.lines().nth(1).unwrap().contains("holds a secret"), "{text}");
    assert!(!rally.path("made").exists() && !ended.out.contains("written for it"), "{}", ended.out);
}
