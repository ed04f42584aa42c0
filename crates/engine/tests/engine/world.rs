//! A world in memory: live state, counting ids, a clock that only tests move,
//! and the journal of everything that was decided.

use rallypoint_engine::changes::Changes;
use rallypoint_engine::decide::{Context, NoSecrets, UniqueKeys, decide};
use rallypoint_engine::due::next_wakeup;
use rallypoint_engine::state::{Question, Run, State, Task};
use rallypoint_engine::view::settled_exit_code;
use rallypoint_model::command::{Acceptance, AgentLaunch, Command, CreateTask, Outcome};
use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::ids::{
    CriterionId, EntityId, IdSource, QuestionId, RoomId, SessionId, TaskId, WorldId,
};
use rallypoint_model::limits::Limits;
use rallypoint_model::money::PriceTable;
use rallypoint_model::question::QuestionStatus;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::routing::RouterSwitch;
use rallypoint_model::task::{Criterion, CriterionCheck};
use rallypoint_model::time::Timestamp;
use serde::Serialize;
use uuid::Uuid;

/// Ids 1, 2, 3, …
#[derive(Debug, Default)]
pub(crate) struct CountingIds {
    pub(crate) next: u128,
}

impl IdSource for CountingIds {
    fn next_uuid(&mut self) -> Uuid {
        self.next += 1;
        Uuid::from_u128(self.next)
    }
}

type OnCommit = Box<dyn FnMut(&mut Changes, &State)>;

/// Everything that decisions need.
pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) now: Timestamp,
    pub(crate) limits: Limits,
    pub(crate) prices: PriceTable,
    pub(crate) ids: CountingIds,
    pub(crate) journal: Vec<EventRecord>,
    pub(crate) unique_keys: UniqueKeys,
    pub(crate) router: RouterSwitch,
    /// What the last command changed.
    pub(crate) last: Changes,
    /// Called after each decision with what it changed.
    pub(crate) on_commit: Option<OnCommit>,
}

pub(crate) const MAIN_ROOM: RoomId = RoomId(Uuid::from_u128(0xa2));

impl World {
    /// An opened world without tasks.
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let mut world = Self::unopened(limits);
        world.open();
        world
    }

    pub(crate) fn unopened(limits: Limits) -> Self {
        Self {
            state: State::default(),
            now: Timestamp(1_000_000),
            limits,
            prices: PriceTable::default(),
            ids: CountingIds { next: 0x1000 },
            journal: Vec::new(),
            unique_keys: UniqueKeys::Enforced,
            router: RouterSwitch::On,
            last: Changes::default(),
            on_commit: None,
        }
    }

    pub(crate) fn open(&mut self) {
        self.ok(Command::OpenWorld {
            world_id: WorldId(Uuid::from_u128(0xa1)),
            main_room_id: MAIN_ROOM,
            user_id: EntityId(Uuid::from_u128(0xa3)),
            main_agent_id: EntityId(Uuid::from_u128(0xa4)),
            system_id: EntityId(Uuid::from_u128(0xa5)),
            clock: None,
        });
    }

    /// Decides one command; what it changed is kept in `last` and `journal`.
    pub(crate) fn decide(&mut self, command: &Command) -> Result<Outcome, Refusal> {
        let mut changes = Changes::default();
        let mut context = Context {
            now: self.now,
            ids: &mut self.ids,
            limits: &self.limits,
            prices: &self.prices,
            funnel: &NoSecrets,
            unique_keys: self.unique_keys,
            router: self.router,
        };
        let outcome = decide(&mut self.state, command, &mut context, &mut changes);
        if let Some(on_commit) = &mut self.on_commit {
            on_commit(&mut changes, &self.state);
        }
        self.journal.extend(changes.events.iter().cloned());
        self.last = changes;
        outcome
    }

    /// Decides a command that must not be refused.
    pub(crate) fn ok(&mut self, command: Command) -> Outcome {
        match self.decide(&command) {
            Ok(outcome) => outcome,
            Err(refusal) => panic!("refused: {refusal} ({command:?})"),
        }
    }

    /// Decides a command that must be refused, which must leave no trace.
    pub(crate) fn refused(&mut self, command: Command) -> (RefusalCode, String) {
        let (events, before) = (self.journal.len(), self.state.clone());
        match self.decide(&command) {
            Ok(outcome) => panic!("not refused: {outcome:?} ({command:?})"),
            Err(refusal) => {
                assert_eq!(self.journal.len(), events, "a refusal left facts");
                assert_eq!(self.state, before, "a refusal changed the state");
                (refusal.code, refusal.to_string())
            }
        }
    }

    /// Lets time pass and ticks.
    pub(crate) fn pass(&mut self, millis: i64) {
        self.now = self.now.plus(millis);
        self.ok(Command::Tick);
    }

    /// Lets time pass to the next point at which something is due; false when there is none.
    pub(crate) fn pass_to_wakeup(&mut self) -> bool {
        let Some(at) = next_wakeup(&self.state, &self.limits) else {
            return false;
        };
        self.now = self.now.max(at);
        self.ok(Command::Tick);
        true
    }

    pub(crate) fn create(&mut self, create: CreateTask) -> TaskId {
        match self.ok(Command::CreateTask(create)) {
            Outcome::Task { task_id } => task_id,
            other => panic!("no task: {other:?}"),
        }
    }

    pub(crate) fn task(&self, task_id: TaskId) -> &Task {
        &self.state.tasks[&task_id]
    }

    pub(crate) fn runs(&self, task_id: TaskId) -> Vec<&Run> {
        self.task(task_id).runs.iter().map(|id| &self.state.runs[id]).collect()
    }

    pub(crate) fn last_run(&self, task_id: TaskId) -> &Run {
        self.runs(task_id).last().expect("the task has a run")
    }

    pub(crate) fn session(&self, task_id: TaskId) -> SessionId {
        *self.task(task_id).sessions.first().expect("the task has a session")
    }

    pub(crate) fn open_questions(&self) -> Vec<&Question> {
        self.state.questions.values().filter(|question| question.status == QuestionStatus::Open).collect()
    }

    pub(crate) fn question(&self) -> QuestionId {
        match self.open_questions().as_slice() {
            [one] => one.id,
            other => panic!("{} open questions", other.len()),
        }
    }

    /// Status, reason, exit code and the runs of a task, in one line.
    pub(crate) fn story(&self, task_id: TaskId) -> String {
        let task = self.task(task_id);
        let exit = settled_exit_code(&self.state, task_id)
            .map_or_else(|| "not settled".to_owned(), |code| format!("exit {code}"));
        let reason = task.reason.map_or_else(String::new, |reason| format!("({})", word(&reason)));
        let runs: Vec<String> = self
            .runs(task_id)
            .iter()
            .map(|run| {
                let end = match run.outcome {
                    Some(outcome) => word(&outcome),
                    None => format!("[{}]", word(&run.status)),
                };
                format!("{} {end}", word(&run.purpose))
            })
            .collect();
        format!("{}{reason}, {exit}: {}", word(&task.status), runs.join(", "))
    }

    /// The messages of all rooms as `who: first line`.
    pub(crate) fn room(&self) -> Vec<String> {
        self.messages()
            .iter()
            .map(|message| format!("{}: {}", message.name, message.text.lines().next().unwrap_or_default()))
            .collect()
    }

    pub(crate) fn messages(&self) -> Vec<&rallypoint_model::message::Message> {
        self.journal
            .iter()
            .filter_map(|record| match &record.event {
                Event::MessagePosted { message, .. } => Some(message),
                _ => None,
            })
            .collect()
    }

    /// Replies of the main agent with this role for a task.
    pub(crate) fn replies(&self, task_id: TaskId, role: &str) -> Vec<String> {
        self.messages()
            .iter()
            .filter(|message| message.task_id == Some(task_id) && message.metadata["role"] == role)
            .map(|message| message.text.clone())
            .collect()
    }

    /// Facts of one kind, as their journalled data.
    pub(crate) fn facts(&self, kind: &str) -> Vec<&Event> {
        self.journal.iter().map(|record| &record.event).filter(|event| event.kind() == kind).collect()
    }
}

/// The word of a value on the wire.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value).expect("serialises") {
        serde_json::Value::String(text) => text,
        serde_json::Value::Object(map) => map["kind"].as_str().expect("a kind").to_owned(),
        other => other.to_string(),
    }
}

/// A task with one agent and one command to check it.
pub(crate) fn task(number: u128) -> CreateTask {
    CreateTask {
        task_id: TaskId(Uuid::from_u128(0x100 + number)),
        idempotency_key: None,
        title: "Fix it".to_owned(),
        goal: "Fix the test".to_owned(),
        room_id: None,
        worktree_room_id: None,
        cwd: "/w".to_owned(),
        criteria: vec![command_criterion(number)],
        acceptance: Acceptance::Checked,
        timeout_ms: 0,
        agents: vec![agent("ada")],
        requested_by: "kim".to_owned(),
        source: "cli".to_owned(),
        priority: rallypoint_model::admission::Priority::Normal,
        budget: rallypoint_model::admission::Budget::default(),
        platform_message_id: None,
        attachments: Vec::new(),
        forked_from: None,
        progress: None,
    }
}

pub(crate) fn command_criterion(number: u128) -> Criterion {
    Criterion {
        id: CriterionId(Uuid::from_u128(0x200 + number)),
        text: "tests pass".to_owned(),
        check: CriterionCheck::Command { command: "make test".to_owned() },
    }
}

pub(crate) fn agent(label: &str) -> AgentLaunch {
    let launch = serde_json::json!({
        "agentId": label,
        "profile": "shell",
        "label": label,
        "argv": ["agent"],
        "environment": [],
        "secretNames": [],
        "usageKind": "per_turn",
        "loginHint": "run `agent login`",
    });
    serde_json::from_value(launch).expect("a launch")
}
