//! What many runs leave behind: nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::agent::{AGENTS, CLAUDE, CODEX, QWEN};
use crate::harness::Test;
use crate::stage::Stage;

const IN_A_ROW: usize = 20;
/// Qwen Code 0.24.4 makes one such folder for each process and never removes it.
const LEFT_BY_AGENTS: &[&str] = &["qwen-socks-"];

pub(crate) fn tests() -> Vec<Test> {
    let test = |name: &str, body: fn()| Test {
        name: format!("leftovers::{name}"),
        installed: crate::agent::folder(),
        goal: "test-agents",
        body: Box::new(body),
    };
    vec![
        test("twenty_runs_in_a_row_leave_nothing", in_a_row),
        test("eight_runs_at_once_leave_nothing", at_once),
    ]
}

/// What could be left.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    /// Open descriptors of the daemon: files, pipes and sockets. Those of the database are a pool with a limit.
    descriptors: usize,
    /// Folders of agent processes.
    generations: usize,
    /// Processes that have the home of this test.
    processes: BTreeSet<String>,
    /// Files in the folder for temporary ones, those excepted that an agent leaves by itself wherever it runs.
    temporary: BTreeSet<String>,
}

impl Traces {
    fn of(stage: &Stage) -> Self {
        let daemon = stage.json(&["daemon", "status"])["pid"].as_u64().unwrap();
        Self {
            descriptors: descriptors(daemon),
            generations: names(&stage.data.path().join("gen")).len(),
            processes: processes_with_home(stage.home(), daemon),
            temporary: names(stage.scratch())
                .into_iter()
                .filter(|name| !LEFT_BY_AGENTS.iter().any(|beginning| name.starts_with(beginning)))
                .collect(),
        }
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

fn descriptors(pid: u64) -> usize {
    let folder = format!("/proc/{pid}/fd");
    let target = |name: &String| fs::read_link(Path::new(&folder).join(name)).unwrap_or_default();
    names(Path::new(&folder))
        .iter()
        .filter(|name| !target(name).to_string_lossy().contains("/rally.db"))
        .count()
}

/// Command lines of processes whose environment names this home, the daemon excepted.
fn processes_with_home(home: &Path, daemon: u64) -> BTreeSet<String> {
    let variable = format!("HOME={}", home.display());
    names(Path::new("/proc"))
        .into_iter()
        .filter(|name| name.parse().is_ok_and(|pid: u64| pid != daemon))
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|each| each == variable.as_bytes())
        })
        .map(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid} {}", String::from_utf8_lossy(&words).replace('\0', " "))
        })
        .collect()
}

/// Waits until the traces are again what they were; says what is left otherwise.
fn nothing_more_than(stage: &Stage, before: &Traces) {
    stage.empty();
    let same = || {
        let now = Traces::of(stage);
        now.descriptors <= before.descriptors
            && now.generations <= before.generations
            && now.processes.is_subset(&before.processes)
            && now.temporary.is_subset(&before.temporary)
    };
    let back = rallypoint_testkit::wait_until(std::time::Duration::from_secs(30), same);
    assert!(back, "before: {before:?}\nafter: {:?}", Traces::of(stage));
}

fn in_a_row() {
    let stage = Stage::with(&[&CODEX]);
    // The first one fills caches of the agent and of the daemon, which are no leak.
    let run = || {
        let ended = stage.run(&CODEX, "Say something", &[]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    };
    run();
    stage.empty();
    let before = Traces::of(&stage);
    for _ in 0..IN_A_ROW {
        run();
    }
    nothing_more_than(&stage, &before);
}

fn at_once() {
    let stage = Stage::with(&AGENTS);
    let agents = [&CLAUDE, &QWEN, &CODEX];
    let start = |count: usize| {
        let children: Vec<_> = agents
            .iter()
            .cycle()
            .take(count)
            .map(|agent| stage.command(&Stage::run_arguments(agent, "Say something", &[])).spawn().unwrap())
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{text}");
        }
    };
    start(agents.len());
    stage.empty();
    let before = Traces::of(&stage);
    start(8);
    nothing_more_than(&stage, &before);
}
