//! What holds after every command, and of every journal.

use std::collections::{BTreeMap, BTreeSet};

use rallypoint_engine::apply::apply;
use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::{Run, State};
use rallypoint_engine::{delivery_machine, run_machine, task_machine};
use rallypoint_model::delivery::DeliveryStatus;
use rallypoint_model::event::{Aggregate, Event, EventRecord};
use rallypoint_model::ids::{DeliveryId, QuestionId, RunId, TaskId};
use rallypoint_model::question::QuestionStatus;
use rallypoint_model::run::{RunStatus, RunTrigger};
use rallypoint_model::task::TaskStatus;
use serde_json::{Value, json};

/// A reader of the journal that keeps its own books.
#[derive(Debug, Default)]
pub(crate) struct Auditor {
    versions: BTreeMap<Aggregate, u64>,
    tasks: BTreeMap<TaskId, TaskStatus>,
    runs: BTreeMap<RunId, RunStatus>,
    questions: BTreeMap<QuestionId, QuestionStatus>,
    ended: BTreeSet<RunId>,
    delivered: BTreeSet<String>,
    deliveries: BTreeMap<DeliveryId, DeliveryStatus>,
    terminal_replies: BTreeMap<TaskId, u32>,
    mail: BTreeMap<String, bool>,
}

impl Auditor {
    /// Checks one fact against those before it.
    pub(crate) fn audit(&mut self, record: &EventRecord) {
        let version = self.versions.entry(record.aggregate).or_default();
        *version += 1;
        assert_eq!(record.version, *version, "versions have a hole: {record:?}");
        match &record.event {
            Event::TaskCreated { task_id, .. } => {
                let known = self.tasks.insert(*task_id, TaskStatus::Open);
                assert_eq!(known, None, "a task was made twice");
            }
            Event::TaskStatusChanged { task_id, from, to, trigger, .. } => {
                assert_eq!(self.tasks.insert(*task_id, *to), Some(*from), "{record:?}");
                assert_eq!(task_machine::next(*from, *trigger), Some(*to), "{record:?}");
                self.terminal_replies.remove(task_id);
            }
            Event::RunQueued { run_id, .. } => {
                assert_eq!(self.runs.insert(*run_id, RunStatus::Queued), None);
            }
            Event::RunMoved { run_id, from, to, trigger } => {
                assert_eq!(self.runs.insert(*run_id, *to), Some(*from), "{record:?}");
                assert_eq!(run_machine::next(*from, *trigger), Some(*to), "{record:?}");
            }
            Event::RunEnded { run_id, .. } => {
                assert!(self.ended.insert(*run_id), "a run ended twice: {record:?}");
                let from = self.runs.insert(*run_id, RunStatus::Terminal).expect("the run is known");
                assert_eq!(run_machine::next(from, RunTrigger::Ended), Some(RunStatus::Terminal));
            }
            Event::QuestionOpened { question_id, .. } => {
                assert_eq!(self.questions.insert(*question_id, QuestionStatus::Open), None);
            }
            Event::QuestionClosed { question_id, status, .. } => {
                assert_ne!(*status, QuestionStatus::Open);
                let was = self.questions.insert(*question_id, *status);
                assert_eq!(was, Some(QuestionStatus::Open), "closed twice: {record:?}");
            }
            Event::DeliveryQueued(queued) => {
                assert!(self.delivered.insert(queued.delivery_key.clone()), "queued twice: {record:?}");
                let known = self.deliveries.insert(queued.delivery_id, DeliveryStatus::Pending);
                assert_eq!(known, None);
            }
            Event::DeliveryMoved(moved) => {
                let was = self.deliveries.insert(moved.delivery_id, moved.to);
                assert_eq!(was, Some(moved.from), "{record:?}");
                assert_eq!(delivery_machine::next(moved.from, moved.trigger), Some(moved.to), "{record:?}");
            }
            Event::SessionMailReceived { mail, .. } => {
                assert_eq!(self.mail.insert(mail.key.clone(), false), None, "mail came twice: {record:?}");
            }
            Event::SessionMailTaken { keys, .. } => {
                for key in keys {
                    assert_eq!(
                        self.mail.insert(key.clone(), true),
                        Some(false),
                        "taken twice or never sent: {key}"
                    );
                }
            }
            Event::MessagePosted { message, delivery_key } => {
                if let Some(key) = delivery_key {
                    assert!(self.delivered.insert(key.clone()), "delivered twice: {key}");
                }
                if message.metadata["role"] == "terminal"
                    && let Some(task_id) = message.task_id
                {
                    let count = self.terminal_replies.entry(task_id).or_default();
                    *count += 1;
                    assert_eq!(*count, 1, "one end of a task is told twice: {}", message.text);
                }
            }
            _ => {}
        }
    }
}

/// Everything of the state that is stored.
pub(crate) fn documents(state: &State) -> Value {
    json!({
        "world": state.world,
        "rooms": state.rooms,
        "tasks": state.tasks,
        "sessions": state.sessions,
        "runs": state.runs,
        "generations": state.generations,
        "questions": state.questions,
        "deliveries": state.deliveries,
        "keys": state.keys,
    })
}

/// Replays a journal, looking at the state after each fact.
pub(crate) fn replay(journal: &[EventRecord]) -> State {
    let mut state = State::default();
    let mut changes = Changes::default();
    for record in journal {
        apply(&mut state, record, &mut changes);
        let run = record.scope.run_id.and_then(|id| state.runs.get(&id));
        if let Some(run) = run {
            check_run(run);
        }
    }
    state
}

fn check_run(run: &Run) {
    let ended = run.status == RunStatus::Terminal;
    assert_eq!(
        (run.outcome.is_some(), run.reason.is_some(), run.ended_at.is_some()),
        (ended, ended, ended),
        "{run:?}"
    );
}

/// What holds whenever a command is decided.
pub(crate) fn check_state(state: &State, lane: u32) {
    let mut anew = state.clone();
    anew.reindex();
    assert_eq!(anew.working, state.working, "the indices are not what the rows say");
    assert!(state.running_slots() <= lane as usize, "more slots than the lane has");
    for session in state.sessions.values() {
        let idle = session.open_run.is_none() && session.queue.is_empty();
        let waits = rallypoint_engine::mailbox::wakes(&session.inbox);
        assert!(!(idle && waits), "an idle session has mail that nobody brings: {:?}", session.inbox);
    }
    for run in state.runs.values() {
        check_run(run);
        let session = &state.sessions[&run.session_id];
        let queued = session.queue.contains(&run.id);
        let open = session.open_run == Some(run.id);
        assert_eq!(
            (queued, open),
            match run.status {
                RunStatus::Queued => (true, false),
                RunStatus::Terminal => (false, false),
                _ => (false, true),
            },
            "{run:?}"
        );
    }
    for session in state.sessions.values() {
        if let Some(id) = session.generation_id {
            assert!(state.generations[&id].is_live());
        }
    }
    for room in state.rooms.values() {
        assert_eq!(room.mailbox, [], "a turn was left undone");
    }
    for task in state.tasks.values() {
        let works = state.task_has_open_run(task);
        let asked = state.open_questions(task.id).next().is_some();
        let held = task.pause.is_some();
        match task.status {
            TaskStatus::Open | TaskStatus::Active => assert!(works || held, "nobody works on it: {task:?}"),
            TaskStatus::Blocked => assert!(asked || held, "nothing is asked: {task:?}"),
            TaskStatus::Validating => {
                assert!(task.verification_due, "no check is due: {task:?}");
                assert!(!works, "it is checked and worked on: {task:?}");
            }
            TaskStatus::Done | TaskStatus::Failed => {
                assert!(!works, "worked on after its end: {task:?}");
                assert!(!asked, "asked after its end: {task:?}");
            }
            TaskStatus::WaitingOnUser => assert!(!works, "it waits and is worked on: {task:?}"),
            TaskStatus::Interrupted => {
                assert!(!works, "worked on after it was cut: {task:?}");
                assert!(!asked, "asked after it was cut: {task:?}");
            }
        }
    }
}
