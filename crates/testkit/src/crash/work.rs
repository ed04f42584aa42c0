//! What is asked for, and what must come of it.

use std::path::{Path, PathBuf};

use rallypoint_model::ids::TaskId;
use rallypoint_model::task::TaskStatus;
use serde_json::{Value, json};

use crate::data_folder::DataFolder;
use crate::random::Random;

/// One kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// An agent notes its prompt, then says that many numbered chunks over so many milliseconds.
    Counting {
        /// Chunks.
        chunks: u64,
        /// Milliseconds.
        milliseconds: u64,
    },
    /// Two such agents for one task.
    CountingPair {
        /// Chunks of each.
        chunks: u64,
        /// Milliseconds of each.
        milliseconds: u64,
    },
    /// The check holds only after a second prompt, so that a corrective round follows.
    CountingTwice {
        /// Chunks of each prompt.
        chunks: u64,
        /// Milliseconds of each prompt.
        milliseconds: u64,
    },
    /// Shell commands that succeed.
    Shell,
    /// Shell commands of which one fails.
    FailingShell,
    /// An agent that dies while it works.
    Dying,
    /// An agent that leaves a process behind.
    Forking,
}

impl Work {
    /// Some work or other.
    pub(crate) fn random(random: &mut Random) -> Self {
        let chunks = random.between(1, 24);
        let milliseconds = random.between(0, 700);
        match random.between(0, 100) {
            0..52 => Self::Counting { chunks, milliseconds },
            52..60 => Self::CountingPair { chunks, milliseconds },
            60..72 => Self::CountingTwice { chunks, milliseconds: milliseconds / 2 },
            72..83 => Self::Shell,
            83..89 => Self::FailingShell,
            89..94 => Self::Dying,
            _ => Self::Forking,
        }
    }

    /// Where its task must end.
    pub(crate) fn ending(self) -> TaskStatus {
        match self {
            Self::FailingShell | Self::Dying => TaskStatus::Failed,
            Self::Counting { .. }
            | Self::CountingPair { .. }
            | Self::CountingTwice { .. }
            | Self::Shell
            | Self::Forking => TaskStatus::Done,
        }
    }

    /// How many runs of sub-agents it takes.
    pub(crate) fn runs(self) -> usize {
        match self {
            Self::CountingPair { .. } | Self::CountingTwice { .. } => 2,
            Self::Counting { .. } | Self::Shell | Self::FailingShell | Self::Dying | Self::Forking => 1,
        }
    }

    /// Whether each prompt leaves a line in the notes.
    pub(crate) fn leaves_notes(self) -> bool {
        !matches!(self, Self::Dying | Self::Forking)
    }

    /// Numbered chunks of each run.
    pub(crate) fn chunks(self) -> Option<u64> {
        match self {
            Self::Counting { chunks, .. }
            | Self::CountingPair { chunks, .. }
            | Self::CountingTwice { chunks, .. } => Some(chunks),
            Self::Shell | Self::FailingShell | Self::Dying | Self::Forking => None,
        }
    }
}

/// A request as a client keeps it until it is answered.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its idempotency key.
    pub key: String,
    /// What it asks for.
    pub work: Work,
    /// Where agents note their prompts.
    pub notes: PathBuf,
    /// The input of the call, as it goes over the wire.
    pub input: Value,
    /// Each answer that came.
    pub answers: Vec<TaskId>,
}

impl Request {
    /// A request under a key.
    pub fn new(program: &Path, folder: &DataFolder, key: &str, work: Work) -> Self {
        let notes = folder.path().join(format!("{key}.notes"));
        let file = notes.display();
        let scenario = |name: &str, arguments: &[String]| {
            let mut argv: Vec<String> = vec![program.display().to_string()];
            argv.extend(["agent-serve", "scenario", name].map(str::to_owned));
            argv.extend_from_slice(arguments);
            vec![json!({ "agent": "counting", "argv": argv })]
        };
        let counts = |chunks: u64, milliseconds: u64| {
            scenario("counts", &[file.to_string(), chunks.to_string(), milliseconds.to_string()])
        };
        let shell = || vec![json!({ "agent": "shell" })];
        let plain = || format!("Work for `{key}`");
        let (goal, agents, check) = match work {
            Work::Counting { chunks, milliseconds } => {
                (plain(), counts(chunks, milliseconds), "sleep 0.1".to_owned())
            }
            Work::CountingPair { chunks, milliseconds } => {
                let both = [counts(chunks, milliseconds), counts(chunks, milliseconds)].concat();
                (plain(), both, "sleep 0.05".to_owned())
            }
            Work::CountingTwice { chunks, milliseconds } => {
                let check = format!("test \"$(wc -l < '{file}')\" -ge 2");
                (plain(), counts(chunks, milliseconds), check)
            }
            Work::Shell => {
                let goal = format!("Work for `{key}`:\n\n$ echo $$ >> '{file}'\n$ sleep 0.1\n");
                (goal, shell(), format!("sleep 0.1; test -s '{file}'"))
            }
            Work::FailingShell => {
                let goal = format!("Work for `{key}`:\n\n$ echo $$ >> '{file}'\n$ exit 3\n");
                (goal, shell(), "true".to_owned())
            }
            Work::Dying => (plain(), scenario("dies-in-prompt", &[]), "true".to_owned()),
            Work::Forking => (plain(), scenario("forks", &[]), "true".to_owned()),
        };
        let input = json!({
            "goal": goal,
            "title": key,
            "agents": agents,
            "checks": [check],
            "idempotencyKey": key,
            "environment": { "PATH": std::env::var("PATH").unwrap_or_default() },
            "source": "test",
        });
        Self { key: key.to_owned(), work, notes, input, answers: Vec::new() }
    }
}
