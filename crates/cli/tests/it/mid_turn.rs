//! Words into a turn, with a real daemon and a real agent that takes them or refuses them.

use serde_json::Value;

use crate::help::{Rally, write};

/// A daemon that knows the agent `bob`, who takes words in his turn or is only said to.
fn rally(refuses: bool) -> Rally {
    let rally = Rally::new();
    let mut argv = vec![Rally::program(), "agent-serve", "scenario", "steerable"];
    let file = rally.path("go").display().to_string();
    if refuses {
        argv.push(&file);
    }
    let argv = serde_json::to_string(&argv).unwrap();
    let config = format!(
        "[profiles.bob]\ntitle = \"Bob\"\nargv = {argv}\nusage = \"none\"\ntakesWordsInTurn = true\n"
    );
    std::fs::write(rally.data_folder().join("rally.toml"), config).unwrap();
    rally
}

/// The task, and `bob` in conversation in his turn.
fn begin(rally: &Rally) -> String {
    let hold = Rally::scenario(&format!("waits-for-file {}", rally.path("end").display()));
    let run = ["run", "Do it", "--agent-cmd", &hold, "--check", "true", "--detach"];
    assert_eq!(rally.run(&run).code, Some(0));
    let task = rally.json(&["task", "list"])["items"][0]["taskId"].as_str().unwrap().to_owned();
    let spawn =
        ["task", "spawn", &task, "--agent", "bob", "--conversation", "--name", "bob", "--mail-mode", "steer"];
    rally.json(&spawn);
    Rally::until("bob has begun", || {
        rows(rally, &task, "agent.output").iter().any(|row| row.to_string().contains("I have begun"))
    });
    task
}

fn rows(rally: &Rally, task: &str, kind: &str) -> Vec<Value> {
    let log = rally.run(&["task", "log", task, "--json"]).lines();
    log.into_iter().filter(|row| row["kind"] == kind).collect()
}

fn steps(rally: &Rally, task: &str) -> Vec<String> {
    let rows = rows(rally, task, "session.mid_turn");
    rows.iter().map(|row| row["data"]["step"].as_str().unwrap().to_owned()).collect()
}

fn of_bob(rally: &Rally, task: &str) -> Vec<Value> {
    let view = rally.json(&["task", "show", task]);
    let session =
        view["sessions"].as_array().unwrap().iter().find(|it| it["label"] == "bob").unwrap().clone();
    let runs = view["runs"].as_array().unwrap().clone();
    runs.into_iter().filter(|run| run["sessionId"] == session["sessionId"]).collect()
}

fn say(rally: &Rally, words: &str) {
    assert_eq!(rally.run(&["room", "say", "main", words]).code, Some(0));
}

#[test]
fn words_reach_an_agent_in_its_turn_and_make_no_other() {
    let rally = rally(false);
    let task = begin(&rally);
    say(&rally, "@bob look at the dog");
    say(&rally, "@bob now finish");
    Rally::until("bob has ended his turn", || of_bob(&rally, &task)[0]["outcome"] == "completed");
    assert_eq!(steps(&rally, &task), ["given", "taken", "given", "taken"]);
    assert_eq!(of_bob(&rally, &task).len(), 1);
    let told = rows(&rally, &task, "message.posted")
        .iter()
        .filter(|row| row.to_string().contains("followup"))
        .count();
    assert_eq!(told, 0);
    write(&rally.path("end"), "");
}

#[test]
fn words_that_an_agent_refuses_in_its_turn_come_after_it_and_that_is_told() {
    let rally = rally(true);
    let task = begin(&rally);
    say(&rally, "@bob look at the dog");
    Rally::until("bob has refused", || steps(&rally, &task).len() == 2);
    assert_eq!(steps(&rally, &task), ["given", "returned"]);
    write(&rally.path("go"), "");
    Rally::until("bob is in another turn", || of_bob(&rally, &task).len() == 2);
    let room = rally.room();
    let told =
        |word: &str| room.iter().filter(|it| it["text"].as_str().unwrap_or_default().contains(word)).count();
    assert_eq!(told("`bob` refuses it: -32600: a prompt is open."), 1, "{room:?}");
    let prompts = rows(&rally, &task, "generation.input");
    let said = |kind: &str| {
        let dog = |row: &&Value| {
            row["data"]["input"]["kind"] == kind && row.to_string().contains("look at the dog")
        };
        prompts.iter().filter(dog).count()
    };
    assert_eq!((said("steer"), said("prompt")), (1, 1));
    write(&rally.path("end"), "");
}
