//! Messages to a platform, from outside: a real daemon, a real HTTP server, and what goes wrong between the two.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use rallypoint_testkit::{Conduct, Keys, LoopbackChannel};
use serde_json::Value;

use crate::help::Rally;

/// Short pauses, three attempts.
const LIMITS: &str = "[limits]\ndeliveryBackoffMs = 5\ndeliveryAttempts = 3\n";

pub(crate) fn platform(keys: Keys) -> (LoopbackChannel, Rally) {
    let channel = LoopbackChannel::start(keys).unwrap();
    let rally = Rally::with_config(&format!("{LIMITS}{}", channel.config("hook")));
    (channel, rally)
}

/// A room that is bound to this thread of the channel.
pub(crate) fn room(rally: &Rally, peer: &str, thread: &str) -> String {
    let room = rally.json(&["room", "create", "--channel", "hook", "--peer", peer, "--thread", thread]);
    room["roomId"].as_str().unwrap().to_owned()
}

/// Work that ends well, asked for by this message of the platform.
fn work(rally: &Rally, room: &str, message: &str) {
    let goal = "Say so\n\n$ echo ready";
    let words = ["run", goal, "--agent", "shell", "--check", "true", "--room", room];
    let ended = rally.run(&[&words[..], &["--platform-message", message]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Every delivery, oldest first.
pub(crate) fn deliveries(rally: &Rally) -> Vec<Value> {
    let list = rally.json(&["delivery", "list", "--all"]);
    let mut items = list["items"].as_array().unwrap().clone();
    items.reverse();
    items
}

/// Their states, oldest first.
fn states(rally: &Rally) -> Vec<String> {
    deliveries(rally).iter().map(|delivery| delivery["status"].as_str().unwrap().to_owned()).collect()
}

fn until_settled(rally: &Rally, count: usize) {
    Rally::until("every message has settled", || {
        let states = states(rally);
        states.len() == count && !states.iter().any(|state| state == "pending" || state == "offered")
    });
}

fn lines(channel: &LoopbackChannel) -> Vec<String> {
    channel.thread("team", Some("042"))
}

#[test]
fn replies_arrive_in_their_thread_in_order_as_answers_to_the_message_that_asked() {
    let (channel, rally) = platform(Keys::Ignored);
    let room = room(&rally, "team", "042");
    work(&rally, &room, "m1");
    until_settled(&rally, 2);
    assert_eq!(lines(&channel), ["Started `shell`.", "Ran 1 command:"]);
    for posted in channel.taken() {
        assert_eq!(posted.body["replyTo"], "m1");
        assert_eq!(posted.body["conversation"]["channel"], "hook");
        assert_eq!(posted.body["roomId"], room.as_str());
    }
    let shown = rally.json(&["room", "show", &room]);
    assert_eq!(shown["room"]["conversation"]["thread"], "042");
    let receipts: Vec<Value> =
        deliveries(&rally).iter().map(|delivery| delivery["receipt"].clone()).collect();
    assert_eq!(receipts, ["receipt-1", "receipt-2"]);
    assert_eq!(rally.json(&["delivery", "list"])["items"].as_array().unwrap().len(), 0);
    // The same message of the platform asks once.
    work(&rally, &room, "m1");
    assert_eq!(rally.json(&["task", "list"])["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_room_without_a_thread_sends_none() {
    let (channel, rally) = platform(Keys::Ignored);
    let made = rally.json(&["room", "create", "--channel", "hook", "--peer", "kim", "--thread", " "]);
    work(&rally, made["roomId"].as_str().unwrap(), "m1");
    until_settled(&rally, 2);
    assert_eq!(channel.thread("kim", None).len(), 2);
    assert!(channel.taken().iter().all(|posted| posted.body["conversation"].get("thread").is_none()));
}

#[test]
fn a_busy_channel_is_waited_for_and_no_attempt_is_counted() {
    let (channel, rally) = platform(Keys::Ignored);
    let room = room(&rally, "team", "042");
    channel.conduct(&[Conduct::Busy(0); 9]);
    work(&rally, &room, "m1");
    until_settled(&rally, 2);
    let attempts: Vec<Value> =
        deliveries(&rally).iter().map(|delivery| delivery["attempts"].clone()).collect();
    assert_eq!(attempts, [1, 1]);
    assert_eq!((channel.requests().len(), lines(&channel).len()), (11, 2));
}

#[test]
fn what_was_taken_before_the_connection_broke_is_there_once_where_the_channel_takes_keys() {
    let (channel, rally) = platform(Keys::Taken);
    let room = room(&rally, "team", "042");
    channel.conduct(&[Conduct::TakeThenDrop, Conduct::TakeThenDrop]);
    work(&rally, &room, "m1");
    until_settled(&rally, 2);
    assert_eq!(states(&rally), ["consumed", "consumed"]);
    assert_eq!(lines(&channel), ["Started `shell`.", "Ran 1 command:"]);
    let keys: Vec<String> = channel.requests().iter().map(|posted| posted.key.clone()).collect();
    assert_eq!(keys.len(), 4);
    assert_eq!((&keys[0], &keys[1]), (&keys[1], &keys[2]), "one message, one key");
    assert_eq!(deliveries(&rally)[0]["attempts"], 3);
}

#[test]
fn what_may_have_been_taken_by_a_channel_without_keys_is_shown_and_not_sent_again() {
    let (channel, rally) = platform(Keys::Ignored);
    let room = room(&rally, "team", "042");
    channel.conduct(&[Conduct::TakeThenDrop]);
    work(&rally, &room, "m1");
    until_settled(&rally, 2);
    assert_eq!(states(&rally), ["ambiguous", "consumed"]);
    assert_eq!(lines(&channel), ["Started `shell`.", "Ran 1 command:"]);
    let listed = rally.run(&["delivery", "list"]);
    assert!(listed.out.contains("ambiguous") && listed.out.contains("the connection was cut"), "{listed:?}");
    let id = deliveries(&rally)[0]["deliveryId"].as_str().unwrap().to_owned();
    let shown = rally.run(&["delivery", "show", &id]);
    assert!(shown.out.contains("attempts  1; the channel takes no key"), "{shown:?}");
    // Only a person sends it again.
    let again = rally.json(&["delivery", "retry", &id]);
    until_settled(&rally, 3);
    assert_eq!(states(&rally), ["discarded", "consumed", "consumed"]);
    assert_eq!(again["sinkKey"], id.as_str());
    assert_eq!(lines(&channel), ["Started `shell`.", "Ran 1 command:", "Started `shell`."]);
}

#[test]
fn a_receipt_that_can_not_be_read_is_a_warning_and_the_message_is_not_sent_again() {
    let (channel, rally) = platform(Keys::Ignored);
    let room = room(&rally, "team", "042");
    channel.conduct(&[Conduct::TakeThenGarble]);
    work(&rally, &room, "m1");
    until_settled(&rally, 2);
    let first = deliveries(&rally)[0].clone();
    assert_eq!((&first["status"], &first["attempts"]), (&"consumed".into(), &1.into()));
    assert!(first["warning"].as_str().unwrap().contains("receipt"), "{first}");
    assert_eq!(channel.requests().len(), 2);
}

#[test]
fn giving_up_tells_the_room_why_and_where_the_result_is() {
    let (channel, rally) = platform(Keys::Taken);
    let room = room(&rally, "team", "042");
    let failing = [Conduct::Take, Conduct::Answer(500), Conduct::Answer(500), Conduct::Answer(500)];
    channel.conduct(&failing);
    work(&rally, &room, "m1");
    until_settled(&rally, 2);
    assert_eq!(states(&rally), ["consumed", "failed"]);
    assert_eq!(channel.requests().len(), 4);
    let messages = rally.json(&["room", "show", &room]);
    let told = messages["items"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(told["metadata"]["deliveryStatus"], "failed");
    assert_eq!(told["metadata"]["turn"]["kind"], "delivery_given_up");
    assert!(told["text"].as_str().unwrap().contains("3/3 attempts"), "{told}");
    let run = told["metadata"]["runId"].as_str().unwrap();
    let result = rally.run(&["result", "get", run]);
    assert!(result.out.contains("ready"), "{result:?}");
    // A refusal for good is not tried again.
    channel.conduct(&[Conduct::Answer(404)]);
    work(&rally, &room, "m2");
    until_settled(&rally, 4);
    assert_eq!(states(&rally)[2..], ["failed", "consumed"]);
    assert_eq!(channel.requests().len(), 6);
}

#[test]
fn a_conversation_that_hangs_keeps_its_order_and_delays_no_other() {
    let (channel, rally) = platform(Keys::Taken);
    let (stuck, free) = (room(&rally, "stuck", "1"), room(&rally, "free", "1"));
    channel.conduct(&[Conduct::Hang]);
    work(&rally, &stuck, "m1");
    work(&rally, &free, "m2");
    Rally::until("the free one has both", || channel.thread("free", Some("1")).len() == 2);
    assert_eq!(channel.thread("stuck", Some("1")).len(), 0);
    assert_eq!(channel.requests().len(), 3, "the second of the stuck one waits for the first");
    channel.release();
    until_settled(&rally, 4);
    assert_eq!(channel.thread("stuck", Some("1")), ["Started `shell`.", "Ran 1 command:"]);
}

#[test]
fn a_daemon_that_is_killed_between_offer_and_receipt_sends_again_only_under_a_key() {
    for keys in [Keys::Taken, Keys::Ignored] {
        for point in ["channel:offered", "channel:sent"] {
            let (channel, rally) = platform(keys);
            let mut serve = rally.command(&["serve"]);
            serve.env("RALLY_FAULT_POINT", format!("{point}:1")).stdout(Stdio::null()).stderr(Stdio::null());
            let mut daemon = serve.spawn().unwrap();
            Rally::until("it listens", || rally.run(&["daemon", "status"]).code == Some(0));
            let room = room(&rally, "team", "042");
            work(&rally, &room, "m1");
            assert_eq!(daemon.wait().unwrap().signal(), Some(9), "{point} was not passed");
            until_settled(&rally, 2);
            let known = channel.requests();
            let first = known.iter().filter(|posted| posted.text().starts_with("Started")).count();
            let what = format!("{keys:?} {point}");
            match keys {
                Keys::Taken => {
                    assert_eq!(states(&rally), ["consumed", "consumed"], "{what}");
                    assert_eq!(lines(&channel), ["Started `shell`.", "Ran 1 command:"], "{what}");
                    assert_eq!(first, if point == "channel:sent" { 2 } else { 1 }, "{what}");
                }
                Keys::Ignored => {
                    assert_eq!(states(&rally), ["ambiguous", "consumed"], "{what}");
                    assert_eq!(first, usize::from(point == "channel:sent"), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_channel_whose_secret_is_not_set_holds_its_messages_back_until_it_is() {
    let channel = LoopbackChannel::start(Keys::Taken).unwrap();
    let config = format!("{LIMITS}{}secretEnv = \"HOOK_SECRET\"\n", channel.config("hook"));
    let rally = Rally::with_config(&config);
    let room = room(&rally, "team", "042");
    work(&rally, &room, "m1");
    until_settled(&rally, 2);
    assert_eq!(states(&rally), ["suspended", "suspended"]);
    let listed = rally.run(&["delivery", "list"]);
    assert!(listed.out.contains("`HOOK_SECRET`"), "{listed:?}");
    assert_eq!(rally.run(&["daemon", "stop"]).code, Some(0));
    let mut serve = rally.command(&["serve"]);
    serve.env("HOOK_SECRET", "a long enough word").stdout(Stdio::null()).stderr(Stdio::null());
    let mut daemon = serve.spawn().unwrap();
    Rally::until("the new daemon has sent them", || lines(&channel).len() == 2);
    for posted in channel.taken() {
        assert!(posted.headers["rallypoint-signature"].starts_with("sha256="), "{posted:?}");
        assert!(posted.headers["rallypoint-timestamp"].parse::<i64>().is_ok(), "{posted:?}");
    }
    assert_eq!(rally.run(&["daemon", "stop"]).code, Some(0));
    assert!(daemon.wait().unwrap().success());
}
