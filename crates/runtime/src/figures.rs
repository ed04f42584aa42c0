//! What a daemon holds, in numbers.

use std::collections::BTreeMap;

use rallypoint_engine::state::State;
use rallypoint_model::run::RunStatus;
use rallypoint_model::session::GenerationStatus;
use rallypoint_ops::Problem;

use crate::daemon::{Daemon, Shared};
use crate::views;

/// Numbers of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Tasks by status as the API writes it; archived and deleted ones are left out.
    pub tasks: BTreeMap<String, u64>,
    /// Runs without an outcome.
    pub open_runs: u64,
    /// Runs that wait for a slot.
    pub parked_runs: u64,
    /// Questions without an answer.
    pub open_questions: u64,
    /// Agent processes that are not gone.
    pub agent_processes: u64,
    /// Agents whose processes could not all be ended.
    pub unclean_agents: u64,
    /// Open event streams.
    pub followers: u64,
    /// Last number of the journal.
    pub last_seq: u64,
}

impl Daemon {
    /// The numbers of this moment; an error means that nothing can be decided or read.
    pub async fn figures(&self) -> Result<Figures, Problem> {
        let shared = self.shared();
        let figures = shared.decider.look(of_state).await?;
        let last_seq = shared.readers.read(|reader| reader.last_seq()).await?;
        Ok(Figures {
            followers: followers(shared),
            last_seq: u64::try_from(last_seq).unwrap_or(0),
            ..figures
        })
    }
}

/// One receiver for each open stream.
fn followers(shared: &Shared) -> u64 {
    number(shared.followers.receiver_count())
}

fn of_state(state: &State) -> Figures {
    let mut tasks = BTreeMap::new();
    for task in state.tasks.values().filter(|task| task.archived_at.is_none() && task.deleted.is_none()) {
        let status =
            serde_json::to_value(task.status).ok().and_then(|value| value.as_str().map(str::to_owned));
        *tasks.entry(status.unwrap_or_default()).or_default() += 1;
    }
    let generations = || state.generations.values();
    Figures {
        tasks,
        open_runs: number(views::open_runs(state)),
        parked_runs: number(state.runs.values().filter(|run| run.status == RunStatus::Queued).count()),
        open_questions: number(views::open_questions(state, None).len()),
        agent_processes: number(generations().filter(|one| one.status != GenerationStatus::Ended).count()),
        unclean_agents: number(
            generations().filter(|one| one.cleaned.is_some_and(|cleaned| cleaned.left > 0)).count(),
        ),
        followers: 0,
        last_seq: 0,
    }
}

fn number(count: usize) -> u64 {
    count as u64
}
