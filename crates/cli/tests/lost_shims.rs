//! A shim, or the way to it, is lost while its daemon lives.

use std::path::PathBuf;
use std::time::Duration;

use rallypoint_model::event::Event;
use rallypoint_model::run::{RunOutcome, RunPurpose};
use rallypoint_model::task::TaskStatus;
use rallypoint_ops::types::TaskView;
use rallypoint_process::Signal;
use rallypoint_process::client::ShimHandle;
use rallypoint_process::sweep::kill_identities;
use rallypoint_testkit::{DaemonProcess, DataFolder, Followed, Follower, Journal};
use serde_json::{Value, json};

/// Far above what any single step takes, so that only a hang meets it.
const PATIENCE: Duration = Duration::from_secs(60);

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_rally"))
}

fn request(scenario: &[&str]) -> Value {
    let mut argv: Vec<String> = vec![program().display().to_string()];
    argv.extend(["agent-serve", "scenario"].iter().chain(scenario).map(|part| (*part).to_owned()));
    json!({
        "goal": "Do it",
        "agents": [{ "agent": "lonely", "argv": argv }],
        "checks": ["true"],
        "environment": { "PATH": std::env::var("PATH").unwrap_or_default() },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_shim_is_killed_is_found_by_its_marker_and_the_cut_is_told() {
    let folder = DataFolder::new().unwrap();
    let daemon = DaemonProcess::start(&program(), &folder, None).await.unwrap();
    let mut follower = Follower::start(daemon.client());
    // This one does not end when its input does, so only a sweep ends it.
    let made: TaskView = daemon.client().call("task.create", &request(&["ignores-cancel"])).await.unwrap();
    let speaks = follower.until(PATIENCE, |followed| followed.last_frame() > 4).await;
    assert!(speaks, "{:?}", follower.look(Followed::open_ends));
    assert_eq!((folder.shims().len(), folder.agents().len()), (1, 1));
    assert_eq!(kill_identities(&folder.shims(), Signal::Kill).len(), 1);
    let quiet = follower.until(PATIENCE, Followed::is_quiet).await;
    assert!(quiet, "{:?}", follower.look(Followed::open_ends));
    assert_eq!(folder.agent_processes(), []);
    daemon.stop().await.unwrap();
    let journal = Journal::read(&folder.database()).unwrap();
    let task = &journal.state.tasks[&made.task_id];
    let run = &journal.state.runs[&task.runs[0]];
    assert_eq!((task.status, task.runs.len()), (TaskStatus::Interrupted, 1));
    assert_eq!(run.outcome, Some(RunOutcome::Lost));
    let swept: u32 = journal
        .events
        .iter()
        .filter_map(|record| match &record.event {
            Event::GenerationCleaned { swept, .. } => Some(*swept),
            _ => None,
        })
        .sum();
    assert_eq!(swept, 1);
    let told = journal.events.iter().filter(|record| match &record.event {
        Event::MessagePosted { message, .. } => message.metadata["runId"] == run.id.to_string().as_str(),
        _ => false,
    });
    assert_eq!(told.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_taken_away_again_and_again_doubles_no_words() {
    const CHUNKS: u64 = 30_000;
    let folder = DataFolder::new().unwrap();
    let daemon = DaemonProcess::start(&program(), &folder, None).await.unwrap();
    let epoch = daemon.status().await.unwrap().epoch;
    let mut follower = Follower::start(daemon.client());
    let flood = request(&["flood", &CHUNKS.to_string()]);
    let _made: TaskView = daemon.client().call("task.create", &flood).await.unwrap();
    let mut taken = 0;
    while taken < 8 {
        let before = follower.look(Followed::last_frame);
        let moved = follower.until(PATIENCE, |followed| followed.last_frame() > before + 500).await;
        if !moved || follower.look(Followed::is_quiet) {
            break;
        }
        for entry in std::fs::read_dir(folder.path().join("gen")).unwrap().flatten() {
            // Whoever attaches last has the shim; the daemon is cut off and comes back.
            if let Ok((handle, _)) = ShimHandle::attach(&entry.path(), epoch).await {
                taken += 1;
                drop(handle);
            }
        }
    }
    assert!(taken > 0, "the flood was over before anything could be taken away");
    let quiet = follower.until(PATIENCE, Followed::is_quiet).await;
    assert!(quiet, "{:?}", follower.look(Followed::open_ends));
    daemon.stop().await.unwrap();
    let journal = Journal::read(&folder.database()).unwrap();
    let run = journal.state.runs.values().find(|run| run.purpose != RunPurpose::Turn).unwrap();
    assert_eq!(run.outcome, Some(RunOutcome::Completed), "{:?}", run.reason);
    let text = journal.output(&run.result.as_ref().unwrap().digest).unwrap();
    let wanted: String = (0..CHUNKS).map(|number| format!("chunk {number}\n")).collect();
    let place = text.lines().zip(wanted.lines()).position(|(found, wanted)| found != wanted);
    assert_eq!((place, text.len()), (None, wanted.len()), "{taken} times taken away");
}
