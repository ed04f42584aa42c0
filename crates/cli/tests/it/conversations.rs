//! Sub-agents that talk, with a real daemon and real processes: words up, names down, once each.

use serde_json::Value;

use crate::help::{Rally, write};

/// An agent that says one text in each of its turns; the first one waits for a file.
fn speaker(rally: &Rally, name: &str, first: &str, later: &[&str]) -> String {
    let script = rally.path(&format!("{name}.toml"));
    let mut text = format!(
        "[[turns]]\n[[turns.steps]]\nawait_file = {{ path = \"{name}.go\", deadline_ms = 60000 }}\n[[turns.steps]]\nsay = {first:?}\n"
    );
    for words in later {
        text.push_str(&format!("[[turns]]\n[[turns.steps]]\nsay = {words:?}\n"));
    }
    write(&script, &text);
    format!("{} agent-serve scripted {}", Rally::program(), script.display())
}

fn show(rally: &Rally, task: &str) -> Value {
    rally.json(&["task", "show", task])
}

/// All that was said to a session as prompts, oldest first.
fn prompts(rally: &Rally, task: &str, session: &str) -> Vec<String> {
    let log = rally.run(&["task", "log", task, "--json"]);
    log.lines()
        .iter()
        .filter(|row| row["kind"] == "generation.input" && row["sessionId"] == session)
        .filter_map(|row| row["data"]["input"]["blocks"].as_array())
        .map(|blocks| blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"))
        .collect()
}

#[test]
fn words_go_up_to_the_parent_and_down_to_the_name_and_each_is_told_once() {
    let rally = Rally::with_config("[limits]\nspawnDepth = 2\n");
    let parent = speaker(&rally, "ada", "I have begun.", &["@bob please test it", "All done."]);
    let child = speaker(&rally, "bob", "I have looked.", &["I have minded it.", "I have tested."]);
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &parent, "--check", "true", "--detach"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let task = rally.json(&["task", "list"])["items"][0]["taskId"].as_str().unwrap().to_owned();
    Rally::until("ada is in its turn", || show(&rally, &task)["runs"][0]["status"] == "running");
    let ada = show(&rally, &task)["sessions"][0]["sessionId"].as_str().unwrap().to_owned();
    let spawn =
        ["task", "spawn", &task, "--agent-cmd", &child, "--conversation", "--name", "bob", "--parent", &ada];
    let bob = rally.json(&spawn)["sessionId"].as_str().unwrap().to_owned();
    let again = rally.run(&spawn);
    assert!(again.err.contains("belongs to another sub-agent"), "{again:?}");
    Rally::until("bob is in its turn", || show(&rally, &task)["runs"][1]["status"] == "running");
    // What is said to it while it is busy waits, and comes with its next turn.
    assert_eq!(rally.run(&["room", "say", "main", "@bob mind the dog"]).code, Some(0));
    assert_eq!(rally.run(&["room", "say", "main", "@zoe are you there?"]).code, Some(0));
    write(&rally.path("ada.go"), "go");
    Rally::until("ada has said its first words", || show(&rally, &task)["runs"][0]["outcome"] == "completed");
    write(&rally.path("bob.go"), "go");
    Rally::until("the task is done", || show(&rally, &task)["status"] == "done");

    let to_bob = prompts(&rally, &task, &bob).join("\n");
    assert_eq!(to_bob.matches("[from parent]: @bob please test it").count(), 1, "{to_bob}");
    assert_eq!(to_bob.matches("]: @bob mind the dog").count(), 1, "{to_bob}");
    let to_ada = prompts(&rally, &task, &ada).join("\n");
    for words in ["looked", "minded it", "tested"] {
        let words = format!("[sub-agent bob]: I have {words}.");
        assert_eq!(to_ada.matches(&words).count(), 1, "{words} in: {to_ada}");
    }
    let room = rally.room();
    let of_bob: Vec<&str> =
        room.iter().filter(|it| it["name"] == "bob").filter_map(|it| it["text"].as_str()).collect();
    assert!(of_bob.contains(&"[sub-agent bob]: I have looked."), "{of_bob:?}");
    assert!(of_bob.iter().all(|text| text.starts_with("[sub-agent bob]: ")), "{of_bob:?}");
    let answered = room.iter().filter(|it| it["text"] == "Nobody here is called `zoe`.").count();
    assert_eq!(answered, 1);
}

#[test]
fn an_end_is_told_in_the_room_that_asked_and_in_the_room_of_its_peers() {
    let rally = Rally::new();
    let made = |kind: &str| {
        rally.json(&["room", "create", "--title", kind, "--kind", kind])["roomId"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (asking, peers) = (made("task"), made("worktree"));
    let agent = Rally::scenario("good");
    let arguments = [
        "run",
        "Do it",
        "--agent-cmd",
        &agent,
        "--check",
        "true",
        "--room",
        &asking,
        "--worktree-room",
        &peers,
    ];
    let ended = rally.run(&arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = |room: &str| -> Vec<Value> {
        let items = rally.json(&["room", "show", room])["items"].as_array().unwrap().clone();
        items.into_iter().filter(|it| it["source"] == "sub_agent").collect()
    };
    for (room, role) in [(&asking, "task"), (&peers, "worktree")] {
        let messages = told(room);
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert_eq!(messages[0]["metadata"]["subAgentTargetRoomRole"], role);
        assert_eq!(messages[0]["metadata"]["subAgentSwarmRooms"][0]["roomId"], asking.as_str());
    }
    assert_eq!(told("main"), Vec::<Value>::new());
}

#[test]
fn with_the_router_off_the_work_is_done_and_no_event_of_it_stands_in_the_room() {
    let rally = Rally::new().with_variable("ACPX_SUB_AGENT_ROUTER_DISABLED", "1");
    let agent = Rally::scenario("good");
    let ended = rally.run(&["run", "Do it", "--agent-cmd", &agent, "--check", "true"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let room = rally.room();
    assert!(room.iter().all(|it| it["source"] != "sub_agent"), "{room:?}");
    let task = rally.json(&["task", "list"])["items"][0]["taskId"].as_str().unwrap().to_owned();
    let log = rally.run(&["task", "log", &task, "--json"]);
    let kept: Vec<Value> =
        log.lines().into_iter().filter(|row| row["kind"] == "session.event_kept").collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (&kept[0]["data"]["event"], &kept[0]["data"]["why"]),
        (&"task_complete".into(), &"disabled".into())
    );
}
