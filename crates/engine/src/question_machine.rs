//! The table of a question: one-shot, every state but `open` is final.

use rallypoint_model::question::{QuestionStatus, QuestionTrigger};

/// Where `trigger` leads from `status`; `None` where it is not legal.
pub fn next(status: QuestionStatus, trigger: QuestionTrigger) -> Option<QuestionStatus> {
    match status {
        QuestionStatus::Open => Some(match trigger {
            QuestionTrigger::Answer => QuestionStatus::Answered,
            QuestionTrigger::Decline => QuestionStatus::Declined,
            QuestionTrigger::Expire => QuestionStatus::Expired,
            QuestionTrigger::Withdraw => QuestionStatus::Withdrawn,
        }),
        QuestionStatus::Answered
        | QuestionStatus::Declined
        | QuestionStatus::Expired
        | QuestionStatus::Withdrawn => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_question_can_not_be_closed_again() {
        for status in QuestionStatus::ALL {
            for trigger in QuestionTrigger::ALL {
                assert_eq!(next(status, trigger).is_some(), status == QuestionStatus::Open);
            }
        }
    }
}
