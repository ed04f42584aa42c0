//! Rooms from outside: made, spoken in, searched, reset.

use rallypoint_testkit::Keys;
use serde_json::Value;

use crate::channels::{deliveries, platform, room};
use crate::help::{Rally, write};

fn items(rally: &Rally, arguments: &[&str]) -> Vec<Value> {
    rally.json(arguments)["items"].as_array().unwrap().clone()
}

#[test]
fn what_was_asked_before_a_reset_is_found_and_does_not_enter_the_new_conversation() {
    let (channel, rally) = platform(Keys::Taken);
    let room = room(&rally, "team", "042");
    let go = rally.path("go");
    let agent = Rally::scenario(&format!("waits-for-file {}", go.display()));
    let ask = ["run", "Wait", "--agent-cmd", &agent, "--check", "true", "--room", &room, "--detach"];
    assert_eq!(rally.run(&ask).code, Some(0));
    Rally::until("its acknowledgement has arrived", || channel.taken().len() == 1);
    let view = rally.json(&["room", "reset", &room]);
    assert_eq!((&view["incarnation"], &view["roomId"]), (&2.into(), &room.as_str().into()));
    write(&go, "go");
    let task = || rally.json(&["task", "list"])["items"][0].clone();
    Rally::until("the task is done", || task()["status"] == "done");
    // The new conversation is empty, here and on the platform.
    assert_eq!(items(&rally, &["room", "show", &room]), [] as [Value; 0]);
    assert!(items(&rally, &["room", "show", &room, "--all"]).len() >= 2);
    assert_eq!((channel.taken().len(), deliveries(&rally).len()), (1, 1));
    // What it brought is in the main room, with the way that it took, and whole by its run.
    let main = items(&rally, &["room", "show", "main"]);
    let told = main.iter().find(|message| message["metadata"]["subAgent"] == true).unwrap();
    assert_eq!(told["metadata"]["deliveryHops"][0]["why"], "requester_reset");
    assert_eq!(told["metadata"]["earlierIncarnation"]["roomId"], room.as_str());
    let run = told["metadata"]["runId"].as_str().unwrap();
    assert_eq!(rally.run(&["result", "get", run]).code, Some(0));
    let id = task()["taskId"].as_str().unwrap().to_owned();
    let log = rally.run(&["task", "log", &id, "--json"]).lines();
    assert!(log.iter().any(|event| event["kind"] == "result.rerouted"), "{log:#?}");
    // What the new conversation asks for comes back to it.
    let again = ["run", "Say\n\n$ echo ready", "--agent", "shell", "--check", "true", "--room", &room];
    assert_eq!(rally.run(&again).code, Some(0));
    Rally::until("both replies have arrived", || channel.taken().len() == 3);
    assert!(items(&rally, &["room", "show", &room]).iter().all(|message| message["incarnation"] == 2));
}

#[test]
fn a_message_of_a_platform_enters_a_room_once_and_words_are_found() {
    let rally = Rally::new();
    let made = rally.run(&["room", "create", "--title", "side"]);
    let room = made.out.trim().to_owned();
    let say = |words: &[&str]| rally.json(&[&["room", "say"], words].concat());
    let first = say(&[&room, "the 100% plan", "--sender", "noor", "--platform-message", "7"]);
    let again = say(&[&room, "the 100% plan, edited", "--sender", "noor", "--platform-message", "7"]);
    assert_eq!((&again["messageId"], &again["repeated"]), (&first["messageId"], &true.into()));
    say(&["main", "another PLAN"]);
    let shown = items(&rally, &["room", "show", &room]);
    assert_eq!((shown.len(), &shown[0]["name"]), (1, &"noor".into()));
    assert_eq!(items(&rally, &["room", "search", "plan"]).len(), 2);
    assert_eq!(items(&rally, &["room", "search", "plan", "--room", &room]).len(), 1);
    assert_eq!(items(&rally, &["room", "search", "100% plan"]).len(), 1, "a percent sign is no wildcard");
    assert_eq!(items(&rally, &["room", "search", "p_an"]).len(), 0);
    let refused = rally.run(&["room", "create", "--channel", "pigeon", "--peer", "x"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("no channel `pigeon`") && refused.err.contains("[channels.NAME]"),
        "{refused:?}"
    );
}
