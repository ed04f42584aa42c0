//! Following a task until nothing more happens by itself.
//!
//! The daemon says when that is and which exit code goes with it; this only shows what happens and passes on what the
//! person says. Events come once and in order over any restart of the daemon, so nothing is shown twice.

use std::future::pending;
use std::time::Duration;

use rallypoint_client::{Client, ClientError, Received};
use rallypoint_model::event::Event;
use rallypoint_model::ids::{QuestionId, TaskId};
use rallypoint_model::refusal::RefusalCode;
use rallypoint_model::task::TaskStatus;
use rallypoint_ops::types::{AnswerInput, Empty, EventPage, EventsInput, StopTaskInput, TaskRef, TaskView};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use crate::autostart::Connector;
use crate::failure::{Failure, INTERRUPTED};
use crate::output::Output;
use crate::run::asking::{Person, Typed};
use crate::run::ending;
use crate::run::request::person;
use crate::show::live::{Live, Progress};

/// Times that a call is made when the daemon goes away in the middle of it. All calls made here may be repeated.
const CALL_ATTEMPTS: u32 = 5;
/// Silence after which the task is looked at anyway. What settles it is always an event, but a reader that relied on
/// knowing each such event would wait for ever when a newer daemon has one more.
const LOOK_AFTER: Duration = Duration::from_secs(2);
/// Events read at once.
const PAGE: u32 = 500;

/// Follows one task.
#[derive(Debug)]
pub(crate) struct Follower {
    connector: Connector,
    task: TaskId,
    role: Role,
    hints: Hints,
    live: Live,
    person: Option<Person>,
    /// Last event that was shown.
    last: i64,
    stop_asked: bool,
    /// Questions whose answer was refused, so that they are not asked for ever.
    given_up: Vec<QuestionId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Asked for the task: answers its questions, and Ctrl-C stops it.
    Requester,
    /// Looks on.
    Watcher,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hints {
    On,
    Off,
}

impl Follower {
    pub(crate) fn new(connector: Connector, task: TaskId) -> Self {
        let live = Live::new(Progress::Off);
        Self {
            connector,
            task,
            role: Role::Requester,
            hints: Hints::On,
            live,
            person: None,
            last: 0,
            stop_asked: false,
            given_up: Vec::new(),
        }
    }

    /// Follows a task that somebody else asked for: Ctrl-C only ends the watching, and nobody is asked.
    pub(crate) fn watching(connector: Connector, task: TaskId) -> Self {
        Self { role: Role::Watcher, ..Self::new(connector, task) }
    }

    /// For a task that can't be looked at later.
    pub(crate) fn without_hints(self) -> Self {
        Self { hints: Hints::Off, ..self }
    }

    /// Shows what happens until the task is settled and gives the exit code.
    pub(crate) async fn followed_to_the_end(mut self, output: &mut Output) -> Result<u8, Failure> {
        if !output.is_json() {
            self.person = Person::at_terminal().filter(|_| self.role == Role::Requester);
            self.live = Live::new(Progress::Drawn);
        }
        let ended = self.settled(output).await;
        self.live.end();
        match ended? {
            Some(task) => self.finished(&task, output),
            None => Ok(INTERRUPTED),
        }
    }

    /// The settled task; nothing when the person left it running.
    async fn settled(&mut self, output: &mut Output) -> Result<Option<TaskView>, Failure> {
        let mut interrupts = signal(SignalKind::interrupt())
            .map_err(|error| Failure::failed(format!("Ctrl-C can't be taken: {error}")))?;
        let input = EventsInput { task_id: Some(self.task), after: Some(0), ..Default::default() };
        let mut stream = self.connector.client().follow(input).on_reconnect(self.connector.reconnect_hook());
        loop {
            tokio::select! {
                received = stream.next_received() => {
                    let look = self.show(&received?, output)?;
                    if look && let Some(task) = self.look(output).await? {
                        self.catch_up(output).await?;
                        return Ok(Some(task));
                    }
                }
                () = sleep(LOOK_AFTER) => {
                    if let Some(task) = self.look(output).await? {
                        self.catch_up(output).await?;
                        return Ok(Some(task));
                    }
                }
                line = typed(&mut self.person) => self.answer(&line, output).await?,
                () = interrupted(&mut interrupts) => {
                    if !self.interrupted(output).await? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Shows an event and says whether it may be the last one for now.
    fn show(&mut self, received: &Received, output: &mut Output) -> Result<bool, Failure> {
        if received.record.seq <= self.last {
            return Ok(false);
        }
        self.last = received.record.seq;
        if output.is_json() {
            output.line(&received.line)?;
        } else {
            self.live.show(&received.record, output)?;
        }
        Ok(matches!(
            received.record.event,
            Event::TaskStatusChanged { .. }
                | Event::TurnActionDone { .. }
                | Event::QuestionOpened { .. }
                | Event::QuestionClosed { .. }
                | Event::RunEnded { .. }
                | Event::RunMoved { .. }
                | Event::TaskVerified { .. }
                | Event::TaskOverridden { .. }
                | Event::TaskPaused(_)
                | Event::TaskResumed(_)
                | Event::GenerationCleaned { .. }
                | Event::GenerationEnded { .. }
        ))
    }

    /// The task, when nothing more happens by itself and nobody here can be asked.
    async fn look(&mut self, output: &mut Output) -> Result<Option<TaskView>, Failure> {
        let task: TaskView = self.call("task.get", &TaskRef { task_id: self.task }).await?;
        if self.person.is_some() {
            self.ask_what_is_open(&task, output).await?;
            if self.person.as_ref().and_then(Person::asked).is_some() {
                return Ok(None);
            }
        }
        let waits = self.person.is_none() && ending::waits_for_a_person(&task);
        Ok((task.settled || task.exit_code.is_some() || waits).then_some(task))
    }

    /// Asks the next open question, and takes back one that was answered elsewhere.
    async fn ask_what_is_open(&mut self, task: &TaskView, output: &mut Output) -> Result<(), Failure> {
        let Some(person) = &mut self.person else { return Ok(()) };
        let is_open = |id| task.open_questions.iter().any(|open| open.question_id == id);
        if person.asked().is_some_and(|asked| !is_open(asked)) {
            person.forget();
            output.talk("it was answered elsewhere");
            self.live.resume();
        }
        if person.asked().is_some() || self.stop_asked {
            return Ok(());
        }
        let next = task.open_questions.iter().find(|open| !self.given_up.contains(&open.question_id));
        if let Some(question) = next {
            // What led to the question is read before the question.
            self.catch_up(output).await?;
            self.live.pause();
            if let Some(person) = &mut self.person {
                person.ask(question.clone(), output);
            }
        }
        Ok(())
    }

    /// Shows what was committed before the task was found settled but has not come over the stream yet.
    async fn catch_up(&mut self, output: &mut Output) -> Result<(), Failure> {
        loop {
            let input = EventsInput {
                task_id: Some(self.task),
                after: Some(self.last),
                limit: Some(PAGE),
                ..Default::default()
            };
            let page: EventPage = self.call("event.list", &input).await?;
            let more = page.next_after.is_some() && !page.items.is_empty();
            for item in page.items {
                let line = item.to_string();
                let record = serde_json::from_value(item).map_err(|error| {
                    ClientError::Protocol(format!("an event has an unknown form: {error}"))
                })?;
                self.show(&Received { record, line }, output)?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    async fn answer(&mut self, line: &str, output: &mut Output) -> Result<(), Failure> {
        let Some((question_id, typed)) = self.person.as_mut().and_then(|person| person.take(line)) else {
            return Ok(());
        };
        let answer = match typed {
            Typed::Answer(answer) => answer,
            Typed::More(what) | Typed::Unclear(what) => {
                output.ask(&format!("{what}:"));
                return Ok(());
            }
        };
        self.live.resume();
        match self
            .call::<_, Empty>(
                "question.answer",
                &AnswerInput { question_id, answer, by: person(), agent: None },
            )
            .await
        {
            Ok(Empty {}) => Ok(()),
            Err(failure) => {
                // Somebody else was faster, or the daemon does not take it: the work goes on either way.
                self.given_up.push(question_id);
                self.live.aside(|| failure.print(output));
                Ok(())
            }
        }
    }

    /// Asks for a stop at the first time; `false` at the second one, when the person wants to leave.
    async fn interrupted(&mut self, output: &mut Output) -> Result<bool, Failure> {
        if self.stop_asked || self.role == Role::Watcher {
            let task = self.task;
            self.live.aside(|| {
                output.talk("left running");
                output.talk(&format!("hint: `rally task show {task}` shows how it goes"));
            });
            return Ok(false);
        }
        self.stop_asked = true;
        if let Some(person) = &mut self.person {
            person.forget();
        }
        self.live.resume();
        self.live.aside(|| output.talk("stopping it, Ctrl-C again leaves it running"));
        let input = StopTaskInput { task_id: self.task, by: person(), wait_ms: None };
        match self.client().await?.call::<_, TaskView>("task.stop", &input).await {
            // It ended a moment before.
            Err(ClientError::Refused(problem)) if problem.code == RefusalCode::Conflict => Ok(true),
            Err(ClientError::NoDaemon | ClientError::Lost) => {
                self.call::<_, TaskView>("task.stop", &input).await.map(|_| true)
            }
            answer => Ok(answer.map(|_| true)?),
        }
    }

    fn finished(&mut self, task: &TaskView, output: &mut Output) -> Result<u8, Failure> {
        let stopped = self.stop_asked && task.status != TaskStatus::Done;
        let code = if stopped { INTERRUPTED } else { ending::exit_code(task) };
        if output.is_json() {
            output.json(&ending::object(task, code))?;
            return Ok(code);
        }
        self.live.print(&ending::lines(task, self.live.last_reply()), output)?;
        if self.hints == Hints::On {
            for line in ending::hints(task, code) {
                output.talk(&line);
            }
        }
        Ok(code)
    }

    async fn client(&self) -> Result<Client, Failure> {
        self.connector.ready().await
    }

    /// A call that may be repeated, over restarts of the daemon.
    async fn call<I: Serialize, O: DeserializeOwned>(
        &self,
        operation: &str,
        input: &I,
    ) -> Result<O, Failure> {
        let mut client = self.connector.client();
        let mut attempts = 1;
        loop {
            match client.call(operation, input).await {
                Err(ClientError::NoDaemon | ClientError::Lost) if attempts < CALL_ATTEMPTS => {
                    attempts += 1;
                    client = self.client().await?;
                }
                answer => return Ok(answer?),
            }
        }
    }
}

async fn typed(person: &mut Option<Person>) -> String {
    match person {
        Some(person) => person.line().await,
        None => pending().await,
    }
}

async fn interrupted(signal: &mut Signal) {
    if signal.recv().await.is_none() {
        pending::<()>().await;
    }
}
