//! Steering tasks: paused, changed, opened and begun again, spoken to, judged.

use std::collections::BTreeMap;
use std::time::Duration;

use rallypoint_engine::text::{defuse, head};
use rallypoint_model::command::{AgentLaunch, Command, Outcome};
use rallypoint_model::event::Event;
use rallypoint_model::ids::{MessageId, TaskId};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::steering::{
    EarlierWork, MessageTask, NewPlan, PlanChoice, PlanRevision, RestartTask, RetryTurn, TaskChange,
    ValidateTask,
};
use rallypoint_model::task::{AgentRequest, TaskStatus};
use rallypoint_ops::Problem;
use rallypoint_ops::steering::{
    CheckTaskInput, MessageTaskInput, MessagedView, PatchTaskInput, RerunTaskInput, RestartTaskInput,
    RestartWithPlanInput, RetryTurnInput, RevisePlanInput, SteerAllInput, SteerInput, SteeredView,
    ValidateTaskInput,
};
use rallypoint_ops::types::TaskView;
use tokio::time::Instant;

use super::create_task::{criteria, environment, launches};
use super::{keep_secrets_again, name, retention, task_of};
use crate::daemon::Shared;

/// Longest time that an answer waits for work to end.
const WAIT_AT_MOST: Duration = Duration::from_secs(60);
/// Pause between two looks while it waits.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Messages that are told to whoever begins from an event, and the bytes that each and all of them may have.
const EARLIER_MESSAGES: u32 = 60;
const EARLIER_BYTES_EACH: usize = 2_000;
const EARLIER_BYTES: usize = 24_000;

fn unexpected(outcome: &Outcome) -> Problem {
    Problem::internal(format!("the decider answered with {outcome:?}"))
}

async fn steered(shared: &Shared, task_id: TaskId, command: Command) -> Result<TaskView, Problem> {
    shared.decider.decide(command).await?;
    task_of(shared, task_id).await
}

pub(super) async fn pause(shared: &Shared, input: SteerInput) -> Result<TaskView, Problem> {
    let command = Command::PauseTask { task_id: input.task_id, by: name(input.by) };
    steered(shared, input.task_id, command).await
}

pub(super) async fn resume(shared: &Shared, input: SteerInput) -> Result<TaskView, Problem> {
    let command = Command::ResumeTask { task_id: input.task_id, by: name(input.by) };
    steered(shared, input.task_id, command).await
}

pub(super) async fn reopen(shared: &Shared, input: SteerInput) -> Result<TaskView, Problem> {
    let command = Command::ReopenTask { task_id: input.task_id, by: name(input.by) };
    steered(shared, input.task_id, command).await
}

pub(super) async fn pause_all(shared: &Shared, input: SteerAllInput) -> Result<SteeredView, Problem> {
    counted(shared.decider.decide(Command::PauseAll { by: name(input.by) }).await?)
}

pub(super) async fn resume_all(shared: &Shared, input: SteerAllInput) -> Result<SteeredView, Problem> {
    counted(shared.decider.decide(Command::ResumeAll { by: name(input.by) }).await?)
}

fn counted(outcome: Outcome) -> Result<SteeredView, Problem> {
    match outcome {
        Outcome::Count { tasks } => Ok(SteeredView { tasks }),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn patch(shared: &Shared, input: PatchTaskInput) -> Result<TaskView, Problem> {
    let task_id = input.task_id;
    let criteria = match (&input.checks, &input.accept) {
        (None, None) => None,
        (checks, accept) => {
            Some(criteria(checks.as_deref().unwrap_or_default(), accept.as_deref().unwrap_or_default())?)
        }
    };
    let agents = match &input.agents {
        None => None,
        Some(requests) => Some(started_with(shared, task_id, requests, &input.environment)?),
    };
    let change = TaskChange {
        title: input.title,
        goal: input.goal,
        criteria,
        priority: input.priority,
        budget: input.budget,
        agents,
    };
    steered(shared, task_id, Command::PatchTask { task_id, change, by: name(input.by) }).await
}

/// How to start these agents. Their secrets are known to the funnel before anything that could hold them is stored.
fn started_with(
    shared: &Shared,
    task_id: TaskId,
    requests: &[AgentRequest],
    sent: &BTreeMap<String, String>,
) -> Result<Vec<AgentLaunch>, Problem> {
    let (launches, secrets) = launches(shared, requests, &environment(sent))?;
    shared.redactor.add(secrets.clone());
    shared.environments.add(task_id, secrets);
    Ok(launches)
}

pub(super) async fn message(shared: &Shared, input: MessageTaskInput) -> Result<MessagedView, Problem> {
    let task_id = input.task_id;
    retention::scratch_again(shared, task_id).await?;
    keep_secrets_again(shared, task_id, input.environment).await?;
    let command = Command::MessageTask(MessageTask {
        task_id,
        text: input.text,
        by: name(input.by),
        source: input.source.unwrap_or_else(|| "api".to_owned()),
    });
    match shared.decider.decide(command).await? {
        Outcome::Handed { message_id, sessions, not_reached, started } => Ok(MessagedView {
            message_id,
            recorded: true,
            forwarded_to: sessions,
            failed_to: not_reached,
            started,
        }),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn revise_plan(shared: &Shared, input: RevisePlanInput) -> Result<PlanRevision, Problem> {
    let task_id = input.task_id;
    let plan =
        NewPlan { value: input.plan, base_id: input.base_plan_revision_id, summary: input.edit_summary };
    match shared.decider.decide(Command::RevisePlan { task_id, plan, by: name(input.by) }).await? {
        Outcome::Plan { revision_id } => shared
            .decider
            .look(move |state| state.tasks.get(&task_id).and_then(|task| task.plan_of(revision_id).cloned()))
            .await?
            .ok_or_else(|| Problem::internal("the plan was decided and is not there")),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn restart(shared: &Shared, input: RestartTaskInput) -> Result<TaskView, Problem> {
    let plan = input.plan_revision_id.map_or(PlanChoice::Latest, |id| PlanChoice::Revision { id });
    let anew = Anew {
        task_id: input.task_id,
        by: name(input.by),
        instruction: input.instruction,
        plan,
        stop_active: input.stop_active,
        agent: input.agent,
        environment: input.environment,
        earlier: None,
    };
    anew.begin(shared).await
}

pub(super) async fn restart_with_plan(
    shared: &Shared,
    input: RestartWithPlanInput,
) -> Result<TaskView, Problem> {
    let plan =
        NewPlan { value: input.plan, base_id: input.base_plan_revision_id, summary: input.edit_summary };
    let anew = Anew {
        task_id: input.task_id,
        by: name(input.by),
        instruction: input.instruction,
        plan: PlanChoice::New { plan },
        stop_active: input.stop_active,
        agent: input.agent,
        environment: input.environment,
        earlier: None,
    };
    anew.begin(shared).await
}

pub(super) async fn rerun(shared: &Shared, input: RerunTaskInput) -> Result<TaskView, Problem> {
    let earlier = earlier_work(shared, input.task_id, input.event_seq).await?;
    let anew = Anew {
        task_id: input.task_id,
        by: name(input.by),
        instruction: input.instruction,
        plan: input.plan_revision_id.map_or(PlanChoice::Latest, |id| PlanChoice::Revision { id }),
        stop_active: input.stop_active,
        agent: input.agent,
        environment: input.environment,
        earlier: Some(earlier),
    };
    anew.begin(shared).await
}

/// A task begun again in new sessions.
struct Anew {
    task_id: TaskId,
    by: String,
    instruction: Option<String>,
    plan: PlanChoice,
    stop_active: bool,
    agent: Option<AgentRequest>,
    environment: BTreeMap<String, String>,
    earlier: Option<EarlierWork>,
}

impl Anew {
    async fn begin(self, shared: &Shared) -> Result<TaskView, Problem> {
        let task_id = self.task_id;
        let launch = match &self.agent {
            None => None,
            Some(request) => {
                let one = std::slice::from_ref(request);
                started_with(shared, task_id, one, &self.environment)?.pop()
            }
        };
        retention::scratch_again(shared, task_id).await?;
        keep_secrets_again(shared, task_id, self.environment).await?;
        if self.stop_active {
            stop_first(shared, task_id, &self.by).await?;
        }
        let command = Command::RestartTask(RestartTask {
            task_id,
            by: self.by,
            instruction: self.instruction,
            plan: self.plan,
            launch,
            earlier: self.earlier,
        });
        steered(shared, task_id, command).await
    }
}

/// Stops whoever works on a task and waits until nobody does.
pub(super) async fn stop_first(shared: &Shared, task_id: TaskId, by: &str) -> Result<(), Problem> {
    let works = |state: &rallypoint_engine::state::State, task_id: TaskId| {
        state.tasks.get(&task_id).is_some_and(|task| {
            let over = task.status.is_terminal() || task.status == TaskStatus::Interrupted;
            let at_work = matches!(
                task.status,
                TaskStatus::Open | TaskStatus::Active | TaskStatus::Blocked | TaskStatus::Validating
            );
            state.task_has_open_run(task) || !task.stops.is_empty() || !over && at_work
        })
    };
    if !shared.decider.look(move |state| works(state, task_id)).await? {
        return Ok(());
    }
    match shared.decider.decide(Command::StopTask { task_id, by: by.to_owned() }).await {
        // It ended by itself just now.
        Ok(_) | Err(Refusal { code: RefusalCode::Conflict, .. }) => {}
        Err(refusal) => return Err(refusal.into()),
    }
    let give_up = Instant::now() + WAIT_AT_MOST;
    while shared.decider.look(move |state| works(state, task_id)).await? {
        if Instant::now() >= give_up {
            return Err(Refusal {
                code: RefusalCode::Conflict,
                message: "the task is still being stopped".to_owned(),
                hint: Some("try again in a moment".to_owned()),
                retryable: true,
            }
            .into());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// What was said about a task until an event of it. What sub-agents said is data, so its headers lose their power.
async fn earlier_work(shared: &Shared, task_id: TaskId, event_seq: i64) -> Result<EarlierWork, Problem> {
    task_of(shared, task_id).await?;
    let filter = rallypoint_store::query::EventFilter { task_id: Some(task_id), room_id: None };
    let (found, said) = shared
        .readers
        .read(move |reader| {
            let found = reader.events(filter, event_seq.saturating_sub(1), 1)?;
            let before = Some(event_seq.saturating_add(1));
            let said = reader.task_events_back(task_id, &["message.posted"], before, EARLIER_MESSAGES)?;
            Ok((found, said))
        })
        .await?;
    if found.first().is_none_or(|event| event.seq != event_seq) {
        return Err(Refusal::new(RefusalCode::NotFound, format!("the task has no event {event_seq}"))
            .with_hint(format!("`rally task timeline {task_id}` shows its events with their numbers"))
            .into());
    }
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0;
    // The latest words matter most, so the earliest are left out first.
    for record in said {
        let Event::MessagePosted { message, .. } = record.event else { continue };
        let line = format!("{}: {}", message.name, defuse(&head(&message.text, EARLIER_BYTES_EACH)));
        bytes += line.len();
        if bytes > EARLIER_BYTES {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    Ok(EarlierWork { event_seq, text: lines.join("\n") })
}

pub(super) async fn retry_turn(shared: &Shared, input: RetryTurnInput) -> Result<TaskView, Problem> {
    let task_id = input.task_id;
    let text = match (input.instruction, input.message_id) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid("name an instruction or a message to say again, not both"));
        }
        (None, Some(id)) => Some(words_of(shared, task_id, id).await?),
        (instruction, None) => instruction,
    };
    retention::scratch_again(shared, task_id).await?;
    keep_secrets_again(shared, task_id, input.environment).await?;
    let command = Command::RetryTurn(RetryTurn {
        task_id,
        by: name(input.by),
        text,
        session_id: input.session_id,
        new_session: input.new_session,
        plan_revision_id: input.plan_revision_id,
    });
    steered(shared, task_id, command).await
}

async fn words_of(shared: &Shared, task_id: TaskId, id: MessageId) -> Result<String, Problem> {
    let said = shared
        .readers
        .read(move |reader| reader.task_events_back(task_id, &["message.posted"], None, u32::MAX))
        .await?;
    said.into_iter()
        .find_map(|record| match record.event {
            Event::MessagePosted { message, .. } if message.id == id => Some(message.text),
            _ => None,
        })
        .ok_or_else(|| {
            Refusal::not_found("message of this task", id)
                .with_hint(format!("`rally task messages {task_id}` shows them"))
                .into()
        })
}

pub(super) async fn validate(shared: &Shared, input: ValidateTaskInput) -> Result<TaskView, Problem> {
    let task_id = input.task_id;
    let command = if input.human_override {
        Command::OverrideTask { task_id, passed: input.passed, by: input.by, reason: input.evidence }
    } else {
        Command::ValidateTask(ValidateTask {
            task_id,
            passed: input.passed,
            evidence: input.evidence,
            by: input.by,
        })
    };
    steered(shared, task_id, command).await
}

pub(super) async fn check(shared: &Shared, input: CheckTaskInput) -> Result<TaskView, Problem> {
    let task_id = input.task_id;
    shared.decider.decide(Command::CheckAgain { task_id, by: name(input.by) }).await?;
    if let Some(wait_ms) = input.wait_ms {
        let give_up = Instant::now() + Duration::from_millis(wait_ms).min(WAIT_AT_MOST);
        let checked = move |state: &rallypoint_engine::state::State| {
            state.tasks.get(&task_id).is_some_and(|task| task.verification_due)
        };
        while shared.decider.look(checked).await? && Instant::now() < give_up {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
    task_of(shared, task_id).await
}
