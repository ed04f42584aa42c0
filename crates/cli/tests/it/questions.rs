//! Questions: asked once, answered once, and work goes on with the answer.

use crate::help::Rally;

fn only_question(rally: &Rally) -> String {
    let open = rally.json(&["question", "list"]);
    let items = open["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{open}");
    items[0]["questionId"].as_str().unwrap().to_owned()
}

fn only_task(rally: &Rally) -> serde_json::Value {
    let tasks = rally.json(&["task", "list"]);
    let id = tasks["items"][0]["taskId"].as_str().unwrap().to_owned();
    rally.json(&["task", "show", &id])
}

#[test]
fn an_answered_question_lets_the_same_session_go_on() {
    let rally = Rally::new();
    let first = rally.run(&["run", "say hello", "--agent", "shell", "--check", "test -s hello.txt"]);
    assert_eq!(first.code, Some(3), "{first:?}");
    let question = only_question(&rally);
    let answer = rally.run(&["question", "answer", &question, "--text", "$ echo hello > hello.txt"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    Rally::until("the task is done", || only_task(&rally)["status"] == "done");
    let task = only_task(&rally);
    assert_eq!(task["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(task["runs"].as_array().map(Vec::len), Some(2));
    let again = rally.run(&["question", "answer", &question, "--text", "$ true"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.err.contains("was closed before"), "{}", again.err);
}

#[test]
fn a_permission_is_asked_and_the_agent_gets_the_answer() {
    for (flag, words) in
        [(&["--allow"][..], "option was once"), (&["--decline", "not today"][..], "option was never")]
    {
        let rally = Rally::new();
        let first =
            rally.run(&["run", "x", "--agent-cmd", &Rally::scenario("permission"), "--check", "true"]);
        assert_eq!(first.code, Some(3), "{first:?}");
        let question = only_question(&rally);
        let mut arguments = vec!["question", "answer", question.as_str()];
        arguments.extend(flag);
        assert_eq!(rally.run(&arguments).code, Some(0));
        Rally::until("the task is done", || only_task(&rally)["status"] == "done");
        let told = crate::help::said_by(&rally.room(), "sub_agent").join("\n");
        assert!(told.to_lowercase().contains(words), "{flag:?}: {told}");
    }
}

#[test]
fn a_result_is_accepted_by_a_person_and_then_done() {
    let rally = Rally::new();
    assert_eq!(rally.run(&["run", "Go\n\n$ true", "--accept", "looks good"]).code, Some(3));
    let question = only_question(&rally);
    assert_eq!(rally.run(&["question", "answer", &question, "--accept"]).code, Some(0));
    Rally::until("the task is done", || only_task(&rally)["status"] == "done");
    assert_eq!(only_task(&rally)["reason"], "proven");
}

#[test]
fn a_declined_result_goes_back_to_its_session() {
    let rally = Rally::new();
    assert_eq!(rally.run(&["run", "Go\n\n$ true", "--accept", "looks good"]).code, Some(3));
    let question = only_question(&rally);
    assert_eq!(rally.run(&["question", "answer", &question, "--decline", "it is ugly"]).code, Some(0));
    Rally::until("it is asked again", || {
        rally.json(&["question", "list"])["items"].as_array().map(Vec::len) == Some(1)
    });
    assert_ne!(only_question(&rally), question);
    assert_eq!(only_task(&rally)["runs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn an_override_needs_a_name_and_a_reason_and_is_marked() {
    let rally = Rally::with_config("[limits]\ncorrectiveRounds = 0\n");
    assert_eq!(rally.run(&["run", "Go\n\n$ true", "--check", "false"]).code, Some(5));
    let id = only_task(&rally)["taskId"].as_str().unwrap().to_owned();
    let nameless = rally.run(&["task", "override", &id, "--accept"]);
    assert_eq!(nameless.code, Some(2), "{nameless:?}");
    let taken =
        rally.run(&["task", "override", &id, "--accept", "--by", "ada", "--reason", "the check is wrong"]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let task = only_task(&rally);
    assert_eq!((&task["status"], &task["reason"]), (&"done".into(), &"overridden".into()));
}
