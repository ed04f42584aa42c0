//! A data folder, a work folder, a home and a mock model for one test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rallypoint_process::Signal;
use rallypoint_process::sweep::kill_identities;
use rallypoint_testkit::mock_model::{MockModel, MockOptions};
use rallypoint_testkit::{DataFolder, wait_until};
use serde_json::Value;

use crate::agent::{self, Agent};

/// Longest time that anything in these tests may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);

pub(crate) struct Stage {
    pub(crate) data: DataFolder,
    pub(crate) mock: MockModel,
    work: tempfile::TempDir,
    home: tempfile::TempDir,
    scratch: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Stage {
    /// One on which all of these agents are set up.
    pub(crate) fn with(agents: &[&Agent]) -> Self {
        let mut stage = Self {
            data: DataFolder::new().unwrap(),
            mock: MockModel::start(MockOptions::default()).unwrap(),
            work: tempfile::tempdir().unwrap(),
            home: tempfile::tempdir().unwrap(),
            scratch: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
        };
        let mut config = String::new();
        for agent in agents {
            let set_up = (agent.set_up)(stage.home.path(), &stage.mock.url());
            for (name, text) in set_up.files {
                let path = stage.home.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            stage.variables.extend(set_up.variables);
            let program = agent::folder().unwrap().join("node_modules/.bin").join(agent.program);
            assert!(program.exists(), "`{}` is not installed", program.display());
            let mut argv = vec![program.display().to_string()];
            argv.extend(agent.arguments.iter().map(|&argument| argument.to_owned()));
            config.push_str(&format!("[profiles.{}]\nargv = {argv:?}\n", agent.name));
        }
        std::fs::write(stage.data.path().join("rally.toml"), config).unwrap();
        stage
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command_of(Path::new(env!("CARGO_BIN_EXE_rally")));
        command.args(arguments);
        command
    }

    /// Any program, in the work folder and with the environment of this stage.
    pub(crate) fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.work.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_clear().env("RALLY_HOME", self.data.path());
        command.env("HOME", self.home.path()).env("TMPDIR", self.scratch.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn rally(&self, arguments: &[&str]) -> Ended {
        let output = self.command(arguments).output().unwrap();
        Ended {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Arguments that give a goal to an agent, whose result is taken without proof.
    pub(crate) fn run_arguments<'a>(agent: &'a Agent, goal: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let mut arguments = vec!["run", goal, "--agent", agent.name, "--unchecked", "--json"];
        for name in agent.pass {
            arguments.extend(["--pass-env", *name]);
        }
        arguments.extend(more);
        arguments
    }

    /// Gives a goal to an agent and follows it as far as it goes by itself.
    pub(crate) fn run(&self, agent: &Agent, goal: &str, more: &[&str]) -> Ended {
        let ended = self.rally(&Self::run_arguments(agent, goal, more));
        assert_ne!(ended.code, Some(2), "these arguments are wrong: {}", ended.err);
        ended
    }

    /// Gives a goal to an agent and gives the task's id at once.
    pub(crate) fn start(&self, agent: &Agent, goal: &str) -> String {
        let ended = self.run(agent, goal, &["--detach"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.last()["taskId"].as_str().unwrap().to_owned()
    }

    /// A command whose answer is one JSON document.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        let ended = self.rally(&all);
        serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }

    pub(crate) fn task(&self, id: &str) -> Value {
        self.json(&["task", "show", id])
    }

    /// Waits until nothing more happens to a task by itself.
    pub(crate) fn settled(&self, id: &str) -> Value {
        self.until("the task has settled", || self.task(id)["settled"] == true);
        self.task(id)
    }

    /// Waits until the agent has begun to speak.
    pub(crate) fn speaks(&self, task: &str) {
        self.until("the agent speaks", || {
            let log = self.rally(&["task", "log", task, "--json"]);
            log.out.contains("\"agent.output\"")
                && (log.out.contains("Piece 1") || log.out.contains("It begins"))
        });
    }

    /// What the main agent said last about a task.
    pub(crate) fn told(task: &Value) -> String {
        task["lastReply"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits, looking again and again, until something holds.
    pub(crate) fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let seen = || {
            let done: Vec<String> = self.mock.requests().into_iter().map(|request| request.done).collect();
            let log = std::fs::read_to_string(self.data.path().join("daemon.log")).unwrap_or_default();
            format!("requests: {done:?}\ndaemon: {log}")
        };
        assert!(wait_until(PATIENCE, holds), "not in time: {what}\n{}", seen());
    }

    /// Waits until no process of any agent is left.
    pub(crate) fn empty(&self) {
        self.until("every process is gone", || self.data.agent_processes().is_empty());
    }

    /// SIGKILL for every process of every agent at once; the shims live on.
    pub(crate) fn kill_agents(&self) {
        let shims = self.data.shims();
        let processes = self.data.agent_processes().into_iter().map(|process| process.identity);
        let agents: Vec<_> = processes.filter(|identity| !shims.contains(identity)).collect();
        assert!(!agents.is_empty());
        kill_identities(&agents, Signal::Kill);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// The folder for temporary files.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }
}

impl Ended {
    /// The last line of `--json`.
    pub(crate) fn last(&self) -> Value {
        let line = self.out.lines().last().unwrap_or_else(|| panic!("nothing was printed: {self:?}"));
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
