//! Words by which a person means an operation, in chat and by voice.
//!
//! They are matched as wholes, in any letters' case; a phrase belongs to one operation only, so that nothing has to be
//! guessed. What an operation still has to know, such as which task, is asked for.

/// Operation and phrase, in English. Other languages are translations of the operation's message id.
pub const PHRASES: &[(&str, &[&str])] = &[
    ("daemon.stop", &["stop the daemon", "shut down rally"]),
    ("access.link", &["open the console", "let my browser in"]),
    ("task.create", &["create a task", "start a task", "work on this"]),
    ("task.list", &["list tasks", "show my tasks", "what is going on"]),
    ("task.get", &["show the task", "how is the task"]),
    ("task.patch", &["change the task", "edit the task"]),
    ("task.stop", &["stop the task", "cancel the task"]),
    ("task.retry", &["retry the task", "try the task again"]),
    ("task.override", &["accept the result", "reject the result"]),
    ("task.archive", &["archive the task", "put the task away"]),
    ("task.unarchive", &["bring the task back", "unarchive the task"]),
    ("task.delete", &["delete the task", "remove the task"]),
    ("task.pause", &["pause the task", "hold the task"]),
    ("task.resume", &["resume the task", "continue the task"]),
    ("task.pauseAll", &["pause all tasks", "pause everything"]),
    ("task.resumeAll", &["resume all tasks", "continue everything"]),
    ("task.reopen", &["reopen the task", "open the task again"]),
    ("task.fork", &["fork the task", "make a copy of the task"]),
    ("task.message", &["tell the task", "say to the task"]),
    ("task.retryTurn", &["repeat the last turn", "retry the turn"]),
    ("task.rerun", &["run again from here", "rerun from this event"]),
    ("task.restart", &["restart the task", "start the task over"]),
    ("task.restartWithPlan", &["restart with this plan", "start over with this plan"]),
    ("task.revisePlan", &["change the plan", "set the plan"]),
    ("task.validate", &["the result is right", "the result is wrong"]),
    ("task.check", &["check the result", "run the checks again"]),
    ("task.timeline", &["show the timeline", "what happened"]),
    ("status.get", &["show the status", "how are things"]),
    ("capacity.get", &["show the queue", "who is waiting"]),
    ("session.spawn", &["add an agent", "start another agent"]),
    ("session.wait", &["wait for the agents"]),
    ("session.stop", &["stop the agent", "end the agent"]),
    ("session.send", &["tell the agent", "say to the agent"]),
    ("session.configure", &["change the model", "change the mode"]),
    ("question.list", &["show open questions", "what is waiting for me"]),
    ("question.answer", &["answer the question", "allow it", "decline it"]),
    ("usage.get", &["show usage", "what did it cost"]),
    ("room.create", &["create a room", "make a room"]),
    ("room.reset", &["reset the room", "begin the conversation anew"]),
    ("room.progress", &["change how progress is told", "set the progress mode"]),
    ("room.say", &["say in the room", "post in the room"]),
    ("message.search", &["search messages", "find a message"]),
    ("delivery.retry", &["send the message again", "retry the delivery"]),
    ("delivery.discard", &["give the message up", "discard the delivery"]),
    ("agent.list", &["list agents", "which agents are there"]),
    ("agent.preflight", &["check the agents", "are the agents ready"]),
];

/// The phrases of an operation.
pub fn phrases_of(operation: &str) -> &'static [&'static str] {
    PHRASES.iter().find(|(name, _)| *name == operation).map_or(&[], |(_, phrases)| phrases)
}

/// The operation that these words mean, when they mean one.
pub fn meant_by(words: &str) -> Option<&'static str> {
    let words = words.trim().trim_end_matches(['.', '!', '?']).to_lowercase();
    let found = PHRASES.iter().find(|(_, phrases)| phrases.contains(&words.as_str()));
    found.map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::registry::{Method, OPERATIONS, Role, find};

    #[test]
    fn a_phrase_means_one_operation_and_each_that_changes_something_has_one() {
        let mut seen = BTreeSet::new();
        for (name, phrases) in PHRASES {
            assert!(find(name).is_some(), "`{name}` is no operation");
            for phrase in *phrases {
                assert!(seen.insert(*phrase), "`{phrase}` means two operations");
                assert_eq!(meant_by(&format!(" {}. ", phrase.to_uppercase())), Some(*name));
            }
        }
        let mute: Vec<&str> = OPERATIONS
            .iter()
            // What only an agent's tool server calls is no wish of a person.
            .filter(|operation| operation.role != Role::Session && operation.method != Method::Get)
            .filter(|operation| phrases_of(operation.name).is_empty())
            .map(|operation| operation.name)
            .collect();
        assert_eq!(mute, Vec::<&str>::new(), "nobody can ask for these in words");
        assert_eq!(meant_by("nice weather"), None);
    }
}
