//! One task, whole.

use rallypoint_model::admission::{Budget, Priority};
use rallypoint_model::session::GenerationStatus;
use rallypoint_model::task::{Criterion, CriterionCheck, Evidence};
use rallypoint_model::tool_call::ToolsStatus;
use rallypoint_model::usage::Measured;
use rallypoint_ops::types::{QuestionView, RunView, SessionView, TaskView};

use crate::duration;
use crate::show::table::Table;
use crate::show::text::{Shown, brief, columns, harmless, table_columns, wrapped};
use crate::show::{time, usage, words};

mod conversation;

/// Lines for a task.
pub(crate) fn lines(task: &TaskView) -> Vec<String> {
    let mut lines = vec![
        format!("task      {}", task.task_id),
        format!("title     {}", brief(&task.title, usize::MAX)),
        format!("status    {}", standing(task)),
        format!("room      {}", task.room_id),
        format!("folder    {}", task.cwd),
        format!("made      {}", time::day_and_clock(task.created_at)),
    ];
    if let Some(choice) = task.agent_choice {
        let agent = task.sessions.first().map_or("its agent", |session| session.agent_type.as_str());
        lines.push(format!("agent     {agent}, {}", words::choice(choice)));
    }
    if task.priority != Priority::Normal {
        lines.push(format!("priority  {}", task.priority.as_str()));
    }
    if let Some(pause) = &task.paused {
        lines.push(format!("paused    {}, by {}", time::day_and_clock(pause.at), brief(&pause.by, 60)));
    }
    if let Some(source) = &task.forked_from {
        lines.push(format!("fork of   {}", source.task_id));
    }
    if let Some(plan) = &task.plan {
        lines.push(format!("plan      {}, by {}", plan.id, brief(&plan.by, 60)));
    }
    lines.extend(budget(&task.budget));
    if task.used.runs > 0 {
        lines.push(format!("used      {}", usage::tokens(&task.used)));
    }
    if let Some(ended) = task.ended_at {
        let took = duration::words(ended.since(task.created_at));
        lines.push(format!("ended     {}, after {took}", time::day_and_clock(ended)));
    }
    if let Some(archived) = task.archived_at {
        lines.push(format!("archived  {}", time::day_and_clock(archived)));
    }
    if let Some(deletion) = &task.deleted {
        let at = time::day_and_clock(deletion.at);
        lines.push(format!("deleted   {at}, by {}, {}", deletion.by, deletion.mode.as_str()));
    }
    if let Some(code) = task.exit_code {
        lines.push(format!("exit code {code}"));
    }
    section(&mut lines, "goal", wrapped(&harmless(&task.goal, Shown::Whole), columns().saturating_sub(2)));
    section(&mut lines, "files", conversation::files(&task.attachments));
    section(&mut lines, "sub-agents", sessions(&task.sessions));
    section(&mut lines, "settings", conversation::settings(&task.sessions));
    section(&mut lines, "helpers", conversation::helpers(&task.sessions));
    section(&mut lines, "runs", runs(task));
    section(&mut lines, "criteria", task.criteria.iter().map(criterion).collect());
    section(&mut lines, "evidence", evidence(&task.criteria, &task.evidence));
    section(&mut lines, "questions", task.open_questions.iter().flat_map(question).collect());
    let reply = task.last_reply.as_deref().unwrap_or_default();
    section(&mut lines, "last reply", wrapped(&harmless(reply, Shown::Whole), columns().saturating_sub(2)));
    lines
}

fn budget(budget: &Budget) -> Option<String> {
    let tokens = budget.tokens.map(|tokens| format!("{tokens} tokens"));
    let active = budget.active_ms.map(|limit| format!("{} of active time", duration::words(limit)));
    let cost = budget.cost.map(|cost| cost.to_string());
    let parts: Vec<String> = tokens.into_iter().chain(active).chain(cost).collect();
    (!parts.is_empty()).then(|| format!("budget    {}", parts.join(", ")))
}

fn section(lines: &mut Vec<String>, title: &str, content: Vec<String>) {
    if !content.is_empty() {
        lines.push(String::new());
        lines.push(title.to_owned());
        lines.extend(content.into_iter().map(|line| format!("  {line}").trim_end().to_owned()));
    }
}

/// Status and why; where no reason is given, what the checks amount to.
pub(crate) fn standing(task: &TaskView) -> String {
    let status = words::status(task.status);
    let why = task.reason.map(words::reason).or_else(|| task.verdict.map(words::verdict));
    why.map_or_else(|| status.to_owned(), |why| format!("{status}, {why}"))
}

fn sessions(sessions: &[SessionView]) -> Vec<String> {
    if sessions.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["SESSION", "NAME", "AGENT", "STATUS", "TOKENS"]);
    for session in sessions {
        let tokens = match &session.usage {
            Measured::Measured { value } => usage::token_count(value.total(), false),
            Measured::Estimated { value } => usage::token_count(value.total(), true),
            Measured::Unavailable { reason } => format!("unknown: {reason}"),
        };
        let id = session.session_id.to_string();
        let indent = "  ".repeat(session.depth.saturating_sub(1).min(8) as usize);
        let label = format!("{indent}{}", session.label);
        let without_tools = session.generation.as_ref().is_some_and(|generation| {
            generation.status == GenerationStatus::Ready && generation.tools == ToolsStatus::NotConnected
        });
        let status = session.status.as_str();
        let status = if without_tools { format!("{status}, tools not connected") } else { status.to_owned() };
        table.row(&[&id, &label, &session.agent_type, &status, &tokens]);
    }
    table.lines(table_columns().saturating_sub(2))
}

fn runs(task: &TaskView) -> Vec<String> {
    if task.runs.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["RUN", "NAME", "WHY", "TOOK", "OUTCOME"]);
    for run in &task.runs {
        let session = task.sessions.iter().find(|session| session.session_id == run.session_id);
        let label = session.map_or("main agent", |session| session.label.as_str());
        let took = match (run.started_at, run.ended_at) {
            (Some(started), Some(ended)) => duration::words(ended.since(started)),
            _ => "-".to_owned(),
        };
        table.row(&[&run.run_id.to_string(), label, words::purpose(run.purpose), &took, &outcome(run)]);
    }
    table.lines(table_columns().saturating_sub(2))
}

fn outcome(run: &RunView) -> String {
    match (run.outcome, &run.reason) {
        (None, _) => match run.queue_position {
            Some(place) => format!("waits for a slot, place {place}"),
            None => words::run_status(run.status).to_owned(),
        },
        (Some(outcome), None) => words::outcome(outcome).to_owned(),
        (Some(outcome), Some(reason)) => format!("{}: {}", words::outcome(outcome), reason.words()),
    }
}

fn criterion(criterion: &Criterion) -> String {
    let text = brief(&criterion.text, usize::MAX);
    match &criterion.check {
        CriterionCheck::Command { .. } | CriterionCheck::File { .. } => text,
        CriterionCheck::Human { .. } => format!("{text} (a person answers)"),
    }
}

/// A table of what was observed.
pub(crate) fn evidence(criteria: &[Criterion], evidence: &[Evidence]) -> Vec<String> {
    if evidence.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["RESULT", "EXIT", "TOOK", "PROCEDURE", "SEEN"]);
    for observed in evidence {
        let exit = observed.exit_code.map_or("-".to_owned(), |code| code.to_string());
        let took = duration::words(observed.ended_at.since(observed.started_at));
        let known = criteria.iter().find(|criterion| criterion.id == observed.criterion_id);
        let procedure = match observed.procedure.as_str() {
            "" => known.map_or("", |criterion| criterion.text.as_str()),
            procedure => procedure,
        };
        table.row(&[words::result(observed.result), &exit, &took, &brief(procedure, 40), &observed.detail]);
    }
    table.lines(table_columns().saturating_sub(2))
}

/// A question with the command that answers it.
pub(crate) fn question(question: &QuestionView) -> Vec<String> {
    let who = question.label.as_deref().unwrap_or("the task");
    let asked = brief(&words::question(&question.question), columns().saturating_sub(4));
    let mut lines = vec![format!("{} asks: {asked}", brief(who, 24))];
    if let Some(why) = words::asked_by(&question.question) {
        let whole = wrapped(&harmless(&why, Shown::Whole), columns().saturating_sub(2));
        lines.extend(whole.into_iter().map(|line| format!("  {line}")));
    }
    lines.push(format!(
        "  rally question answer {} {}",
        question.question_id,
        words::ways_to_answer(&question.question)
    ));
    lines
}
