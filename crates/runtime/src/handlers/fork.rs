//! One task made of another: what it is to reach, by whom and by which plan is taken along, what was done is not.

use std::collections::BTreeMap;

use rallypoint_engine::state::Task;
use rallypoint_model::command::{AgentLaunch, Command, CreateTask, Outcome};
use rallypoint_model::ids::{CriterionId, TaskId};
use rallypoint_model::refusal::Refusal;
use rallypoint_model::steering::ForkSource;
use rallypoint_model::task::Criterion;
use rallypoint_ops::Problem;
use rallypoint_ops::steering::ForkTaskInput;
use rallypoint_ops::types::TaskView;
use uuid::Uuid;

use super::create_task::{criteria, environment, launches, work_folder};
use super::{name, task_of};
use crate::daemon::Shared;

pub(super) async fn fork(shared: &Shared, input: ForkTaskInput) -> Result<TaskView, Problem> {
    let source_id = input.task_id;
    let source: Task = shared
        .decider
        .look(move |state| state.tasks.get(&source_id).cloned())
        .await?
        .ok_or_else(|| Problem::from(Refusal::not_found("task", source_id)))?;
    let event_seq = shared.readers.read(|reader| reader.last_seq()).await?;
    let task_id = TaskId(Uuid::now_v7());
    let scratch = shared.folders.scratch(source_id).display().to_string();
    let cwd = input.cwd.clone().or_else(|| (source.cwd != scratch).then(|| source.cwd.clone()));
    let cwd = work_folder(shared, cwd.as_deref(), task_id)?;
    let caller = environment(&input.environment);
    let agents = if input.agents.is_empty() {
        let secrets = secrets_of(&source.agents, &caller);
        shared.redactor.add(secrets.clone());
        shared.environments.keep(task_id, secrets);
        source.agents.clone()
    } else {
        let (launches, secrets) = launches(shared, &input.agents, &caller)?;
        shared.redactor.add(secrets.clone());
        shared.environments.keep(task_id, secrets);
        launches
    };
    let criteria = match (&input.checks, &input.accept) {
        (None, None) => source
            .criteria
            .iter()
            .map(|criterion| Criterion { id: CriterionId(Uuid::now_v7()), ..criterion.clone() })
            .collect(),
        (checks, accept) => {
            criteria(checks.as_deref().unwrap_or_default(), accept.as_deref().unwrap_or_default())?
        }
    };
    let command = Command::CreateTask(CreateTask {
        task_id,
        idempotency_key: None,
        title: input.title.unwrap_or_else(|| format!("{} (fork)", source.title)),
        goal: input.goal.unwrap_or(source.goal),
        room_id: input.room_id.or(Some(source.origin_room_id)),
        worktree_room_id: source.worktree_room_id,
        cwd,
        criteria,
        acceptance: source.acceptance,
        timeout_ms: source.timeout_ms,
        agents,
        requested_by: name(input.by),
        source: source.source,
        priority: input.priority.unwrap_or(source.priority),
        budget: input.budget.unwrap_or(source.budget),
        platform_message_id: None,
        attachments: Vec::new(),
        progress: None,
        forked_from: Some(ForkSource { task_id: source_id, event_seq, plan_revision_id: source.plan_id }),
    });
    match shared.decider.decide(command).await? {
        Outcome::Task { task_id } => task_of(shared, task_id).await,
        other => Err(Problem::internal(format!("a fork was answered with {other:?}"))),
    }
}

/// Secrets that these agents had, as far as the caller brings them.
fn secrets_of(agents: &[AgentLaunch], caller: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let names = agents.iter().flat_map(|launch| &launch.secret_names);
    names.filter_map(|name| Some((name.clone(), caller.get(name)?.clone()))).collect()
}
