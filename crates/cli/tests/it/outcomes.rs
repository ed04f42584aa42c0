//! Whole runs with the built-in `shell` agent, and what they exit with.

use serde_json::Value;

use crate::help::{Rally, said_by};

#[test]
fn a_task_ends_done_with_evidence_newer_than_its_run() {
    let rally = Rally::new();
    let goal = "Write the date\n\n$ date > out.txt";
    let ended = rally.run(&["run", goal, "--agent", "shell", "--check", "test -s out.txt", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result = ended.result();
    assert_eq!(result["kind"], "task.result");
    assert_eq!(result["status"], "done");
    assert_eq!(result["reason"], "proven");
    assert_eq!(result["exitCode"], 0);
    let evidence = &result["evidence"][0];
    assert_eq!(evidence["procedure"], "test -s out.txt");
    assert_eq!(evidence["exitCode"], 0);
    let run_ended = result["runs"][0]["endedAt"].as_i64().unwrap();
    assert!(evidence["endedAt"].as_i64().unwrap() >= run_ended);
    assert!(evidence["startedAt"].as_i64().unwrap() >= run_ended);
    assert!(rally.path("out.txt").exists());
    let seqs: Vec<i64> = ended.lines().iter().filter_map(|line| line["seq"].as_i64()).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
}

#[test]
fn a_claim_without_work_is_sent_back_three_times_and_exits_5() {
    let rally = Rally::new();
    let ended = rally.run(&[
        "run",
        "Make it so",
        "--agent-cmd",
        &Rally::scenario("claims"),
        "--check",
        "test -s never.txt",
        "--json",
    ]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let result = ended.result();
    assert_eq!(result["status"], "waiting_on_user");
    let purposes: Vec<&Value> =
        result["runs"].as_array().unwrap().iter().map(|run| &run["purpose"]).collect();
    assert_eq!(purposes, ["goal", "corrective", "corrective", "corrective"]);
    let sessions: std::collections::BTreeSet<String> =
        result["runs"].as_array().unwrap().iter().map(|run| run["sessionId"].to_string()).collect();
    assert_eq!(sessions.len(), 1, "every round goes to the same session");
}

#[test]
fn a_failing_command_exits_1_and_the_room_names_it_and_its_exit_code() {
    let rally = Rally::new();
    let ended = rally.run(&["run", "Fail\n\n$ false", "--agent", "shell", "--check", "true"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let told = said_by(&rally.room(), "sub_agent").join("\n");
    assert!(told.contains("`false` exited with 1"), "{told}");
    assert!(told.starts_with("[sub-agent: shell (shell) — error]"), "{told}");
}

#[test]
fn a_goal_without_commands_is_asked_back_and_exits_3() {
    let rally = Rally::new();
    let ended = rally.run(&["run", "say hello", "--agent", "shell"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let room = rally.room();
    let blocked: Vec<&Value> =
        room.iter().filter(|message| message["metadata"]["subAgentEvent"] == "blocked").collect();
    assert_eq!(blocked.len(), 1);
    assert_eq!(blocked[0]["metadata"]["subAgentRoutingKind"], "QUESTION_FOR_TASK_CREATOR");
}

#[test]
fn a_task_that_takes_too_long_exits_4_and_leaves_nothing_running() {
    let rally = Rally::new();
    let ended = rally.run(&["run", "Wait\n\n$ sleep 300", "--agent", "shell", "--timeout", "500ms"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    Rally::until("every process is gone", || rally.data.agent_processes().is_empty());
}

#[test]
fn the_same_result_unchecked_is_done_and_says_so() {
    let rally = Rally::new();
    let ended = rally.run(&["run", "Go\n\n$ true", "--agent", "shell", "--unchecked", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.result()["reason"], "unchecked");
    let told = said_by(&rally.room(), "main_agent").join("\n");
    assert!(told.contains("unchecked"), "{told}");
}

#[test]
fn without_criteria_a_person_is_asked_and_exit_is_3() {
    let rally = Rally::new();
    let ended = rally.run(&["run", "Go\n\n$ true", "--agent", "shell", "--json"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let result = ended.result();
    assert_eq!(result["status"], "waiting_on_user");
    assert_eq!(result["reason"], "acceptance_asked");
}

#[test]
fn a_routed_message_carries_the_metadata_of_the_contract() {
    let rally = Rally::new();
    rally.run(&["run", "Go\n\n$ true", "--agent", "shell", "--check", "true"]);
    let room = rally.room();
    let routed: Vec<&Value> = room.iter().filter(|message| message["metadata"]["subAgent"] == true).collect();
    assert_eq!(routed.len(), 1);
    let metadata = &routed[0]["metadata"];
    assert_eq!(routed[0]["source"], "sub_agent");
    assert_eq!(metadata["subAgentEvent"], "task_complete");
    assert_eq!(metadata["subAgentStatus"], "completed");
    assert_eq!(metadata["subAgentRoutingKind"], "TASK_STATUS");
    assert_eq!(metadata["subAgentRoundTrip"], 1);
    assert_eq!(metadata["subAgentRoundTripCap"], 32);
    assert_eq!(metadata["subAgentTargetRoomRoles"], serde_json::json!(["task"]));
    assert_eq!(metadata["originMessageId"], routed[0]["inReplyTo"]);
    assert_eq!(metadata["taskRoomId"], routed[0]["roomId"]);
    let user = room.iter().find(|message| message["speaker"] == "user").unwrap();
    assert_eq!(metadata["originMessageId"], user["id"]);
    assert_ne!(routed[0]["entityId"], user["entityId"]);
}

#[test]
fn a_result_stays_readable_by_its_run() {
    let rally = Rally::new();
    let ended = rally.run(&["run", "Go\n\n$ echo 42", "--agent", "shell", "--check", "true", "--json"]);
    let run = ended.result()["runs"][0]["runId"].as_str().unwrap().to_owned();
    let result = rally.json(&["result", "get", &run]);
    assert!(result["text"].as_str().unwrap().contains("`echo 42` exited with 0"), "{result}");
    let bytes = result["text"].as_str().unwrap().len();
    assert_eq!(result["result"]["bytes"].as_u64(), Some(bytes as u64));
}
