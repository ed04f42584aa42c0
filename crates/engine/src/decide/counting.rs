//! What agents say in the middle of a turn of what it uses.
//!
//! It is written down as it is learned, together with how far the spool is understood: a turn that is cut, fails or goes
//! on over a restart of ours has used it all the same.

use rallypoint_model::event::Event;
use rallypoint_model::ids::{GenerationId, RunId};
use rallypoint_model::usage::TokenCounts;

use super::Deciding;
use crate::usage::{counted, kind_of};

impl Deciding<'_, '_> {
    /// Notes tokens of an open turn; `answers` is the prompt whose answer named them.
    pub(crate) fn tokens_used(
        &mut self,
        generation_id: GenerationId,
        answers: Option<u64>,
        tokens: &TokenCounts,
    ) {
        let run_id = match answers {
            Some(seq) => self.run_of_input(generation_id, seq),
            None => self.run_with_prompt(generation_id),
        };
        let Some(run) = run_id.and_then(|id| self.state.runs.get(&id)) else { return };
        let (run_id, whole) = (run.id, answers.is_some());
        let so_far = run.noted.tokens.as_ref().filter(|_| !whole);
        let Some(tokens) = counted(so_far, tokens, kind_of(self.state, run)) else { return };
        if so_far == Some(&tokens) {
            return;
        }
        if let Some(aggregate) = self.run_aggregate(run_id) {
            let scope = self.run_scope(run_id);
            self.emit(aggregate, scope, Event::RunCounted { run_id, tokens, whole });
        }
    }

    /// The open run whose prompt this process has and has not answered.
    fn run_with_prompt(&self, generation_id: GenerationId) -> Option<RunId> {
        let generation = self.state.generations.get(&generation_id)?;
        let run = self.open_run_of(generation).and_then(|id| self.state.runs.get(&id))?;
        let has_prompt = run.generation_id == Some(generation_id) && run.input_seq.is_some();
        (has_prompt && run.answer.is_none()).then_some(run.id)
    }
}
