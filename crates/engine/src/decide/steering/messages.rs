//! A message to a task: kept in its room, handed on to whoever works on it.

use rallypoint_model::command::Outcome;
use rallypoint_model::ids::SessionId;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::run::RunPurpose;
use rallypoint_model::steering::{MessageTask, NotReached};
use rallypoint_model::task::TaskStatus;
use serde_json::json;

use super::super::{Deciding, Post, Voice};
use super::restart::last_session;
use crate::prompt::FollowUpReason;
use crate::state::Session;

impl Deciding<'_, '_> {
    /// Posts the words and queues them for each session that can take them. Where none is left, one is started, unless
    /// the task is over.
    pub(crate) fn message_task(&mut self, message: &MessageTask) -> Result<Outcome, Refusal> {
        let task_id = message.task_id;
        let task = self.kept_task(task_id)?;
        if message.text.trim().is_empty() {
            return Err(Refusal::new(RefusalCode::Invalid, "the message is empty"));
        }
        let over = task.status.is_terminal();
        let room_id = task.origin_room_id;
        let budget = self.check_budget(task).err().map(|refusal| refusal.message);
        let stopping = task.stops.iter().any(|stop| stop.root_session_id.is_none());
        let live: Vec<SessionId> = task
            .sessions
            .iter()
            .filter_map(|id| self.state.sessions.get(id))
            .filter(|session| self.takes_words(session))
            .map(|session| session.id)
            .collect();
        let again = last_session(self, task)
            .and_then(|id| self.state.sessions.get(&id))
            .and_then(|session| session.launch.clone())
            .or_else(|| task.agents.first().cloned());
        let message_id = self
            .post(Post {
                room_id,
                speaker: Voice::User(message.by.clone()),
                text: message.text.clone(),
                source: message.source.clone(),
                in_reply_to: None,
                task_id: Some(task_id),
                metadata: json!({ "taskId": task_id }),
                delivery_key: None,
                turn: None,
            })
            .ok_or_else(|| Refusal::new(RefusalCode::Internal, "the message could not be posted"))?;
        let hindrance = if over {
            Some(format!("the task is over; `rally task reopen {task_id}` opens it again"))
        } else if stopping {
            Some("the task is being stopped".to_owned())
        } else {
            budget
        };
        let reached = |sessions, not_reached, started| {
            Ok(Outcome::Handed { message_id, sessions, not_reached, started })
        };
        if let Some(error) = hindrance {
            let not_reached =
                live.into_iter().map(|session_id| NotReached { session_id, error: error.clone() });
            return reached(Vec::new(), not_reached.collect(), None);
        }
        if live.is_empty() {
            let again = again.filter(|_| !self.is_paused(task_id));
            let Some(launch) = again else { return reached(Vec::new(), Vec::new(), None) };
            self.put_to_work(task_id, &message.by);
            let session_id = self.open_anew(task_id, launch, Some(&message.text), None)?;
            return reached(Vec::new(), Vec::new(), Some(session_id));
        }
        let interrupted =
            self.state.tasks.get(&task_id).is_some_and(|task| task.status == TaskStatus::Interrupted);
        if interrupted {
            self.put_to_work(task_id, &message.by);
        }
        for session_id in &live {
            self.resume_task_for(task_id, *session_id, &message.by);
            let reason = FollowUpReason::UserMessage;
            self.queue_follow_up(*session_id, RunPurpose::FollowUp, reason, &message.text, None);
        }
        reached(live, Vec::new(), None)
    }

    /// Whether a session works, or can be gone on with.
    fn takes_words(&self, session: &Session) -> bool {
        if session.stopped || session.capped || crate::tree::is_being_stopped(self.state, session) {
            return false;
        }
        session.open_run.is_some() || !session.queue.is_empty() || self.session_can_go_on(session.id)
    }
}
