//! What a crash run amounts to.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::crash::phases::Phase;
use crate::crash::targets::Target;
use crate::violation::{Rule, Violation};

/// Violations that are printed of each rule; the rest is counted.
const SHOWN_PER_RULE: usize = 8;

/// The summary of a crash run.
#[derive(Clone, Debug, Default)]
pub struct CrashReport {
    /// The seed that repeats it.
    pub seed: u64,
    /// Kills.
    pub rounds: u32,
    /// Kills before the daemon listened.
    pub early_kills: u32,
    /// Kills while the disk was full.
    pub full_kills: u32,
    /// Times that the clock of the machine was set by up to six hours.
    pub clock_steps: u32,
    /// Kills that hit each phase; one kill may hit several.
    pub kills_by_phase: BTreeMap<Phase, u32>,
    /// Kills that found nobody to kill.
    pub missed_kills: u32,
    /// Kills of each target.
    pub kills_by_target: BTreeMap<Target, u32>,
    /// Kills of each target that hit each phase.
    pub phases_by_target: BTreeMap<(Target, Phase), u32>,
    /// Requests made.
    pub requests: usize,
    /// Calls that created a task or repeated such a call.
    pub calls: usize,
    /// Of these, calls that were not answered.
    pub unanswered_calls: usize,
    /// Tasks in the journal.
    pub tasks: usize,
    /// Runs of sub-agents.
    pub runs: usize,
    /// Outcomes of these runs.
    pub outcomes: BTreeMap<String, usize>,
    /// Runs that needed more than one process before their prompt was accepted.
    pub renewed_runs: usize,
    /// Agent processes.
    pub generations: usize,
    /// Processes that were found again after a kill, over all kills.
    pub recoveries: usize,
    /// Processes that outlived their agent and were swept.
    pub swept: u32,
    /// Generations whose processes could not all be ended.
    pub unclean_generations: u32,
    /// Events in the journal.
    pub events: usize,
    /// Events that followers were shown.
    pub events_shown: usize,
    /// Messages in rooms.
    pub messages: usize,
    /// Everything found wrong.
    pub violations: Vec<Violation>,
    /// How long it took.
    pub elapsed: Duration,
}

impl CrashReport {
    /// Kills that hit a phase.
    pub fn kills_in(&self, phase: Phase) -> u32 {
        self.kills_by_phase.get(&phase).copied().unwrap_or(0)
    }

    /// Violations of a rule.
    pub fn violations_of(&self, rule: Rule) -> usize {
        self.violations.iter().filter(|violation| violation.rule == rule).count()
    }
}

impl fmt::Display for CrashReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: String| writeln!(formatter, "  {name:<34} {value:>10}");
        row("seed", self.seed.to_string())?;
        row("kills", self.rounds.to_string())?;
        row("  before it listened", self.early_kills.to_string())?;
        if self.full_kills + self.clock_steps > 0 {
            row("  with a full disk", self.full_kills.to_string())?;
            row("steps of the clock", self.clock_steps.to_string())?;
        }
        for phase in Phase::ALL {
            let share = self.kills_in(phase) * 100 / self.rounds.max(1);
            row(&format!("  {}", words(phase)), format!("{} ({share} %)", self.kills_in(phase)))?;
        }
        if self.kills_by_target.len() > 1 {
            for (target, count) in &self.kills_by_target {
                row(&format!("kills {}", target.words()), count.to_string())?;
                for phase in Phase::ALL {
                    let count = self.phases_by_target.get(&(*target, phase)).copied().unwrap_or(0);
                    row(&format!("  {}", words(phase)), count.to_string())?;
                }
            }
            row("kills that found nobody", self.missed_kills.to_string())?;
        }
        row("requests", self.requests.to_string())?;
        row("  calls made", self.calls.to_string())?;
        row("  calls not answered", self.unanswered_calls.to_string())?;
        row("tasks", self.tasks.to_string())?;
        row("runs of sub-agents", self.runs.to_string())?;
        for (outcome, count) in &self.outcomes {
            row(&format!("  {outcome}"), count.to_string())?;
        }
        row("  with more than one process", self.renewed_runs.to_string())?;
        row("agent processes", self.generations.to_string())?;
        row("  found again after a kill", self.recoveries.to_string())?;
        row("  processes swept", self.swept.to_string())?;
        row("  left unclean", self.unclean_generations.to_string())?;
        row("events", self.events.to_string())?;
        row("  shown to followers", self.events_shown.to_string())?;
        row("messages", self.messages.to_string())?;
        row("seconds", format!("{:.1}", self.elapsed.as_secs_f64()))?;
        row("violations", self.violations.len().to_string())?;
        let mut printed: BTreeMap<Rule, usize> = BTreeMap::new();
        for violation in &self.violations {
            let count = printed.entry(violation.rule).or_default();
            *count += 1;
            if *count <= SHOWN_PER_RULE {
                writeln!(formatter, "    {violation}")?;
            }
        }
        for (rule, count) in printed.into_iter().filter(|(_, count)| *count > SHOWN_PER_RULE) {
            writeln!(formatter, "    {rule:?}: and {} more", count - SHOWN_PER_RULE)?;
        }
        Ok(())
    }
}

fn words(phase: Phase) -> &'static str {
    match phase {
        Phase::Idle => "with nothing going on",
        Phase::Starting => "with a run starting",
        Phase::PromptOpen => "with a prompt open",
        Phase::Settling => "with a run settling",
        Phase::Verifying => "with checks running",
        Phase::Cleaning => "with a process being ended",
    }
}
