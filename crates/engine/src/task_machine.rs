//! The table of a task. Every change of a task's status goes through it.
//!
//! Base: elizaOS plugin-agent-orchestrator, `orchestrator-task-types.ts`
//! (status machine). Added: `answered`; verdicts from `waiting_on_user`;
//! human overrides from every status that is not an end.

use rallypoint_model::task::{TaskStatus, TaskTrigger};

use TaskStatus::{Active, Blocked, Done, Failed, Interrupted, Open, Validating, WaitingOnUser};

/// Where `trigger` leads from `status`; `None` where it is not legal.
pub fn next(status: TaskStatus, trigger: TaskTrigger) -> Option<TaskStatus> {
    match trigger {
        TaskTrigger::SessionActive => match status {
            Open => Some(Active),
            Active | WaitingOnUser | Blocked | Validating | Done | Failed | Interrupted => None,
        },
        TaskTrigger::SessionBlocked => match status {
            Open | Active | WaitingOnUser => Some(Blocked),
            Blocked | Validating | Done | Failed | Interrupted => None,
        },
        TaskTrigger::AwaitingUser => match status {
            Open | Active | Blocked | Validating => Some(WaitingOnUser),
            WaitingOnUser | Done | Failed | Interrupted => None,
        },
        TaskTrigger::Answered => match status {
            WaitingOnUser | Blocked => Some(Active),
            Open | Active | Validating | Done | Failed | Interrupted => None,
        },
        TaskTrigger::CompletionReported => match status {
            Open | Active | WaitingOnUser | Blocked | Interrupted => Some(Validating),
            Validating | Done | Failed => None,
        },
        TaskTrigger::ValidationPassed => match status {
            Validating | WaitingOnUser => Some(Done),
            Open | Active | Blocked | Done | Failed | Interrupted => None,
        },
        TaskTrigger::ValidationFailed => match status {
            Validating | WaitingOnUser => Some(Active),
            Open | Active | Blocked | Done | Failed | Interrupted => None,
        },
        TaskTrigger::Retrying => match status {
            WaitingOnUser | Blocked | Validating | Interrupted => Some(Active),
            Open | Active | Done | Failed => None,
        },
        TaskTrigger::Unrecoverable => match status {
            Open | Active | WaitingOnUser | Blocked | Validating | Interrupted => Some(Failed),
            Done | Failed => None,
        },
        TaskTrigger::Interrupted => match status {
            Open | Active | WaitingOnUser | Blocked | Validating => Some(Interrupted),
            Interrupted | Done | Failed => None,
        },
        TaskTrigger::Reopened => match status {
            Done | Failed => Some(Open),
            Open | Active | WaitingOnUser | Blocked | Validating | Interrupted => None,
        },
        TaskTrigger::Restarted => match status {
            Interrupted | Done | Failed => Some(Active),
            Open | Active | WaitingOnUser | Blocked | Validating => None,
        },
        TaskTrigger::HumanOverridePassed => match status {
            Open | Active | WaitingOnUser | Blocked | Validating | Interrupted => Some(Done),
            Done | Failed => None,
        },
        TaskTrigger::HumanOverrideFailed => match status {
            Open | Active | WaitingOnUser | Blocked | Validating | Interrupted => Some(Active),
            Done | Failed => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> String {
        let mut text = String::new();
        for trigger in TaskTrigger::ALL {
            let cells: Vec<String> = TaskStatus::ALL
                .iter()
                .map(|status| next(*status, trigger).map_or("-".to_owned(), |to| to.as_str().to_owned()))
                .collect();
            text.push_str(&format!("{trigger:?}: {}\n", cells.join(" ")));
        }
        text
    }

    /// Columns: open active waiting_on_user blocked validating done failed interrupted.
    #[test]
    fn every_pair_of_the_task_table_is_as_specified() {
        insta::assert_snapshot!(table(), @r"
        SessionActive: active - - - - - - -
        SessionBlocked: blocked blocked blocked - - - - -
        AwaitingUser: waiting_on_user waiting_on_user - waiting_on_user waiting_on_user - - -
        Answered: - - active active - - - -
        CompletionReported: validating validating validating validating - - - validating
        ValidationPassed: - - done - done - - -
        ValidationFailed: - - active - active - - -
        Retrying: - - active active active - - active
        Unrecoverable: failed failed failed failed failed - - failed
        Interrupted: interrupted interrupted interrupted interrupted interrupted - - -
        Reopened: - - - - - open open -
        Restarted: - - - - - active active active
        HumanOverridePassed: done done done done done - - done
        HumanOverrideFailed: active active active active active - - active
        ");
    }

    #[test]
    fn a_completion_never_goes_straight_to_done() {
        for status in TaskStatus::ALL {
            assert_ne!(next(status, TaskTrigger::CompletionReported), Some(TaskStatus::Done));
        }
    }
}
