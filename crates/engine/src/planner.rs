//! The `rules` planner: what the main agent does without any model.
//!
//! It starts the work that was asked for, sends unmet criteria back, relays
//! proven results with their evidence, asks the person when a session is
//! blocked, and tells failures with their reason. One acknowledgement and one
//! terminal reply for each request.

use rallypoint_model::event::{PlannedAction, ReplyRole};
use rallypoint_model::question::QuestionKind;
use rallypoint_model::run::RunPurpose;
use rallypoint_model::task::{TaskReason, TaskStatus};

use crate::decide::verification::{evidence_lines, unmet};
use crate::state::{MailboxItem, Run, State, Task, TurnCause};
use crate::text::one_line;

/// The plan for one thing that happened.
pub fn plan(state: &State, item: &MailboxItem) -> Vec<PlannedAction> {
    if let TurnCause::DeliveryGivenUp { .. } = item.cause {
        // It is in the room. A reply would take the way that was just given up.
        return Vec::new();
    }
    let Some(task) = item.task_id.and_then(|id| state.tasks.get(&id)) else {
        return Vec::new();
    };
    match &item.cause {
        TurnCause::TaskRequested => start(task),
        TurnCause::Boundary { run_id } => match state.runs.get(run_id) {
            Some(run) => after_boundary(state, task, run),
            None => Vec::new(),
        },
        TurnCause::Verified { .. } => after_checks(state, task),
        TurnCause::Moved => tell_state(state, task, None),
        TurnCause::DeliveryGivenUp { .. } => Vec::new(),
    }
}

fn start(task: &Task) -> Vec<PlannedAction> {
    if task.status != TaskStatus::Open {
        return Vec::new();
    }
    let mut actions: Vec<PlannedAction> = (0..task.agents.len())
        .filter_map(|index| u32::try_from(index).ok())
        .map(|index| PlannedAction::SpawnAgent { task_id: task.id, index })
        .collect();
    let names: Vec<String> = task.agents.iter().map(|launch| format!("`{}`", launch.label)).collect();
    let text = match names.as_slice() {
        [one] => format!("Started {one}."),
        many => format!("Started {} sub-agents: {}.", many.len(), many.join(", ")),
    };
    actions.push(PlannedAction::Reply { text, role: ReplyRole::Acknowledgement });
    actions
}

fn after_boundary(state: &State, task: &Task, run: &Run) -> Vec<PlannedAction> {
    match task.status {
        // Others still work, or the checks speak next.
        TaskStatus::Open | TaskStatus::Active | TaskStatus::Validating => Vec::new(),
        TaskStatus::Done
        | TaskStatus::Failed
        | TaskStatus::Interrupted
        | TaskStatus::Blocked
        | TaskStatus::WaitingOnUser => tell_state(state, task, Some(run)),
    }
}

fn after_checks(state: &State, task: &Task) -> Vec<PlannedAction> {
    if task.status != TaskStatus::Active {
        return tell_state(state, task, None);
    }
    let open = unmet(&task.criteria, &task.evidence);
    let session_id = task.last_completed_run.and_then(|id| state.runs.get(&id)).map(|run| run.session_id);
    let Some(session_id) = session_id else {
        return Vec::new();
    };
    let list: Vec<String> = open.iter().map(|criterion| format!("- [ ] {criterion}")).collect();
    vec![PlannedAction::SendToAgent {
        session_id,
        text: format!(
            "These criteria are not met. Meet each of them, then report again.\n{}",
            list.join("\n")
        ),
        purpose: RunPurpose::Corrective,
    }]
}

/// The state of a task in words, as the one reply that it asks for.
fn tell_state(state: &State, task: &Task, run: Option<&Run>) -> Vec<PlannedAction> {
    let ended = task.status.is_terminal() || task.status == TaskStatus::Interrupted;
    if ended && task.last_reply.is_some() {
        // Several runs may end in one moment; the end of their task is told once.
        return Vec::new();
    }
    let last = run.or_else(|| task.runs.last().and_then(|id| state.runs.get(id)));
    let label = last
        .and_then(|run| state.sessions.get(&run.session_id))
        .and_then(|session| session.launch.as_ref())
        .map_or_else(|| "the sub-agent".to_owned(), |launch| format!("`{}`", launch.label));
    let why = last
        .and_then(|run| run.reason.as_ref())
        .map_or_else(|| "no reason is known".to_owned(), rallypoint_model::run::OutcomeReason::words);
    let retry = format!("`rally task retry {}` gives it another run", task.id);
    let (text, role) = match task.status {
        TaskStatus::Open | TaskStatus::Active | TaskStatus::Validating => return Vec::new(),
        TaskStatus::Done => (done_words(state, task), ReplyRole::Terminal),
        TaskStatus::Failed => (failed_words(task, &label, &why, &retry), ReplyRole::Terminal),
        TaskStatus::Interrupted => match task.reason {
            Some(TaskReason::Stopped) => {
                (format!("Stopped, not done. {}.", capital(&retry)), ReplyRole::Terminal)
            }
            _ => (format!("{label} was cut: {why}. {}.", capital(&retry)), ReplyRole::Terminal),
        },
        TaskStatus::Blocked => (blocked_words(state, task, &label), ReplyRole::Question),
        TaskStatus::WaitingOnUser => (waiting_words(state, task, &label, &why, &retry), ReplyRole::Question),
    };
    vec![PlannedAction::Reply { text, role }]
}

fn done_words(state: &State, task: &Task) -> String {
    let summary = task
        .last_completed_run
        .and_then(|id| state.runs.get(&id))
        .map(|run| run.summary.clone())
        .filter(|summary| !summary.is_empty());
    let mut text = summary.unwrap_or_else(|| "Done.".to_owned());
    match task.reason {
        Some(TaskReason::Unchecked) => {
            text.push_str(&format!("\n\nDone, unchecked: {} took the result beforehand.", task.requested_by));
        }
        Some(TaskReason::Overridden) => text.push_str("\n\nDone by a person's override, not by proof."),
        _ => {
            let lines = evidence_lines(&task.criteria, &task.evidence);
            if !lines.is_empty() {
                let list: Vec<String> = lines.iter().map(|line| format!("- {line}")).collect();
                text.push_str(&format!("\n\nDone, with proof:\n{}", list.join("\n")));
            }
        }
    }
    text
}

fn failed_words(task: &Task, label: &str, why: &str, retry: &str) -> String {
    let what = match task.reason {
        Some(TaskReason::TimedOut) => format!("Not done in time: {why}"),
        _ => format!("{label} failed: {why}"),
    };
    format!("{what}. {}.", capital(retry))
}

fn blocked_words(state: &State, task: &Task, label: &str) -> String {
    let questions: Vec<String> = state
        .open_questions(task.id)
        .map(|question| match &question.question {
            QuestionKind::Ask { text, form: Some(form) } => {
                format!("{text}\n{}", crate::form::how_to_answer(form, &question.id.to_string()))
            }
            QuestionKind::Ask { text, form: None } => {
                format!("{text}\nAnswer with `rally question answer {} --text \"…\"`.", question.id)
            }
            QuestionKind::Approval { title, because, .. } => {
                let why =
                    because.as_ref().map(|because| format!("\nAsked by {because}.")).unwrap_or_default();
                format!(
                    "May it do this: {title}?{why}\n\
                     Answer with `rally question answer {} --allow` or `--decline REASON`.",
                    question.id
                )
            }
            QuestionKind::Acceptance { text } => format!("{text}?"),
        })
        .collect();
    format!("{label} needs an answer. {}", questions.join("\n"))
}

fn waiting_words(state: &State, task: &Task, label: &str, why: &str, retry: &str) -> String {
    let acceptance = state
        .open_questions(task.id)
        .next()
        .map(|question| format!("`rally question answer {} --accept`, or `--decline REASON`", question.id));
    let open = || {
        let list: Vec<String> = unmet_with_detail(task).iter().map(|text| format!("- [ ] {text}")).collect();
        list.join("\n")
    };
    match task.reason {
        Some(TaskReason::VerificationExhausted) => format!(
            "Not done: checked {} times, sent back {} times, and still not met:\n{}\n{}; `rally task override {}` takes it as it is.",
            task.rounds,
            task.corrective_rounds,
            open(),
            capital(retry),
            task.id
        ),
        Some(TaskReason::VerificationInconclusive) => format!(
            "Whether it is done could not be told:\n{}\nLook at it yourself, then answer with {}.",
            open(),
            acceptance.unwrap_or_default()
        ),
        Some(TaskReason::AcceptanceAsked) => {
            let summary = task
                .last_completed_run
                .and_then(|id| state.runs.get(&id))
                .map(|run| run.summary.clone())
                .unwrap_or_default();
            format!(
                "{summary}\n\nThis needs your word:\n{}\nAnswer with {}.",
                open(),
                acceptance.unwrap_or_default()
            )
        }
        Some(TaskReason::LoginNeeded) => format!("{label} can't go on: {why}. Then {retry}."),
        Some(TaskReason::Capped) => format!("{label} was stopped: {why}. {}.", capital(retry)),
        Some(TaskReason::Reopened) => {
            format!("Opened again. `rally task message {} \"…\"` says what is to be done.", task.id)
        }
        Some(TaskReason::Cut) => format!("{label} was cut: {why}. {}.", capital(retry)),
        Some(TaskReason::QuestionExpired) => {
            format!("The question of {label} was not answered in time. {}.", capital(retry))
        }
        _ => format!("{label} ended without a usable result: {why}. {}.", capital(retry)),
    }
}

/// Unmet criteria, each with the first line of what was seen.
fn unmet_with_detail(task: &Task) -> Vec<String> {
    let open = unmet(&task.criteria, &task.evidence);
    let criteria = task.criteria.iter().filter(|criterion| open.contains(&criterion.text));
    criteria
        .map(|criterion| {
            let seen = task.evidence.iter().rev().find(|evidence| evidence.criterion_id == criterion.id);
            let detail = seen.map(|evidence| one_line(&evidence.detail, 120)).unwrap_or_default();
            if detail.is_empty() { criterion.text.clone() } else { format!("{} ({detail})", criterion.text) }
        })
        .collect()
}

fn capital(text: &str) -> String {
    // Words that begin with a command stay as they are.
    if text.starts_with('`') {
        return text.to_owned();
    }
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
