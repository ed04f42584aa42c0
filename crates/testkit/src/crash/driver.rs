//! The rounds.

use std::time::{Duration, Instant};

use anyhow::Context;
use rallypoint_client::{Client, ClientError};
use rallypoint_engine::apply::apply;
use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::State;
use rallypoint_model::event::Event;
use rallypoint_model::ids::TaskId;
use rallypoint_model::run::RunPurpose;
use rallypoint_ops::types::{EventsInput, TaskView};
use rallypoint_store::Reader;
use tokio::sync::watch;

use crate::crash::check::{check_answers, check_orphans, check_shown, check_work};
use crate::crash::phases::{phases, to_recover};
use crate::crash::{CrashPlan, CrashReport, Request, Work};
use crate::daemon_process::DaemonProcess;
use crate::data_folder::DataFolder;
use crate::follower::{Followed, Follower, Shown, follow_part};
use crate::journal::Journal;
use crate::random::Random;
use crate::violation::{Rule, Violation};

/// Longest time between a daemon that listens and its end, in milliseconds.
const KILL_WITHIN: u64 = 400;
/// The same for some of the rounds: while their calls are still under way.
const KILL_SOON_WITHIN: u64 = 25;
/// Rounds of a hundred that kill so soon.
const SOON_KILLS: u64 = 20;
/// Longest time between the start of a daemon and an early end, before it listens.
const EARLY_KILL_WITHIN: u64 = 60;
/// Rounds of a hundred that kill so early.
const EARLY_KILLS: u64 = 8;
/// Tasks at work beyond which a round asks for nothing new. A machine that is slow must not drown in a backlog.
const AT_WORK: usize = 10;
/// Time in which everything must come to its end once nobody kills any more.
const QUIET_WITHIN: Duration = Duration::from_secs(120);
/// Pause before a call is made again that was refused for now.
const CALL_AGAIN: Duration = Duration::from_millis(50);

/// Carries a plan out. An error means that it could not be carried out; what it finds wrong is in the report.
pub async fn run(plan: &CrashPlan) -> anyhow::Result<CrashReport> {
    let started = Instant::now();
    let mut driver = Driver::new(plan)?;
    for round in 0..plan.rounds {
        driver.round().await.with_context(|| format!("round {round} of seed {}", plan.seed))?;
    }
    let mut report = driver.finish().await.with_context(|| format!("the end of seed {}", plan.seed))?;
    report.elapsed = started.elapsed();
    Ok(report)
}

struct Driver<'a> {
    plan: &'a CrashPlan,
    folder: DataFolder,
    random: Random,
    follower: Follower,
    /// What followers of a part were shown.
    parts: Vec<Shown>,
    requests: Vec<Request>,
    /// Last number of the journal at each kill.
    kills: Vec<i64>,
    early_kills: u32,
    calls: usize,
    unanswered_calls: usize,
}

impl<'a> Driver<'a> {
    fn new(plan: &'a CrashPlan) -> anyhow::Result<Self> {
        let folder = DataFolder::new()?;
        let follower = Follower::start(&Client::unix(folder.socket()));
        Ok(Self {
            plan,
            folder,
            random: Random::new(plan.seed),
            follower,
            parts: Vec::new(),
            requests: Vec::new(),
            kills: Vec::new(),
            early_kills: 0,
            calls: 0,
            unanswered_calls: 0,
        })
    }

    fn spawn(&self) -> anyhow::Result<DaemonProcess> {
        DaemonProcess::spawn(&self.plan.program, &self.folder, self.plan.fault.as_deref())
    }

    async fn round(&mut self) -> anyhow::Result<()> {
        let mut daemon = self.spawn()?;
        if self.random.chance(EARLY_KILLS) {
            let delay = self.random.between(0, EARLY_KILL_WITHIN);
            tokio::time::sleep(Duration::from_millis(delay)).await;
            daemon.kill9()?;
            self.early_kills += 1;
        } else {
            daemon.ready().await?;
            self.work_until_killed(&mut daemon).await?;
        }
        self.kills.push(last_seq(&self.folder));
        Ok(())
    }

    async fn work_until_killed(&mut self, daemon: &mut DaemonProcess) -> anyhow::Result<()> {
        let last = self.requests.len().checked_sub(1);
        if self.follower.look(Followed::unsettled) < AT_WORK {
            let key = format!("request-{}", self.requests.len());
            let work = Work::random(&mut self.random);
            self.requests.push(Request::new(&self.plan.program, &self.folder, &key, work));
        }
        let client = daemon.client().clone();
        let (killed, is_killed) = watch::channel(false);
        let part = follow_part(client.clone(), self.part(), is_killed);
        let within = if self.random.chance(SOON_KILLS) { KILL_SOON_WITHIN } else { KILL_WITHIN };
        let delay = Duration::from_micros(self.random.between(0, within * 1_000));
        let killing = async {
            tokio::time::sleep(delay).await;
            let done = daemon.kill9();
            killed.send_replace(true);
            done
        };
        // The last request is sent again even when it was answered.
        let due: Vec<usize> = (0..self.requests.len())
            .filter(|index| {
                Some(*index) == last || self.requests.get(*index).is_some_and(|r| r.answers.is_empty())
            })
            .collect();
        let sending = send(&client, &mut self.requests, &due);
        let (killed, part, (calls, unanswered)) = tokio::join!(killing, part, sending);
        killed?;
        self.parts.push(part);
        self.calls += calls;
        self.unanswered_calls += unanswered;
        Ok(())
    }

    /// A part of the journal for one more follower: a task or a room, from its beginning or from somewhere in it.
    fn part(&mut self) -> EventsInput {
        let (tasks, room, last): (Vec<TaskId>, _, i64) = self.follower.look(|followed| {
            let state = &followed.state;
            (
                state.tasks.keys().rev().take(12).copied().collect(),
                state.rooms.keys().next().copied(),
                followed.shown.events.last().map_or(0, |event| event.seq),
            )
        });
        let near = last.saturating_sub(i64::try_from(self.random.between(0, 200)).unwrap_or(0)).max(0);
        let index = usize::try_from(self.random.between(0, 16)).unwrap_or(0);
        match (tasks.get(index), room) {
            (Some(task_id), _) if self.random.chance(50) => {
                EventsInput { task_id: Some(*task_id), after: Some(0), ..EventsInput::default() }
            }
            (Some(task_id), _) => {
                EventsInput { task_id: Some(*task_id), after: Some(near), ..EventsInput::default() }
            }
            (None, Some(room_id)) => {
                EventsInput { room_id: Some(room_id), after: Some(near), ..EventsInput::default() }
            }
            (None, None) => EventsInput { after: Some(0), ..EventsInput::default() },
        }
    }

    /// One last start, without an end by force.
    async fn finish(mut self) -> anyhow::Result<CrashReport> {
        let mut violations = Vec::new();
        let mut daemon = self.spawn()?;
        daemon.ready().await?;
        self.send_what_is_left(&daemon).await?;
        let wanted = self.requests.len();
        let quiet = self
            .follower
            .until(QUIET_WITHIN, |followed| followed.state.tasks.len() >= wanted && followed.is_quiet())
            .await;
        if !quiet {
            let open = self.follower.look(Followed::open_ends);
            violations.push(Violation::new(
                Rule::Ending,
                format!(
                    "after {} s without a kill there is still: {}",
                    QUIET_WITHIN.as_secs(),
                    open.join("; ")
                ),
            ));
        }
        let status = daemon.status().await?;
        violations.extend(check_orphans(&self.folder, &status));
        daemon.stop().await?;
        let journal = Journal::read(&self.folder.database())?;
        violations.extend(check_work(&journal, &self.requests));
        violations.extend(check_answers(&journal, &self.requests));
        let whole = self.follower.finish();
        violations.extend(check_shown(&journal, &whole));
        for part in &self.parts {
            violations.extend(check_shown(&journal, part));
        }
        let mut report = CrashReport {
            seed: self.plan.seed,
            rounds: self.plan.rounds,
            early_kills: self.early_kills,
            requests: self.requests.len(),
            calls: self.calls,
            unanswered_calls: self.unanswered_calls,
            events_shown: whole.events.len() + self.parts.iter().map(|part| part.events.len()).sum::<usize>(),
            unclean_generations: status.unclean_generations,
            violations,
            ..CrashReport::default()
        };
        count(&mut report, &journal, &self.kills);
        Ok(report)
    }

    async fn send_what_is_left(&mut self, daemon: &DaemonProcess) -> anyhow::Result<()> {
        let give_up = Instant::now() + QUIET_WITHIN;
        loop {
            let due: Vec<usize> = (0..self.requests.len())
                .filter(|index| self.requests.get(*index).is_some_and(|request| request.answers.is_empty()))
                .collect();
            if due.is_empty() {
                return Ok(());
            }
            let (calls, unanswered) = send(daemon.client(), &mut self.requests, &due).await;
            self.calls += calls;
            self.unanswered_calls += unanswered;
            anyhow::ensure!(Instant::now() < give_up, "{} requests are never answered", due.len());
            tokio::time::sleep(CALL_AGAIN).await;
        }
    }
}

/// Sends requests one after another; ends when the daemon is gone. Gives the calls made, and those without an answer.
async fn send(client: &Client, requests: &mut [Request], due: &[usize]) -> (usize, usize) {
    let (mut calls, mut unanswered) = (0, 0);
    for index in due {
        let Some(request) = requests.get_mut(*index) else { continue };
        match client.call::<_, TaskView>("task.create", &request.input).await {
            Ok(view) => {
                calls += 1;
                request.answers.push(view.task_id);
            }
            Err(ClientError::NoDaemon) => return (calls, unanswered),
            Err(ClientError::Lost) => return (calls + 1, unanswered + 1),
            // Too much waits already; it is sent again later.
            Err(ClientError::Refused(_) | ClientError::Protocol(_)) => {
                calls += 1;
                unanswered += 1;
            }
        }
    }
    (calls, unanswered)
}

/// Last number of the journal of a folder that no daemon holds.
fn last_seq(folder: &DataFolder) -> i64 {
    // A daemon that was killed very early has left no database, or one without tables.
    Reader::open(&folder.database()).and_then(|reader| reader.last_seq()).unwrap_or(0)
}

fn count(report: &mut CrashReport, journal: &Journal, kills: &[i64]) {
    let mut state = State::default();
    let mut events = journal.events.iter().peekable();
    for kill in kills {
        while let Some(event) = events.next_if(|event| event.seq <= *kill) {
            apply(&mut state, event, &mut Changes::default());
        }
        for phase in phases(&state) {
            *report.kills_by_phase.entry(phase).or_default() += 1;
        }
        report.recoveries += to_recover(&state);
    }
    let state = &journal.state;
    report.tasks = state.tasks.len();
    report.runs = state.runs.values().filter(|run| run.purpose != RunPurpose::Turn).count();
    report.generations = state.generations.len();
    report.events = journal.events.len();
    report.messages = journal.messages().count();
    report.swept = journal
        .events
        .iter()
        .filter_map(|record| match &record.event {
            Event::GenerationCleaned { swept, .. } => Some(*swept),
            _ => None,
        })
        .sum();
}
