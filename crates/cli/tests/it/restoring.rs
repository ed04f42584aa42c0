//! Agents that die in the middle of a prompt, with and without a memory.

use crate::help::Rally;

fn rally(scenario: &str, trusted: bool) -> Rally {
    let rally = Rally::new();
    let argv: Vec<String> = Rally::scenario(scenario).split(' ').map(|word| format!("\"{word}\"")).collect();
    let profile = format!("[profiles.fragile]\nargv = [{}]\ntrustsLoad = {trusted}\n", argv.join(", "));
    std::fs::write(rally.data.path().join("rally.toml"), profile).unwrap();
    rally
}

fn memory(rally: &Rally) -> Vec<String> {
    let text = std::fs::read_to_string(rally.path("memory")).unwrap();
    text.lines().map(|line| line.split(' ').take(4).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_cut_turn_goes_on_in_its_restored_conversation_and_its_prompt_is_not_sent_again() {
    let rally = rally("remembers memory", true);
    let ended = rally.run(&["run", "Remember", "--agent", "fragile", "--check", "true", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let notes: Vec<String> = memory(&rally);
    let kinds: Vec<&str> = notes.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["session", "prompt", "loaded", "prompt"]);
    assert!(notes[1].contains("--- Goal ---"), "{notes:?}");
    assert!(notes[3].contains("--- Continue Goal"), "{notes:?}");
    let result = ended.result();
    let purposes: Vec<&str> =
        result["runs"].as_array().unwrap().iter().map(|run| run["purpose"].as_str().unwrap()).collect();
    assert_eq!(purposes, ["goal", "continuing"]);
    // The replayed history is kept as such and is no part of the result.
    let replayed = ended.lines().iter().filter(|line| line["data"]["replay"] == true).count();
    assert!(replayed >= 1, "{ended:?}");
    let run = result["runs"][1]["runId"].as_str().unwrap();
    assert_eq!(rally.json(&["result", "get", run])["text"], "continued to the end");
}

#[test]
fn the_crash_budget_ends_a_turn_that_is_cut_again_and_again() {
    let rally = rally("remembers memory 99", true);
    let ended = rally.run(&["run", "Remember", "--agent", "fragile", "--check", "true", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let result = ended.result();
    assert_eq!(result["runs"].as_array().map(Vec::len), Some(4), "one goal and three continuing prompts");
    assert_eq!(result["status"], "failed");
}

#[test]
fn a_conversation_that_can_not_be_restored_is_told_and_nothing_is_sent_again() {
    let rally = rally("forgets memory", true);
    let ended = rally.run(&["run", "Remember", "--agent", "fragile", "--check", "true", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let prompts = memory(&rally).iter().filter(|line| line.starts_with("prompt")).count();
    assert_eq!(prompts, 1);
    let told = crate::help::said_by(&rally.room(), "main_agent").join("\n");
    assert!(told.contains("could not open its earlier conversation again"), "{told}");
    assert!(told.contains("rally task retry"), "{told}");
}

#[test]
fn an_agent_whose_memory_is_not_trusted_is_not_asked_to_go_on() {
    let rally = rally("remembers memory", false);
    let ended = rally.run(&["run", "Remember", "--agent", "fragile", "--check", "true", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(memory(&rally).iter().filter(|line| line.starts_with("prompt")).count(), 1);
    // A person asks for another run, which begins anew.
    let task = ended.result()["taskId"].as_str().unwrap().to_owned();
    assert_eq!(rally.run(&["task", "retry", &task]).code, Some(0));
    Rally::until("the task is done", || rally.json(&["task", "show", &task])["status"] == "done");
}
