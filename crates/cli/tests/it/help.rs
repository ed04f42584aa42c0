//! A `rally` of its own for each test.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rallypoint_testkit::DataFolder;
use serde_json::Value;

/// Longest time that anything in these tests may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A data folder and a work folder.
pub(crate) struct Rally {
    pub(crate) data: DataFolder,
    pub(crate) work: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Rally {
    pub(crate) fn new() -> Self {
        Self { data: DataFolder::new().unwrap(), work: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    pub(crate) fn with_config(text: &str) -> Self {
        let rally = Self::new();
        std::fs::write(rally.data.path().join("rally.toml"), text).unwrap();
        rally
    }

    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn program() -> &'static str {
        env!("CARGO_BIN_EXE_rally")
    }

    /// The command line of a scenario agent.
    pub(crate) fn scenario(name: &str) -> String {
        format!("{} agent-serve scenario {name}", Self::program())
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(Self::program());
        command.args(arguments).current_dir(self.work.path()).stdin(Stdio::null());
        command.env_clear().env("RALLY_HOME", self.data.path());
        for name in ["PATH", "HOME", "TMPDIR"] {
            if let Ok(value) = std::env::var(name) {
                command.env(name, value);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let output: Output = self.command(arguments).output().unwrap();
        Ended {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// A command whose answer is one JSON document.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        let ended = self.run(&all);
        serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }

    /// Messages of the main room, oldest first.
    pub(crate) fn room(&self) -> Vec<Value> {
        let page = self.json(&["room", "show", "main"]);
        let items = page.get("items").unwrap_or(&page);
        let mut messages = items.as_array().unwrap().clone();
        messages.sort_by_key(|message| {
            (message["createdAt"].as_i64(), message["id"].as_str().map(str::to_owned))
        });
        messages
    }

    /// Waits, looking again and again, until something holds.
    pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < deadline, "not in time: {what}");
            std::thread::yield_now();
        }
    }

    /// Where its daemon keeps everything, the configuration too.
    pub(crate) fn data_folder(&self) -> &Path {
        self.data.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }
}

impl Ended {
    /// The lines of `--json`.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The last line of `--json`.
    pub(crate) fn result(&self) -> Value {
        self.lines().pop().unwrap_or_else(|| panic!("nothing was printed: {self:?}"))
    }
}

pub(crate) fn write(path: &Path, text: &str) {
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Text of every message with this speaker.
pub(crate) fn said_by(room: &[Value], speaker: &str) -> Vec<String> {
    room.iter()
        .filter(|message| message["speaker"] == speaker)
        .map(|message| message["text"].as_str().unwrap_or_default().to_owned())
        .collect()
}
