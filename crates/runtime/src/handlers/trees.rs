//! Trees of sub-agents: one more started, a turn that waits, a tree ended.

use std::time::Duration;

use rallypoint_model::command::{Command, Outcome, SpawnSession};
use rallypoint_model::ids::TaskId;
use rallypoint_ops::Problem;
use rallypoint_ops::trees::{SpawnInput, SpawnState, SpawnedView, StopSessionInput, StopView, WaitInput};
use rallypoint_ops::types::Empty;
use tokio::time::Instant;

use super::create_task::{environment, resolve};
use super::name;
use crate::daemon::Shared;
use crate::views;

/// Longest time that an answer waits for processes to end; more than the graces that end them take by default.
const WAIT_AT_MOST: Duration = Duration::from_secs(60);
/// Pause between two looks while it waits: a person does not notice it, and the decider neither.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Starts one more sub-agent.
pub(super) async fn spawn(shared: &Shared, input: SpawnInput) -> Result<SpawnedView, Problem> {
    let caller = environment(&input.environment);
    let (launch, secrets) = resolve(shared, &input.request(), &caller)?;
    // Secrets are known to the funnel before anything that could hold them is stored.
    shared.redactor.add(secrets.clone());
    shared.environments.add(input.task_id, secrets);
    let command = Command::SpawnSession(SpawnSession {
        task_id: input.task_id,
        parent_session_id: input.parent_session_id,
        launch,
        idempotency_key: input.idempotency_key,
    });
    match shared.decider.decide(command).await? {
        Outcome::Spawned { session_id, run_id, position } => {
            let state = if position.is_some() { SpawnState::Parked } else { SpawnState::Admitted };
            Ok(SpawnedView { session_id, run_id, state, position })
        }
        Outcome::Task { .. }
        | Outcome::Done
        | Outcome::Queued { .. }
        | Outcome::Room { .. }
        | Outcome::Message { .. }
        | Outcome::Delivery { .. }
        | Outcome::ToolCall { .. }
        | Outcome::Count { .. }
        | Outcome::Plan { .. }
        | Outcome::Handed { .. }
        | Outcome::Stale => {
            Err(Problem::internal("the decider answered a request for a sub-agent with something else"))
        }
    }
}

/// Lets the turn of a session wait for its children.
pub(super) async fn wait(shared: &Shared, input: WaitInput) -> Result<Empty, Problem> {
    shared.decider.decide(Command::AwaitChildren { session_id: input.session_id }).await?;
    Ok(Empty {})
}

/// Ends a session and all below it.
pub(super) async fn stop(shared: &Shared, input: StopSessionInput) -> Result<StopView, Problem> {
    let session_id = input.session_id;
    shared.decider.decide(Command::StopSession { session_id, by: name(input.by) }).await?;
    let task_id = shared
        .decider
        .look(move |state| state.sessions.get(&session_id).and_then(|session| session.task_id))
        .await?;
    if let Some(task_id) = task_id {
        wait_for_rest(shared, task_id, input.wait_ms).await?;
    }
    let view = shared.decider.look(move |state| views::trees::stop_of(state, session_id)).await?;
    view.ok_or_else(|| Problem::internal("the stop was decided and is not there"))
}

/// Waits until nothing is left of the trees of a task that are being ended, or until the time is up.
pub(super) async fn wait_for_rest(
    shared: &Shared,
    task_id: TaskId,
    wait_ms: Option<u64>,
) -> Result<(), Problem> {
    let Some(wait_ms) = wait_ms else { return Ok(()) };
    let give_up = Instant::now() + Duration::from_millis(wait_ms).min(WAIT_AT_MOST);
    loop {
        let rests = shared
            .decider
            .look(move |state| state.tasks.get(&task_id).is_none_or(|task| task.stops.is_empty()))
            .await?;
        if rests || Instant::now() >= give_up {
            return Ok(());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
