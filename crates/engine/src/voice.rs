//! One voice for each request: at most one acknowledgement and one end are said to whoever asked.
//!
//! Rules: the voice ledger of elizaOS plugin-agent-orchestrator. Whoever comes late is recorded and not posted. The end
//! of a task that goes on again is said anew.

use rallypoint_model::event::ReplyRole;
use rallypoint_model::task::TaskStatus;
use serde::{Deserialize, Serialize};

/// What an end says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It did not work out.
    Failure,
    /// It did.
    Result,
}

/// What was said about a request so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Voice {
    /// Whether its begin was acknowledged.
    pub acknowledged: bool,
    /// How its end was told, when it was.
    pub ended: Option<Ending>,
}

/// What an end says in this status.
pub fn ending(status: TaskStatus) -> Ending {
    match status {
        TaskStatus::Done => Ending::Result,
        TaskStatus::Failed
        | TaskStatus::Interrupted
        | TaskStatus::Open
        | TaskStatus::Active
        | TaskStatus::WaitingOnUser
        | TaskStatus::Blocked
        | TaskStatus::Validating => Ending::Failure,
    }
}

impl Voice {
    /// Why a reply is not to be posted, when that is so.
    pub fn refuses(self, role: ReplyRole, ending: Ending) -> Option<&'static str> {
        match (role, self.ended, ending) {
            (ReplyRole::Acknowledgement, ..) if self.acknowledged => {
                Some("the request was acknowledged before")
            }
            (ReplyRole::Acknowledgement, Some(_), _) => Some("the end of the request was told before"),
            // A failure that turns out to be none is corrected; nothing takes a result back.
            (ReplyRole::Terminal, None, _) | (ReplyRole::Terminal, Some(Ending::Failure), Ending::Result) => {
                None
            }
            (ReplyRole::Terminal, Some(_), _) => Some("the end of the request was told before"),
            (ReplyRole::Acknowledgement, None, _) | (ReplyRole::Question, ..) => None,
        }
    }

    /// Takes in a reply that was posted.
    pub fn said(&mut self, role: ReplyRole, ending: Ending) {
        match role {
            ReplyRole::Acknowledgement => self.acknowledged = true,
            ReplyRole::Terminal => self.ended = Some(ending),
            ReplyRole::Question => {}
        }
    }

    /// The task goes on: its next end is said too.
    pub fn goes_on(&mut self) {
        self.ended = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACK: ReplyRole = ReplyRole::Acknowledgement;
    const END: ReplyRole = ReplyRole::Terminal;

    /// Which of these replies are posted.
    fn posted(replies: &[(ReplyRole, Ending)]) -> Vec<bool> {
        let mut voice = Voice::default();
        let mut post = |(role, ending): &(ReplyRole, Ending)| {
            let granted = voice.refuses(*role, *ending).is_none();
            if granted {
                voice.said(*role, *ending);
            }
            granted
        };
        replies.iter().map(&mut post).collect()
    }

    #[test]
    fn a_request_is_acknowledged_once_and_its_end_told_once() {
        use Ending::{Failure, Result};
        type Case = (&'static [(ReplyRole, Ending)], &'static [bool]);
        let cases: [Case; 6] = [
            (&[(ACK, Failure), (ACK, Failure)], &[true, false]),
            (&[(ACK, Failure), (END, Result), (END, Result)], &[true, true, false]),
            (&[(END, Failure), (END, Failure)], &[true, false]),
            (&[(END, Failure), (END, Result), (END, Failure)], &[true, true, false]),
            (&[(END, Result), (ACK, Failure)], &[true, false]),
            (&[(ReplyRole::Question, Failure), (ReplyRole::Question, Failure)], &[true, true]),
        ];
        for (replies, expected) in cases {
            assert_eq!(posted(replies), expected, "{replies:?}");
        }
    }

    #[test]
    fn the_end_of_a_task_that_went_on_is_told_again_and_its_begin_is_not() {
        let mut voice = Voice { acknowledged: true, ended: Some(Ending::Failure) };
        voice.goes_on();
        assert_eq!(voice.refuses(END, Ending::Failure), None);
        assert!(voice.refuses(ACK, Ending::Failure).is_some());
    }
}
