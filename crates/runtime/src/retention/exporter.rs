//! Transcripts: the part of the journal that is a session's, as a file beside it.
//!
//! Written when the task of a session has ended, written once more and marked as archived when the task is, removed
//! when it is purged. They are exports: nothing here ever reads one, and each is made whole from the journal, so that
//! doing it again changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use rallypoint_engine::state::State;
use rallypoint_model::ids::{SessionId, TaskId};
use rallypoint_model::retention::{DeleteMode, Retention};
use rallypoint_model::time::Timestamp;
use rallypoint_store::JournalReader;
use tokio::sync::mpsc;

use super::{pause_ms, places, remove};
use crate::decider::Decider;
use crate::folders::Folders;
use crate::journal_reader::Readers;
use crate::sources::SystemClock;

/// Events read before they are written.
const PAGE: u32 = 500;

/// What the exporter needs.
#[derive(Clone, Debug)]
pub(crate) struct Exporting {
    pub(crate) decider: Decider,
    pub(crate) readers: Readers,
    pub(crate) folders: Folders,
    pub(crate) retention: Arc<Retention>,
}

/// What is to be there of a task.
#[derive(Debug)]
struct Wanted {
    sessions: Vec<(SessionId, String)>,
    /// Places of everything else that a purge removes.
    others: Vec<String>,
    purged: bool,
    archived_at: Option<Timestamp>,
    updated_at: Timestamp,
}

/// Starts it; it takes the tasks whose files are to be looked at, and ends when nobody can send it any.
pub(crate) fn start(exporting: Exporting) -> mpsc::UnboundedSender<TaskId> {
    let (sender, mut tasks) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(first) = tasks.recv().await {
            let mut due = BTreeSet::from([first]);
            while let Ok(more) = tasks.try_recv() {
                due.insert(more);
            }
            export(&exporting, due).await;
        }
    });
    sender
}

/// Names of transcripts by the folder of their agent and their session.
type Listed = BTreeMap<String, BTreeMap<SessionId, Vec<String>>>;

/// Each folder is listed once for all tasks: at a start every task that ever ended is among them.
async fn export(exporting: &Exporting, due: BTreeSet<TaskId>) {
    let look = move |state: &State| due.into_iter().filter_map(|id| wanted(state, id)).collect::<Vec<_>>();
    let Ok(all) = exporting.decider.look(look).await else { return };
    let root = exporting.folders.root().to_owned();
    let agents: BTreeSet<String> =
        all.iter().flat_map(|wanted| &wanted.sessions).map(|(_, agent)| places::slug(agent)).collect();
    let Ok(listed) = tokio::task::spawn_blocking(move || list(&root, agents)).await else { return };
    for wanted in all {
        for (session_id, agent) in &wanted.sessions {
            let there = listed.get(&places::slug(agent)).and_then(|names| names.get(session_id));
            session_files(exporting, &wanted, *session_id, agent, there.map_or(&[][..], Vec::as_slice)).await;
        }
        if wanted.purged {
            for path in &wanted.others {
                remove(&exporting.decider, &exporting.folders, path, pause_ms(&exporting.retention)).await;
            }
        }
    }
}

fn list(root: &Path, agents: BTreeSet<String>) -> Listed {
    let mut listed = Listed::new();
    for agent in agents {
        let mut by_session: BTreeMap<SessionId, Vec<String>> = BTreeMap::new();
        for name in places::names(root, &format!("{}/{agent}", places::SESSIONS)) {
            if let Some(session_id) = places::session_of(&name) {
                by_session.entry(session_id).or_default().push(name);
            }
        }
        listed.insert(agent, by_session);
    }
    listed
}

fn wanted(state: &State, task_id: TaskId) -> Option<Wanted> {
    let task = state.tasks.get(&task_id)?;
    let purged = task.deleted.as_ref().is_some_and(|deletion| deletion.mode == DeleteMode::Purge);
    if task.ended_at.is_none() && task.archived_at.is_none() {
        return None;
    }
    let sessions: Vec<(SessionId, String)> = task
        .sessions
        .iter()
        .filter_map(|id| state.sessions.get(id))
        .filter_map(|session| Some((session.id, session.launch.as_ref()?.agent_id.clone())))
        .collect();
    let others = sessions
        .iter()
        .filter(|_| purged)
        .flat_map(|(session_id, _)| state.generations_of(*session_id))
        .map(|generation| places::generation(generation.id))
        .chain([places::scratch(task_id)])
        .collect();
    Some(Wanted { sessions, others, purged, archived_at: task.archived_at, updated_at: task.updated_at })
}

/// Brings the files of one session to what is wanted. `there` names those that it has.
async fn session_files(
    exporting: &Exporting,
    wanted: &Wanted,
    session_id: SessionId,
    agent: &str,
    there: &[String],
) {
    let path = places::transcript(agent, session_id, wanted.archived_at);
    let name = path.rsplit('/').next().unwrap_or_default();
    let over = wanted.archived_at.is_some_and(|at| {
        let kept = exporting.retention.transcript_days.unless_off();
        kept.is_some_and(|kept| at.plus(kept) <= SystemClock.now())
    });
    let kept = !wanted.purged && !over;
    // An archived one is final; another one is made anew when something has happened since.
    let fresh = there.iter().any(|known| known == name)
        && (wanted.archived_at.is_some() || is_newer(exporting.folders.root(), &path, wanted.updated_at));
    if kept && !fresh && !write(exporting, session_id, &path).await {
        // What is there stays rather than nothing.
        return;
    }
    for other in there {
        if wanted.purged || other != name {
            let path = format!("{}/{}/{other}", places::SESSIONS, places::slug(agent));
            remove(&exporting.decider, &exporting.folders, &path, pause_ms(&exporting.retention)).await;
        }
    }
}

fn is_newer(root: &Path, path: &str, than: Timestamp) -> bool {
    let modified = places::inside(root, path).and_then(fs::symlink_metadata).and_then(|file| file.modified());
    let since = modified.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.is_some_and(|since| i128::from(than.0) <= i128::try_from(since.as_millis()).unwrap_or(0))
}

async fn write(exporting: &Exporting, session_id: SessionId, path: &str) -> bool {
    let (root, to) = (exporting.folders.root().to_owned(), path.to_owned());
    let written = exporting.readers.read(move |reader| Ok(write_whole(reader, session_id, &root, &to))).await;
    match written {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::warn!(%error, path, "a transcript can't be written");
            false
        }
        Err(error) => {
            tracing::warn!(%error, path, "a transcript can't be written");
            false
        }
    }
}

fn write_whole(reader: &dyn JournalReader, session_id: SessionId, root: &Path, path: &str) -> io::Result<()> {
    let (folder, name) = path.rsplit_once('/').unwrap_or_default();
    let folder = places::make_folder(root, folder)?;
    let temporary = folder.join(format!("{session_id}.jsonl.tmp"));
    let no_link = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(no_link);
    let mut file = BufWriter::new(options.open(&temporary)?);
    let mut after = 0;
    loop {
        let page = reader.session_events(session_id, after, PAGE).map_err(io::Error::other)?;
        for event in &page {
            after = event.seq;
            serde_json::to_writer(&mut file, event)?;
            file.write_all(b"\n")?;
        }
        if page.len() < PAGE as usize {
            break;
        }
    }
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(&temporary, folder.join(name))
}
