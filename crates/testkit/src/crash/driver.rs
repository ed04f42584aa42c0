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

use crate::crash::check::{Harm, check_answers, check_orphans, check_shown, check_work};
use crate::crash::phases::{phases, to_recover};
use crate::crash::targets::kill;
use crate::crash::weather::Around;
use crate::crash::{CrashPlan, CrashReport, Mix, Request, Target, Work};
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
    /// What was killed when, as the last number of the journal.
    kills: Vec<(Target, i64)>,
    /// Kills that found nobody to kill.
    missed_kills: u32,
    /// The daemon that outlived the last round.
    daemon: Option<DaemonProcess>,
    around: Around,
    early_kills: u32,
    calls: usize,
    unanswered_calls: usize,
}

impl<'a> Driver<'a> {
    fn new(plan: &'a CrashPlan) -> anyhow::Result<Self> {
        let folder = DataFolder::new()?;
        let follower = Follower::start(&Client::unix(folder.socket()));
        let around = Around::new(plan.weather, &folder);
        Ok(Self {
            plan,
            around,
            folder,
            random: Random::new(plan.seed),
            follower,
            parts: Vec::new(),
            requests: Vec::new(),
            kills: Vec::new(),
            missed_kills: 0,
            daemon: None,
            early_kills: 0,
            calls: 0,
            unanswered_calls: 0,
        })
    }

    fn spawn(&self) -> anyhow::Result<DaemonProcess> {
        let fault = self.plan.fault.clone().map(|fault| ("RALLY_FAULT".to_owned(), fault));
        let environment: Vec<(String, String)> = fault
            .into_iter()
            .chain(self.plan.environment.iter().cloned())
            .chain(self.around.environment())
            .collect();
        DaemonProcess::spawn_with(&self.plan.program, &self.folder, &environment)
    }

    async fn round(&mut self) -> anyhow::Result<()> {
        let target = self.plan.mix.pick(&mut self.random);
        self.around.change(&mut self.random)?;
        let mut daemon = match self.daemon.take() {
            Some(daemon) => daemon,
            None => {
                let mut daemon = self.spawn()?;
                if target == Target::Daemon && self.random.chance(EARLY_KILLS) {
                    let delay = self.random.between(0, EARLY_KILL_WITHIN);
                    tokio::time::sleep(Duration::from_millis(delay)).await;
                    daemon.kill9()?;
                    self.early_kills += 1;
                    self.kills.push((target, last_seq(&self.folder)));
                    return Ok(());
                }
                daemon.ready().await?;
                daemon
            }
        };
        self.work_until_killed(&mut daemon, target).await?;
        if !target.takes_daemon() {
            self.daemon = Some(daemon);
        }
        Ok(())
    }

    async fn work_until_killed(&mut self, daemon: &mut DaemonProcess, target: Target) -> anyhow::Result<()> {
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
        let (folder, random) = (&self.folder, &mut self.random);
        let killing = async {
            tokio::time::sleep(delay).await;
            let before = if target.takes_daemon() { None } else { Some(last_seq(folder)) };
            let done = kill(target, folder, daemon, random).await;
            killed.send_replace(true);
            done.map(|count| (count, before.unwrap_or_else(|| last_seq(folder))))
        };
        // The last request is sent again even when it was answered.
        let due: Vec<usize> = (0..self.requests.len())
            .filter(|index| {
                Some(*index) == last || self.requests.get(*index).is_some_and(|r| r.answers.is_empty())
            })
            .collect();
        let sending = send(&client, &mut self.requests, &due);
        let (killed, part, (calls, unanswered)) = tokio::join!(killing, part, sending);
        let (count, seq) = killed?;
        self.kills.push((target, seq));
        self.around.count();
        self.missed_kills += u32::from(count == 0);
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
        self.around.clear()?;
        let mut daemon = match self.daemon.take() {
            Some(daemon) => daemon,
            None => self.spawn()?,
        };
        daemon.ready().await?;
        self.send_what_is_left(&daemon).await?;
        let wanted = self.requests.len();
        let quiet = self
            .follower
            .until(self.plan.patience, |followed| followed.state.tasks.len() >= wanted && followed.is_quiet())
            .await;
        if !quiet {
            let open = self.follower.look(Followed::open_ends);
            violations.push(Violation::new(
                Rule::Ending,
                format!(
                    "after {} s without a kill there is still: {}",
                    self.plan.patience.as_secs(),
                    open.join("; ")
                ),
            ));
        }
        let status = daemon.status().await?;
        violations.extend(check_orphans(&self.folder, &status));
        daemon.stop().await?;
        let journal = Journal::read(&self.folder.database())?;
        let harm = match self.plan.mix {
            Mix::Daemon => Harm::None,
            Mix::Anything => Harm::Possible,
        };
        violations.extend(check_work(&journal, &self.requests, harm));
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
            full_kills: self.around.full_kills,
            clock_steps: self.around.clock_steps,
            missed_kills: self.missed_kills,
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
        let give_up = Instant::now() + self.plan.patience;
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

fn count(report: &mut CrashReport, journal: &Journal, kills: &[(Target, i64)]) {
    let mut state = State::default();
    let mut events = journal.events.iter().peekable();
    for (target, seq) in kills {
        *report.kills_by_target.entry(*target).or_default() += 1;
        while let Some(event) = events.next_if(|event| event.seq <= *seq) {
            apply(&mut state, event, &mut Changes::default());
        }
        for phase in phases(&state) {
            *report.kills_by_phase.entry(phase).or_default() += 1;
            *report.phases_by_target.entry((*target, phase)).or_default() += 1;
        }
        report.recoveries += to_recover(&state);
    }
    let state = &journal.state;
    report.tasks = state.tasks.len();
    report.runs = state.runs.values().filter(|run| run.purpose != RunPurpose::Turn).count();
    for run in state.runs.values().filter(|run| run.purpose != RunPurpose::Turn) {
        let outcome = run.outcome.map_or_else(|| "none".to_owned(), |outcome| format!("{outcome:?}"));
        *report.outcomes.entry(outcome).or_default() += 1;
        report.renewed_runs += usize::from(run.attempts > 1);
    }
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
