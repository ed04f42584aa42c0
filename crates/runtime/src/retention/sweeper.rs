//! Removes what has been kept long enough, a bounded amount a round.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rallypoint_engine::decide::archive::is_tried_again;
use rallypoint_engine::state::{State, Task};
use rallypoint_model::command::Command;
use rallypoint_model::ids::TaskId;
use rallypoint_model::retention::{DeleteMode, FailedDelete, Retention};
use rallypoint_model::session::GenerationStatus;
use rallypoint_model::time::Timestamp;
use tokio::sync::watch;

use super::{pause_ms, places, remove, settle};
use crate::decider::Decider;
use crate::folders::Folders;
use crate::sources::SystemClock;

/// Transcripts of one round.
const TRANSCRIPTS: usize = 500;
/// Folders of one round.
const FOLDERS: usize = 20;
/// Full outputs of one round.
const RESULTS: u32 = 200;
/// Failed removals that one round tries again.
const RETRIES: usize = 100;

/// What the sweeper needs.
#[derive(Clone, Debug)]
pub(crate) struct Sweeping {
    pub(crate) decider: Decider,
    pub(crate) folders: Folders,
    pub(crate) retention: Arc<Retention>,
}

/// Sweeps at once and then again and again, until the daemon ends.
pub(crate) async fn sweep_on(sweeping: Sweeping, mut stop: watch::Receiver<bool>) {
    let pause = Duration::from_millis(u64::try_from(pause_ms(&sweeping.retention)).unwrap_or(0));
    loop {
        if sweeping.folders.is_there() {
            round(&sweeping).await;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            changed = stop.changed() => {
                if changed.is_err() || *stop.borrow() {
                    return;
                }
            }
        }
    }
}

async fn round(sweeping: &Sweeping) {
    let now = SystemClock.now();
    let Ok(failed) = sweeping.decider.look(|state| state.failed_deletes.clone()).await else { return };
    try_again(sweeping, &failed, now).await;
    let fresh = |path: &String| !failed.contains_key(path);
    for path in old_transcripts(sweeping, now).await.into_iter().filter(fresh).take(TRANSCRIPTS) {
        remove_one(sweeping, &path).await;
    }
    let mut folders = old_scratch(sweeping, now).await;
    folders.extend(old_spools(sweeping, now).await);
    for path in folders.into_iter().filter(fresh).take(FOLDERS) {
        remove_one(sweeping, &path).await;
    }
    if let Some(keep_ms) = sweeping.retention.result_days.unless_off() {
        let command = Command::RemoveResults { keep_ms, at_most: RESULTS };
        if let Err(refusal) = sweeping.decider.decide(command).await {
            tracing::warn!(%refusal, "old outputs could not be removed");
        }
    }
}

async fn remove_one(sweeping: &Sweeping, path: &str) {
    remove(&sweeping.decider, &sweeping.folders, path, pause_ms(&sweeping.retention)).await;
}

async fn try_again(sweeping: &Sweeping, failed: &BTreeMap<String, FailedDelete>, now: Timestamp) {
    for path in
        failed.values().filter(|failed| is_tried_again(failed, now)).map(|failed| &failed.path).take(RETRIES)
    {
        let asked = path.clone();
        match sweeping.decider.look(move |state| is_still_over(state, &asked)).await {
            Ok(true) => remove_one(sweeping, path).await,
            Ok(false) => settle(&sweeping.decider, path).await,
            Err(_) => return,
        }
    }
}

/// Whether something that was to be removed is not in use again: its task may have been brought back.
fn is_still_over(state: &State, path: &str) -> bool {
    let mut parts = path.split('/');
    match (parts.next(), parts.next_back()) {
        (Some(places::SCRATCH), Some(name)) => name
            .parse()
            .ok()
            .and_then(|id: TaskId| state.tasks.get(&id))
            .is_none_or(|task| task.archived_at.is_some()),
        (Some(places::SESSIONS), Some(name)) if places::archived_at(name).is_none() => {
            places::session_of(name)
                .and_then(|id| state.sessions.get(&id))
                .is_none_or(|session| session.archived_at.is_some())
        }
        _ => true,
    }
}

/// Archived transcripts whose time is over, by the time in their names.
async fn old_transcripts(sweeping: &Sweeping, now: Timestamp) -> Vec<String> {
    let Some(kept) = sweeping.retention.transcript_days.unless_off() else { return Vec::new() };
    let root = sweeping.folders.root().to_owned();
    let found = tokio::task::spawn_blocking(move || {
        let mut found = Vec::new();
        for agent in places::names(&root, places::SESSIONS) {
            let folder = format!("{}/{agent}", places::SESSIONS);
            for name in places::names(&root, &folder) {
                if places::archived_at(&name).is_some_and(|at| at.plus(kept) <= now) {
                    found.push(format!("{folder}/{name}"));
                }
            }
        }
        found
    });
    found.await.unwrap_or_default()
}

/// Scratch folders of tasks that were archived long enough ago and that nobody else works in.
async fn old_scratch(sweeping: &Sweeping, now: Timestamp) -> Vec<String> {
    let Some(kept) = sweeping.retention.scratch_days.unless_off() else { return Vec::new() };
    let folders = sweeping.folders.clone();
    let paths = sweeping.decider.look(move |state| {
        let over = |task: &&Task| task.archived_at.is_some_and(|at| at.plus(kept) <= now);
        let in_use: Vec<&Path> = state
            .tasks
            .values()
            .filter(|task| task.archived_at.is_none())
            .map(|task| Path::new(&task.cwd))
            .collect();
        let candidates = state.tasks.values().filter(over).filter(|task| !is_purged(task));
        candidates
            .map(|task| (task.id, folders.scratch(task.id)))
            .filter(|(_, folder)| !in_use.iter().any(|used| used.starts_with(folder)))
            .map(|(id, _)| places::scratch(id))
            .collect::<Vec<_>>()
    });
    there(sweeping, paths.await.unwrap_or_default()).await
}

fn is_purged(task: &Task) -> bool {
    task.deleted.as_ref().is_some_and(|deletion| deletion.mode == DeleteMode::Purge)
}

/// Folders of processes that ended long enough ago, where they are kept at all.
async fn old_spools(sweeping: &Sweeping, now: Timestamp) -> Vec<String> {
    let Some(kept) = sweeping.retention.spool_days.unless_off() else { return Vec::new() };
    let ended = sweeping.decider.look(|state| {
        let ended = state.generations.values().filter(|generation| {
            generation.status == GenerationStatus::Ended
                && generation.cleaned.is_some_and(|cleaned| cleaned.left == 0)
        });
        ended.map(|generation| places::generation(generation.id)).collect::<Vec<_>>()
    });
    let paths = there(sweeping, ended.await.unwrap_or_default()).await;
    let root = sweeping.folders.root().to_owned();
    let old = move |path: &String| {
        let modified = std::fs::symlink_metadata(root.join(path)).and_then(|folder| folder.modified());
        let since = modified.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).plus(kept) <= now
    };
    paths.into_iter().filter(old).collect()
}

/// Those paths that are there. Looked up in their folder, since most of them are gone since long.
async fn there(sweeping: &Sweeping, mut paths: Vec<String>) -> Vec<String> {
    let root = sweeping.folders.root().to_owned();
    let found = tokio::task::spawn_blocking(move || {
        let names: BTreeMap<&str, Vec<String>> = [places::SCRATCH, places::GENERATIONS]
            .map(|folder| (folder, places::names(&root, folder)))
            .into();
        paths.retain(|path| {
            let (folder, name) = path.split_once('/').unwrap_or_default();
            names.get(folder).is_some_and(|names| names.iter().any(|known| known == name))
        });
        paths
    });
    found.await.unwrap_or_default()
}
