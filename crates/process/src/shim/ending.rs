//! How the shim ends what it started: limits, the ladder of signals, killing the tree, and leaving.
//!
//! Killing is repeated until nothing is found, because a tree can grow while it is being killed. Every descendant is
//! found through `/proc`, whatever session or group it moved to: this process is their subreaper.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::identity::{ProcessIdentity, Signal};
use crate::proc_files::living_descendants;
use crate::shim::agent::AgentEnd;
use crate::shim::connection::ConnectionId;
use crate::shim::server::Server;
use crate::spool::RecordKind;
use crate::sweep::{find_marked, kill_identities};
use crate::wire::{Refusal, Reply, RequestKind};

/// A killed process is gone within milliseconds unless it hangs in the kernel; five seconds tell the two apart.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
const KILL_PAUSE_FIRST: Duration = Duration::from_millis(2);
const KILL_PAUSE_MAX: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(super) struct Ending {
    /// When the ladder goes from SIGTERM to SIGKILL.
    kill_at: Option<Instant>,
    killing: Killing,
    pub(super) after: After,
    kill_waiters: Vec<ConnectionId>,
    finish_waiters: Vec<ConnectionId>,
    /// A child was reaped since the tree was last looked at.
    tree_changed: bool,
}

#[derive(Debug, Default)]
enum Killing {
    #[default]
    No,
    Running(Kill),
    /// How many processes were left when it gave up or found nothing more.
    Over {
        left: u32,
    },
}

#[derive(Debug)]
struct Kill {
    next_at: Instant,
    pause: Duration,
    give_up_at: Instant,
    killed: BTreeSet<ProcessIdentity>,
}

/// What the shim does once the tree has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum After {
    #[default]
    Stay,
    Leave,
}

impl Ending {
    pub(super) fn next_step(&self) -> Option<Instant> {
        match (&self.killing, self.kill_at) {
            (Killing::Running(kill), Some(at)) => Some(kill.next_at.min(at)),
            (Killing::Running(kill), None) => Some(kill.next_at),
            (Killing::No | Killing::Over { .. }, at) => at,
        }
    }

    pub(super) fn tree_changed(&mut self) {
        self.tree_changed = true;
    }

    fn under_way(&self) -> bool {
        self.kill_at.is_some() || matches!(self.killing, Killing::Running(_))
    }
}

impl Server {
    pub(super) fn terminated(&mut self) {
        self.end_tree("the shim was told to terminate", After::Leave);
    }

    /// The next moment at which a limit is reached.
    pub(super) fn next_limit(&self) -> Option<Instant> {
        let generation = self.generation.as_ref()?;
        match (generation.hard_deadline, self.ownerless_limit()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    pub(super) fn watch_limits(&mut self, now: Instant) {
        if self.ownerless_limit().is_some_and(|at| now >= at) {
            self.end_tree("no daemon was attached for as long as is allowed", After::Leave);
        }
        let Some(generation) = &mut self.generation else {
            return;
        };
        if generation.hard_deadline.is_some_and(|at| now >= at) {
            generation.hard_deadline = None;
            if generation.agent.end == AgentEnd::Running {
                self.end_tree("the hard deadline is reached", After::Stay);
            } else {
                // The agent kept its deadline, what it left behind has no more time than it had.
                self.start_killing(now);
            }
        }
    }

    fn ownerless_limit(&self) -> Option<Instant> {
        let generation = self.generation.as_ref()?;
        let counts = self.attached.is_none() && self.ending.after == After::Stay;
        counts.then(|| self.ownerless_since.checked_add(generation.ownerless_max)).flatten()
    }

    /// SIGTERM now, SIGKILL after the grace period; then stay for the daemon, or leave.
    fn end_tree(&mut self, reason: &str, after: After) {
        let Some(generation) = &mut self.generation else {
            self.leave = Some(ExitCode::SUCCESS);
            return;
        };
        generation.journal.record(RecordKind::Note, reason.as_bytes());
        if after == After::Leave {
            self.ending.after = After::Leave;
        }
        if !self.ending.under_way() {
            if generation.agent.end == AgentEnd::Running {
                generation.agent.signal_group(Signal::Terminate);
            } else {
                kill_identities(&living_descendants(std::process::id()), Signal::Terminate);
            }
            self.ending.kill_at = Some(Instant::now() + self.options.grace);
            self.ending.tree_changed = true;
        }
        Self::say(reason);
    }

    /// Answers once the tree is gone.
    pub(super) fn kill_requested(&mut self, id: ConnectionId) -> Option<Reply> {
        if self.generation.is_none() {
            return Some(Reply::Refused { reason: Refusal::NotStarted });
        }
        self.ending.kill_waiters.push(id);
        self.start_killing(Instant::now());
        None
    }

    /// Answers once the exit is recorded and the tree is gone; the shim then ends.
    pub(super) fn finish_requested(&mut self, id: ConnectionId) -> Option<Reply> {
        let Some(generation) = &self.generation else {
            self.leave = Some(ExitCode::SUCCESS);
            return Some(Reply::Done);
        };
        if generation.agent.end == AgentEnd::Running && !self.ending.under_way() {
            return Some(Reply::Refused { reason: Refusal::StillRunning });
        }
        if matches!(self.ending.killing, Killing::Over { left } if left > 0) {
            // What was stuck then may be gone by now.
            self.ending.killing = Killing::No;
        }
        self.ending.finish_waiters.push(id);
        None
    }

    fn start_killing(&mut self, now: Instant) {
        if !matches!(self.ending.killing, Killing::Running(_)) {
            self.ending.killing = Killing::Running(Kill {
                next_at: now,
                pause: KILL_PAUSE_FIRST,
                give_up_at: now + KILL_PATIENCE,
                killed: BTreeSet::new(),
            });
        }
    }

    pub(super) fn progress_ending(&mut self, now: Instant) {
        self.step_ladder(now);
        if matches!(&self.ending.killing, Killing::Running(kill) if now >= kill.next_at) {
            self.kill_once(now);
        }
        self.leave_when_due(now);
    }

    /// Up the ladder when its time has come, or off it as soon as the tree has ended by itself.
    fn step_ladder(&mut self, now: Instant) {
        let (Some(kill_at), Some(generation)) = (self.ending.kill_at, &self.generation) else {
            return;
        };
        let ended =
            generation.agent.end != AgentEnd::Running && self.ending.tree_changed && self.tree().is_empty();
        self.ending.tree_changed = false;
        if ended {
            self.ending.kill_at = None;
        } else if now >= kill_at {
            self.ending.kill_at = None;
            self.start_killing(now);
        }
    }

    fn kill_once(&mut self, now: Instant) {
        let tree = self.tree();
        let second_look = if tree.is_empty() { self.tree() } else { Vec::new() };
        let (Killing::Running(kill), Some(generation)) = (&mut self.ending.killing, &self.generation) else {
            return;
        };
        let agent = &generation.agent;
        // `/proc` is not read in one moment: a process whose number is smaller than its parent's can be born behind the
        // look and lose its parent before it. Two looks without a living process between them cannot both miss it.
        let gone = tree.is_empty() && agent.end != AgentEnd::Running && second_look.is_empty();
        if gone || now >= kill.give_up_at {
            let reply = Reply::Killed {
                killed: u32::try_from(kill.killed.len()).unwrap_or(u32::MAX),
                left: u32::try_from(tree.len()).unwrap_or(u32::MAX),
            };
            let left = u32::try_from(tree.len()).unwrap_or(u32::MAX);
            self.ending.killing = Killing::Over { left };
            for id in std::mem::take(&mut self.ending.kill_waiters) {
                self.reply(id, RequestKind::Kill, &reply);
            }
            return;
        }
        agent.signal_group(Signal::Kill);
        for found in [tree, second_look] {
            kill_identities(&found, Signal::Kill);
            kill.killed.extend(found);
        }
        kill.next_at = now + kill.pause;
        kill.pause = (kill.pause * 2).min(KILL_PAUSE_MAX);
    }

    /// Every living process that came from the agent.
    fn tree(&self) -> Vec<ProcessIdentity> {
        let mut found: BTreeSet<ProcessIdentity> =
            living_descendants(std::process::id()).into_iter().collect();
        if let Some(generation) = &self.generation {
            found.extend(find_marked(&generation.agent.spec.marker));
        }
        found.into_iter().collect()
    }

    fn leave_when_due(&mut self, now: Instant) {
        let must_leave = self.ending.after == After::Leave;
        if !must_leave && self.ending.finish_waiters.is_empty() {
            return;
        }
        let Some(generation) = &mut self.generation else {
            return;
        };
        // A shim that must leave does not wait for a full disk: what it could not write is lost with it.
        let recorded = generation.exit_in_spool().is_some()
            || (must_leave && generation.agent.exit_recorded().is_some());
        if !recorded || self.ending.kill_at.is_some() {
            return;
        }
        match self.ending.killing {
            Killing::Running(_) => {}
            Killing::No => self.start_killing(now),
            Killing::Over { left: 0 } => {
                generation.journal.write_kept();
                self.leave = Some(ExitCode::SUCCESS);
                self.answer_finish(&Reply::Done);
            }
            Killing::Over { left } => {
                self.ending.killing = Killing::No;
                self.answer_finish(&Reply::Refused { reason: Refusal::TreeLeft { left } });
                if must_leave {
                    self.leave = Some(ExitCode::FAILURE);
                }
            }
        }
    }

    fn answer_finish(&mut self, reply: &Reply) {
        for id in std::mem::take(&mut self.ending.finish_waiters) {
            self.reply(id, RequestKind::Finish, reply);
        }
    }
}
