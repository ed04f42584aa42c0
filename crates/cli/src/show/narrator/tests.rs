use serde_json::{Value, json};

use super::*;

const TASK: &str = "0198a000-0000-7000-8000-000000000001";
const SESSION: &str = "0198a000-0000-7000-8000-000000000002";
const RUN: &str = "0198a000-0000-7000-8000-000000000003";
const GENERATION: &str = "0198a000-0000-7000-8000-000000000004";
const OTHER: &str = "0198a000-0000-7000-8000-000000000005";

fn record(at: i64, kind: &str, data: Value) -> EventRecord {
    serde_json::from_value(json!({
        "seq": 1, "at": at, "aggregate": "session", "aggregateId": SESSION, "version": 1, "schema": 1,
        "kind": kind, "data": data,
    }))
    .unwrap()
}

fn output(at: i64, output: Value) -> EventRecord {
    let data =
        json!({"generationId": GENERATION, "firstFrame": 1, "lastFrame": 1, "late": false, "output": output});
    record(at, "agent.output", data)
}

fn begun() -> Narrator {
    let mut narrator = Narrator::default();
    let launch = json!({
        "agentId": "shell", "profile": "shell", "label": "notes", "task": null, "argv": ["rally"], "environment": [],
        "secretNames": [], "usageKind": "none", "loginHint": "", "setupTimeoutMs": null,
    });
    let session = json!({
        "sessionId": SESSION, "sessionKey": "k", "sessionKind": "sub_agent", "taskId": TASK, "roomId": null,
        "entityId": OTHER, "launch": launch, "origin": null,
    });
    let told = texts(narrator.tell(&record(0, "session.created", session)));
    assert_eq!(told, ["notes: joins as `shell`"]);
    let run = json!({
        "runId": RUN, "sessionId": SESSION, "predecessor": null, "purpose": "goal", "blocks": [],
        "triggerMessageId": null,
    });
    assert!(narrator.tell(&record(0, "run.queued", run)).is_empty());
    let generation = json!({"generationId": GENERATION, "sessionId": SESSION, "runId": RUN});
    assert!(narrator.tell(&record(0, "generation.started", generation)).is_empty());
    narrator
}

fn texts(lines: Vec<Line>) -> Vec<String> {
    lines.into_iter().map(|line| format!("{}: {}", line.who, line.text)).collect()
}

fn ended(outcome: &str, reason: Value) -> EventRecord {
    let data = json!({
        "runId": RUN, "outcome": outcome, "reason": reason, "result": null, "claim": null, "summary": "", "lastFrame": 1,
    });
    record(9_000, "run.ended", data)
}

#[test]
fn words_in_pieces_become_whole_lines() {
    let mut narrator = begun();
    let mut told = Vec::new();
    for piece in ["Hel", "lo\nI am ", "do\u{1b}[1mne"] {
        told.extend(texts(narrator.tell(&output(1, json!({"kind": "message", "text": piece})))));
    }
    assert_eq!(told, ["notes: Hello"]);
    let told = texts(narrator.tell(&ended("completed", json!({"kind": "end_turn"}))));
    assert_eq!(told, ["notes: I am done", "notes: says that it is finished"]);
}

#[test]
fn a_tool_call_is_told_when_it_begins_and_when_it_ends() {
    let mut narrator = begun();
    let call = |status: &str, more: Value| {
        let mut call = json!({"toolCallId": "t1", "status": status});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    let first = call("in_progress", json!({"title": "date > out.txt", "toolKind": "execute"}));
    let told = texts(narrator.tell(&output(1_000, json!({"kind": "tool_call", "call": first}))));
    assert_eq!(told, ["notes: ▸ $ date > out.txt"]);
    let last = call("failed", json!({"text": "one\ntwo\nsh: no\n"}));
    let last = json!({"kind": "tool_call_update", "call": last});
    let told = texts(narrator.tell(&output(3_500, last.clone())));
    assert_eq!(
        told,
        ["notes: failed after 2.5 s: $ date > out.txt", "notes:   one", "notes:   two", "notes:   sh: no"]
    );
    assert!(narrator.tell(&output(4_000, last)).is_empty());
}

#[test]
fn checks_and_ends_are_told_with_their_reasons() {
    let mut narrator = begun();
    let evidence = json!([{
        "id": OTHER, "criterionId": OTHER, "result": "failed", "procedure": "sh test.sh", "exitCode": 1,
        "startedAt": 0, "endedAt": 120, "detail": "expected: Hello\ngot: Helo\n",
    }]);
    let verified = json!({"taskId": TASK, "round": 1, "evidence": evidence, "verdict": "failed", "unmet": ["sh test.sh"]});
    assert_eq!(
        texts(narrator.tell(&record(1, "task.verified", verified))),
        ["check: failed: sh test.sh (exit 1, 120 ms): got: Helo", "check: round 1: not proven"]
    );
    let failed = narrator.tell(&ended("failed", json!({"kind": "reported", "reason": "no compiler"})));
    assert_eq!(texts(failed), ["notes: failed: no compiler"]);
    let moved = json!({
        "taskId": TASK, "from": "active", "to": "waiting_on_user", "trigger": "awaiting_user",
        "reason": "verification_exhausted",
    });
    assert_eq!(
        texts(narrator.tell(&record(1, "task.status_changed", moved))),
        ["task: waiting on a person: checks still fail and no corrective round is left"]
    );
}

#[test]
fn every_kind_of_event_is_described_and_no_other() {
    let refused = serde_json::from_value::<Event>(json!({"kind": "", "data": {}})).unwrap_err().to_string();
    let known: Vec<&str> = refused.split('`').skip(3).step_by(2).collect();
    assert!(known.len() > 20 && known.contains(&"agent.output"), "{refused}");
    let page = include_str!("../../../../../docs/events.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut described: Vec<&str> = rows.map(|(kind, _)| kind).filter(|kind| kind.contains('.')).collect();
    described.sort_unstable();
    let mut expected = known.clone();
    expected.sort_unstable();
    assert_eq!(described, expected);
}

#[test]
fn the_last_line_of_a_run_says_what_it_used_and_marks_a_guess() {
    let mut narrator = begun();
    let used = |usage: Value| record(9_001, "run.used", json!({"runId": RUN, "usage": usage}));
    let (unknown, count) =
        (json!({"state": "unavailable", "reason": "r"}), json!({"input": 100, "output": 20}));
    let cost = json!({"state": "estimated", "value": {"currency": "USD", "micros": 120_000}});
    let guess = json!({"tokens": {"state": "estimated", "value": count}, "cost": cost});
    assert_eq!(texts(narrator.tell(&used(guess))), ["notes: used ~120 tokens, ~0.12 USD"]);
    let known = json!({"tokens": {"state": "measured", "value": count}, "cost": unknown});
    assert_eq!(texts(narrator.tell(&used(known))), ["notes: used 120 tokens"]);
    assert!(texts(narrator.tell(&used(json!({"tokens": unknown, "cost": unknown})))).is_empty());
}
