//! Archiving, bringing back and deleting tasks; transcripts.

use std::time::Duration;

use rallypoint_model::command::Command;
use rallypoint_model::ids::{RunId, TaskId};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_ops::Problem;
use rallypoint_ops::types::{ArchiveTaskInput, DeleteTaskInput, SessionRef, TaskView, TranscriptView};

use super::steering::stop_first;
use super::{name, task_of};
use tokio::time::Instant;

use crate::daemon::Shared;
use crate::retention::places;

/// How long a purge waits for processes that are being ended.
const GONE_WITHIN: Duration = Duration::from_secs(20);
/// Pause between two attempts.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(crate) async fn archive(shared: &Shared, input: ArchiveTaskInput) -> Result<TaskView, Problem> {
    let by = name(input.by);
    if input.stop_active {
        stop_first(shared, input.task_id, &by).await?;
    }
    shared.decider.decide(Command::ArchiveTask { task_id: input.task_id, by }).await?;
    task_of(shared, input.task_id).await
}

pub(crate) async fn unarchive(shared: &Shared, input: ArchiveTaskInput) -> Result<TaskView, Problem> {
    let command = Command::UnarchiveTask { task_id: input.task_id, by: name(input.by) };
    shared.decider.decide(command).await?;
    task_of(shared, input.task_id).await
}

pub(crate) async fn delete(shared: &Shared, input: DeleteTaskInput) -> Result<TaskView, Problem> {
    let (task_id, by) = (input.task_id, name(input.by));
    stop_first(shared, task_id, &by).await?;
    let give_up = Instant::now() + GONE_WITHIN;
    loop {
        let command = Command::DeleteTask { task_id, mode: input.mode, by: by.clone() };
        match shared.decider.decide(command).await {
            Ok(_) => return task_of(shared, task_id).await,
            // Its processes are still being ended.
            Err(refusal) if refusal.retryable && Instant::now() < give_up => {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            Err(refusal) => return Err(refusal.into()),
        }
    }
}

pub(crate) async fn transcript(shared: &Shared, input: &SessionRef) -> Result<TranscriptView, Problem> {
    let session_id = input.session_id;
    let found = shared.decider.look(move |state| {
        let session = state.sessions.get(&session_id)?;
        let agent = session.launch.as_ref().map(|launch| launch.agent_id.clone())?;
        Some((agent, session.archived_at))
    });
    let (agent, archived_at) = found
        .await?
        .ok_or_else(|| Problem::from(Refusal::not_found("session of a sub-agent", session_id)))?;
    let path = places::transcript(&agent, session_id, archived_at);
    let whole = places::inside(shared.folders.root(), &path)
        .map_err(|error| Problem::internal(format!("the transcript can't be looked at: {error}")))?;
    if !whole.is_file() {
        let message = format!("the session `{session_id}` has no transcript");
        return Err(Refusal::new(RefusalCode::NotFound, message)
            .with_hint("it is written when the task ends, and removed with `transcriptDays` or by a purge; `rally task log` shows the journal")
            .into());
    }
    Ok(TranscriptView { session_id, path: whole.display().to_string(), archived_at })
}

/// What to say of an output that is referred to and not there.
pub(crate) fn removed_result(run_id: RunId) -> Problem {
    Refusal::new(RefusalCode::NotFound, format!("the output of the run `{run_id}` was removed"))
        .with_hint("its time was over (`retention.resultDays`), or its task was purged")
        .into()
}

/// Makes a task's scratch folder anew where retention took it, so that the task can go on.
pub(crate) async fn scratch_again(shared: &Shared, task_id: TaskId) -> Result<(), Problem> {
    let scratch = shared.folders.scratch(task_id);
    let works_there = {
        let scratch = scratch.display().to_string();
        shared
            .decider
            .look(move |state| {
                state.tasks.get(&task_id).is_some_and(|task| task.deleted.is_none() && task.cwd == scratch)
            })
            .await?
    };
    if works_there && !scratch.exists() {
        std::fs::create_dir_all(&scratch)
            .map_err(|error| Problem::internal(format!("a scratch folder can't be made: {error}")))?;
    }
    Ok(())
}
