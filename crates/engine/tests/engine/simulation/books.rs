//! Books that the engine has no part in: the end of each run against what its agent was given and what it said.

use std::collections::BTreeMap;

use rallypoint_engine::view::is_settled;
use rallypoint_model::ids::{RoomId, RunId};
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunPurpose, RunStatus};

use super::Simulation;
use super::storing::without_what_is_not_stored;
use crate::invariants::replay;

/// Messages in each room about the end of each run.
type Told = BTreeMap<String, BTreeMap<RoomId, u32>>;

impl Simulation {
    /// The end of a run against what its agent knows.
    pub(super) fn judge(&self, run_id: RunId, outcome: RunOutcome, reason: &OutcomeReason) {
        let run = &self.world.state.runs[&run_id];
        if run.purpose == RunPurpose::Turn {
            return;
        }
        let given = self.given.get(&run_id).map(Vec::as_slice).unwrap_or_default();
        let heard = given.first().and_then(|place| self.fleet.heard.get(place)).cloned().unwrap_or_default();
        let blob = run.result.as_ref().map(|result| {
            let found = self.world.last.blobs.iter().find(|blob| blob.digest == result.digest);
            String::from_utf8(found.expect("the result is stored").bytes.clone()).expect("text")
        });
        let told = blob.unwrap_or_default();
        let what = format!("run {run_id} ended as {outcome:?} ({reason:?}), agent: {heard:?}, kept: {told}");
        match outcome {
            RunOutcome::Completed => {
                assert_eq!(heard.answered, Some("end_turn"), "{what}");
                assert!(!heard.said.is_empty() && told == heard.said, "{what}");
            }
            RunOutcome::CompletedEmpty | RunOutcome::Incomplete => {
                assert!(heard.answered.is_some() && told == heard.said, "{what}");
            }
            RunOutcome::Lost => {
                assert!(given.is_empty() || heard.cut || heard.answered.is_some(), "{what}");
                assert_eq!(told, heard.said, "{what}");
            }
            RunOutcome::Failed => {
                assert_eq!(told, heard.said, "{what}");
                if matches!(reason, OutcomeReason::AgentExited { .. }) {
                    assert!(given.is_empty() || heard.cut, "{what}");
                }
            }
            RunOutcome::TimedOut
            | RunOutcome::Cancelled
            | RunOutcome::Killed
            | RunOutcome::Interrupted
            | RunOutcome::Capped => assert!(heard.said.starts_with(&told), "{what}"),
        }
    }

    /// What must hold in the end.
    pub(super) fn conclude(&self) {
        let state = &self.world.state;
        let told = self.told();
        for run in state.runs.values() {
            assert_eq!(run.status, RunStatus::Terminal, "nothing is due and a run is open: {run:?}");
            if run.purpose != RunPurpose::Turn {
                self.told_once(run.id, &told);
            }
        }
        for task in state.tasks.values() {
            assert!(is_settled(state, task), "{task:?}");
        }
        for generation in state.generations.values().filter(|one| !one.is_live()) {
            assert!(generation.cleaned.is_some(), "{generation:?}");
            let removed = self.fleet.processes.get(&generation.id).is_none_or(|process| process.removed);
            assert!(removed, "something of it is left: {generation:?}");
        }
        let replayed = without_what_is_not_stored(replay(&self.world.journal));
        assert_eq!(replayed, without_what_is_not_stored(state.clone()));
    }

    pub(super) fn told_once(&self, run_id: RunId, told: &Told) {
        let outcome = self.world.state.runs[&run_id].outcome;
        let rooms = told.get(&run_id.to_string()).cloned().unwrap_or_default();
        let session = self.world.state.runs[&run_id].session_id.to_string();
        let with_its_tree = self.world.messages().iter().any(|message| {
            let nodes = message.metadata["treeStop"]["nodes"].as_array();
            nodes.is_some_and(|nodes| nodes.iter().any(|node| node["sessionId"] == session.as_str()))
        });
        assert!(
            (!rooms.is_empty() || with_its_tree) && rooms.values().all(|count| *count == 1),
            "the end of run {run_id} ({outcome:?}) is told like this: {rooms:?}"
        );
    }

    /// What rooms were told of the end of each run.
    pub(super) fn told(&self) -> Told {
        let mut told = Told::new();
        for message in self.world.messages() {
            // A question, or a word about the way of a message, is no end.
            let other = message.metadata["subAgentEvent"] == "blocked"
                || !message.metadata["deliveryStatus"].is_null();
            if let Some(run_id) = message.metadata["runId"].as_str().filter(|_| !other) {
                *told.entry(run_id.to_owned()).or_default().entry(message.room_id).or_default() += 1;
            }
        }
        told
    }
}
