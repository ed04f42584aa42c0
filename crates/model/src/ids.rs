//! Ids: one newtype a noun, so that a room is never mistaken for a task.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(transparent)]
        #[schemars(with = "String")]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

id_type!(
    /// The tenancy border.
    WorldId
);
id_type!(
    /// An ordered, durable conversation.
    RoomId
);
id_type!(
    /// Who speaks: a user, the main agent, a sub-agent's own identity, the system.
    EntityId
);
id_type!(
    /// One durable entry of a room.
    MessageId
);
id_type!(
    /// A durable piece of work with a goal and criteria.
    TaskId
);
id_type!(
    /// One version of a task's plan.
    PlanRevisionId
);
id_type!(
    /// One conversation with one agent.
    SessionId
);
id_type!(
    /// One piece of work given to a session.
    RunId
);
id_type!(
    /// One start of a session's agent process.
    GenerationId
);
id_type!(
    /// Something that waits for a person or a parent.
    QuestionId
);
id_type!(
    /// One thing that must hold for a task to be done.
    CriterionId
);
id_type!(
    /// One observation that shows whether a criterion holds.
    EvidenceId
);
id_type!(
    /// One message for one sink outside.
    DeliveryId
);

impl GenerationId {
    /// Short folder name of the generation: the random half of the id, since
    /// the leading half of a version 7 id is a clock and repeats.
    pub fn folder_name(self) -> String {
        let text = self.0.simple().to_string();
        text.chars().skip(16).collect()
    }
}

/// Makes new ids. Handed in, so that decisions are repeatable in tests.
pub trait IdSource {
    /// The next id; never the same twice.
    fn next_uuid(&mut self) -> Uuid;
}
