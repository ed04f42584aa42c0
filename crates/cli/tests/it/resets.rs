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

#[test]
fn a_room_says_who_is_in_it_and_what_each_may_do_there() {
    let rally = Rally::new();
    let names = |room: &str| -> Vec<(String, bool, bool)> {
        let members = rally.json(&["room", "show", room])["room"]["members"].clone();
        let members = members.as_array().unwrap().iter();
        members
            .map(|member| {
                let name = member["name"].as_str().unwrap().to_owned();
                (name, member["mayRead"] == true, member["mayWrite"] == true)
            })
            .collect()
    };
    let always = [("user", true, true), ("main", true, true), ("system", false, true)];
    let always = always.map(|(name, read, write)| (name.to_owned(), read, write)).to_vec();
    rally.json(&["room", "list"]);
    assert_eq!(names("main"), always);
    let go = rally.path("go");
    let agent = Rally::scenario(&format!("waits-for-file {}", go.display()));
    let run = ["run", "Wait", "--agent-cmd", &agent, "--check", "true", "--detach", "--json"];
    assert_eq!(rally.run(&run).code, Some(0));
    // A sub-agent is told what is passed on to it and reads no room.
    let working = [&always[..], &[("rally".to_owned(), false, true)]].concat();
    Rally::until("its sub-agent is in the room", || names("main") == working);
    let side = rally.run(&["room", "create", "--title", "side"]).out.trim().to_owned();
    assert_eq!(names(&side), always, "and in no other");
    std::fs::write(&go, "").unwrap();
    Rally::until("it has left", || names("main") == always);
}

#[test]
fn rooms_are_paged_without_a_gap() {
    let rally = Rally::new();
    for title in ["one", "two", "three"] {
        rally.json(&["room", "create", "--title", title]);
    }
    let page = |query: &str| {
        crate::task_life::http(&rally, "GET", &format!("/v1/rooms{query}"), &serde_json::Value::Null, None).1
    };
    let ids = |page: &serde_json::Value| -> Vec<String> {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|room| room["roomId"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = page("?limit=3");
    let rest = page(&format!("?limit=3&cursor={}", first["nextCursor"].as_str().unwrap()));
    assert_eq!((ids(&first).len(), ids(&rest).len()), (3, 1));
    assert!(rest["nextCursor"].is_null(), "{rest}");
    let all = page("");
    assert_eq!([ids(&first), ids(&rest)].concat(), ids(&all));
    assert_eq!(page("?cursor=x")["code"], "invalid");
}
