//! Words are found where they were said: in tasks, messages and what agents did.

use crate::help::Rally;

#[test]
fn what_was_said_is_found_by_its_words_with_the_place_where_it_stands() {
    let rally = Rally::new();
    let ended = rally.run(&[
        "run",
        "Mend the zebrafish tank\n\n$ echo mended",
        "--agent",
        "shell",
        "--check",
        "true",
        "--json",
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let task = ended.result()["taskId"].as_str().unwrap().to_owned();
    rally.json(&["room", "say", "main", "The zebrafish are fed"]);
    let all = rally.json(&["search", "ZEBRA"]);
    let kinds: Vec<&str> =
        all["items"].as_array().unwrap().iter().map(|hit| hit["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"task") && kinds.contains(&"message"), "{all}");
    let tasks = rally.json(&["search", "zebrafish tank", "--in", "tasks"]);
    assert_eq!(tasks["items"].as_array().unwrap().len(), 1, "{tasks}");
    assert_eq!(
        (&tasks["items"][0]["taskId"], &tasks["items"][0]["kind"]),
        (&task.clone().into(), &"task".into())
    );
    assert!(tasks["items"][0]["snippet"].as_str().unwrap().contains("zebrafish"), "{tasks}");
    let fed = rally.json(&["search", "\"zebrafish are\"", "--in", "messages", "--room", "main"]);
    assert_eq!(fed["items"][0]["snippet"], "The zebrafish are fed", "{fed}");
    assert!(!fed["items"][0]["messageId"].is_null(), "{fed}");
    assert_eq!(rally.json(&["search", "elephant"])["items"].as_array().unwrap().len(), 0);
    let text = rally.run(&["search", "zebrafish", "--task", &task, "--in", "tasks"]).out;
    assert!(text.contains("task.created") && text.contains("zebrafish"), "{text}");
    let refused = rally.run(&["search", "%%"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("holds no word"), "{refused:?}");
}

#[test]
fn a_search_that_finds_more_than_it_shows_says_so() {
    let rally = Rally::new();
    for number in 0..5 {
        rally.json(&["room", "say", "main", &format!("heron number {number}")]);
    }
    let first = rally.json(&["search", "heron", "--limit", "2"]);
    let texts: Vec<&str> =
        first["items"].as_array().unwrap().iter().map(|hit| hit["snippet"].as_str().unwrap()).collect();
    assert_eq!(texts, ["heron number 4", "heron number 3"], "{first}");
    assert_eq!(first["nextCursor"], first["items"][1]["seq"].to_string(), "{first}");
    assert!(rally.run(&["search", "heron", "--limit", "2"]).err.contains("there is more"));
    assert_eq!(rally.json(&["search", "heron"])["nextCursor"], serde_json::Value::Null);
}
