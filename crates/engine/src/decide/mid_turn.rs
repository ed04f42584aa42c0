//! Words into a turn: mail mode `steer`.
//!
//! The Agent Client Protocol has one prompt for each turn. Agents whose profile says so take a second `session/prompt`
//! while the first is open, work its words in at their next step, and answer it; the turn ends with the answer to the
//! first. All others get the words as a turn of their own, and that is told.

use rallypoint_model::agent_io::AgentInput;
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::{GenerationId, RunId, SessionId};
use rallypoint_model::mail::{MailKind, MailMode};
use rallypoint_model::mid_turn::{MidTurnMoved, MidTurnStep};
use rallypoint_model::run::RunStatus;
use serde_json::json;

use super::spawn::label_of;
use super::{Deciding, Post, Voice};
use crate::mailbox::drain;
use crate::prompt;
use crate::state::{PromptProgress, Session};

impl Deciding<'_, '_> {
    /// Gives what waits to one agent whose turn can take it.
    pub(crate) fn steer(&mut self) -> bool {
        let found = self.state.busy_sessions().find_map(|session| {
            let (run_id, generation_id) = self.open_turn(session)?;
            (self.mail_mode(session.id) == MailMode::Steer && takes_words_in_turn(session))
                .then(|| (session.id, run_id, generation_id, drain(&session.inbox, MailMode::Steer).taken))
                .filter(|(.., taken)| !taken.is_empty())
        });
        let Some((session_id, run_id, generation_id, taken)) = found else { return false };
        let Some(generation) = self.state.generations.get(&generation_id) else { return false };
        let Some(agent_session_id) = generation.agent_session_id.clone() else { return false };
        let seq = generation.next_seq();
        let (message, evidence, _) = self.letter(&taken);
        let blocks = prompt::mid_turn(&message, evidence.as_deref());
        let keys = taken.into_iter().map(|mail| mail.key).collect();
        self.move_mid_turn(session_id, run_id, MidTurnStep::Given { generation_id, seq, keys });
        self.input(generation_id, AgentInput::Steer { agent_session_id, blocks }, Some(run_id));
        true
    }

    /// The turn of a session that words can get into now.
    fn open_turn(&self, session: &Session) -> Option<(RunId, GenerationId)> {
        let run = self.state.runs.get(&session.open_run?)?;
        let works = run.status == RunStatus::Running
            && run.prompt == PromptProgress::Seen
            && run.answer.is_none()
            && run.cancel.is_none();
        let free = session.mid_turn.is_none() && session.not_in_turn != Some(run.id);
        (works && free).then_some((run.id, run.generation_id?))
    }

    fn move_mid_turn(&mut self, session_id: SessionId, run_id: RunId, step: MidTurnStep) {
        let scope = self.run_scope(run_id);
        let moved = MidTurnMoved { session_id, run_id, step };
        self.emit(Aggregate::Session(session_id), scope, Event::MidTurnMoved(moved));
    }

    /// The session whose agent was given this input in its turn.
    fn given(&self, generation_id: GenerationId, seq: u64) -> Option<(SessionId, RunId)> {
        let session_id = self.state.generations.get(&generation_id)?.session_id;
        let given = self.state.sessions.get(&session_id)?.mid_turn.as_ref()?;
        (given.generation_id == generation_id && given.seq == seq).then_some((session_id, given.run_id))
    }

    /// The agent answered what it was given in its turn.
    pub(crate) fn mid_turn_taken(&mut self, generation_id: GenerationId, seq: u64) {
        if let Some((session_id, run_id)) = self.given(generation_id, seq) {
            self.move_mid_turn(session_id, run_id, MidTurnStep::Taken);
        }
    }

    /// The agent refused it. The words become a turn of their own, and so does what else is said in this turn.
    pub(crate) fn mid_turn_refused(&mut self, generation_id: GenerationId, seq: u64, why: &str) {
        if let Some((session_id, run_id)) = self.given(generation_id, seq) {
            self.move_mid_turn(session_id, run_id, MidTurnStep::Returned { why: why.to_owned() });
            self.tell_not_in_turn(session_id, &format!("refuses it: {why}"), &format!("refused|{run_id}"));
        }
    }

    /// A run has ended; what its turn was given and did not answer is looked at.
    pub(crate) fn settle_mid_turn(&mut self, run_id: RunId) {
        let Some(session) =
            self.state.runs.get(&run_id).and_then(|run| self.state.sessions.get(&run.session_id))
        else {
            return;
        };
        let Some(given) = session.mid_turn.as_ref().filter(|given| given.run_id == run_id) else { return };
        let (session_id, label, task_id) = (session.id, label_of(session), session.task_id);
        let generation = self.state.generations.get(&given.generation_id);
        let accepted = generation.and_then(|it| it.input(given.seq)).is_none_or(|entry| entry.accepted);
        if !accepted {
            let why = "the turn ended before the agent had it".to_owned();
            self.move_mid_turn(session_id, run_id, MidTurnStep::Returned { why });
            return;
        }
        self.move_mid_turn(session_id, run_id, MidTurnStep::Unknown);
        if let Some(task_id) = task_id {
            self.tell_task_quietly(
                task_id,
                &format!(
                    "the turn of {label} ended before it said that it has what was said to it in between; nobody can tell, so it is not said again"
                ),
            );
        }
    }

    /// Says once that this agent can't be reached in a turn, when somebody wanted to.
    pub(crate) fn tell_if_not_in_turn(&mut self, session_id: SessionId, kind: MailKind) {
        let Some(session) = self.state.sessions.get(&session_id) else { return };
        let wanted = self.mail_mode(session_id) == MailMode::Steer && kind == MailKind::Active;
        if wanted && session.open_run.is_some() && !takes_words_in_turn(session) {
            self.tell_not_in_turn(session_id, "can't be reached in a turn", "can_not");
        }
    }

    fn tell_not_in_turn(&mut self, session_id: SessionId, what: &str, once: &str) {
        let Some(session) = self.state.sessions.get(&session_id) else { return };
        let (Some(origin), task_id, label) = (session.origin.clone(), session.task_id, label_of(session))
        else {
            return;
        };
        self.post(Post {
            room_id: origin.task_room_id,
            speaker: Voice::System,
            text: format!("`{label}` {what}. What is said to it waits for the end of its turn (`steer` works as `followup`)."),
            source: "system".to_owned(),
            in_reply_to: Some(origin.message_id),
            task_id,
            metadata: json!({ "taskId": task_id, "sessionId": session_id, "mailMode": "followup" }),
            delivery_key: Some(format!("not_in_turn|{session_id}|{once}")),
            turn: None,
        });
    }
}

/// Whether its agent takes words while it is in a turn.
fn takes_words_in_turn(session: &Session) -> bool {
    session.launch.as_ref().is_some_and(|launch| launch.takes_words_in_turn)
}
