//! A daemon that dies, and another that loads what is stored.

use rallypoint_engine::apply::hear;
use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::{Said, State};
use rallypoint_model::command::Command;
use rallypoint_model::event::Event;
use rallypoint_model::session::SpoolCursor;
use rallypoint_model::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Fault, Simulation};

impl Simulation {
    /// A daemon dies and another loads what is stored.
    pub(super) fn restart(&mut self) {
        self.restarts += 1;
        let live = std::mem::take(&mut self.world.state);
        // That rows read back as they were written is the same each time; now and then it is done for real.
        let mut state = if self.restarts.is_multiple_of(4) {
            stored(&live)
        } else {
            without_what_is_not_stored(live.clone())
        };
        state.channels.clone_from(&live.channels);
        state.offered_here.clone_from(&live.offered_here);
        for (id, generation) in &mut state.generations {
            generation.cursor = live.generations[id].cursor;
            generation.last_report_at = live.generations[id].last_report_at;
            generation.stderr_tail = live.generations[id].stderr_tail.clone();
        }
        for record in &self.world.journal {
            if let Event::AgentOutput { last_frame, late: false, foreign_session: None, output, .. } =
                &record.event
                && let Some(run) = record.scope.run_id.and_then(|id| state.runs.get_mut(&id))
                && run.is_open()
                && self.fault != Some(Fault::ForgottenWords)
            {
                hear(run, *last_frame, output, &mut Changes::default());
            }
        }
        if self.fault.is_none() {
            assert_eq!(state, live, "what is loaded is not what was live");
        }
        self.world.state = state;
        self.forget_sendings();
        self.submit(Command::Tick);
    }
}

/// What comes back of a state that was stored.
fn stored(live: &State) -> State {
    let mut state = State {
        world: read_back(&live.world),
        rooms: read_back(&live.rooms),
        tasks: read_back(&live.tasks),
        sessions: read_back(&live.sessions),
        runs: read_back(&live.runs),
        generations: read_back(&live.generations),
        questions: read_back(&live.questions),
        deliveries: read_back(&live.deliveries),
        channels: live.channels.clone(),
        offered_here: live.offered_here.clone(),
        keys: read_back(&live.keys),
        failed_deletes: read_back(&live.failed_deletes),
        versions: live.versions.clone(),
        working: rallypoint_engine::state::Working::default(),
        rosters: rallypoint_engine::state::Rosters::default(),
    };
    state.reindex();
    state
}

fn read_back<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let text = serde_json::to_string(value).expect("it can be stored");
    serde_json::from_str(&text).expect("it can be loaded")
}

pub(super) fn without_what_is_not_stored(mut state: State) -> State {
    for run in state.runs.values_mut() {
        run.said = Said::default();
    }
    for generation in state.generations.values_mut() {
        generation.cursor = SpoolCursor::default();
        generation.last_report_at = Timestamp::default();
        generation.stderr_tail.clear();
    }
    state.channels.clear();
    state.offered_here.clear();
    state
}
