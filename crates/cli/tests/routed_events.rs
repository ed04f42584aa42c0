//! Boundary events of real agent processes into rooms, with every layer in between real, while the daemon is killed at
//! random moments: each lands once in each of its rooms, in order for each session.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a value that is not there is a finding of these tests"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rallypoint_model::event::Event;
use rallypoint_model::ids::{RoomId, RunId, SessionId};
use rallypoint_model::message::RoomKind;
use rallypoint_model::run::RunOutcome;
use rallypoint_model::session::SessionKind;
use rallypoint_ops::rooms::CreateRoomInput;
use rallypoint_ops::types::{RoomView, TaskView};
use rallypoint_testkit::{DaemonProcess, DataFolder, Followed, Follower, Journal, Random};
use serde_json::{Value, json};

/// Far above what any single step takes, so that only a hang meets it.
const PATIENCE: Duration = Duration::from_secs(240);

/// How much is done.
struct Size {
    sessions: usize,
    rooms: usize,
    /// Events of each session.
    events: usize,
    kills: usize,
}

/// Little by default; `RALLY_ROUTED_EVENTS=full` does all of it.
fn size() -> Size {
    if std::env::var("RALLY_ROUTED_EVENTS").is_ok_and(|word| word == "full") {
        Size { sessions: 100, rooms: 50, events: 10, kills: 40 }
    } else {
        Size { sessions: 20, rooms: 10, events: 10, kills: 5 }
    }
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_rally"))
}

/// A task whose one session ends a turn until its notes have that many lines.
fn request(folder: &DataFolder, size: &Size, rooms: &[RoomId], number: usize) -> Value {
    let notes = folder.path().join(format!("{number}.notes"));
    let (file, events) = (notes.display(), size.events);
    // Every other one has a room for peers, which is another one's room that asks.
    let peers = number.is_multiple_of(2).then(|| rooms[(number + 1) % rooms.len()]);
    json!({
        "goal": format!("Work number {number}"),
        "roomId": rooms[number % rooms.len()],
        "worktreeRoomId": peers,
        "agents": [{
            "agent": "counting",
            "argv": [program().display().to_string(), "agent-serve", "scenario", "counts", file.to_string(), "1", "0"],
        }],
        "checks": [format!("test \"$(wc -l < '{file}')\" -ge {events}")],
        "idempotencyKey": format!("number-{number}"),
        "environment": { "PATH": std::env::var("PATH").unwrap() },
    })
}

/// For each session and room: the runs whose end was told there, in the order of the journal.
fn told(journal: &Journal) -> BTreeMap<(SessionId, RoomId), Vec<RunId>> {
    let mut told: BTreeMap<(SessionId, RoomId), Vec<RunId>> = BTreeMap::new();
    for record in &journal.events {
        let Event::MessagePosted { message, .. } = &record.event else { continue };
        if message.metadata["subAgentEvent"] == "task_complete" {
            let session: SessionId = message.metadata["subAgentSessionId"].as_str().unwrap().parse().unwrap();
            let run: RunId = message.metadata["runId"].as_str().unwrap().parse().unwrap();
            told.entry((session, message.room_id)).or_default().push(run);
        }
    }
    told
}

/// The same as it has to be: the runs that were completed, in the rooms that the session's origin names.
fn expected(journal: &Journal) -> BTreeMap<(SessionId, RoomId), Vec<RunId>> {
    let mut expected: BTreeMap<(SessionId, RoomId), Vec<RunId>> = BTreeMap::new();
    for record in &journal.events {
        let Event::RunEnded { run_id, outcome: RunOutcome::Completed, .. } = &record.event else { continue };
        let session = &journal.state.sessions[&journal.state.runs[run_id].session_id];
        if session.kind != SessionKind::SubAgent {
            continue;
        }
        let origin = session.origin.as_ref().unwrap();
        for room in std::iter::once(origin.task_room_id).chain(origin.worktree_room_id) {
            expected.entry((session.id, room)).or_default().push(*run_id);
        }
    }
    expected
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_lands_once_in_each_of_its_rooms_and_in_order_however_often_the_daemon_is_killed() {
    let size = size();
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let folder = DataFolder::new().unwrap();
    let limits = format!("[limits]\nlaneSubagent = 24\nsettleMs = 20\ncorrectiveRounds = {}\n", size.events);
    std::fs::write(folder.path().join("rally.toml"), limits).unwrap();
    let mut daemon = DaemonProcess::start(&program(), &folder, None).await.unwrap();
    let mut follower = Follower::start(daemon.client());
    let mut rooms: Vec<RoomId> = Vec::new();
    for number in 0..size.rooms {
        let input = CreateRoomInput {
            kind: Some(RoomKind::Task),
            title: Some(format!("room {number}")),
            ..CreateRoomInput::default()
        };
        let made: RoomView = daemon.client().call("room.create", &input).await.unwrap();
        rooms.push(made.room_id);
    }
    for number in 0..size.sessions {
        let input = request(&folder, &size, &rooms, number);
        let _made: TaskView = daemon.client().call("task.create", &input).await.unwrap();
    }
    let step = (size.sessions * size.events / (size.kills + 1)) as u64;
    for _ in 0..size.kills {
        let ends = |followed: &Followed| {
            followed.shown.events.iter().filter(|record| record.event.kind() == "run.ended").count() as u64
        };
        let at = follower.look(ends) + random.between(1, step + 1);
        let reached = follower.until(PATIENCE, |followed| ends(followed) >= at || followed.is_quiet()).await;
        assert!(reached, "seed {seed}: {:?}", follower.look(Followed::open_ends));
        daemon.kill9().unwrap();
        daemon = DaemonProcess::start(&program(), &folder, None).await.unwrap();
    }
    let quiet = follower.until(PATIENCE, Followed::is_quiet).await;
    assert!(quiet, "seed {seed}: {:?}", follower.look(Followed::open_ends));
    daemon.stop().await.unwrap();
    assert_eq!(folder.agent_processes(), []);
    let journal = Journal::read(&folder.database()).unwrap();
    let expected = expected(&journal);
    assert_eq!(told(&journal), expected, "seed {seed}");
    let runs: usize = expected
        .iter()
        .filter(|((session, room), _)| {
            journal.state.sessions[session].origin.as_ref().is_some_and(|origin| origin.task_room_id == *room)
        })
        .map(|(_, runs)| runs.len())
        .sum();
    assert_eq!(runs, size.sessions * size.events, "seed {seed}");
}
