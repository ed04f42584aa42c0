//! Somebody who watches the journal for as long as the test lasts, over every restart of the daemon.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rallypoint_client::{Client, ClientError};
use rallypoint_engine::apply::apply;
use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::State;
use rallypoint_engine::view::is_settled;
use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::task::TaskStatus;
use rallypoint_ops::types::EventsInput;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Problems after which a follower gives up. Until then it goes on, so that one problem is not found a hundred times.
const PROBLEMS: usize = 20;

/// Events that one follower was shown.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// What it asked for.
    pub filter: EventsInput,
    /// What it got, in the order it came.
    pub events: Vec<EventRecord>,
    /// What went wrong with it, other than a daemon that was not there.
    pub problems: Vec<String>,
}

/// What a follower of everything knows.
#[derive(Debug, Default)]
pub struct Followed {
    /// The state that the shown events add up to.
    pub state: State,
    /// What it was shown.
    pub shown: Shown,
}

impl Followed {
    fn take(&mut self, record: EventRecord) {
        apply(&mut self.state, &record, &mut Changes::default());
        self.shown.events.push(record);
    }

    /// The last frame of an agent's output that was shown.
    pub fn last_frame(&self) -> u64 {
        let last = self.shown.events.iter().rev().find_map(|record| match &record.event {
            Event::AgentOutput { last_frame, .. } => Some(*last_frame),
            _ => None,
        });
        last.unwrap_or(0)
    }

    /// Tasks in which something still happens by itself.
    pub fn unsettled(&self) -> usize {
        self.state.tasks.values().filter(|task| !is_settled(&self.state, task)).count()
    }

    /// Whether nothing happens any more and nothing of any agent is left.
    pub fn is_quiet(&self) -> bool {
        self.open_ends().is_empty()
    }

    /// What still happens, or has no end.
    pub fn open_ends(&self) -> Vec<String> {
        let state = &self.state;
        let tasks = state
            .tasks
            .values()
            // Events of one transaction come one by one: between a task's first event and its first run nothing of it
            // is open, and nothing of it is over.
            .filter(|task| !is_settled(state, task) || is_underway(task.status))
            .map(|task| format!("task {} ({}) is {:?}", task.id, task.title, task.status));
        let runs = state
            .runs
            .values()
            .filter(|run| run.is_open())
            .map(|run| format!("run {} is {:?}, its prompt {:?}", run.id, run.status, run.prompt));
        let generations =
            state.generations.values().filter(|generation| generation.cleaned.is_none()).map(|generation| {
                format!("generation {} is {:?} and not cleaned", generation.id, generation.status)
            });
        tasks.chain(runs).chain(generations).collect()
    }
}

/// Whether a task of this status must not be left to itself.
fn is_underway(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Open | TaskStatus::Active | TaskStatus::Validating)
}

/// Follows everything from the beginning, in a task of its own.
#[derive(Debug)]
pub struct Follower {
    followed: Arc<Mutex<Followed>>,
    last: watch::Receiver<i64>,
    task: JoinHandle<()>,
}

impl Follower {
    /// Begins.
    pub fn start(client: &Client) -> Self {
        let followed: Arc<Mutex<Followed>> = Arc::default();
        let (sender, last) = watch::channel(0);
        let task = tokio::spawn(follow(client.clone(), Arc::clone(&followed), sender));
        Self { followed, last, task }
    }

    /// Looks at what is known.
    pub fn look<T>(&self, look: impl FnOnce(&Followed) -> T) -> T {
        look(&self.followed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something holds. False when that takes too long.
    pub async fn until(&mut self, limit: Duration, holds: impl Fn(&Followed) -> bool) -> bool {
        let waiting = async {
            loop {
                // Marked as seen first, so that what comes while we look is not missed.
                self.last.borrow_and_update();
                if self.look(&holds) {
                    return true;
                }
                if self.last.changed().await.is_err() {
                    return self.look(&holds);
                }
            }
        };
        tokio::time::timeout(limit, waiting).await.unwrap_or(false)
    }

    /// Ends it and gives what it was shown.
    pub fn finish(self) -> Shown {
        self.task.abort();
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut followed.shown)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(client: Client, followed: Arc<Mutex<Followed>>, last: watch::Sender<i64>) {
    loop {
        let after = Some(*last.borrow());
        let mut stream = client.follow(EventsInput { after, ..EventsInput::default() });
        let problem = loop {
            match stream.next().await {
                Ok(record) => {
                    let seq = record.seq;
                    followed.lock().unwrap_or_else(PoisonError::into_inner).take(record);
                    last.send_replace(seq);
                }
                // It gave up waiting for a daemon; we do not.
                Err(ClientError::NoDaemon | ClientError::Lost) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        if let Some(problem) = problem {
            let mut followed = followed.lock().unwrap_or_else(PoisonError::into_inner);
            followed.shown.problems.push(problem);
            if followed.shown.problems.len() >= PROBLEMS {
                return;
            }
        }
    }
}

/// Follows a part of the journal until told to stop or until the daemon is gone.
pub(crate) async fn follow_part(
    client: Client,
    filter: EventsInput,
    mut stop: watch::Receiver<bool>,
) -> Shown {
    let mut shown = Shown { filter: filter.clone(), ..Shown::default() };
    let mut stream = client.follow(filter);
    loop {
        tokio::select! {
            next = stream.next() => match next {
                Ok(record) => shown.events.push(record),
                Err(ClientError::NoDaemon | ClientError::Lost) => return shown,
                Err(error) => {
                    shown.problems.push(error.to_string());
                    return shown;
                }
            },
            _stopped = stop.wait_for(|stop| *stop) => return shown,
        }
    }
}
