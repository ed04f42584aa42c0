//! What a decision changed, for the store to write in the same transaction.

use std::collections::BTreeSet;

use rallypoint_model::event::{Aggregate, EventRecord};
use rallypoint_model::ids::{DeliveryId, GenerationId, QuestionId, RoomId, RunId, SessionId, TaskId};
use rallypoint_model::message::Message;
use rallypoint_model::request::RequestRow;

/// A projection row that differs from what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowRef {
    /// The world.
    World,
    /// A room.
    Room(RoomId),
    /// A task.
    Task(TaskId),
    /// A session.
    Session(SessionId),
    /// A run.
    Run(RunId),
    /// A generation.
    Generation(GenerationId),
    /// A question.
    Question(QuestionId),
    /// A message for a platform conversation.
    Delivery(DeliveryId),
}

/// A full output that is stored under its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBlob {
    /// SHA-256, hex.
    pub digest: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Everything that one transaction writes.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Facts, in order.
    pub events: Vec<EventRecord>,
    /// Rows to write anew from the state.
    pub touched: BTreeSet<RowRef>,
    /// Those of them that the state's indices do not know of yet; empty between two facts.
    pub unindexed: Vec<RowRef>,
    /// Aggregates whose version rose.
    pub versions: BTreeSet<Aggregate>,
    /// Messages to insert.
    pub messages: Vec<Message>,
    /// Unique keys to insert.
    pub keys: Vec<String>,
    /// Full outputs to store.
    pub blobs: Vec<NewBlob>,
    /// Generations whose cursor moved.
    pub cursors: BTreeSet<GenerationId>,
    /// Full outputs to remove, by digest.
    pub removed_blobs: Vec<String>,
    /// Tasks whose content is taken out of journal and messages.
    pub purged: Vec<TaskId>,
    /// Paths whose failed removal changed.
    pub failed_deletes: BTreeSet<String>,
    /// What is kept of requests that came with a key.
    pub requests: Vec<RequestRow>,
}

impl Changes {
    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.touched.is_empty()
            && self.cursors.is_empty()
            && self.blobs.is_empty()
            && self.removed_blobs.is_empty()
            && self.purged.is_empty()
            && self.failed_deletes.is_empty()
            && self.requests.is_empty()
    }

    /// Marks a row.
    pub fn touch(&mut self, row: RowRef) {
        self.touched.insert(row);
        self.unindexed.push(row);
    }
}
