//! States in words.

use rallypoint_model::command::AgentChoice;
use rallypoint_model::delivery::{DeliveryStatus, MovedDelivery};
use rallypoint_model::permission::PermissionDecision;
use rallypoint_model::question::{Answer, QuestionKind, QuestionStatus};
use rallypoint_model::run::{RunOutcome, RunPurpose, RunStatus};
use rallypoint_model::task::{EvidenceResult, TaskReason, TaskStatus, Verdict};
use rallypoint_model::tool_call::ToolRequest;

use crate::show::text::brief;

pub(crate) fn status(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Open => "open",
        TaskStatus::Active => "active",
        TaskStatus::WaitingOnUser => "waiting on a person",
        TaskStatus::Blocked => "blocked",
        TaskStatus::Validating => "being checked",
        TaskStatus::Done => "done",
        TaskStatus::Failed => "failed",
        TaskStatus::Interrupted => "interrupted",
    }
}

/// Why a task got its agent.
pub(crate) fn choice(choice: AgentChoice) -> &'static str {
    match choice {
        AgentChoice::Named => "as asked for",
        AgentChoice::Configured => "the configured default",
        AgentChoice::Commands => "since the goal contains commands",
        AgentChoice::OnlyReady => "the only one that is ready",
        AgentChoice::OnlyInstalled => "the only one that is installed; no login of it shows",
    }
}

pub(crate) fn reason(reason: TaskReason) -> &'static str {
    match reason {
        TaskReason::Proven => "proven",
        TaskReason::Unchecked => "unchecked, as asked for",
        TaskReason::Overridden => "decided by a person",
        TaskReason::VerificationExhausted => "checks still fail and no corrective round is left",
        TaskReason::VerificationInconclusive => "a check could not tell",
        TaskReason::AcceptanceAsked => "a person must accept or reject the result",
        TaskReason::QuestionAsked => "a sub-agent asks something",
        TaskReason::LoginNeeded => "an agent needs a login",
        TaskReason::NoUsableResult => "no usable result",
        TaskReason::RunFailed => "a run failed",
        TaskReason::TimedOut => "a time limit was reached",
        TaskReason::Stopped => "stopped on request",
        TaskReason::Cut => "its work was cut",
        TaskReason::Capped => "a cap was reached",
        TaskReason::Reopened => "opened again, nothing is asked of it yet",
        TaskReason::QuestionExpired => "nobody answered in time",
    }
}

/// A run that has no outcome yet.
pub(crate) fn run_status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Queued => "waits for its session",
        RunStatus::WaitingChildren => "waits for its sub-agents",
        RunStatus::WaitingApproval | RunStatus::WaitingQuestion => "waits for an answer",
        RunStatus::WaitingLogin => "waits for a login",
        RunStatus::Starting | RunStatus::Running | RunStatus::Settling | RunStatus::Terminal => "still open",
    }
}

pub(crate) fn outcome(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Completed => "completed",
        RunOutcome::CompletedEmpty => "ended without a word",
        RunOutcome::Incomplete => "cut short by a limit of the agent",
        RunOutcome::Failed => "failed",
        RunOutcome::TimedOut => "timed out",
        RunOutcome::Cancelled => "cancelled",
        RunOutcome::Killed => "ended by force",
        RunOutcome::Interrupted => "interrupted",
        RunOutcome::Lost => "lost",
        RunOutcome::Capped => "capped",
    }
}

pub(crate) fn purpose(purpose: RunPurpose) -> &'static str {
    match purpose {
        RunPurpose::Goal => "goal",
        RunPurpose::Corrective => "sent back with what is not met",
        RunPurpose::Continuing => "asked to continue or report",
        RunPurpose::FollowUp => "told something",
        RunPurpose::Turn => "main agent's turn",
    }
}

pub(crate) fn result(result: EvidenceResult) -> &'static str {
    match result {
        EvidenceResult::Passed => "passed",
        EvidenceResult::Failed => "failed",
        EvidenceResult::Inconclusive => "can't tell",
    }
}

pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "every criterion is proven",
        Verdict::Failed => "not proven",
        Verdict::Inconclusive => "could not be established",
        Verdict::NeedsPerson => "a person must answer",
    }
}

pub(crate) fn closed(status: QuestionStatus) -> &'static str {
    match status {
        QuestionStatus::Open => "open",
        QuestionStatus::Answered => "answered",
        QuestionStatus::Declined => "declined",
        QuestionStatus::Expired => "expired",
        QuestionStatus::Withdrawn => "withdrawn",
    }
}

/// What is asked, in one sentence.
pub(crate) fn question(question: &QuestionKind) -> String {
    match question {
        QuestionKind::Approval { title, .. } => format!("may it do this: {title}"),
        QuestionKind::Ask { text, form: Some(form) } => match &form.url {
            Some(url) => format!("{text} (open this address yourself if you trust it: {url})"),
            None => text.clone(),
        },
        QuestionKind::Ask { text, form: None } | QuestionKind::Acceptance { text } => text.clone(),
    }
}

/// What of the policy made an agent's request a question.
pub(crate) fn asked_by(question: &QuestionKind) -> Option<String> {
    match question {
        QuestionKind::Approval { because, .. } => {
            because.as_ref().map(|because| format!("asked by {because}"))
        }
        QuestionKind::Ask { .. } | QuestionKind::Acceptance { .. } => None,
    }
}

/// What the policy decided, and what made it.
pub(crate) fn permission(
    decision: PermissionDecision,
    rule: &str,
    layer: &str,
    title: &str,
    option_kind: Option<&str>,
) -> String {
    let word = match decision {
        PermissionDecision::Allow => "allowed",
        PermissionDecision::Ask => "to be asked",
        PermissionDecision::Reject => "rejected",
    };
    let answered = match (decision, option_kind) {
        (PermissionDecision::Ask, _) | (_, Some(_)) => "",
        (PermissionDecision::Allow | PermissionDecision::Reject, None) => {
            "; it offers no option for that, so it was answered `cancelled`"
        }
    };
    format!("permission {word} by {rule} ({layer}): {title}{answered}")
}

/// The words of `rally question answer` that fit the question.
pub(crate) fn ways_to_answer(question: &QuestionKind) -> &'static str {
    match question {
        QuestionKind::Approval { .. } => "--allow, --option ID or --decline REASON",
        QuestionKind::Ask { form: Some(form), .. } if form.fields.is_empty() => {
            "--accept or --decline REASON"
        }
        QuestionKind::Ask { form: Some(_), .. } => "--field NAME=VALUE … or --decline REASON",
        QuestionKind::Ask { form: None, .. } => "--text TEXT or --decline REASON",
        QuestionKind::Acceptance { .. } => "--accept or --decline REASON",
    }
}

pub(crate) fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Option { option_id } => format!("option `{option_id}`"),
        Answer::Allow => "allowed".to_owned(),
        Answer::Decline { reason } if reason.is_empty() => "no".to_owned(),
        Answer::Decline { reason } => format!("no: {reason}"),
        Answer::Text { text } => text.clone(),
        Answer::Accept { reason } if reason.is_empty() => "accepted".to_owned(),
        Answer::Accept { reason } => format!("accepted: {reason}"),
        Answer::Value { value } => value.to_string(),
    }
}
/// What a reader should know of a delivery's move; nothing of the usual steps on its way.
pub(crate) fn delivery(moved: &MovedDelivery) -> Option<String> {
    let why = moved.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    match moved.to {
        DeliveryStatus::Pending | DeliveryStatus::Offered => None,
        DeliveryStatus::Consumed => moved.warning.as_ref().map(|warning| format!("delivered, but {warning}")),
        DeliveryStatus::Failed => Some(format!("not delivered{why}")),
        DeliveryStatus::Expired => Some(format!("not delivered in time{why}")),
        DeliveryStatus::Suspended => Some(format!("held back{why}")),
        DeliveryStatus::Ambiguous => Some(format!("perhaps delivered{why}")),
        DeliveryStatus::Discarded => Some(format!("given up{why}")),
    }
}
/// What an agent does with one of our tools, where nothing else tells of it.
pub(crate) fn tool_call(request: &ToolRequest) -> Option<String> {
    match request {
        ToolRequest::ReportCompletion { report } => {
            Some(format!("reports: {}", brief(&report.diff_summary, 200)))
        }
        ToolRequest::Send { recipient, text } => {
            Some(format!("to {}: {}", brief(recipient, 24), brief(text, 200)))
        }
        ToolRequest::Unfit { name, .. } => Some(format!("calls the tool `{}` wrongly", brief(name, 40))),
        ToolRequest::AskUser { .. } | ToolRequest::Coordinate { .. } => None,
    }
}
