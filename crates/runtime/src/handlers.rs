//! Handlers of the operations: one function each, found by the operation's name.

mod agents;
mod attachments;
mod create_task;
mod fork;
mod history;
mod lists;
mod overview;
mod policy;
mod retention;
mod rooms;
mod search;
mod steering;
pub(crate) mod tools;
mod trees;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use rallypoint_engine::state::State;
use rallypoint_model::command::Command;
use rallypoint_model::ids::{RoomId, TaskId};
use rallypoint_model::refusal::Refusal;
use rallypoint_model::session::GenerationStatus;
use rallypoint_ops::Problem;
use rallypoint_ops::rooms::{DeliveryRef, RoomRef};
use rallypoint_ops::types::{
    AnswerInput, ConfigureInput, DaemonStatus, Empty, EventPage, EventsInput, OverrideTaskInput, ResultView,
    RetryTaskInput, RunRef, SendInput, StopTaskInput, TaskRef, TaskView, UsageInput,
};
use rallypoint_store::query::EventFilter;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::daemon::Shared;
use crate::views;

/// Rows of a page when no limit is given, and at most.
const PAGE: u32 = 100;
const PAGE_MAX: u32 = 500;

/// Carries out one operation.
pub(crate) async fn call(shared: &Shared, operation: &str, input: Value) -> Result<Value, Problem> {
    match operation {
        "daemon.status" => answer(daemon_status(shared).await?),
        "daemon.stop" => {
            shared.stop.send_replace(true);
            answer(Empty {})
        }
        "task.create" => answer(create_task::create(shared, read(input)?).await?),
        "task.list" => answer(lists::tasks(shared, read(input)?).await?),
        "task.get" => answer(task_of(shared, read::<TaskRef>(input)?.task_id).await?),
        "task.stop" => {
            let input: StopTaskInput = read(input)?;
            let by = name(input.by);
            shared.decider.decide(Command::StopTask { task_id: input.task_id, by }).await?;
            trees::wait_for_rest(shared, input.task_id, input.wait_ms).await?;
            answer(task_of(shared, input.task_id).await?)
        }
        "task.retry" => {
            let input: RetryTaskInput = read(input)?;
            retention::scratch_again(shared, input.task_id).await?;
            keep_secrets_again(shared, input.task_id, input.environment).await?;
            let command = Command::RetryTask { task_id: input.task_id, by: name(input.by), text: input.text };
            shared.decider.decide(command).await?;
            answer(task_of(shared, input.task_id).await?)
        }
        "task.override" => {
            let input: OverrideTaskInput = read(input)?;
            let command = Command::OverrideTask {
                task_id: input.task_id,
                passed: input.passed,
                by: input.by,
                reason: input.reason,
            };
            shared.decider.decide(command).await?;
            answer(task_of(shared, input.task_id).await?)
        }
        "task.archive" => answer(retention::archive(shared, read(input)?).await?),
        "task.unarchive" => answer(retention::unarchive(shared, read(input)?).await?),
        "task.delete" => answer(retention::delete(shared, read(input)?).await?),
        "task.patch" => answer(steering::patch(shared, read(input)?).await?),
        "task.pause" => answer(steering::pause(shared, read(input)?).await?),
        "task.resume" => answer(steering::resume(shared, read(input)?).await?),
        "task.pauseAll" => answer(steering::pause_all(shared, read(input)?).await?),
        "task.resumeAll" => answer(steering::resume_all(shared, read(input)?).await?),
        "task.reopen" => answer(steering::reopen(shared, read(input)?).await?),
        "task.fork" => answer(fork::fork(shared, read(input)?).await?),
        "task.message" => answer(steering::message(shared, read(input)?).await?),
        "task.messages" => answer(history::messages(shared, read(input)?).await?),
        "task.timeline" => answer(history::timeline(shared, read(input)?).await?),
        "task.decisions" => answer(history::decisions(shared, read(input)?).await?),
        "task.artifacts" => answer(history::artifacts(shared, read(input)?).await?),
        "task.plans" => answer(history::plans(shared, read(input)?).await?),
        "task.revisePlan" => answer(steering::revise_plan(shared, read(input)?).await?),
        "task.retryTurn" => answer(steering::retry_turn(shared, read(input)?).await?),
        "task.restart" => answer(steering::restart(shared, read(input)?).await?),
        "task.restartWithPlan" => answer(steering::restart_with_plan(shared, read(input)?).await?),
        "task.rerun" => answer(steering::rerun(shared, read(input)?).await?),
        "task.validate" => answer(steering::validate(shared, read(input)?).await?),
        "task.check" => answer(steering::check(shared, read(input)?).await?),
        "status.get" => answer(overview::status(shared).await?),
        "operation.list" => answer(rallypoint_ops::overview::operations()),
        "capacity.get" => answer(overview::capacity(shared).await?),
        "session.transcript" => answer(retention::transcript(shared, &read(input)?).await?),
        "session.spawn" => answer(trees::spawn(shared, read(input)?).await?),
        "session.wait" => answer(trees::wait(shared, read(input)?).await?),
        "session.stop" => answer(trees::stop(shared, read(input)?).await?),
        "session.send" => {
            let input: SendInput = read(input)?;
            let command =
                Command::SendToSession { session_id: input.session_id, text: input.text, by: name(input.by) };
            shared.decider.decide(command).await?;
            answer(Empty {})
        }
        "session.configure" => {
            let input: ConfigureInput = read(input)?;
            let command = Command::ConfigureSession {
                session_id: input.session_id,
                wanted: input.wanted,
                config: input.config.into_iter().collect(),
                by: name(input.by),
            };
            shared.decider.decide(command).await?;
            answer(Empty {})
        }
        "question.list" => answer(lists::questions(shared, read(input)?).await?),
        "question.answer" => {
            let input: AnswerInput = read(input)?;
            let AnswerInput { question_id, answer: given, by, agent } = input;
            let command = match agent {
                Some(agent) => Command::AnswerQuestionAsAgent { question_id, answer: given, agent },
                None => Command::AnswerQuestion { question_id, answer: given, by: name(by) },
            };
            shared.decider.decide(command).await?;
            answer(Empty {})
        }
        "usage.get" => {
            let input: UsageInput = read(input)?;
            answer(shared.decider.look(move |state| views::usage::totals(state, &input)).await?)
        }
        "event.list" => answer(event_list(shared, read(input)?).await?),
        "room.list" => answer(rooms::list(shared, read(input)?).await?),
        "agent.list" => answer(agents::list(shared)),
        "agent.preflight" => answer(agents::preflight(shared, read(input)?).await?),
        "room.create" => answer(rooms::create(shared, read(input)?).await?),
        "room.get" => answer(rooms::get(shared, &read::<RoomRef>(input)?.room_id).await?),
        "room.reset" => answer(rooms::reset(shared, read(input)?).await?),
        "room.active" => answer(rooms::active(shared, &read::<RoomRef>(input)?.room_id).await?),
        "room.progress" => answer(rooms::progress(shared, read(input)?).await?),
        "room.say" => answer(rooms::say(shared, read(input)?).await?),
        "message.search" => answer(search::messages(shared, read(input)?).await?),
        "search.find" => answer(search::everywhere(shared, read(input)?).await?),
        "delivery.list" => answer(rooms::deliveries(shared, read(input)?).await?),
        "delivery.get" => answer(rooms::delivery(shared, read::<DeliveryRef>(input)?.delivery_id).await?),
        "delivery.retry" => answer(rooms::retry(shared, read(input)?).await?),
        "delivery.discard" => answer(rooms::discard(shared, read(input)?).await?),
        "room.messages" => answer(rooms::messages(shared, read(input)?).await?),
        "policy.explain" => answer(policy::explain(shared, read(input)?).await?),
        "result.get" => answer(result_get(shared, read(input)?).await?),
        other => Err(Problem {
            code: rallypoint_model::refusal::RefusalCode::NotFound,
            message: format!("there is no operation `{other}`"),
            hint: None,
            retryable: false,
        }),
    }
}

/// Secrets live in the memory of one daemon; whoever asks for more work brings them again.
async fn keep_secrets_again(
    shared: &Shared,
    task_id: TaskId,
    environment: BTreeMap<String, String>,
) -> Result<(), Problem> {
    if environment.is_empty() {
        return Ok(());
    }
    let names = shared
        .decider
        .look(move |state| {
            let agents = state.tasks.get(&task_id).map(|task| task.agents.clone()).unwrap_or_default();
            agents.into_iter().flat_map(|launch| launch.secret_names).collect::<BTreeSet<String>>()
        })
        .await?;
    let secrets: BTreeMap<String, String> =
        environment.into_iter().filter(|(name, _)| names.contains(name)).collect();
    shared.redactor.add(secrets.clone());
    shared.environments.keep(task_id, secrets);
    Ok(())
}

fn read<T: DeserializeOwned>(input: Value) -> Result<T, Problem> {
    let input = if input.is_null() { Value::Object(serde_json::Map::new()) } else { input };
    serde_json::from_value(input)
        .map_err(|error| Problem::invalid(format!("the input can't be read: {error}")))
}

fn answer<T: Serialize>(output: T) -> Result<Value, Problem> {
    serde_json::to_value(output)
        .map_err(|error| Problem::internal(format!("the answer can't be written: {error}")))
}

fn name(by: Option<String>) -> String {
    by.filter(|by| !by.trim().is_empty()).unwrap_or_else(|| "user".to_owned())
}

pub(crate) async fn task_of(shared: &Shared, task_id: TaskId) -> Result<TaskView, Problem> {
    let limits = shared.config.limits.clone();
    let view = shared.decider.look(move |state| views::task_view(state, task_id, &limits)).await?;
    view.ok_or_else(|| {
        Refusal::not_found("task", task_id).with_hint("`rally task list` shows the tasks there are").into()
    })
}

async fn daemon_status(shared: &Shared) -> Result<DaemonStatus, Problem> {
    let (open_runs, open_questions, generations, unclean) = shared.decider.look(counts).await?;
    let last_seq = shared.readers.read(|reader| reader.last_seq()).await?;
    Ok(DaemonStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        data_folder: shared.folders.root().display().to_string(),
        epoch: shared.epoch,
        ends_when_idle: shared.ends_when_idle,
        started_at: shared.started_at,
        open_runs,
        open_questions,
        generations,
        unclean_generations: unclean,
        last_seq,
        listen: shared.listen.lock().unwrap_or_else(PoisonError::into_inner).clone(),
    })
}

fn counts(state: &State) -> (u32, u32, u32, u32) {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let live =
        state.open_generations().filter(|generation| generation.status != GenerationStatus::Ended).count();
    let unclean = state
        .generations
        .values()
        .filter(|generation| generation.cleaned.is_some_and(|cleaned| cleaned.left > 0))
        .count();
    (
        number(views::open_runs(state)),
        number(views::open_questions(state, None).len()),
        number(live),
        number(unclean),
    )
}

async fn event_list(shared: &Shared, input: EventsInput) -> Result<EventPage, Problem> {
    let limit = input.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let filter = EventFilter { task_id: input.task_id, room_id: input.room_id };
    let after = input.after.unwrap_or(0);
    let events = shared.readers.read(move |reader| reader.events(filter, after, limit)).await?;
    let next_after = (events.len() >= limit as usize).then(|| events.last().map(|event| event.seq)).flatten();
    let items = events.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
    let items = items.map_err(|error| Problem::internal(format!("an event can't be written: {error}")))?;
    Ok(EventPage { items, next_after })
}

async fn room_id(shared: &Shared, text: &str) -> Result<RoomId, Problem> {
    if text == "main" {
        let main = shared.decider.look(|state| state.world.as_ref().map(|world| world.main_room_id)).await?;
        return main.ok_or_else(|| Problem::internal("the store has no world yet"));
    }
    let id: RoomId = text.parse().map_err(|_| Problem::invalid(format!("`{text}` is no id of a room")))?;
    let known = shared.decider.look(move |state| state.rooms.contains_key(&id)).await?;
    if known {
        Ok(id)
    } else {
        Err(Refusal::not_found("room", id).with_hint("`rally room list` shows the rooms there are").into())
    }
}

async fn result_get(shared: &Shared, input: RunRef) -> Result<ResultView, Problem> {
    let run_id = input.run_id;
    let found =
        shared.decider.look(move |state| state.runs.get(&run_id).map(|run| run.result.clone())).await?;
    let result = found.ok_or_else(|| Problem::from(Refusal::not_found("run", run_id)))?.ok_or_else(|| {
        Problem::from(
            Refusal::new(
                rallypoint_model::refusal::RefusalCode::NotFound,
                format!("the run `{run_id}` has no output"),
            )
            .with_hint("it said nothing, or has not ended yet"),
        )
    })?;
    let digest = result.digest.clone();
    let bytes = shared.readers.read(move |reader| reader.blob(&digest)).await?;
    let bytes = bytes.ok_or_else(|| retention::removed_result(run_id))?;
    Ok(ResultView { run_id, result, text: String::from_utf8_lossy(&bytes).into_owned() })
}
