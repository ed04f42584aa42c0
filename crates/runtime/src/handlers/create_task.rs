//! Making a task: agents resolved, folder and environment looked at, before
//! anything is stored.

use std::collections::BTreeMap;
use std::path::Path;

use rallypoint_acp::profiles::{Login, Profile, find_program};
use rallypoint_engine::text::one_line;
use rallypoint_model::command::{Acceptance, AgentChoice, AgentLaunch, Command, CreateTask, Outcome};
use rallypoint_model::ids::{CriterionId, TaskId};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::task::{AgentRequest, Criterion, CriterionCheck};
use rallypoint_model::usage::UsageKind;
use rallypoint_ops::Problem;
use rallypoint_ops::types::{CreateTaskInput, TaskView};
use rallypoint_process::environment::looks_secret;
use uuid::Uuid;

use super::agents::chosen;
use super::{attachments, policy, task_of};
use crate::daemon::Shared;

/// Characters of a title that is taken from the goal.
const TITLE_CHARS: usize = 80;
/// Values shorter than this are no secrets that could be hidden in text.
const SECRET_BYTES: usize = 6;

pub(crate) async fn create(shared: &Shared, input: CreateTaskInput) -> Result<TaskView, Problem> {
    if input.goal.trim().is_empty() {
        return Err(Refusal::new(RefusalCode::Invalid, "the goal is empty")
            .with_hint("say what is to be reached, as in `rally run \"Fix the failing test\"`")
            .into());
    }
    if input.timeout_ms < 0 {
        return Err(Problem::invalid("the timeout is negative"));
    }
    let task_id = TaskId(Uuid::now_v7());
    let caller = environment(&input.environment);
    let (requests, choice) = chosen(shared, &input, &caller)?;
    let cwd = work_folder(shared, input.cwd.as_deref(), task_id)?;
    let mut launches = Vec::new();
    let mut secrets: BTreeMap<String, String> = BTreeMap::new();
    for request in &requests {
        let mut request = request.clone();
        request.permissions = request.permissions.or(input.permissions);
        let (launch, hidden) = resolve(shared, &request, &caller)?;
        secrets.extend(hidden);
        launches.push(AgentLaunch { choice, ..launch });
    }
    unique_labels(&mut launches);
    // Secrets are known to the funnel before anything that could hold them is stored.
    shared.redactor.add(secrets.clone());
    shared.environments.keep(task_id, secrets);
    let attachments =
        attachments::read(&input.attachments, &shared.config.limits, &shared.redactor.current())?;
    let command = Command::CreateTask(CreateTask {
        task_id,
        idempotency_key: input.idempotency_key.clone().or_else(|| platform_key(&input)),
        title: input.title.clone().unwrap_or_else(|| one_line(&input.goal, TITLE_CHARS)),
        goal: input.goal.clone(),
        room_id: input.room_id,
        worktree_room_id: input.worktree_room_id,
        cwd,
        criteria: criteria(&input.checks, &input.accept)?,
        acceptance: if input.unchecked { Acceptance::Unchecked } else { Acceptance::Checked },
        timeout_ms: input.timeout_ms,
        agents: launches,
        requested_by: input.requested_by.clone().unwrap_or_else(|| "user".to_owned()),
        source: input.source.clone().unwrap_or_else(|| "api".to_owned()),
        priority: input.priority.unwrap_or_default(),
        budget: input.budget.unwrap_or_default(),
        platform_message_id: input.platform_message_id.clone(),
        attachments,
        forked_from: None,
        progress: input.progress,
    });
    match shared.decider.decide(command).await? {
        Outcome::Task { task_id } => task_of(shared, task_id).await,
        Outcome::Done
        | Outcome::Queued { .. }
        | Outcome::Spawned { .. }
        | Outcome::Room { .. }
        | Outcome::Message { .. }
        | Outcome::Delivery { .. }
        | Outcome::ToolCall { .. }
        | Outcome::Count { .. }
        | Outcome::Plan { .. }
        | Outcome::Handed { .. }
        | Outcome::Stale => {
            Err(Problem::internal("the decider answered a request for a task with something else"))
        }
    }
}

/// The key of a request that came from a platform: that message, in that room.
fn platform_key(input: &CreateTaskInput) -> Option<String> {
    let id = input.platform_message_id.as_ref()?;
    let room = input.room_id.map_or_else(|| "main".to_owned(), |room| room.to_string());
    Some(format!("platform|{room}|{id}"))
}

/// The caller's environment; the daemon's own for a caller that sends none.
pub(super) fn environment(sent: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    if sent.is_empty() { std::env::vars().collect() } else { sent.clone() }
}

pub(super) fn work_folder(shared: &Shared, cwd: Option<&str>, task_id: TaskId) -> Result<String, Problem> {
    let Some(cwd) = cwd else {
        let scratch = shared.folders.scratch(task_id);
        std::fs::create_dir_all(&scratch)
            .map_err(|error| Problem::internal(format!("a scratch folder can't be made: {error}")))?;
        return Ok(scratch.display().to_string());
    };
    let path = Path::new(cwd);
    if !path.is_absolute() {
        return Err(Problem::invalid(format!("the work folder `{cwd}` is not an absolute path")));
    }
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(cwd.to_owned()),
        Ok(_) => Err(Refusal::new(RefusalCode::Invalid, format!("the work folder `{cwd}` is a file"))
            .with_hint("name a folder with `--cwd`")
            .into()),
        Err(error) => {
            Err(Refusal::new(RefusalCode::Invalid, format!("the work folder `{cwd}` can't be used: {error}"))
                .with_hint("name an existing folder with `--cwd`")
                .into())
        }
    }
}

pub(super) fn criteria(checks: &[String], accept: &[String]) -> Result<Vec<Criterion>, Problem> {
    let mut criteria = Vec::new();
    for command in checks {
        if command.trim().is_empty() {
            return Err(Problem::invalid("a check is empty"));
        }
        criteria.push(Criterion {
            id: CriterionId(Uuid::now_v7()),
            text: format!("`{command}` exits with 0 in the work folder"),
            check: CriterionCheck::Command { command: command.clone() },
        });
    }
    for text in accept {
        if text.trim().is_empty() {
            return Err(Problem::invalid("a statement to accept is empty"));
        }
        criteria.push(Criterion {
            id: CriterionId(Uuid::now_v7()),
            text: text.clone(),
            check: CriterionCheck::Human { text: text.clone() },
        });
    }
    Ok(criteria)
}

/// How to start these agents, and the secret variables that they get.
pub(super) fn launches(
    shared: &Shared,
    requests: &[AgentRequest],
    caller: &BTreeMap<String, String>,
) -> Result<(Vec<AgentLaunch>, BTreeMap<String, String>), Problem> {
    let mut launches = Vec::new();
    let mut secrets = BTreeMap::new();
    for request in requests {
        let (launch, hidden) = resolve(shared, request, caller)?;
        secrets.extend(hidden);
        launches.push(launch);
    }
    unique_labels(&mut launches);
    Ok((launches, secrets))
}

pub(super) fn resolve(
    shared: &Shared,
    request: &AgentRequest,
    caller: &BTreeMap<String, String>,
) -> Result<(AgentLaunch, BTreeMap<String, String>), Problem> {
    let profile = match (shared.config.profiles.get(&request.agent), &request.argv) {
        (Some(profile), _) => profile.clone(),
        (None, Some(argv)) => unknown_profile(&request.agent, argv),
        (None, None) => return Err(unknown_agent(shared, &request.agent)),
    };
    let mut argv = match &request.argv {
        Some(argv) => argv.clone(),
        None => profile.argv_with(&shared.program.display().to_string()),
    };
    if let Some(place) = &request.program {
        put_at(&mut argv, place)?;
    }
    let Some(program) = argv.first().filter(|program| !program.is_empty()) else {
        return Err(without_command(&request.agent, &profile));
    };
    let path = caller.get("PATH").map_or("", String::as_str);
    if find_program(program, path).is_none() {
        let hint = match (&profile.install_hint, &profile.needs) {
            (Some(hint), _) => format!("install it with `{hint}`, or say where it is with `--agent-path`"),
            (None, Some(needs)) => format!("it needs {needs}"),
            (None, None) => "check the spelling and the `PATH`".to_owned(),
        };
        return Err(Refusal::new(
            RefusalCode::AgentUnavailable,
            format!("the program `{program}` of agent `{}` is not there", request.agent),
        )
        .with_hint(hint)
        .into());
    }
    let mut profile = profile;
    profile.env_allow.extend(request.pass_env.iter().cloned());
    let pairs = caller.iter().map(|(name, value)| (name.clone(), value.clone()));
    let (hidden, open): (Vec<_>, Vec<_>) =
        profile.environment(pairs).into_iter().partition(|(name, value)| is_secret(name, value));
    let mut environment = open;
    environment.sort();
    let mut secret_names: Vec<String> = hidden.iter().map(|(name, _)| name.clone()).collect();
    secret_names.sort();
    let mut config = profile.config.clone();
    config.extend(request.config.clone());
    let config: Vec<(String, String)> = config.into_iter().collect();
    let launch = AgentLaunch {
        agent_id: slug(&request.agent),
        profile: profile.name.clone(),
        label: request.label.clone().unwrap_or_else(|| request.agent.clone()),
        task: request.task.clone(),
        argv,
        environment,
        secret_names,
        config,
        wanted: request.wanted.clone(),
        permissions: policy::permissions(&shared.config.permissions, &profile, request.permissions),
        trusts_load: profile.trusts_load,
        trusts_resume: profile.trusts_resume,
        takes_words_in_turn: profile.takes_words_in_turn,
        usage_kind: profile.usage,
        login_hint: profile.login_hint.clone().unwrap_or_default(),
        auth_method: profile.auth_method.clone(),
        services: profile.services.clone(),
        stall_ms: profile.stall_ms.and_then(|limit| i64::try_from(limit).ok()),
        setup_timeout_ms: profile.setup_timeout_ms.and_then(|limit| i64::try_from(limit).ok()),
        choice: AgentChoice::Named,
        conversation: request.conversation,
        tools: profile.mcp,
    };
    Ok((launch, hidden.into_iter().collect()))
}

/// Takes the program from the place that was named.
fn put_at(argv: &mut Vec<String>, place: &str) -> Result<(), Problem> {
    if !Path::new(place).is_absolute() {
        return Err(Problem::invalid(format!("the program `{place}` is not an absolute path")));
    }
    match argv.first_mut() {
        Some(program) => place.clone_into(program),
        None => argv.push(place.to_owned()),
    }
    Ok(())
}

fn without_command(agent: &str, profile: &Profile) -> Problem {
    let refusal = Refusal::new(RefusalCode::Invalid, format!("the command of agent `{agent}` is empty"));
    match &profile.needs {
        Some(needs) => refusal.with_hint(format!("it needs {needs}")),
        None => refusal.with_hint("give a program and its arguments"),
    }
    .into()
}

/// Whether a variable is passed on but never stored.
fn is_secret(name: &str, value: &str) -> bool {
    let in_address = value.contains("://") && value.contains('@');
    (looks_secret(name) || in_address) && value.len() >= SECRET_BYTES
}

fn unknown_profile(name: &str, argv: &[String]) -> Profile {
    Profile {
        name: name.to_owned(),
        title: name.to_owned(),
        argv: argv.to_vec(),
        env_allow: Vec::new(),
        env_set: BTreeMap::new(),
        config: BTreeMap::new(),
        permissions: None,
        preset_modes: BTreeMap::new(),
        asks_always: false,
        usage: UsageKind::PerTurn,
        trusts_load: false,
        trusts_resume: false,
        takes_words_in_turn: false,
        auth_method: None,
        services: Vec::new(),
        mcp: true,
        login_hint: None,
        login: Login::default(),
        install_hint: None,
        needs: None,
        docs_url: None,
        version_arguments: Vec::new(),
        setup_timeout_ms: None,
        stall_ms: None,
        cancel_grace_ms: None,
        stop_grace_ms: None,
        hidden: false,
        built_in: false,
    }
}

pub(super) fn unknown_agent(shared: &Shared, name: &str) -> Problem {
    let known: Vec<&str> = shared
        .config
        .profiles
        .list()
        .filter(|profile| !profile.hidden)
        .map(|profile| profile.name.as_str())
        .collect();
    Refusal::new(RefusalCode::Invalid, format!("there is no agent `{name}`"))
        .with_hint(format!("the agents are: {}", known.join(", ")))
        .into()
}

fn slug(name: &str) -> String {
    name.chars()
        .map(|character| if character.is_ascii_alphanumeric() || character == '-' { character } else { '-' })
        .collect::<String>()
        .to_ascii_lowercase()
}

/// Two sub-agents of one task never have the same name.
fn unique_labels(launches: &mut [AgentLaunch]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for launch in launches {
        let count = seen.entry(launch.label.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            launch.label = format!("{}-{count}", launch.label);
        }
    }
}
