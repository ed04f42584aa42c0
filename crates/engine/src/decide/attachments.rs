//! Files of a task: stored with it, given with its goal, gone with its content.

use std::collections::BTreeSet;

use rallypoint_model::agent_offer::PromptKinds;
use rallypoint_model::attachment::{Attachment, AttachmentContent, AttachmentForm, PromptAttachment};
use rallypoint_model::command::CreateTask;
use rallypoint_model::ids::{GenerationId, RunId, TaskId};
use rallypoint_model::run::RunPurpose;

use super::Deciding;
use crate::changes::NewBlob;

impl Deciding<'_, '_> {
    /// Stores the contents of a new task's files.
    pub(crate) fn store_attachments(&mut self, create: &CreateTask) -> Vec<Attachment> {
        let mut attachments = Vec::new();
        for new in &create.attachments {
            let digest = new.attachment.digest.clone();
            self.changes.blobs.push(NewBlob { digest, bytes: new.bytes.clone() });
            attachments.push(new.attachment.clone());
        }
        attachments
    }

    /// The files that go with a prompt: those of the task with its goal, since a conversation has them afterwards.
    pub(crate) fn attachments_of(&self, run_id: RunId, generation_id: GenerationId) -> Vec<PromptAttachment> {
        let run = self.state.runs.get(&run_id).filter(|run| run.purpose == RunPurpose::Goal);
        let task = run.and_then(|run| run.task_id).and_then(|id| self.state.tasks.get(&id));
        let takes =
            self.state.generations.get(&generation_id).map(|generation| generation.capabilities.prompt);
        let takes = takes.unwrap_or_default();
        let attachments = task.map(|task| task.attachments.as_slice()).unwrap_or_default();
        attachments
            .iter()
            .map(|attachment| PromptAttachment {
                attachment: attachment.clone(),
                form: form_of(attachment.content, takes),
            })
            .collect()
    }

    /// Digests of files that tasks refer to: those of one task, and those of all others.
    pub(crate) fn attached(&self, task_id: TaskId) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut own, mut others) = (BTreeSet::new(), BTreeSet::new());
        for task in self.state.tasks.values() {
            let set = if task.id == task_id { &mut own } else { &mut others };
            set.extend(task.attachments.iter().map(|attachment| attachment.digest.clone()));
        }
        (own, others)
    }

    /// Whether a task refers to a file of this digest.
    pub(crate) fn is_attached(&self, digest: &str) -> bool {
        self.state
            .tasks
            .values()
            .any(|task| task.attachments.iter().any(|attachment| attachment.digest == digest))
    }
}

/// Content goes along where the agent says that it takes it; an address goes to any agent.
fn form_of(content: AttachmentContent, takes: PromptKinds) -> AttachmentForm {
    match content {
        AttachmentContent::Image if takes.image => AttachmentForm::Image,
        AttachmentContent::Text | AttachmentContent::Binary if takes.embedded_context => {
            AttachmentForm::Embedded
        }
        AttachmentContent::Text | AttachmentContent::Binary | AttachmentContent::Image => {
            AttachmentForm::Link
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_sent_only_to_an_agent_that_takes_it() {
        use AttachmentContent::{Binary, Image, Text};
        let takes = |image, embedded_context| PromptKinds { image, embedded_context, audio: false };
        for (kinds, expected) in [
            (takes(true, true), [AttachmentForm::Embedded, AttachmentForm::Image, AttachmentForm::Embedded]),
            (takes(true, false), [AttachmentForm::Link, AttachmentForm::Image, AttachmentForm::Link]),
            (takes(false, true), [AttachmentForm::Embedded, AttachmentForm::Link, AttachmentForm::Embedded]),
            (takes(false, false), [AttachmentForm::Link; 3]),
        ] {
            assert_eq!([Text, Image, Binary].map(|content| form_of(content, kinds)), expected, "{kinds:?}");
        }
    }
}
