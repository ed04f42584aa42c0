//! What agents used: by run, added up, in money, and against a budget.

use std::process::Stdio;

use crate::help::{Rally, write};

/// An agent that says what it uses in this way; it counts as `kind` says.
fn spending(way: &str, kind: &str) -> Rally {
    let argv: Vec<String> =
        Rally::scenario(&format!("spends {way} file")).split(' ').map(|word| format!("\"{word}\"")).collect();
    Rally::with_config(&format!(
        "[profiles.careful]\nargv = [{}]\nusage = \"{kind}\"\ntrustsLoad = true\n",
        argv.join(", ")
    ))
}

/// An agent that counts over its whole conversation, with prices for its model: 0.11 USD a prompt.
fn accounting(model: &str) -> Rally {
    let argv: Vec<String> =
        Rally::scenario(&format!("accounts {model}")).split(' ').map(|word| format!("\"{word}\"")).collect();
    Rally::with_config(&format!(
        "[prices.\"mock-1\"]\ninput = \"1000\"\noutput = \"1000\"\n\
         [profiles.careful]\nargv = [{}]\nusage = \"cumulative\"\n",
        argv.join(", ")
    ))
}

#[test]
fn a_count_of_the_whole_conversation_is_taken_apart_into_its_runs() {
    let rally = accounting("provider/mock-1");
    // The check fails, so the same conversation is prompted four times.
    let ended = rally.run(&["run", "Do it", "--agent", "careful", "--check", "false", "--json"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let task = ended.result()["taskId"].as_str().unwrap().to_owned();
    let shown = rally.json(&["task", "show", &task]);
    let used = &shown["used"];
    assert_eq!(used["runs"], 4, "{used}");
    assert_eq!((&used["tokens"]["input"], &used["tokens"]["output"]), (&400.into(), &40.into()));
    assert_eq!((&used["unknownRuns"], &used["estimatedRuns"]), (&0.into(), &0.into()));
    assert_eq!((&used["cost"][0]["currency"], &used["cost"][0]["micros"]), (&"USD".into(), &440_000.into()));
    assert_eq!(used["byModel"][0]["model"], "provider/mock-1");
    let session = &shown["sessions"][0];
    assert_eq!(session["usage"]["value"]["input"], 400, "{session}");
    assert_eq!((&session["context"]["used"], &session["context"]["size"]), (&400.into(), &1_000.into()));
    let text = rally.run(&["task", "show", &task]).out;
    assert!(text.contains("used      440 tokens, 0.44 USD"), "{text}");
    // The whole installation, the room and the day of the task say the same; another day says nothing.
    let whole = rally.json(&["usage"]);
    assert_eq!(whole, rally.json(&["usage", "--room", "main"]));
    assert_eq!(&whole, used);
    assert_eq!(rally.json(&["usage", "--day", "2001-01-01"])["runs"], 0);
}

#[test]
fn without_a_price_the_agents_own_account_counts_and_says_so() {
    let rally = accounting("nobody-knows");
    let ended = rally.run(&["run", "Do it", "--agent", "careful", "--check", "true", "--json"]);
    let task = ended.result()["taskId"].as_str().unwrap().to_owned();
    let used = rally.json(&["task", "show", &task])["used"].clone();
    assert_eq!((&used["cost"][0]["micros"], &used["agentCostRuns"]), (&250_000.into(), &1.into()));
    let log = rally.run(&["task", "log", &task, "--json"]).out;
    assert!(log.contains("no price of the model `nobody-knows` is known"), "{log}");
}

#[test]
fn money_that_is_used_up_starts_no_further_run_and_is_named() {
    let rally = accounting("mock-1");
    let budget = ["--budget-cost", "0.20USD"];
    let ended = rally
        .run(&[&["run", "Do it", "--agent", "careful", "--check", "false", "--json"][..], &budget].concat());
    let result = ended.result();
    let started = result["runs"].as_array().unwrap().iter().filter(|run| !run["startedAt"].is_null()).count();
    assert_eq!(started, 2, "0.11 and 0.22 USD: {result}");
    let told = crate::help::said_by(&rally.room(), "main_agent").join("\n");
    assert!(told.contains("`budget.cost` is used up (0.22/0.20)"), "{told}");
}

#[test]
fn a_cost_that_is_not_known_can_be_refused() {
    for (more, runs) in [(&[][..], 4), (&["--refuse-unknown-cost"][..], 1)] {
        let rally = Rally::new();
        let agent = Rally::scenario("good");
        let run = ["run", "Do it", "--agent-cmd", &agent, "--check", "false", "--budget-cost", "1", "--json"];
        let ended = rally.run(&[&run[..], more].concat());
        let result = ended.result();
        let all = result["runs"].as_array().unwrap();
        let started = all.iter().filter(|run| !run["startedAt"].is_null()).count();
        assert_eq!(started, runs, "{more:?}: {result}");
    }
}

#[test]
fn after_its_process_restarts_no_turn_is_free_no_old_number_counts_and_a_guess_is_marked() {
    let rally = spending("cut", "cumulative");
    let ended = rally.run(&["run", "Do it", "--agent", "careful", "--check", "false"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    // The process is cut off in its second turn; the next one tells the numbers of both while it loads the conversation.
    let whole = rally.json(&["usage"]);
    assert_eq!(
        (&whole["runs"], &whole["unknownRuns"], &whole["estimatedRuns"]),
        (&5.into(), &0.into(), &1.into())
    );
    assert_eq!((&whole["tokens"]["input"], &whole["tokens"]["output"]), (&500.into(), &50.into()), "{whole}");
    assert_eq!(
        (&whole["cost"][0]["micros"], &whole["agentCostRuns"]),
        (&1_250_000.into(), &5.into()),
        "{whole}"
    );
    assert_eq!((&whole["tokensQuality"], &whole["costQuality"]), (&"estimated".into(), &"measured".into()));
    let said = format!("{}{}", ended.out, ended.err);
    assert_eq!(said.matches("used 110 tokens, 0.25 USD").count(), 4, "{said}");
    assert_eq!(said.matches("used ~110 tokens, 0.25 USD").count(), 1, "{said}");
    let text = rally.run(&["usage"]).out;
    assert!(text.contains("~550 tokens, 1.25 USD"), "{text}");
    let task = rally.json(&["task", "list"])["items"][0]["taskId"].as_str().unwrap().to_owned();
    let shown = rally.run(&["task", "show", &task]).out;
    assert!(shown.contains("used      ~550 tokens, 1.25 USD"), "{shown}");
}

#[test]
fn what_a_turn_used_before_the_daemon_was_killed_is_not_lost() {
    let rally = spending("calls", "per_turn");
    let serve = || {
        let mut serve = rally.command(&["serve"]);
        let daemon = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Rally::until("it listens", || rally.run(&["daemon", "status"]).code == Some(0));
        daemon
    };
    let mut daemon = serve();
    let started = rally.run(&["run", "Do it", "--agent", "careful", "--check", "true", "--detach", "--json"]);
    let task = started.result()["taskId"].as_str().unwrap().to_owned();
    let log = || rally.run(&["task", "log", &task, "--json"]).out;
    Rally::until("the first call is told", || log().contains("run.counted"));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let mut daemon = serve();
    write(&rally.path("file"), "go on");
    Rally::until("the task is done", || rally.json(&["task", "show", &task])["status"] == "done");
    let used = rally.json(&["task", "show", &task])["used"].clone();
    assert_eq!((&used["tokens"]["input"], &used["tokens"]["output"]), (&200.into(), &20.into()), "{used}");
    assert_eq!((&used["runs"], &used["tokensQuality"]), (&1.into(), &"measured".into()), "{used}");
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn a_turn_that_fails_has_used_the_tokens_that_it_names() {
    for way in ["error", "failure"] {
        let rally = spending(way, "per_turn");
        let ended = rally.run(&["run", "Do it", "--agent", "careful", "--check", "true", "--json"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let used = rally.json(&["usage"]);
        assert_eq!((&used["runs"], &used["unknownRuns"]), (&1.into(), &0.into()), "{way}: {used}");
        assert_eq!((&used["tokens"]["input"], &used["tokens"]["output"]), (&100.into(), &10.into()), "{way}");
    }
}
