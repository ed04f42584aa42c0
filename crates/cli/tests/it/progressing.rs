//! Progress posts from outside: a real daemon, a real HTTP server, an agent that is held up while we look.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use rallypoint_testkit::{Keys, LoopbackChannel, Skills, Standing};

use crate::help::{Rally, write};

/// As soon as something can be said, it is said.
const LIMITS: &str = "[limits]\nprogressFirstMs = 1\nprogressEveryMs = 1\ndeliveryBackoffMs = 5\n";
const ALL: Skills = Skills { edits: true, threads: true };

fn platform(keys: Keys, skills: Skills) -> (LoopbackChannel, Rally) {
    let channel = LoopbackChannel::with_skills(keys, skills).unwrap();
    let rally = Rally::with_config(&format!("{LIMITS}{}", channel.config("hook")));
    (channel, rally)
}

fn room(rally: &Rally, more: &[&str]) -> String {
    let words = ["room", "create", "--channel", "hook", "--peer", "team"];
    let room = rally.json(&[&words[..], more].concat());
    room["roomId"].as_str().unwrap().to_owned()
}

/// Work that hangs until [`let_go`].
fn begin(rally: &Rally, room: &str, more: &[&str]) -> Child {
    let gate = rally.path("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let goal = format!("Say so\n\n$ cat {}", gate.display());
    let words = ["run", &goal, "--agent", "shell", "--check", "true", "--room", room];
    let mut run = rally.command(&[&words[..], &["--platform-message", "m1"], more].concat());
    run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn let_go(rally: &Rally, mut run: Child) {
    // A pipe is opened for writing only when the agent reads it, so this also waits for the agent.
    write(&rally.path("gate"), "ready\n");
    assert_eq!(run.wait().unwrap().code(), Some(0));
}

fn transient(channel: &LoopbackChannel) -> Vec<Standing> {
    channel.standing().into_iter().filter(|post| post.transient).collect()
}

fn lasting(channel: &LoopbackChannel) -> Vec<String> {
    let first = |post: Standing| post.text.lines().next().unwrap_or_default().to_owned();
    channel.standing().into_iter().filter(|post| !post.transient).map(first).collect()
}

fn until_told(channel: &LoopbackChannel) {
    Rally::until("the end is told", || lasting(channel).len() == 2);
    assert_eq!(lasting(channel), ["Started `shell`.", "Ran 1 command:"]);
}

#[test]
fn compact_shows_one_post_that_follows_the_work_and_ends_with_it() {
    let (channel, rally) = platform(Keys::Ignored, ALL);
    let room = room(&rally, &[]);
    let run = begin(&rally, &room, &[]);
    let shows = |words: &str| transient(&channel).iter().any(|post| post.text.contains(words));
    Rally::until("the tool is shown", || shows("- shell (shell) works, 1 tool call, now `"));
    let_go(&rally, run);
    until_told(&channel);
    Rally::until("the post says how it ended", || shows("Say so: done"));
    let posts = transient(&channel);
    assert_eq!(posts.len(), 1, "{posts:?}");
    assert!(posts[0].edits > 0 && posts[0].under.is_none(), "{posts:?}");
    // It is no message: neither the room nor a search has it.
    let shown = rally.run(&["room", "show", &room, "--all"]);
    assert!(shown.out.contains("Started `shell`.") && !shown.out.contains("tool call"), "{shown:?}");
    let found = rally.run(&["search", "\"tool call\"", "--json"]);
    assert!(!found.out.contains("tool call, now"), "{found:?}");
    assert_eq!(rally.json(&["delivery", "list", "--all"])["items"].as_array().unwrap().len(), 2);
}

#[test]
fn threaded_posts_stand_under_the_message_that_asked() {
    let (channel, rally) = platform(Keys::Ignored, ALL);
    let room = room(&rally, &["--progress", "threaded"]);
    let run = begin(&rally, &room, &[]);
    let shows = |words: &str| transient(&channel).iter().any(|post| post.text.contains(words));
    Rally::until("the tool is shown", || shows(", now `"));
    let_go(&rally, run);
    until_told(&channel);
    let posts = transient(&channel);
    assert!(posts.iter().all(|post| post.under.as_deref() == Some("m1") && post.edits == 0), "{posts:?}");
    let texts: std::collections::BTreeSet<&str> = posts.iter().map(|post| post.text.as_str()).collect();
    assert_eq!(texts.len(), posts.len(), "nothing is said twice: {posts:?}");
}

#[test]
fn silent_by_room_by_task_and_by_a_channel_that_can_not_edit() {
    let none = Skills::default();
    for (skills, of_room, of_task) in [
        (ALL, "silent", None),
        (ALL, "compact", Some("silent")),
        (none, "compact", None),
        (none, "threaded", None),
    ] {
        let (channel, rally) = platform(Keys::Ignored, skills);
        let room = room(&rally, &[]);
        let set = rally.json(&["room", "progress", &room, of_room]);
        assert_eq!(set["progress"], of_room);
        let more = of_task.map_or_else(Vec::new, |mode| vec!["--progress", mode]);
        let run = begin(&rally, &room, &more);
        let_go(&rally, run);
        until_told(&channel);
        assert_eq!(transient(&channel), [], "{of_room} {of_task:?}");
    }
}

#[test]
fn a_daemon_that_is_killed_between_edits_leaves_one_post() {
    // Killed before or after the channel has the post, or the first edit of it.
    for (keys, point, posts) in [
        (Keys::Taken, "progress:offered:1", 1),
        (Keys::Taken, "progress:sent:1", 1),
        (Keys::Ignored, "progress:sent:1", 1),
        (Keys::Ignored, "progress:offered:1", 0),
        (Keys::Ignored, "progress:offered:2", 1),
        (Keys::Ignored, "progress:sent:2", 1),
    ] {
        let (channel, rally) = platform(keys, ALL);
        let mut serve = rally.command(&["serve"]);
        serve.env("RALLY_FAULT_POINT", point).stdout(Stdio::null()).stderr(Stdio::null());
        let mut daemon = serve.spawn().unwrap();
        Rally::until("it listens", || rally.run(&["daemon", "status"]).code == Some(0));
        let room = room(&rally, &[]);
        let run = begin(&rally, &room, &[]);
        let_go(&rally, run);
        assert_eq!(daemon.wait().unwrap().signal(), Some(9), "{point} was not passed");
        until_told(&channel);
        let what = format!("{keys:?} {point}");
        let lost = keys == Keys::Ignored && point.ends_with(":1");
        if !lost {
            let ended = || transient(&channel).iter().any(|post| post.text.starts_with("Say so: done"));
            Rally::until("the post says how it ended", ended);
        }
        assert_eq!(transient(&channel).len(), posts, "{what}: {:?}", transient(&channel));
    }
}

#[test]
fn who_is_active_in_a_room_is_shown_as_its_main_agent_gets_it() {
    let (_channel, rally) = platform(Keys::Ignored, ALL);
    let room = room(&rally, &["--progress", "silent"]);
    let run = begin(&rally, &room, &[]);
    let list = || rally.json(&["agents", "active", "--room", &room]);
    Rally::until("its tool runs", || list()["sessions"][0]["status"] == "tool_running");
    let (text, made) = (list()["text"].as_str().unwrap().to_owned(), list()["renderedLines"].clone());
    assert!(
        text.starts_with("## Active sub-agent sessions\n") && text.contains("- [shell] sessionId="),
        "{text}"
    );
    assert!(text.contains(" agentType=shell status=active workdir=…") && !text.ends_with('\n'), "{text}");
    assert_eq!(made, 1, "the way from start to tool makes one line");
    assert_eq!(rally.json(&["agents", "active"])["text"], "", "it works for another room");
    let_go(&rally, run);
    Rally::until("nobody is active", || list()["text"] == "");
}
