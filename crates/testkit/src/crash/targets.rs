//! Who is killed.

use std::time::{Duration, Instant};

use rallypoint_process::sweep::kill_identities;
use rallypoint_process::{ProcessIdentity, Signal};

use crate::daemon_process::DaemonProcess;
use crate::data_folder::DataFolder;
use crate::random::Random;

/// How long a kill waits for its victim: between two tasks there is no agent for a moment.
const VICTIM_PATIENCE: Duration = Duration::from_millis(400);
/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(3);
/// Passes over everything of a folder until nothing is found. What is being started while others die takes a second.
const PASSES: u32 = 50;

/// What one round kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The daemon.
    Daemon,
    /// One shim; the daemon and the agent live on.
    Shim,
    /// One agent; its shim and the daemon live on.
    Agent,
    /// The daemon and one shim.
    DaemonAndShim,
    /// Every process of the data folder, as near to at once as signals go.
    Everything,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 5] = [Self::Daemon, Self::Shim, Self::Agent, Self::DaemonAndShim, Self::Everything];

    /// Whether the daemon dies with it.
    pub fn takes_daemon(self) -> bool {
        matches!(self, Self::Daemon | Self::DaemonAndShim | Self::Everything)
    }

    /// The words for a table.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Daemon => "of the daemon",
            Self::Shim => "of a shim",
            Self::Agent => "of an agent",
            Self::DaemonAndShim => "of the daemon and a shim",
            Self::Everything => "of everything",
        }
    }
}

/// What is killed how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// The daemon only: everything must come to the end that its work leads to.
    Daemon,
    /// Each target alike: what was cut must be told.
    Anything,
}

impl Mix {
    pub(crate) fn pick(self, random: &mut Random) -> Target {
        match self {
            Self::Daemon => Target::Daemon,
            Self::Anything => {
                let index = usize::try_from(random.between(0, Target::ALL.len() as u64)).unwrap_or(0);
                Target::ALL.get(index).copied().unwrap_or(Target::Daemon)
            }
        }
    }
}

/// Kills. Gives the number of processes that were killed.
pub(crate) async fn kill(
    target: Target,
    folder: &DataFolder,
    daemon: &mut DaemonProcess,
    random: &mut Random,
) -> anyhow::Result<u32> {
    let mut killed = 0;
    match target {
        Target::Daemon => {
            daemon.kill9()?;
            killed += 1;
        }
        Target::Shim => killed += kill_one(random, || folder.shims()).await,
        Target::Agent => killed += kill_one(random, || folder.agents()).await,
        Target::DaemonAndShim => {
            if random.chance(50) {
                killed += kill_one(random, || folder.shims()).await;
                daemon.kill9()?;
            } else {
                daemon.kill9()?;
                killed += kill_one(random, || folder.shims()).await;
            }
            killed += 1;
        }
        Target::Everything => {
            daemon.kill9()?;
            killed += 1;
            for _ in 0..PASSES {
                let found: Vec<ProcessIdentity> =
                    folder.agent_processes().iter().map(|process| process.identity).collect();
                if found.is_empty() {
                    break;
                }
                let count = kill_identities(&found, Signal::Kill).len();
                killed += u32::try_from(count).unwrap_or(u32::MAX);
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }
    Ok(killed)
}

async fn kill_one(random: &mut Random, find: impl Fn() -> Vec<ProcessIdentity>) -> u32 {
    let give_up = Instant::now() + VICTIM_PATIENCE;
    loop {
        let found = find();
        let index = usize::try_from(random.between(0, found.len() as u64)).unwrap_or(0);
        if let Some(victim) = found.get(index)
            && !kill_identities(&[*victim], Signal::Kill).is_empty()
        {
            return 1;
        }
        if Instant::now() >= give_up {
            return 0;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
