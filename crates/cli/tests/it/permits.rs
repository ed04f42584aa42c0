//! Requests for permission, from outside: several at once, over crashes, too late, and answered by whom.

use std::path::Path;

use rallypoint_model::agent_io::AgentInput;
use rallypoint_model::event::Event;
use rallypoint_testkit::{DaemonProcess, Journal};
use serde_json::Value;

use crate::help::{Ended, Rally, said_by, write};

/// A daemon that stays until it is killed.
fn daemon(rally: &Rally) -> DaemonProcess {
    let mut daemon = DaemonProcess::spawn(Path::new(Rally::program()), &rally.data, None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(daemon.ready()).unwrap();
    daemon
}

fn start(rally: &Rally, scenario: &str, more: &[&str]) -> String {
    let agent = Rally::scenario(scenario);
    let arguments = ["run", "Ask", "--agent-cmd", &agent, "--check", "true", "--detach", "--json"];
    rally.run(&[&arguments[..], more].concat()).result()["taskId"].as_str().unwrap().to_owned()
}

/// Open questions as what they are about and their id.
fn open(rally: &Rally) -> Vec<(String, String)> {
    let list = rally.json(&["question", "list"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = list["items"].as_array().unwrap().iter();
    let mut open: Vec<_> =
        items.map(|item| (text(&item["question"]["title"]), text(&item["questionId"]))).collect();
    open.sort();
    open
}

fn open_of(rally: &Rally, count: usize) -> Vec<(String, String)> {
    Rally::until("every request is a question", || open(rally).len() == count);
    open(rally)
}

fn status(rally: &Rally, task: &str) -> Value {
    rally.json(&["task", "show", task])["status"].clone()
}

fn answer(rally: &Rally, question: &str, arguments: &[&str]) -> Ended {
    rally.run(&[&["question", "answer", question], arguments].concat())
}

/// What the agent heard, in the order of its requests.
fn heard(rally: &Rally) -> Vec<String> {
    let text = std::fs::read_to_string(rally.path("answers")).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn canaries(rally: &Rally) -> Vec<u32> {
    (0..9).filter(|number| rally.path(&format!("ran-{number}")).exists()).collect()
}

#[test]
fn requests_that_are_open_over_kills_are_each_answered_by_kind_and_id() {
    let rally = Rally::new();
    let mut first = daemon(&rally);
    let task = start(&rally, "permits 4", &[]);
    let before = open_of(&rally, 4);
    let titles: Vec<&str> = before.iter().map(|(title, _)| title.as_str()).collect();
    assert_eq!(titles, ["write ran-0", "write ran-1", "write ran-2", "write ran-3"]);
    first.kill9().unwrap();
    let mut second = daemon(&rally);
    assert_eq!(open_of(&rally, 4), before, "the same questions, none twice");
    // Not in the order in which they were asked.
    assert_eq!(answer(&rally, &before[2].1, &["--allow"]).code, Some(0));
    assert_eq!(answer(&rally, &before[0].1, &["--decline", "no"]).code, Some(0));
    second.kill9().unwrap();
    let _third = daemon(&rally);
    let left = open_of(&rally, 2);
    assert_eq!(left, [before[1].clone(), before[3].clone()]);
    let foreign = answer(&rally, &left[0].1, &["--option", "x-3"]);
    assert!(foreign.err.contains("`x-3` is none of the options"), "{foreign:?}");
    assert_eq!(answer(&rally, &left[1].1, &["--option", "y-3"]).code, Some(0));
    assert_eq!(answer(&rally, &left[0].1, &["--allow"]).code, Some(0));
    Rally::until("the task is done", || status(&rally, &task) == "done");
    assert_eq!(heard(&rally), ["0 z-0", "1 x-1", "2 x-2", "3 y-3"], "each request heard one answer");
    assert_eq!(canaries(&rally), [1, 2, 3]);
}

#[test]
fn a_stop_answers_every_open_request_with_cancelled_and_runs_nothing() {
    let rally = Rally::with_config("[limits]\ncancelGraceMs = 20000\n");
    let task = start(&rally, "permits 3", &[]);
    let questions = open_of(&rally, 3);
    assert_eq!(rally.run(&["task", "stop", &task]).code, Some(0));
    Rally::until("the task has ended", || {
        let status = status(&rally, &task);
        status == "interrupted" || status == "done" || status == "failed"
    });
    assert_eq!(status(&rally, &task), "interrupted");
    assert_eq!(heard(&rally), ["0 cancelled", "1 cancelled", "2 cancelled"]);
    for (_, question) in &questions {
        let late = answer(&rally, question, &["--allow"]);
        assert_eq!(late.code, Some(1), "{late:?}");
        assert!(late.err.contains("taken back by the stop of its run by"), "{late:?}");
    }
    assert_eq!(canaries(&rally), Vec::<u32>::new());
}

#[test]
fn a_request_that_outlives_its_prompt_is_cancelled_and_a_late_answer_says_by_what_and_runs_nothing() {
    let rally = Rally::new();
    let task = start(&rally, "permits 2 leaves", &[]);
    let questions = open_of(&rally, 2);
    write(&rally.path("leave"), "go");
    Rally::until("the task is done", || status(&rally, &task) == "done");
    assert_eq!(open(&rally), []);
    let cancelled = Journal::read(&rally.data.database()).unwrap().events.into_iter().filter(|record| {
        matches!(
            &record.event,
            Event::GenerationInput { input: AgentInput::AnswerPermission { option_id: None, .. }, .. }
        )
    });
    assert_eq!(cancelled.count(), 2);
    let late = answer(&rally, &questions[0].1, &["--allow"]);
    assert_eq!(late.code, Some(1), "{late:?}");
    for words in ["was closed before", "by the end of its prompt at 20", " UTC", "answered `cancelled`"] {
        assert!(late.err.contains(words), "`{words}` is not in {late:?}");
    }
    assert_eq!(canaries(&rally), Vec::<u32>::new());
}

#[test]
fn a_request_that_nobody_answers_in_time_is_rejected_and_the_work_goes_on() {
    let rally = Rally::with_config("[limits]\npermissionDeadlineMinutes = 0\n");
    let task = start(&rally, "permits 2", &[]);
    Rally::until("the task is done", || status(&rally, &task) == "done");
    assert_eq!(heard(&rally), ["0 z-0", "1 z-1"], "the agent's own option for a no, wherever it stands");
    assert_eq!(canaries(&rally), Vec::<u32>::new());
    let journal = Journal::read(&rally.data.database()).unwrap();
    let question = journal.events.iter().find_map(|record| match &record.event {
        Event::QuestionOpened { question_id, .. } => Some(question_id.to_string()),
        _ => None,
    });
    let late = answer(&rally, &question.unwrap(), &["--allow"]);
    assert!(late.err.contains("its deadline"), "{late:?}");
}

#[test]
fn a_person_is_told_which_rule_or_default_asked() {
    let config = "[[permissions.rules]]\neffect = \"ask\"\ntools = [\"execute\"]\n";
    for (config, words, layer) in [
        ("", "`standard`: execute a dangerous or unreadable command (configuration)", "configuration"),
        (config, "rule 1: ask tools execute (configuration)", "configuration"),
    ] {
        let rally = Rally::with_config(config);
        let task = start(&rally, "permits 1", &[]);
        let question = open_of(&rally, 1).remove(0).1;
        let expected = format!("asked by {words}");
        let text = rally.run(&["question", "list"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&expected), "{text}");
        let shown = rally.run(&["task", "show", &task]).out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(&expected), "{shown}");
        let json = rally.json(&["question", "list"])["items"][0]["question"]["because"].clone();
        assert_eq!(
            (&json["layer"], format!("{} ({layer})", json["rule"].as_str().unwrap())),
            (&layer.into(), words.to_owned())
        );
        let room = said_by(&rally.room(), "main_agent").join("\n");
        assert!(room.contains(&format!("Asked by {words}.")), "{room}");
        assert_eq!(answer(&rally, &question, &["--decline", "no"]).code, Some(0));
        Rally::until("the task is done", || status(&rally, &task) == "done");
    }
}

#[test]
fn the_main_agent_answers_a_request_once_and_never_for_more_than_one_call() {
    let rally = Rally::new();
    let task = start(&rally, "permits 2", &[]);
    let questions = open_of(&rally, 2);
    let always = answer(&rally, &questions[0].1, &["--option", "y-0", "--as", "main"]);
    assert_eq!(always.code, Some(1), "{always:?}");
    assert!(always.err.contains("more than this one call"), "{always:?}");
    assert_eq!(answer(&rally, &questions[0].1, &["--allow", "--as", "main"]).code, Some(0));
    let again = answer(&rally, &questions[0].1, &["--decline", "no"]);
    assert!(again.err.contains("answered by the main agent at "), "{again:?}");
    assert_eq!(answer(&rally, &questions[1].1, &["--decline", "no", "--as", "main"]).code, Some(0));
    Rally::until("the task is done", || status(&rally, &task) == "done");
    assert_eq!((heard(&rally), canaries(&rally)), (vec!["0 x-0".to_owned(), "1 z-1".to_owned()], vec![0]));
}
