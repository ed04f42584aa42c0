//! What is stored, read after the fact.

use std::collections::BTreeMap;
use std::path::Path;

use rallypoint_engine::apply::apply;
use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::State;
use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::ids::{GenerationId, RunId, TaskId};
use rallypoint_model::message::Message;
use rallypoint_store::Reader;
use rallypoint_store::query::EventFilter;

/// Events read at once.
const PAGE: u32 = 1_000;

/// The whole journal, the state that it adds up to, and the stored rows beside it.
#[derive(Debug)]
pub struct Journal {
    /// Every event, in order.
    pub events: Vec<EventRecord>,
    /// What they add up to, from nothing.
    pub state: State,
    /// The stored projections: `table/id` → document.
    pub projections: BTreeMap<String, String>,
    reader: Reader,
}

impl Journal {
    /// Reads a database.
    pub fn read(database: &Path) -> anyhow::Result<Self> {
        let reader = Reader::open(database)?;
        let mut events: Vec<EventRecord> = Vec::new();
        loop {
            let after = events.last().map_or(0, |event| event.seq);
            let page = reader.events(EventFilter::default(), after, PAGE)?;
            let full = page.len() >= PAGE as usize;
            events.extend(page);
            if !full {
                break;
            }
        }
        let mut state = State::default();
        for event in &events {
            apply(&mut state, event, &mut Changes::default());
        }
        let projections = reader.projections()?;
        Ok(Self { events, state, projections, reader })
    }

    /// Every task with the key of its request.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = (TaskId, Option<&str>)> {
        self.events.iter().filter_map(|record| match &record.event {
            Event::TaskCreated { task_id, idempotency_key, .. } => {
                Some((*task_id, idempotency_key.as_deref()))
            }
            _ => None,
        })
    }

    /// Every message, in order.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.events.iter().filter_map(|record| match &record.event {
            Event::MessagePosted { message, .. } => Some(message),
            _ => None,
        })
    }

    /// Every run with the prompts that were journalled for it, as process and number.
    pub(crate) fn prompts(&self) -> BTreeMap<RunId, Vec<(GenerationId, u64)>> {
        let mut prompts: BTreeMap<RunId, Vec<(GenerationId, u64)>> = BTreeMap::new();
        for record in &self.events {
            if let Event::GenerationInput {
                generation_id,
                seq,
                input: rallypoint_model::agent_io::AgentInput::Prompt { .. },
                run_id: Some(run_id),
            } = &record.event
            {
                prompts.entry(*run_id).or_default().push((*generation_id, *seq));
            }
        }
        prompts
    }

    /// How often each input was accepted.
    pub(crate) fn accepted(&self) -> BTreeMap<(GenerationId, u64), usize> {
        let mut accepted = BTreeMap::new();
        for record in &self.events {
            if let Event::GenerationInputAccepted { generation_id, seq } = &record.event {
                *accepted.entry((*generation_id, *seq)).or_default() += 1;
            }
        }
        accepted
    }

    /// The full output under a digest.
    pub fn output(&self, digest: &str) -> Option<String> {
        let bytes = self.reader.blob(digest).ok()??;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}
