//! Fault switches of the decider: what it must not do, for tests that show that it would be noticed.

use std::sync::Arc;
use std::time::Duration;

use rallypoint_engine::changes::Changes;
use rallypoint_store::StoreError;

use super::{Answer, Pending, Worker};

/// How long what was told is not committed: wide enough for a kill to fall into it.
const TOLD_TOO_EARLY: Duration = Duration::from_millis(50);
/// How long facts are committed and the cursor behind them is not.
const CURSOR_LATER: Duration = Duration::from_millis(20);

/// Names a file: while it is there, the store takes nothing that needs more room. For tests of full disks under a running
/// daemon; a release build knows no faults.
const FULL_VARIABLE: &str = "RALLY_FAULT_FULL";

impl Worker {
    /// The disk is as full as the fault switch says.
    pub(super) fn obey_full_disk(&mut self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let wanted = std::env::var_os(FULL_VARIABLE).is_some_and(|file| std::path::Path::new(&file).exists());
        if wanted != self.full && self.parts.store.make_full(wanted).is_ok() {
            self.full = wanted;
        }
    }

    /// `ack-before-commit`: answers and followers hear of what a crash can still undo.
    pub(super) fn tell_then_commit(
        &mut self,
        batch: Vec<Pending>,
        answers: Vec<Answer>,
        mut changes: Changes,
    ) {
        let mut seq = self.parts.store.last_seq().unwrap_or(0);
        for event in &mut changes.events {
            seq = seq.saturating_add(1);
            event.seq = seq;
            let _nobody = self.parts.followers.send(Arc::new(event.clone()));
        }
        for (Pending { sender, .. }, answer) in batch.into_iter().zip(answers) {
            let _gone = sender.send(answer);
        }
        std::thread::sleep(TOLD_TOO_EARLY);
        match self.parts.store.commit(&mut changes, &self.state) {
            Ok(()) => self.hand_on(self.effects_of(&changes)),
            Err(error) => self.reload(&error),
        }
    }

    /// `cursor-outside`: facts first, the cursor that says that they are understood later.
    pub(super) fn commit_cursors_apart(&mut self, changes: &mut Changes) -> Result<(), StoreError> {
        let cursors = std::mem::take(&mut changes.cursors);
        self.parts.store.commit(changes, &self.state)?;
        if !cursors.is_empty() {
            std::thread::sleep(CURSOR_LATER);
            self.parts.store.commit(&mut Changes { cursors, ..Changes::default() }, &self.state)?;
        }
        Ok(())
    }
}
