//! Progress posts: offered when something changed and the time has come, settled by what the channel says.
//!
//! They never wait in a queue: what a channel did not take is followed by how things stand then. They hold back no
//! message, and no room hears of one that did not arrive.

use rallypoint_model::command::Outcome;
use rallypoint_model::delivery::SinkAnswer;
use rallypoint_model::event::{Aggregate, Event, Scope};
use rallypoint_model::ids::{DeliveryId, RoomId, TaskId};
use rallypoint_model::progress::{
    OfferedProgress, ProgressMode, ProgressModeSet, ProgressResult, ProgressShape, SettledProgress,
};
use rallypoint_model::refusal::Refusal;

use super::Deciding;
use crate::progress::{earliest, wanted};
use crate::state::Task;

impl Deciding<'_, '_> {
    /// Lets a room's conversation hear of progress in another way. Tasks with a way of their own keep it.
    pub(crate) fn set_progress(
        &mut self,
        room_id: RoomId,
        mode: ProgressMode,
        by: &str,
    ) -> Result<Outcome, Refusal> {
        let Some(room) = self.state.rooms.get(&room_id) else {
            return Err(
                Refusal::not_found("room", room_id).with_hint("`rally room list` shows the rooms there are")
            );
        };
        if room.progress != mode {
            let set = ProgressModeSet { room_id, task_id: None, mode, by: by.to_owned() };
            let scope = Scope { room_id: Some(room_id), ..Scope::default() };
            self.emit(Aggregate::Room(room_id), scope, Event::ProgressModeSet(set));
        }
        Ok(Outcome::Room { room_id })
    }

    /// Gives one post to its channel that is due.
    pub(crate) fn offer_progress(&mut self) -> bool {
        let now = self.now();
        let due = self.state.tasks_with_progress().find_map(|task| {
            if earliest(task, self.context.limits) > now {
                return None;
            }
            Some((task.id, wanted(self.state, task, self.context.limits)?))
        });
        let Some((task_id, wanted)) = due else { return false };
        let Some(offered) = self.offered_progress(task_id, wanted) else { return false };
        self.state.offered_here.insert(offered.key);
        let scope = self.task_scope(task_id);
        self.emit(Aggregate::Task(task_id), scope, Event::ProgressOffered(offered));
        true
    }

    fn offered_progress(
        &mut self,
        task_id: TaskId,
        wanted: crate::progress::Wanted,
    ) -> Option<OfferedProgress> {
        let key = DeliveryId(self.context.ids.next_uuid());
        let task = self.state.tasks.get(&task_id)?;
        let edition = task.progress.editions.saturating_add(1);
        if let Some(again) = wanted.again {
            return Some(OfferedProgress { edition, ..again });
        }
        let conversation = task.conversation.clone()?;
        let takes_key = self.state.usable_channel(&conversation.channel).is_ok_and(|facts| facts.takes_key);
        Some(OfferedProgress {
            task_id,
            room_id: task.origin_room_id,
            message_id: task.origin_message_id?,
            edition,
            key,
            repeatable: takes_key || matches!(wanted.shape, ProgressShape::Edit { .. }),
            shape: wanted.shape,
            conversation,
            reply_to: task.platform_message_id.clone(),
            text: wanted.text,
            status: task.status,
        })
    }

    /// What an earlier daemon gave to a channel may be there or not, where the channel takes no key.
    pub(crate) fn lose_progress(&mut self) -> bool {
        let lost = self.state.tasks_with_progress().find_map(|task| {
            let offered = task.progress.offered.as_ref()?;
            (!self.state.progress_may_be_sent(offered)).then(|| offered.clone())
        });
        let Some(offered) = lost else { return false };
        let why = "the daemon ended while the channel had it, and the channel takes no key";
        self.settle_progress(&offered, ProgressResult::Lost, None, None, Some(why.to_owned()));
        true
    }

    /// Takes in what a channel said of a post, once.
    pub(crate) fn progress_answered(
        &mut self,
        task_id: TaskId,
        edition: u32,
        answer: &SinkAnswer,
    ) -> Outcome {
        let offered = self.state.tasks.get(&task_id).and_then(|task: &Task| task.progress.offered.clone());
        let Some(offered) = offered.filter(|offered| offered.edition == edition) else {
            return Outcome::Stale;
        };
        let sent_before = !self.state.offered_here.remove(&offered.key);
        let (result, post_id, pause, why) = match answer {
            SinkAnswer::Receipt { id, warning } => {
                (ProgressResult::Posted, id.clone(), None, warning.clone())
            }
            SinkAnswer::Busy { why, retry_after_ms } => {
                (ProgressResult::Returned, None, *retry_after_ms, Some(why.clone()))
            }
            SinkAnswer::Failed { why } => (ProgressResult::Returned, None, None, Some(why.clone())),
            SinkAnswer::Refused { why } => (ProgressResult::Refused, None, None, Some(why.clone())),
            SinkAnswer::Unknown { why } => (ProgressResult::Lost, None, None, Some(why.clone())),
        };
        // That it was not taken now says nothing of what an earlier daemon gave away under the same key.
        let result = match result {
            ProgressResult::Returned if sent_before => ProgressResult::Lost,
            other => other,
        };
        self.settle_progress(&offered, result, post_id, pause, why);
        Outcome::Done
    }

    fn settle_progress(
        &mut self,
        offered: &OfferedProgress,
        result: ProgressResult,
        post_id: Option<String>,
        pause_ms: Option<i64>,
        why: Option<String>,
    ) {
        let limits = self.context.limits;
        let Some(task) = self.state.tasks.get(&offered.task_id) else { return };
        let used_up = task.progress.failures.saturating_add(1) >= limits.progress_failures;
        let is_post = matches!(offered.shape, ProgressShape::Post);
        let ends = match result {
            // A post whose id is not known can't be edited, and a second one beside it would be a double.
            ProgressResult::Posted => is_post && post_id.is_none(),
            ProgressResult::Lost => (is_post && !offered.repeatable) || (offered.repeatable && used_up),
            ProgressResult::Returned => used_up,
            ProgressResult::Refused => true,
        };
        let every = limits.progress_every_ms.max(0);
        let settled = SettledProgress {
            task_id: offered.task_id,
            edition: offered.edition,
            result,
            post_id,
            next_at: self.now().plus(every.max(pause_ms.unwrap_or(0))),
            ends,
            why,
        };
        let scope = self.task_scope(offered.task_id);
        self.emit(Aggregate::Task(offered.task_id), scope, Event::ProgressSettled(settled));
    }
}
