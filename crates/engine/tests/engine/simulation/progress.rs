//! Progress posts on the platform of a simulation: it keeps its own books of them.

use std::collections::{BTreeMap, BTreeSet};

use rallypoint_model::command::Command;
use rallypoint_model::delivery::SinkAnswer;
use rallypoint_model::ids::{DeliveryId, TaskId};
use rallypoint_model::progress::{OfferedProgress, ProgressShape};

use super::Simulation;
use super::platform::Kind;

/// Posts that stand on the platform.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// Posts of each task, by key.
    posts: BTreeMap<TaskId, BTreeSet<DeliveryId>>,
    /// What this daemon sent already.
    sent_here: BTreeSet<(TaskId, u32)>,
    /// Answers on their way to this daemon.
    on_their_way: Vec<Command>,
    /// Edits that arrived.
    pub(super) edits: u32,
}

impl Board {
    /// What a daemon knew of its sendings goes with it.
    pub(super) fn forget_sendings(&mut self) {
        self.sent_here.clear();
        self.on_their_way.clear();
    }

    pub(super) fn posts(&self) -> usize {
        self.posts.values().map(BTreeSet::len).sum()
    }
}

impl Simulation {
    /// Sends a progress post once, as each daemon does; false when there was nothing to do.
    pub(super) fn progress_to_platform(&mut self, offered: &OfferedProgress, disturbed: bool) -> bool {
        if !self.board.sent_here.insert((offered.task_id, offered.edition)) {
            return self.hear_of_progress();
        }
        let fate = if disturbed { self.random.below(100) } else { 0 };
        if fate < 70 {
            self.progress_arrives(offered);
        }
        let answer = match fate {
            0..55 => SinkAnswer::Receipt { id: Some(format!("p-{}", offered.key)), warning: None },
            55..80 => SinkAnswer::Unknown { why: "the connection was cut".to_owned() },
            80..90 => SinkAnswer::Busy { why: "429".to_owned(), retry_after_ms: None },
            90..97 => SinkAnswer::Failed { why: "500".to_owned() },
            _ => SinkAnswer::Refused { why: "403".to_owned() },
        };
        let (task_id, edition) = (offered.task_id, offered.edition);
        let answered = Command::ProgressAnswered { task_id, edition, answer };
        // A daemon that is killed before it hears of an answer never hears of it.
        if disturbed && self.random.chance(30) {
            self.board.on_their_way.push(answered);
        } else {
            self.submit(answered);
        }
        true
    }

    /// One answer that was on its way arrives.
    pub(super) fn hear_of_progress(&mut self) -> bool {
        let Some(answered) = self.board.on_their_way.pop() else { return false };
        self.submit(answered);
        true
    }

    fn progress_arrives(&mut self, offered: &OfferedProgress) {
        if let ProgressShape::Edit { post_id } = &offered.shape {
            let known = self
                .board
                .posts
                .get(&offered.task_id)
                .is_some_and(|posts| posts.iter().any(|key| format!("p-{key}") == *post_id));
            assert!(known, "a post is edited that is not there: {offered:?}");
            self.board.edits += 1;
            return;
        }
        let posts = self.board.posts.entry(offered.task_id).or_default();
        let new = posts.insert(offered.key);
        assert!(new || self.platform.kind == Kind::Keyed, "a post stands there twice: {offered:?}");
        assert_eq!(posts.len(), 1, "two posts of one task stand there: {offered:?}");
    }
}
