//! What a platform conversation heard of the progress of a task.

use rallypoint_model::progress::{OfferedProgress, ProgressMode, ProgressShape};
use rallypoint_model::task::TaskStatus;
use rallypoint_model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{State, Task};

/// Progress of one task, as its conversation knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// How it hears of it, where that is not as its room does.
    pub mode: Option<ProgressMode>,
    /// The platform's id of the post that is edited.
    pub post_id: Option<String>,
    /// Posts and edits so far.
    pub editions: u32,
    /// Posts in a thread so far.
    pub posts: u32,
    /// What it heard last.
    pub text: String,
    /// How the task stood then.
    pub status: Option<TaskStatus>,
    /// What is with the channel now.
    pub offered: Option<OfferedProgress>,
    /// What may be there or not, and is to be given to the channel under the same key until it is.
    pub again: Option<OfferedProgress>,
    /// How many in a row the channel did not take.
    pub failures: u32,
    /// When the next may follow.
    pub next_at: Option<Timestamp>,
    /// Whether none follows.
    pub over: bool,
}

impl Task {
    /// Whether something may have to be told: while it is at work, and until a post that stands says how it ended.
    pub(crate) fn may_have_progress(&self) -> bool {
        let progress = &self.progress;
        let stands = progress.post_id.is_some() && progress.status != Some(self.status);
        self.conversation.is_some()
            && self.deleted.is_none()
            && (progress.offered.is_some()
                || !progress.over && (self.ended_at.is_none() || stands || progress.again.is_some()))
    }
}

impl State {
    /// How the conversation of a task hears of its progress.
    pub fn progress_mode(&self, task: &Task) -> ProgressMode {
        let of_room = || self.rooms.get(&task.origin_room_id).map(|room| room.progress).unwrap_or_default();
        task.progress.mode.unwrap_or_else(of_room)
    }

    /// Whether an offered post may be given to its channel: it was offered here, or it does no harm twice.
    pub fn progress_may_be_sent(&self, offered: &OfferedProgress) -> bool {
        let is_edit = matches!(offered.shape, ProgressShape::Edit { .. });
        let takes_key =
            || self.usable_channel(&offered.conversation.channel).is_ok_and(|facts| facts.takes_key);
        self.offered_here.contains(&offered.key) || offered.repeatable && (is_edit || takes_key())
    }
}
