//! Conversation: children's words to their parent, words with names to those
//! that are named, a person's words in a room.
//!
//! Rules: Anima's `SubagentMessageRouter` (attribution, names), with answers to
//! names that reach nobody and a limit on what siblings set off.

use rallypoint_model::command::AgentLaunch;
use rallypoint_model::ids::{MessageId, RoomId, RunId, SessionId, TaskId};
use rallypoint_model::mail::{Mail, MailFrom, MailKind};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::session::SessionKind;
use serde_json::json;

use super::mail::attributed;
use super::spawn::label_of;
use super::{Deciding, Post, Voice};
use crate::mentions::{is_nickname, mentions};
use crate::state::{Session, Task};
use crate::text;

/// Who of a name there is.
pub(super) enum Called {
    One(SessionId),
    Several(Vec<TaskId>),
    Finished(String),
    NotTalking,
    Nobody,
}

impl Deciding<'_, '_> {
    /// A stretch of words of a sub-agent is whole, because it uses a tool or its turn ends.
    pub(crate) fn stretch_said(&mut self, run_id: RunId) {
        let Some(run) = self.state.runs.get(&run_id).filter(|run| run.is_open()) else { return };
        let (session_id, offset) = (run.session_id, run.said.last_stretch);
        let words = run.said.text.get(offset..).unwrap_or_default().trim().to_owned();
        if words.is_empty() {
            return;
        }
        let source = format!("{run_id}:said:{offset}");
        if self.talks(session_id) {
            self.tell_parent(session_id, run_id, &words, &source, LastWords::No);
        }
        self.speak(session_id, &words, &source);
    }

    /// Whether it is in conversation with its parent.
    pub(crate) fn talks(&self, session_id: SessionId) -> bool {
        let session = self.state.sessions.get(&session_id);
        session.and_then(|it| it.launch.as_ref()).is_some_and(|launch| launch.conversation.is_some())
    }

    /// A child's words to its parent: into the inbox of the session that it
    /// works for, or into the room of the main agent. The room hears of the end
    /// of a turn from the router, so that it is told there once.
    pub(crate) fn tell_parent(
        &mut self,
        session_id: SessionId,
        run_id: RunId,
        words: &str,
        source: &str,
        last_words: LastWords,
    ) {
        let Some(session) = self.state.sessions.get(&session_id) else { return };
        let (name, task_id) = (label_of(session), session.task_id);
        let key = format!("said|{session_id}|{source}");
        match session.parent_session_id {
            Some(_) => {
                let Some(parent) = self.way_up(session_id).and_then(|way| way.recipient) else { return };
                let from = MailFrom::Child { name, session_id };
                self.mail(parent, Mail { key, kind: MailKind::Active, from, text: words.to_owned() });
            }
            None if last_words == LastWords::No => {
                let Some(origin) = session.origin.clone() else { return };
                let text = attributed(
                    &name,
                    &text::head(&text::defuse(words), self.context.limits.message_head_bytes),
                );
                self.post(Post {
                    room_id: origin.task_room_id,
                    speaker: Voice::SubAgent(session_id),
                    text,
                    source: "sub_agent".to_owned(),
                    in_reply_to: Some(origin.message_id),
                    task_id,
                    metadata: json!({ "conversation": true, "sessionId": session_id, "runId": run_id, "taskId": task_id }),
                    delivery_key: Some(key),
                    turn: None,
                });
            }
            None => {}
        }
    }

    /// Words of a sub-agent to those that it names: its own sub-agents, and its siblings where it may.
    pub(crate) fn speak(&mut self, session_id: SessionId, words: &str, source: &str) {
        let names = mentions(words);
        let Some(session) = self.state.sessions.get(&session_id) else { return };
        if names.is_empty() || session.kind != SessionKind::SubAgent {
            return;
        }
        let Some(task_id) = session.task_id else { return };
        let own = label_of(session);
        let parent = session.parent_session_id;
        let may = session.launch.as_ref().and_then(|it| it.conversation).is_some_and(|it| it.siblings);
        let group = |of: Option<SessionId>| self.sub_agents_of(task_id, of, session_id);
        let (children, siblings) = (group(Some(session_id)), if may { group(parent) } else { Vec::new() });
        if children.is_empty() && siblings.is_empty() {
            return;
        }
        for (place, name) in names.into_iter().enumerate().filter(|(_, name)| *name != own) {
            let key = |to: SessionId| format!("spoke|{session_id}|{source}|{to}");
            let problem = match (self.called(&name, &children), self.called(&name, &siblings)) {
                (Called::One(to), _) => {
                    let mail = Mail {
                        key: key(to),
                        kind: MailKind::Active,
                        from: MailFrom::Parent,
                        text: words.to_owned(),
                    };
                    self.mail(to, mail);
                    continue;
                }
                (Called::Nobody, Called::One(to)) => {
                    self.hop(task_id, session_id, &own, to, key(to), words);
                    continue;
                }
                (Called::Nobody, other) => answer_to(&name, &other),
                (other, _) => answer_to(&name, &other),
            };
            let mail = Mail {
                key: format!("answer|{session_id}|{source}|{place}"),
                kind: MailKind::Background,
                from: MailFrom::System,
                text: problem,
            };
            self.mail(session_id, mail);
        }
    }

    /// Sub-agents of one parent within a task, without this one.
    pub(super) fn sub_agents_of(
        &self,
        task_id: TaskId,
        parent: Option<SessionId>,
        but: SessionId,
    ) -> Vec<SessionId> {
        let all = self.state.tasks.get(&task_id).map(|task| task.sessions.clone()).unwrap_or_default();
        let is_of =
            |id: &SessionId| self.state.sessions.get(id).is_some_and(|it| it.parent_session_id == parent);
        all.into_iter().filter(|id| *id != but && is_of(id)).collect()
    }

    /// From sibling to sibling, as long as the trace has hops left; the one that has none is told once.
    pub(super) fn hop(
        &mut self,
        task_id: TaskId,
        from: SessionId,
        own: &str,
        to: SessionId,
        key: String,
        words: &str,
    ) {
        let limit = self.context.limits.hops_per_trace;
        let Some(task) = self.state.tasks.get(&task_id) else { return };
        if task.hops < limit {
            let from = MailFrom::Sibling { name: own.to_owned(), session_id: from };
            self.mail(to, Mail { key, kind: MailKind::Active, from, text: words.to_owned() });
            return;
        }
        let (room_id, message, traces) = (task.origin_room_id, task.origin_message_id, task.traces);
        self.post(Post {
            room_id,
            speaker: Voice::System,
            text: format!(
                "Sub-agents have sent {limit}/{limit} messages to one another since a person last spoke; the limit is \
                 `hopsPerTrace`. What they say to each other from here on is not passed on. Speak to one of them to let them go on."
            ),
            source: "system".to_owned(),
            in_reply_to: message,
            task_id: Some(task_id),
            metadata: json!({ "taskId": task_id, "hopsPerTrace": limit }),
            delivery_key: Some(format!("hops|{task_id}|{traces}")),
            turn: None,
        });
    }

    /// Who of these is called by this name.
    pub(super) fn called(&self, name: &str, among: &[SessionId]) -> Called {
        let named: Vec<&Session> = among
            .iter()
            .filter_map(|id| self.state.sessions.get(id))
            .filter(|session| label_of(session) == name)
            .collect();
        let talking: Vec<&Session> = named.iter().copied().filter(|session| self.talks(session.id)).collect();
        if talking.is_empty() {
            return if named.is_empty() { Called::Nobody } else { Called::NotTalking };
        }
        let hearing: Vec<&Session> =
            talking.iter().copied().filter(|session| self.why_no_mail(session).is_none()).collect();
        match hearing.as_slice() {
            [one] => Called::One(one.id),
            [] => {
                let why = talking.last().and_then(|session| self.why_no_mail(session));
                Called::Finished(why.unwrap_or_default())
            }
            several => Called::Several(several.iter().filter_map(|session| session.task_id).collect()),
        }
    }

    /// Passes what a person said in a room on to those that it names.
    pub(crate) fn pass_on(&mut self, room_id: RoomId, message_id: MessageId, words: &str, by: &str) {
        let here: Vec<SessionId> = self
            .state
            .sessions
            .values()
            .filter(|session| session.kind == SessionKind::SubAgent)
            .filter(|session| session.origin.as_ref().is_some_and(|origin| origin.task_room_id == room_id))
            .map(|session| session.id)
            .collect();
        for name in mentions(words) {
            match self.called(&name, &here) {
                Called::One(to) => {
                    let mail = Mail {
                        key: format!("spoke|{message_id}|{to}"),
                        kind: MailKind::Active,
                        from: MailFrom::User { name: by.to_owned() },
                        text: words.to_owned(),
                    };
                    self.mail(to, mail);
                }
                // Where no sub-agent ever was, names are those of people.
                Called::Nobody if here.is_empty() => {}
                other => self.answer_in_room(room_id, message_id, &answer_to(&name, &other)),
            }
        }
    }

    fn answer_in_room(&mut self, room_id: RoomId, to: MessageId, words: &str) {
        self.post(Post {
            room_id,
            speaker: Voice::System,
            text: words.to_owned(),
            source: "system".to_owned(),
            in_reply_to: Some(to),
            task_id: None,
            metadata: json!({ "mention": true }),
            delivery_key: None,
            turn: None,
        });
    }

    /// Whether a sub-agent that talks can be called by its name: it fits the pattern, and no sibling has it.
    pub(crate) fn check_nickname(
        &self,
        task: Option<&Task>,
        parent: Option<SessionId>,
        launch: &AgentLaunch,
    ) -> Result<(), Refusal> {
        if launch.conversation.is_none() {
            return Ok(());
        }
        let name = &launch.label;
        if !is_nickname(name) {
            return Err(Refusal::new(
                RefusalCode::Invalid,
                format!("`{name}` can't be called with `@`, so a conversation needs another name"),
            )
            .with_hint(
                "at most 30 lower-case letters, digits and single hyphens, such as `bob` or `code-reader`",
            ));
        }
        let sessions = task.map(|task| task.sessions.as_slice()).unwrap_or_default();
        let taken = sessions
            .iter()
            .filter_map(|id| self.state.sessions.get(id))
            .any(|session| session.parent_session_id == parent && label_of(session) == *name);
        if taken {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("the name `{name}` belongs to another sub-agent of the same parent"),
            )
            .with_hint("give it a name of its own with `--name`"));
        }
        Ok(())
    }
}

/// Whether these words are the last ones of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastWords {
    /// They are.
    Yes,
    /// More may come.
    No,
}

/// What is answered about a name that nobody can be reached by.
pub(super) fn answer_to(name: &str, called: &Called) -> String {
    match called {
        Called::Several(tasks) => {
            let tasks: Vec<String> = tasks.iter().map(|id| format!("`{id}`")).collect();
            format!(
                "`{name}` is the name of {} sub-agents, of the tasks {}; `rally task send SESSION` reaches one of them.",
                tasks.len(),
                tasks.join(", ")
            )
        }
        Called::Finished(why) => format!("`{name}` did not get this: {why}."),
        Called::NotTalking => format!(
            "`{name}` is not in conversation and did not get this; `rally task send SESSION` reaches it."
        ),
        Called::Nobody | Called::One(_) => format!("Nobody here is called `{name}`."),
    }
}
