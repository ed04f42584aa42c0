//! Two commands at once, a daemon that ends, and folders that go away.

use std::process::Stdio;

use crate::help::Rally;

#[test]
fn two_first_commands_at_once_share_one_daemon() {
    let rally = Rally::new();
    let children: Vec<_> = (0..4)
        .map(|number| {
            let goal = format!("Go\n\n$ echo {number} > {number}.txt");
            rally
                .command(&["run", &goal, "--agent", "shell", "--check", &format!("test -s {number}.txt")])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    // Those that lost the race end once they have waited for the folder.
    Rally::until("one daemon is left", || rally.data.daemons().len() == 1);
    let tasks = rally.json(&["task", "list"]);
    assert_eq!(tasks["items"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_daemon_whose_folder_is_gone_ends() {
    let rally = Rally::new();
    let data = rally.path("data").display().to_string();
    assert_eq!(rally.run(&["--data", &data, "run", "Go\n\n$ true", "--check", "true"]).code, Some(0));
    let status = rally.json(&["--data", &data, "daemon", "status"]);
    let pid = status["pid"].as_u64().unwrap();
    // The daemon may be writing a transcript into it at this moment.
    Rally::until("the folder is removed", || {
        std::fs::remove_dir_all(&data).is_ok() || !std::path::Path::new(&data).exists()
    });
    let folder = format!("/proc/{pid}");
    Rally::until("the daemon has ended", || {
        let stat = std::fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    });
}

#[test]
fn what_a_stopped_daemon_knew_is_there_after_the_next_start() {
    let rally = Rally::new();
    assert_eq!(rally.run(&["run", "Go\n\n$ true", "--check", "true"]).code, Some(0));
    let before = rally.room();
    assert_eq!(rally.run(&["daemon", "stop"]).code, Some(0));
    Rally::until("the daemon has ended", || rally.data.daemons().is_empty());
    assert_eq!(rally.room(), before);
}
