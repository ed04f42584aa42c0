//! The table of a run, and how a stop reason becomes an outcome.

use rallypoint_model::completion::{CompletionReport, ReportedStatus};
use rallypoint_model::run::{OutcomeReason, RunOutcome, RunStatus, RunTrigger};

use RunStatus::{
    Queued, Running, Settling, Starting, Terminal, WaitingApproval, WaitingChildren, WaitingLogin,
    WaitingQuestion,
};

/// Where `trigger` leads from `status`; `None` where it is not legal.
pub fn next(status: RunStatus, trigger: RunTrigger) -> Option<RunStatus> {
    match trigger {
        RunTrigger::Admitted => match status {
            Queued => Some(Starting),
            Starting | Running | WaitingApproval | WaitingQuestion | WaitingChildren | WaitingLogin
            | Settling | Terminal => None,
        },
        RunTrigger::Requeued => match status {
            Starting | Running => Some(Queued),
            Queued | WaitingApproval | WaitingQuestion | WaitingChildren | WaitingLogin | Settling
            | Terminal => None,
        },
        RunTrigger::Prompted => match status {
            Starting => Some(Running),
            Queued | Running | WaitingApproval | WaitingQuestion | WaitingChildren | WaitingLogin
            | Settling | Terminal => None,
        },
        RunTrigger::ApprovalAsked => waiting_from(status, WaitingApproval),
        RunTrigger::QuestionAsked => waiting_from(status, WaitingQuestion),
        RunTrigger::ChildrenAwaited => waiting_from(status, WaitingChildren),
        RunTrigger::LoginAsked => match status {
            Starting | Running => Some(WaitingLogin),
            Queued | WaitingApproval | WaitingQuestion | WaitingChildren | WaitingLogin | Settling
            | Terminal => None,
        },
        RunTrigger::Resumed => match status {
            WaitingApproval | WaitingQuestion | WaitingChildren | WaitingLogin => Some(Running),
            Queued | Starting | Running | Settling | Terminal => None,
        },
        RunTrigger::Answered => match status {
            Running | WaitingApproval | WaitingQuestion | WaitingChildren | WaitingLogin => Some(Settling),
            Queued | Starting | Settling | Terminal => None,
        },
        RunTrigger::Ended => match status {
            Queued | Starting | Running | WaitingApproval | WaitingQuestion | WaitingChildren
            | WaitingLogin | Settling => Some(Terminal),
            Terminal => None,
        },
    }
}

fn waiting_from(status: RunStatus, waiting: RunStatus) -> Option<RunStatus> {
    match status {
        Running => Some(waiting),
        Queued | Starting | WaitingApproval | WaitingQuestion | WaitingChildren | WaitingLogin | Settling
        | Terminal => None,
    }
}

/// Whether a cancel of ours was with the agent when it answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelAsked {
    /// Yes.
    Yes,
    /// No.
    No,
}

/// The outcome of an answered prompt. Status comes from the protocol; the
/// worker's own report can only make it worse.
pub fn outcome_of_stop(
    stop_reason: &str,
    said: &str,
    report: Option<&CompletionReport>,
    cancel: CancelAsked,
) -> (RunOutcome, OutcomeReason) {
    match stop_reason {
        "end_turn" => match report {
            Some(report) if report.status == ReportedStatus::Failed => {
                let reason = if report.reason.is_empty() {
                    "the worker reports failure and gives no reason".to_owned()
                } else {
                    report.reason.clone()
                };
                (RunOutcome::Failed, OutcomeReason::Reported { reason })
            }
            _ if said.trim().is_empty() => (RunOutcome::CompletedEmpty, OutcomeReason::EndTurn),
            _ => (RunOutcome::Completed, OutcomeReason::EndTurn),
        },
        "max_tokens" | "max_turn_requests" => {
            (RunOutcome::Incomplete, OutcomeReason::AgentLimit { limit: stop_reason.to_owned() })
        }
        "refusal" => (RunOutcome::Failed, OutcomeReason::Refusal),
        "cancelled" if cancel == CancelAsked::Yes => {
            (RunOutcome::Cancelled, OutcomeReason::StopAsked { by: String::new() })
        }
        other => (RunOutcome::Failed, OutcomeReason::UnknownStop { stop_reason: other.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_the_run_table_is_as_specified() {
        let mut text = String::new();
        for trigger in RunTrigger::ALL {
            let cells: Vec<String> = RunStatus::ALL
                .iter()
                .map(|status| next(*status, trigger).map_or("-".to_owned(), |to| format!("{to:?}")))
                .collect();
            text.push_str(&format!("{trigger:?}: {}\n", cells.join(" ")));
        }
        insta::assert_snapshot!(text, @r"
        Admitted: Starting - - - - - - - -
        Requeued: - Queued Queued - - - - - -
        Prompted: - Running - - - - - - -
        ApprovalAsked: - - WaitingApproval - - - - - -
        QuestionAsked: - - WaitingQuestion - - - - - -
        ChildrenAwaited: - - WaitingChildren - - - - - -
        LoginAsked: - WaitingLogin WaitingLogin - - - - - -
        Resumed: - - - Running Running Running Running - -
        Answered: - - Settling Settling Settling Settling Settling - -
        Ended: Terminal Terminal Terminal Terminal Terminal Terminal Terminal Terminal -
        ");
    }

    #[test]
    fn end_turn_with_nothing_said_is_not_success() {
        let (outcome, _) = outcome_of_stop("end_turn", " \n", None, CancelAsked::No);
        assert_eq!(outcome, RunOutcome::CompletedEmpty);
    }

    #[test]
    fn cancelled_without_our_asking_is_a_failure() {
        let (outcome, _) = outcome_of_stop("cancelled", "", None, CancelAsked::No);
        assert_eq!(outcome, RunOutcome::Failed);
        let (outcome, _) = outcome_of_stop("cancelled", "", None, CancelAsked::Yes);
        assert_eq!(outcome, RunOutcome::Cancelled);
    }

    #[test]
    fn a_report_of_failure_beats_end_turn_with_text() {
        let report = CompletionReport {
            status: ReportedStatus::Failed,
            reason: "`false` exited with 1".to_owned(),
            ..CompletionReport::default()
        };
        let (outcome, reason) = outcome_of_stop("end_turn", "done!", Some(&report), CancelAsked::No);
        assert_eq!(outcome, RunOutcome::Failed);
        assert_eq!(reason.words(), "`false` exited with 1");
    }

    #[test]
    fn an_unknown_stop_reason_is_a_failure_that_names_it() {
        let (outcome, reason) = outcome_of_stop("banana", "text", None, CancelAsked::No);
        assert_eq!(outcome, RunOutcome::Failed);
        assert!(reason.words().contains("banana"));
    }
}
