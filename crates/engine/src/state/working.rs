//! What is under way, apart from all that ever was.
//!
//! A decision must cost what goes on now, not the length of the history behind
//! it. So each rule that looks for something to do asks these indices. They
//! hold nothing of their own: [`crate::apply::apply`] keeps them beside the
//! rows that it touches, and [`State::reindex`] makes them anew from a loaded
//! state.

use std::collections::{BTreeMap, BTreeSet};

use rallypoint_model::ids::{DeliveryId, GenerationId, QuestionId, RoomId, RunId, SessionId, TaskId};
use rallypoint_model::question::QuestionStatus;
use rallypoint_model::time::Timestamp;

use super::{Delivery, Generation, Question, Room, Rosters, Run, Session, State, Task};
use crate::changes::RowRef;

/// Indices over a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Working {
    /// Runs without an outcome.
    runs: BTreeSet<RunId>,
    /// Those of them that belong to a task, by task.
    runs_of: BTreeMap<TaskId, BTreeSet<RunId>>,
    /// Sessions with a run, a queue, mail or a process.
    sessions: BTreeSet<SessionId>,
    /// Processes that have not ended, or of which something may be left.
    generations: BTreeSet<GenerationId>,
    /// Every process of a session.
    generations_of: BTreeMap<SessionId, BTreeSet<GenerationId>>,
    /// Tasks in which something can happen by itself.
    tasks: BTreeSet<TaskId>,
    /// Tasks that ended and are not archived, by when the clock of their archive began.
    ended: BTreeSet<(Timestamp, TaskId)>,
    /// The same, by task.
    ended_since: BTreeMap<TaskId, Timestamp>,
    /// Questions that wait for an answer.
    questions: BTreeSet<QuestionId>,
    /// Every question of a session.
    questions_of: BTreeMap<SessionId, BTreeSet<QuestionId>>,
    /// Messages that are still to be brought to a platform.
    deliveries: BTreeSet<DeliveryId>,
    /// Rooms with something in their mailbox.
    rooms: BTreeSet<RoomId>,
    /// Tasks of platform conversations that may have to hear of progress.
    progress: BTreeSet<TaskId>,
}

fn keep<K: Ord>(set: &mut BTreeSet<K>, key: K, is_in: bool) {
    if is_in {
        set.insert(key);
    } else {
        set.remove(&key);
    }
}

impl State {
    /// Makes the indices anew. For a state whose rows were loaded and not applied.
    pub fn reindex(&mut self) {
        self.working = Working::default();
        self.rosters = Rosters::default();
        let rows: Vec<RowRef> = (self.rooms.keys().map(|id| RowRef::Room(*id)))
            .chain(self.sessions.keys().map(|id| RowRef::Session(*id)))
            .chain(self.runs.keys().map(|id| RowRef::Run(*id)))
            .chain(self.generations.keys().map(|id| RowRef::Generation(*id)))
            .chain(self.questions.keys().map(|id| RowRef::Question(*id)))
            .chain(self.deliveries.keys().map(|id| RowRef::Delivery(*id)))
            // After their runs, which decide whether they are under way.
            .chain(self.tasks.keys().map(|id| RowRef::Task(*id)))
            .collect();
        for row in rows {
            self.index(row);
        }
    }

    /// Brings the indices in line with one row.
    pub(crate) fn index(&mut self, row: RowRef) {
        match row {
            RowRef::World => {}
            RowRef::Room(id) => {
                let waits = self.rooms.get(&id).is_some_and(|room| !room.mailbox.is_empty());
                keep(&mut self.working.rooms, id, waits);
            }
            RowRef::Delivery(id) => {
                let open = self.deliveries.get(&id).is_some_and(|delivery| delivery.status.is_open());
                keep(&mut self.working.deliveries, id, open);
            }
            RowRef::Question(id) => self.index_question(id),
            RowRef::Generation(id) => self.index_generation(id),
            RowRef::Session(id) => self.index_session(id),
            RowRef::Run(id) => self.index_run(id),
            RowRef::Task(id) => self.index_task(id),
        }
        self.list(row);
    }

    fn index_question(&mut self, id: QuestionId) {
        let question = self.questions.get(&id);
        let open = question.is_some_and(|question| question.status == QuestionStatus::Open);
        let session = question.and_then(|question| question.session_id);
        keep(&mut self.working.questions, id, open);
        if let Some(session_id) = session {
            self.working.questions_of.entry(session_id).or_default().insert(id);
        }
    }

    fn index_generation(&mut self, id: GenerationId) {
        let Some(generation) = self.generations.get(&id) else {
            self.working.generations.remove(&id);
            return;
        };
        let session_id = generation.session_id;
        let open = generation.is_live() || generation.cleaned.is_none();
        keep(&mut self.working.generations, id, open);
        self.working.generations_of.entry(session_id).or_default().insert(id);
        self.index_session(session_id);
    }

    fn index_session(&mut self, id: SessionId) {
        let busy = self.sessions.get(&id).is_some_and(|session| {
            session.open_run.is_some()
                || !session.queue.is_empty()
                || !session.inbox.is_empty()
                || session
                    .generation_id
                    .and_then(|id| self.generations.get(&id))
                    .is_some_and(Generation::is_live)
        });
        keep(&mut self.working.sessions, id, busy);
    }

    fn index_run(&mut self, id: RunId) {
        let run = self.runs.get(&id);
        let open = run.is_some_and(Run::is_open);
        let task = run.and_then(|run| run.task_id);
        keep(&mut self.working.runs, id, open);
        if let Some(task_id) = task {
            let of_task = self.working.runs_of.entry(task_id).or_default();
            keep(of_task, id, open);
            if of_task.is_empty() {
                self.working.runs_of.remove(&task_id);
            }
            self.index_task(task_id);
        }
    }

    fn index_task(&mut self, id: TaskId) {
        let task = self.tasks.get(&id);
        let open_run = self.working.runs_of.contains_key(&id);
        let works = task.is_some_and(|task| {
            let unfinished = !task.status.is_terminal() && task.archived_at.is_none();
            open_run || unfinished || task.verification_due || !task.stops.is_empty()
        });
        let since = task.filter(|task| task.archived_at.is_none()).and_then(|task| {
            let ended = task.ended_at?;
            Some(task.unarchived_at.map_or(ended, |at| at.max(ended)))
        });
        keep(&mut self.working.progress, id, task.is_some_and(Task::may_have_progress));
        keep(&mut self.working.tasks, id, works);
        let before = match since {
            Some(at) => self.working.ended_since.insert(id, at),
            None => self.working.ended_since.remove(&id),
        };
        if before != since {
            if let Some(at) = before {
                self.working.ended.remove(&(at, id));
            }
            if let Some(at) = since {
                self.working.ended.insert((at, id));
            }
        }
    }

    /// Tasks of platform conversations that may have to hear of progress.
    pub fn tasks_with_progress(&self) -> impl Iterator<Item = &Task> {
        self.working.progress.iter().filter_map(|id| self.tasks.get(id))
    }

    /// Runs without an outcome.
    pub fn open_runs(&self) -> impl Iterator<Item = &Run> {
        self.working.runs.iter().filter_map(|id| self.runs.get(id))
    }

    /// Runs of a task without an outcome.
    pub fn open_runs_of(&self, task_id: TaskId) -> impl Iterator<Item = &Run> {
        let ids = self.working.runs_of.get(&task_id);
        ids.into_iter().flatten().filter_map(|id| self.runs.get(id))
    }

    /// Sessions with a run, a queue, mail or a process.
    pub fn busy_sessions(&self) -> impl Iterator<Item = &Session> {
        self.working.sessions.iter().filter_map(|id| self.sessions.get(id))
    }

    /// Processes that have not ended, or of which something may be left.
    pub fn open_generations(&self) -> impl Iterator<Item = &Generation> {
        self.working.generations.iter().filter_map(|id| self.generations.get(id))
    }

    /// Every process of a session.
    pub fn generations_of(&self, session_id: SessionId) -> impl Iterator<Item = &Generation> {
        let ids = self.working.generations_of.get(&session_id);
        ids.into_iter().flatten().filter_map(|id| self.generations.get(id))
    }

    /// Tasks in which something can happen by itself: not over, or with something that goes on in them.
    pub fn open_tasks(&self) -> impl Iterator<Item = &Task> {
        self.working.tasks.iter().filter_map(|id| self.tasks.get(id))
    }

    /// Tasks that ended and are not archived, with when the clock of their archive began, the earliest first.
    pub fn ended_tasks(&self) -> impl Iterator<Item = (Timestamp, &Task)> {
        self.working.ended.iter().filter_map(|(at, id)| Some((*at, self.tasks.get(id)?)))
    }

    /// Questions that wait for an answer.
    pub fn all_open_questions(&self) -> impl Iterator<Item = &Question> {
        self.working.questions.iter().filter_map(|id| self.questions.get(id))
    }

    /// Open questions of a task, oldest first.
    pub fn open_questions(&self, task_id: TaskId) -> impl Iterator<Item = &Question> {
        self.all_open_questions().filter(move |question| question.task_id == task_id)
    }

    /// Every question that a session asked.
    pub fn questions_of(&self, session_id: SessionId) -> impl Iterator<Item = &Question> {
        let ids = self.working.questions_of.get(&session_id);
        ids.into_iter().flatten().filter_map(|id| self.questions.get(id))
    }

    /// Whether a process has asked under this id before. Rows of earlier programs don't name their process.
    pub(crate) fn has_asked(&self, generation: &Generation, request_id: &str) -> bool {
        self.questions_of(generation.session_id).any(|question| {
            question.request_id.as_deref() == Some(request_id)
                && question
                    .generation_id
                    .map_or(question.opened_at > generation.started_at, |id| id == generation.id)
        })
    }

    /// Deliveries that are to be brought to their sinks by themselves.
    pub fn open_deliveries(&self) -> impl Iterator<Item = &Delivery> {
        self.working.deliveries.iter().filter_map(|id| self.deliveries.get(id))
    }

    /// Rooms with something in their mailbox.
    pub fn rooms_with_mail(&self) -> impl Iterator<Item = &Room> {
        self.working.rooms.iter().filter_map(|id| self.rooms.get(id))
    }

    /// Whether a task has a run without an outcome.
    pub fn task_has_open_run(&self, task: &Task) -> bool {
        self.working.runs_of.contains_key(&task.id)
    }
}
