//! The decider: the one thread that owns the write connection and the live state.
//!
//! It takes what has queued, decides and applies each command on the state so
//! far, commits once, and only then do answers, followers and effects see it.

mod clock_watch;
mod faulty;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use rallypoint_engine::changes::Changes;
use rallypoint_engine::decide::{Context, decide};
use rallypoint_engine::due::{Effect, due, due_of_row, next_wakeup};
use rallypoint_engine::state::State;
use rallypoint_model::channel::ChannelFacts;
use rallypoint_model::command::{Command, Outcome};
use rallypoint_model::event::EventRecord;
use rallypoint_model::limits::Limits;
use rallypoint_model::money::PriceTable;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::request::RequestRow;
use rallypoint_model::routing::RouterSwitch;
use rallypoint_process::fault_point::pass;
use rallypoint_store::{JournalStore, StoreError};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::faults::Faults;
use crate::funnel::SharedRedactor;
use crate::requests::{DecisionKey, KeyedRequest, decided, oldest, row_of};
use clock_watch::{Sleep, step};

use crate::sources::{SystemClock, SystemIds, clock_anchor};

/// Commands that may wait; one more is refused as overloaded.
const QUEUE: usize = 4096;
/// Commands of one transaction at most.
const BATCH: usize = 256;
/// Longest sleep between two looks at the clock, which may have been set or have slept.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(1);
/// Shortest time between two ticks, so that a deadline that stays due can't spin.
const TICK_FLOOR: Duration = Duration::from_millis(5);
/// How often it is noted that a daemon is up; the time that a question may be given too much after a crash.
const NOTE_ALIVE: Duration = Duration::from_secs(30);

type Answer = Result<Outcome, Refusal>;
type Look = Box<dyn FnOnce(&State) + Send>;

enum Job {
    Decide(Box<Pending>),
    Keep(RequestRow, oneshot::Sender<Result<(), Refusal>>),
    Look(Look),
    Close,
}

/// Handle of the decider. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Decider {
    jobs: SyncSender<Job>,
    /// The request whose decisions are asked for, when it came with a key.
    request: Option<Arc<KeyedRequest>>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Job")
    }
}

/// What the decider is made with.
pub(crate) struct DeciderParts {
    pub(crate) store: Box<dyn JournalStore>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) prices: Arc<PriceTable>,
    pub(crate) router: RouterSwitch,
    pub(crate) redactor: SharedRedactor,
    /// Channels of the configuration.
    pub(crate) channels: BTreeMap<String, ChannelFacts>,
    pub(crate) faults: Faults,
    pub(crate) followers: broadcast::Sender<Arc<EventRecord>>,
    pub(crate) effects: mpsc::UnboundedSender<Vec<Effect>>,
}

impl Decider {
    /// Loads the state and starts the thread. Effects of the loaded state are
    /// announced first.
    pub(crate) fn start(parts: DeciderParts) -> Result<(Self, std::thread::JoinHandle<()>), StoreError> {
        let mut state = parts.store.load()?;
        // Silence is counted from now on: nobody listened while no daemon was up.
        for generation in state.generations.values_mut() {
            generation.last_report_at = SystemClock.now();
        }
        if parts.faults.no_cursor {
            for generation in state.generations.values_mut() {
                generation.cursor = rallypoint_model::session::SpoolCursor::default();
            }
        }
        state.channels.clone_from(&parts.channels);
        let (jobs, queue) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("decider".to_owned())
            .spawn(move || {
                let mut worker = Worker {
                    parts,
                    state,
                    last_tick: None,
                    last_note: None,
                    sleep: Sleep::default(),
                    full: false,
                };
                let stepped_ms = worker.shift_clocks(0);
                worker.resume_clocks(stepped_ms);
                // What follows from the loaded state by itself, such as doubts about what was offered to channels.
                worker.batch(vec![Pending::own(Command::Tick)]);
                worker.announce_all();
                worker.run(&queue);
            })
            .map_err(|source| StoreError::Folder { folder: std::path::PathBuf::new(), source })?;
        Ok((Self { jobs, request: None }, thread))
    }

    /// Has a command decided. The answer comes after its commit.
    pub(crate) async fn decide(&self, command: Command) -> Answer {
        let (sender, answer) = oneshot::channel();
        let asked = self.request.as_ref().map(|request| request.next());
        self.push(Job::Decide(Box::new(Pending { command, asked, sender })))?;
        answer.await.map_err(|_| closed())?
    }

    /// The same decider for one request that came with a key.
    pub(crate) fn under(&self, request: Arc<KeyedRequest>) -> Self {
        Self { jobs: self.jobs.clone(), request: Some(request) }
    }

    /// Keeps the answer of a request.
    pub(crate) async fn keep(&self, row: RequestRow) -> Result<(), Refusal> {
        let (sender, answer) = oneshot::channel();
        self.push(Job::Keep(row, sender))?;
        answer.await.map_err(|_| closed())?
    }

    /// Looks at the committed state.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (sender, answer) = oneshot::channel();
        self.push(Job::Look(Box::new(move |state| {
            // The caller may have gone away meanwhile.
            let _gone = sender.send(look(state));
        })))?;
        answer.await.map_err(|_| closed())
    }

    /// Ends the thread after what has queued.
    pub(crate) fn close(&self) {
        // A full queue means that it is busy; closing then happens when the handle is dropped.
        let _full = self.jobs.try_send(Job::Close);
    }

    fn push(&self, job: Job) -> Result<(), Refusal> {
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => Refusal {
                code: RefusalCode::Limit,
                message: format!("{QUEUE} commands wait already"),
                hint: Some("try again in a moment".to_owned()),
                retryable: true,
            },
            TrySendError::Disconnected(_) => closed(),
        })
    }
}

fn closed() -> Refusal {
    Refusal {
        code: RefusalCode::Internal,
        message: "the daemon is ending".to_owned(),
        hint: Some("try again; a command starts a new one".to_owned()),
        retryable: true,
    }
}

struct Worker {
    parts: DeciderParts,
    state: State,
    last_tick: Option<Instant>,
    last_note: Option<Instant>,
    sleep: Sleep,
    full: bool,
}

struct Pending {
    command: Command,
    /// Which decision of a request it is, when that came with a key.
    asked: Option<DecisionKey>,
    sender: oneshot::Sender<Answer>,
}

impl Pending {
    /// A command of our own, whose answer nobody waits for.
    fn own(command: Command) -> Self {
        let (sender, _unheard) = oneshot::channel();
        Self { command, asked: None, sender }
    }
}

impl Worker {
    fn run(&mut self, queue: &Receiver<Job>) {
        loop {
            let patience = self.patience();
            self.sleep.begins(Instant::now());
            let first = match queue.recv_timeout(patience) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            self.obey_full_disk();
            let overslept_ms = self.sleep.ends(Instant::now(), patience);
            let _moved = self.shift_clocks(overslept_ms);
            self.sleep.begins(Instant::now());
            let mut batch: Vec<Pending> = Vec::new();
            let mut looks: Vec<Look> = Vec::new();
            let mut kept = Vec::new();
            let mut close = false;
            let mut next = first;
            while let Some(job) = next {
                match job {
                    Job::Decide(pending) => batch.push(*pending),
                    Job::Keep(row, sender) => kept.push((row, sender)),
                    Job::Look(look) => looks.push(look),
                    Job::Close => close = true,
                }
                if batch.len() >= BATCH {
                    break;
                }
                next = queue.try_recv().ok();
            }
            self.batch(batch);
            self.keep(kept);
            // It may have been stopped in the middle of its work too; nobody is judged by that time either.
            let held_up_ms = self.sleep.ends(Instant::now(), Duration::ZERO);
            if held_up_ms > 0 {
                let _moved = self.shift_clocks(held_up_ms);
            }
            self.tick_if_due();
            self.note_alive();
            for look in looks {
                look(&self.state);
            }
            if close {
                self.last_note = None;
                self.note_alive();
                return;
            }
        }
    }

    fn patience(&self) -> Duration {
        let Some(at) = next_wakeup(&self.state, &self.parts.limits) else {
            return LOOK_AT_CLOCK;
        };
        let wait = u64::try_from(at.since(SystemClock.now()).max(0)).unwrap_or(0);
        Duration::from_millis(wait).clamp(TICK_FLOOR, LOOK_AT_CLOCK)
    }

    /// Time in which no daemon was up does not count for what waits for a person.
    fn resume_clocks(&mut self, stepped_ms: i64) {
        let away_ms = match self.parts.store.last_alive() {
            Ok(last) => last.map_or(0, |last| SystemClock.now().since(last.plus(stepped_ms))),
            Err(error) => {
                tracing::warn!(%error, "how long no daemon was up is not known");
                0
            }
        };
        if away_ms > 0 {
            self.batch(vec![Pending::own(Command::ResumeClocks { away_ms })]);
        }
        self.note_alive();
    }

    /// Before anything else is decided: deadlines must not fire because the clock was set, or nobody could decide.
    /// Gives by how much.
    fn shift_clocks(&mut self, overslept_ms: i64) -> i64 {
        let Some(world) = &self.state.world else { return 0 };
        let shift = step(world.clock.as_ref(), clock_anchor());
        let by_ms = shift.by_ms.saturating_add(overslept_ms);
        if by_ms == 0 && shift.anchor.is_none() {
            return 0;
        }
        if by_ms != 0 {
            tracing::warn!(
                by_ms,
                "the clock was set, or nothing ran for a while; clocks of open work are moved"
            );
        }
        self.batch(vec![Pending::own(Command::ShiftClocks { by_ms, anchor: shift.anchor })]);
        // What was noted of a living daemon was of the clock before.
        self.last_note = None;
        by_ms
    }

    fn note_alive(&mut self) {
        if self.last_note.is_some_and(|last| last.elapsed() < NOTE_ALIVE) {
            return;
        }
        self.last_note = Some(Instant::now());
        if let Err(error) = self.parts.store.note_alive(SystemClock.now()) {
            tracing::warn!(%error, "that a daemon is up can't be noted");
        }
        let oldest = oldest(&self.parts.limits, SystemClock.now());
        if let Err(error) = self.parts.store.forget_requests(oldest) {
            tracing::warn!(%error, "requests whose time is over can't be forgotten");
        }
    }

    fn tick_if_due(&mut self) {
        let due = next_wakeup(&self.state, &self.parts.limits).is_some_and(|at| at <= SystemClock.now());
        let rested = self.last_tick.is_none_or(|last| last.elapsed() >= TICK_FLOOR);
        if due && rested {
            self.last_tick = Some(Instant::now());
            self.batch(vec![Pending::own(Command::Tick)]);
        }
    }

    /// Keeps answers of requests, in one transaction.
    fn keep(&mut self, kept: Vec<(RequestRow, oneshot::Sender<Result<(), Refusal>>)>) {
        if kept.is_empty() {
            return;
        }
        let (requests, senders): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
        let done = match self.commit(Changes { requests, ..Changes::default() }) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.reload(&error);
                Err(store_refusal(&error))
            }
        };
        for sender in senders {
            let _gone = sender.send(done.clone());
        }
    }

    /// One transaction for all of them; each alone when that fails.
    fn batch(&mut self, batch: Vec<Pending>) {
        if batch.is_empty() {
            return;
        }
        pass("decider:begin");
        let (answers, changes) = self.decide_all(&batch);
        if self.parts.faults.ack_before_commit && !changes.is_empty() {
            self.tell_then_commit(batch, answers, changes);
            return;
        }
        match self.commit(changes) {
            Ok(()) => {
                for (Pending { sender, .. }, answer) in batch.into_iter().zip(answers) {
                    // The caller may have gone away; what is committed stays.
                    let _gone = sender.send(answer);
                }
            }
            Err(error) => {
                self.reload(&error);
                if batch.len() == 1 {
                    for Pending { sender, .. } in batch {
                        let _gone = sender.send(Err(store_refusal(&error)));
                    }
                } else {
                    for pending in batch {
                        self.batch(vec![pending]);
                    }
                }
            }
        }
    }

    fn decide_all(&mut self, batch: &[Pending]) -> (Vec<Answer>, Changes) {
        let mut changes = Changes::default();
        let mut ids = SystemIds;
        let answers: Vec<Answer> = batch
            .iter()
            .map(|Pending { command, asked, .. }| {
                let now = SystemClock.now();
                if let Some(asked) = asked {
                    let oldest = oldest(&self.parts.limits, now);
                    match decided(&*self.parts.store, &changes, asked, oldest) {
                        Ok(None) => {}
                        Ok(Some(answer)) => return answer,
                        Err(refusal) => return Err(refusal),
                    }
                }
                let mut context = Context {
                    now,
                    ids: &mut ids,
                    limits: &self.parts.limits,
                    prices: &self.parts.prices,
                    funnel: &self.parts.redactor,
                    unique_keys: self.parts.faults.unique_keys(),
                    router: self.parts.router,
                };
                let answer = decide(&mut self.state, command, &mut context, &mut changes);
                changes.requests.extend(asked.as_ref().and_then(|asked| row_of(asked, &answer, now)));
                answer
            })
            .collect();
        (answers, changes)
    }

    fn commit(&mut self, mut changes: Changes) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        pass("decider:decided");
        if self.parts.faults.cursor_outside {
            self.commit_cursors_apart(&mut changes)?;
        } else {
            self.parts.store.commit(&mut changes, &self.state)?;
        }
        pass("decider:committed");
        if !changes.purged.is_empty()
            && let Err(error) = self.parts.store.rewrite()
        {
            tracing::warn!(%error, "old pages of the database may hold what was purged until the next start");
        }
        self.announce(changes);
        pass("decider:announced");
        Ok(())
    }

    /// Tells followers and effects what was committed.
    fn announce(&self, changes: Changes) {
        let effects = self.effects_of(&changes);
        for event in changes.events {
            // Nobody may be following.
            let _nobody = self.parts.followers.send(Arc::new(event));
        }
        self.hand_on(effects);
    }

    fn effects_of(&self, changes: &Changes) -> Vec<Effect> {
        let due = |row: &_| due_of_row(&self.state, *row, &self.parts.limits);
        changes.touched.iter().flat_map(due).collect()
    }

    fn hand_on(&self, effects: Vec<Effect>) {
        if !effects.is_empty() {
            let _ending = self.parts.effects.send(effects);
        }
    }

    fn announce_all(&self) {
        self.hand_on(due(&self.state, &self.parts.limits));
    }

    /// After a failed commit the state in memory is ahead of the store: drop it.
    fn reload(&mut self, error: &StoreError) {
        tracing::error!(%error, "a transaction failed and was rolled back");
        if is_sync_failure(error) {
            // What the disk holds can't be known any more; only a fresh start can.
            tracing::error!("the disk did not take what was written; the daemon ends");
            std::process::exit(74);
        }
        let offered_here = std::mem::take(&mut self.state.offered_here);
        match self.parts.store.load() {
            Ok(state) => {
                let stderr: Vec<_> = self
                    .state
                    .generations
                    .values()
                    .map(|generation| (generation.id, generation.stderr_tail.clone()))
                    .collect();
                self.state = state;
                self.state.channels.clone_from(&self.parts.channels);
                self.state.offered_here = offered_here;
                for (id, tail) in stderr {
                    if let Some(generation) = self.state.generations.get_mut(&id) {
                        generation.stderr_tail = tail;
                    }
                }
            }
            Err(error) => {
                tracing::error!(%error, "the store can't be read after a failed transaction; the daemon ends");
                std::process::exit(74);
            }
        }
    }
}

fn is_sync_failure(error: &StoreError) -> bool {
    matches!(error, StoreError::Unsynced(_))
}

fn store_refusal(error: &StoreError) -> Refusal {
    let hint = match error {
        StoreError::Full => "free some disk space, then try again",
        _ => "`rally doctor` looks at the data folder",
    };
    Refusal {
        code: RefusalCode::Internal,
        message: format!("nothing was stored: {error}"),
        hint: Some(hint.to_owned()),
        retryable: true,
    }
}
