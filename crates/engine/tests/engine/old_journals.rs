//! Journals that older builds have written replay with this one.

use std::path::Path;

use rallypoint_engine::apply::apply;
use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::State;
use rallypoint_model::event::EventRecord;

/// One line for each task: status, reason, and how each of its runs ended.
fn stories(state: &State) -> Vec<String> {
    state
        .tasks
        .values()
        .map(|task| {
            let runs: Vec<String> = task
                .runs
                .iter()
                .map(|id| match state.runs[id].outcome {
                    Some(outcome) => format!("{outcome:?}"),
                    None => "open".to_owned(),
                })
                .collect();
            format!("{}: {:?} {:?} [{}]", task.title, task.status, task.reason, runs.join(" "))
        })
        .collect()
}

#[test]
fn a_journal_of_schema_1_replays_to_the_same_stories() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/journal-schema-1.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut state = State::default();
    let mut changes = Changes::default();
    for line in text.lines() {
        let record: EventRecord = serde_json::from_str(line).unwrap();
        apply(&mut state, &record, &mut changes);
        let again = serde_json::to_string(&record).unwrap();
        let again: EventRecord = serde_json::from_str(&again).unwrap();
        assert_eq!(again, record, "a row is written as it was read");
    }
    insta::assert_snapshot!(stories(&state).join("\n"), @r"
    Write the date: Done Some(Proven) [Completed]
    claim: WaitingOnUser Some(VerificationExhausted) [Completed Completed Completed Completed]
    x: Done Some(Proven) [Completed]
    say: Blocked Some(QuestionAsked) [Completed]
    ");
}
