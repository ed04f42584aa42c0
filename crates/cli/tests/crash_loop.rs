//! The daemon is killed under work, at random moments and many times; nothing may be lost, doubled, cut or left
//! behind. And with a safeguard taken away, the same loop must notice.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rallypoint_model::ids::TaskId;
use rallypoint_model::run::{RunPurpose, RunStatus};
use rallypoint_model::task::TaskStatus;
use rallypoint_ops::types::TaskView;
use rallypoint_process::ProcessIdentity;
use rallypoint_process::shim::FAULT_VARIABLE;
use rallypoint_testkit::crash::{
    self, CrashPlan, CrashReport, Harm, Mix, Phase, Request, Target, Weather, Work, check_work,
};
use rallypoint_testkit::{DaemonProcess, DataFolder, Followed, Follower, Journal, Rule, wait_for};

/// Kills when nobody says how many.
const ROUNDS: u32 = 200;
/// Kills of daemons, shims and agents when nobody says how many.
const ANY_ROUNDS: u32 = 60;
/// Kills with full disks and clocks that are set when nobody says how many.
const ROUGH_ROUNDS: u32 = 60;
/// Kills that show whether a missing safeguard is noticed.
const FAULT_ROUNDS: u32 = 10;
/// Time in which everything must come to its end once nobody kills any more.
const QUIET_WITHIN: Duration = Duration::from_secs(120);
/// The same where a safeguard is missing and some of it may never end.
const FAULT_QUIET_WITHIN: Duration = Duration::from_secs(15);
/// Far above what any single step takes, so that only a hang meets it.
const PATIENCE: Duration = Duration::from_secs(60);

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_rally"))
}

/// `RALLY_CRASH_SEED` repeats a run as far as the machine's own timing allows.
fn seed() -> u64 {
    let given = std::env::var("RALLY_CRASH_SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_micros() as u64)
    })
}

/// So many rounds, or as `RALLY_CRASH_ROUNDS` scales them: it says how many the daemon's own loop takes.
fn rounds(default: u32) -> u32 {
    let given: Option<u32> = std::env::var("RALLY_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok());
    given.map_or(default, |given| given.saturating_mul(default).div_ceil(ROUNDS))
}

fn plan(rounds: u32, mix: Mix) -> CrashPlan {
    CrashPlan {
        program: program(),
        rounds,
        mix,
        seed: seed(),
        patience: QUIET_WITHIN,
        fault: None,
        weather: Weather::Calm,
        environment: Vec::new(),
    }
}

async fn with_fault(fault: &str) -> anyhow::Result<CrashReport> {
    with_faults(fault, None).await
}

async fn with_faults(fault: &str, of_shims: Option<&str>) -> anyhow::Result<CrashReport> {
    let plan = CrashPlan {
        fault: Some(fault.to_owned()),
        environment: of_shims
            .map(|fault| (FAULT_VARIABLE.to_owned(), fault.to_owned()))
            .into_iter()
            .collect(),
        patience: FAULT_QUIET_WITHIN,
        ..plan(FAULT_ROUNDS, Mix::Daemon)
    };
    crash::run(&plan).await
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop_loses_nothing_and_doubles_nothing() {
    let plan = plan(rounds(ROUNDS), Mix::Daemon);
    println!("seed {}", plan.seed);
    let report = crash::run(&plan).await.unwrap();
    println!("{report}");
    assert!(report.violations.is_empty(), "{report}");
    let with_prompt = report.kills_in(Phase::PromptOpen);
    assert!(
        with_prompt * 5 >= report.rounds,
        "{with_prompt} kills are too few with a prompt open:\n{report}"
    );
    for phase in Phase::ALL.into_iter().filter(|phase| *phase != Phase::Idle) {
        assert!(report.kills_in(phase) * 20 >= report.rounds, "{phase:?} was hit too rarely:\n{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop_with_killed_shims_and_agents() {
    let plan = plan(rounds(ANY_ROUNDS), Mix::Anything);
    println!("seed {}", plan.seed);
    let report = crash::run(&plan).await.unwrap();
    println!("{report}");
    assert!(report.violations.is_empty(), "{report}");
    for target in Target::ALL {
        assert!(report.kills_by_target.contains_key(&target), "no kill {target:?}:\n{report}");
    }
    assert!(report.missed_kills * 3 < report.rounds, "too few kills found somebody:\n{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop_with_full_disks_and_clocks_that_are_set() {
    let plan = CrashPlan { weather: Weather::Rough, ..plan(rounds(ROUGH_ROUNDS), Mix::Daemon) };
    println!("seed {}", plan.seed);
    let report = crash::run(&plan).await.unwrap();
    println!("{report}");
    assert!(report.violations.is_empty(), "{report}");
    assert!(report.full_kills * 10 >= report.rounds, "too few kills with a full disk:\n{report}");
    assert!(report.clock_steps * 10 >= report.rounds, "the clock was set too rarely:\n{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop_turns_red_without_the_sweep() {
    let report = with_fault("no-sweep").await.unwrap();
    println!("{report}");
    assert!(report.violations_of(Rule::Orphans) > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop_turns_red_without_unique_keys() {
    let report = with_fault("no-unique-keys").await.unwrap();
    println!("{report}");
    assert!(report.violations_of(Rule::OneTask) > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop_turns_red_without_the_cursor() {
    let report = with_fault("no-cursor").await.unwrap();
    println!("{report}");
    assert!(report.violations_of(Rule::Output) > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop_turns_red_when_it_tells_before_it_commits() {
    let report = with_fault("ack-before-commit").await.unwrap();
    println!("{report}");
    assert!(report.violations_of(Rule::Shown) > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop_turns_red_with_the_cursor_outside_of_the_transaction() {
    let report = with_fault("cursor-outside").await.unwrap();
    println!("{report}");
    assert!(report.violations_of(Rule::Output) > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop_turns_red_when_prompts_are_sent_again_in_doubt() {
    let report = with_fault("resend-after-crash").await.unwrap();
    println!("{report}");
    assert!(report.violations_of(Rule::OnePrompt) > 0, "{report}");
}

/// The number that an input had keeps its repeat from the agent; without that safeguard of the shim it does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_repeated_under_its_number_is_harmless_only_while_shims_look_at_numbers() {
    let report = with_fault("resend-repeated").await.unwrap();
    assert!(report.violations.is_empty(), "{report}");
    let report = with_faults("resend-repeated", Some("no-input-seq")).await.unwrap();
    println!("{report}");
    assert!(report.violations_of(Rule::OnePrompt) > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_four_thousand_frames_survives_two_kills() {
    let folder = DataFolder::new().unwrap();
    let work = Work::Counting { chunks: 4_000, milliseconds: 4_000 };
    let request = Request::new(&program(), &folder, "long", work);
    let mut daemon = DaemonProcess::start(&program(), &folder, None).await.unwrap();
    let mut follower = Follower::start(daemon.client());
    let made: TaskView = daemon.client().call("task.create", &request.input).await.unwrap();
    // A chunk is three frames: the words, a tool call and its end.
    for frame in [2_000, 7_000] {
        let reached = follower.until(PATIENCE, |followed| followed.last_frame() > frame).await;
        assert!(reached, "frame {frame} was never shown: {:?}", follower.look(Followed::open_ends));
        let (working, last) = follower.look(|followed| {
            let working = followed.state.runs.values().any(|run| run.status == RunStatus::Running);
            (working, followed.last_frame())
        });
        assert!(working, "the kill at frame {frame} came too late, at {last}");
        daemon.kill9().unwrap();
        daemon = DaemonProcess::start(&program(), &folder, None).await.unwrap();
    }
    let quiet = follower.until(PATIENCE, Followed::is_quiet).await;
    assert!(quiet, "{:?}", follower.look(Followed::open_ends));
    assert_eq!(folder.agent_processes(), []);
    daemon.stop().await.unwrap();
    let journal = Journal::read(&folder.database()).unwrap();
    assert_eq!(check_work(&journal, &[request], Harm::None), []);
    let task = &journal.state.tasks[&made.task_id];
    assert_eq!((task.status, task.runs.len()), (TaskStatus::Done, 1));
    let outputs = journal.events.iter().filter(|event| event.event.kind() == "agent.output").count();
    assert!(outputs >= 3 * 4_000 - 2 - 4_000, "{outputs} outputs are stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_client_changes_nothing() {
    let folder = DataFolder::new().unwrap();
    let (notes, gate) = (folder.path().join("notes"), folder.path().join("gate"));
    let daemon = DaemonProcess::start(&program(), &folder, None).await.unwrap();
    let mut follower = Follower::start(daemon.client());
    let goal = format!(
        "$ echo $$ >> '{}'\n$ until test -e '{}'; do sleep 0.02; done\n",
        notes.display(),
        gate.display()
    );
    let mut client = Command::new(program())
        .arg("--data")
        .arg(folder.path())
        .args(["--json", "run", &goal, "--agent", "shell", "--check", "true"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let working = follower
        .until(PATIENCE, |followed| followed.state.runs.values().any(|run| !run.open_tools.is_empty()))
        .await;
    assert!(working, "the run never began: {:?}", follower.look(Followed::open_ends));
    client.kill().unwrap();
    client.wait().unwrap();
    std::fs::write(&gate, "").unwrap();
    let quiet = follower.until(PATIENCE, Followed::is_quiet).await;
    assert!(quiet, "{:?}", follower.look(Followed::open_ends));
    let (id, status, runs): (TaskId, TaskStatus, usize) = follower.look(|followed| {
        let task = followed.state.tasks.values().next().unwrap();
        (task.id, task.status, task.runs.len())
    });
    assert_eq!((status, runs), (TaskStatus::Done, 1), "task {id}");
    assert_eq!(std::fs::read_to_string(&notes).unwrap().lines().count(), 1);
    daemon.stop().await.unwrap();
    let journal = Journal::read(&folder.database()).unwrap();
    let ends = journal.events.iter().filter(|event| {
        event.event.kind() == "run.ended"
            && event.scope.run_id.is_some_and(|id| journal.state.runs[&id].purpose != RunPurpose::Turn)
    });
    assert_eq!(ends.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_outlives_its_daemon_is_ended_before_it_is_run_again() {
    let folder = DataFolder::new().unwrap();
    let (pids, gate) = (folder.path().join("pids"), folder.path().join("gate"));
    let checks = || -> Vec<u32> {
        let text = std::fs::read_to_string(&pids).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    let check =
        format!("echo $$ >> '{}'; until test -e '{}'; do sleep 0.02; done", pids.display(), gate.display());
    let request = serde_json::json!({
        "goal": "$ echo hello",
        "agents": [{ "agent": "shell" }],
        "checks": [check],
        "environment": { "PATH": std::env::var("PATH").unwrap() },
    });
    let mut daemon = DaemonProcess::start(&program(), &folder, None).await.unwrap();
    let mut follower = Follower::start(daemon.client());
    let _made: TaskView = daemon.client().call("task.create", &request).await.unwrap();
    assert!(wait_for(PATIENCE, || checks().len() == 1).await, "the check was never run");
    let first = ProcessIdentity::of(checks()[0]).unwrap();
    daemon.kill9().unwrap();
    assert!(rallypoint_process::process_alive(first));
    let daemon = DaemonProcess::start(&program(), &folder, None).await.unwrap();
    assert!(wait_for(PATIENCE, || checks().len() == 2).await, "the check was not run again");
    assert!(!rallypoint_process::process_alive(first), "two of one check run at once");
    std::fs::write(&gate, "").unwrap();
    let quiet = follower.until(PATIENCE, Followed::is_quiet).await;
    assert!(quiet, "{:?}", follower.look(Followed::open_ends));
    let status = follower.look(|followed| followed.state.tasks.values().next().map(|task| task.status));
    assert_eq!(status, Some(TaskStatus::Done));
    assert_eq!(folder.agent_processes(), []);
    daemon.stop().await.unwrap();
}
