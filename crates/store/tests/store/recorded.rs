//! A world whose every command is committed to a store.

use std::cell::RefCell;
use std::rc::Rc;

use rallypoint_engine::apply::apply;
use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::State;
use rallypoint_model::event::EventRecord;
use rallypoint_model::limits::Limits;
use rallypoint_model::task::EvidenceResult;
use rallypoint_store::{JournalStore, KeyEnforcement};
use serde_json::{Value, json};

use crate::host::{Host, Verb};
use crate::place::Place;
use crate::world::{World, agent, task};

/// A store in a place of its own, and the world that writes to it.
pub(crate) struct Recorded<P> {
    pub(crate) place: P,
    pub(crate) store: Rc<RefCell<Box<dyn JournalStore>>>,
    pub(crate) world: World,
}

impl<P: Place> Recorded<P> {
    /// A world that was opened and stored.
    pub(crate) fn new() -> Self {
        let place = P::empty();
        let store = place.open(KeyEnforcement::Unique).expect("a store");
        let store = Rc::new(RefCell::new(store));
        let mut world = World::unopened(Limits::default());
        let writer = Rc::clone(&store);
        world.on_commit = Some(Box::new(move |changes, state| {
            writer.borrow_mut().commit(changes, state).expect("a commit");
        }));
        world.open();
        Self { place, store, world }
    }

    /// Closes the store and opens it again.
    pub(crate) fn reopen(self) -> (P, Box<dyn JournalStore>, World) {
        let Self { place, store, mut world } = self;
        world.on_commit = None;
        drop(store);
        let store = place.open(KeyEnforcement::Unique).expect("a store");
        (place, store, world)
    }
}

/// Words, tools, a permission, a question, a corrective round, a late word, a
/// lost process, and one run that still speaks.
pub(crate) fn busy<P: Place>() -> Recorded<P> {
    const BLOCKED: &str = "```json\n{\"status\":\"blocked\",\"reason\":\"Which?\",\"diffSummary\":\"\",\"filesChanged\":[],\"testResults\":[],\"acceptanceCriteriaStatus\":[],\"residualRisks\":[]}\n```";
    let mut recorded = Recorded::new();
    let world = &mut recorded.world;
    let mut host = Host::new(&[
        (
            "ada",
            vec![
                vec![
                    Verb::Say("One"),
                    Verb::Tool("t", "pending"),
                    Verb::Say("Two"),
                    Verb::Stop("end_turn"),
                    Verb::Say("late"),
                ],
                vec![Verb::Say("Fixed."), Verb::Stop("end_turn")],
            ],
        ),
        ("bob", vec![vec![Verb::Say("Asking"), Verb::Ask("7")]]),
        ("cyd", vec![vec![Verb::Say("Half"), Verb::Gone(rallypoint_model::session::GenerationEnd::Lost)]]),
        ("dan", vec![vec![Verb::Say(BLOCKED), Verb::Stop("end_turn")]]),
        (
            "eve",
            vec![vec![Verb::Say("Look"), Verb::Tool("u", "pending"), Verb::Say("Still "), Verb::Say("here")]],
        ),
    ])
    .checks(&[EvidenceResult::Failed]);
    for (number, name) in (1..).zip(["ada", "bob", "cyd", "dan", "eve"]) {
        let mut create = task(number);
        create.agents = vec![agent(name)];
        create.idempotency_key = Some(format!("key of {name}"));
        let id = world.create(create);
        if name != "eve" {
            host.finish(world, id);
        }
    }
    host.work(world);
    recorded
}

/// Everything of a state that is stored, and what is rebuilt from the journal.
pub(crate) fn documents(state: &State) -> Value {
    let said: Vec<Value> = state
        .runs
        .values()
        .filter(|run| run.is_open())
        .map(|run| json!([run.id, run.said.text, run.said.last_stretch, run.said.last_frame]))
        .collect();
    let cursors: Vec<Value> = state.generations.values().map(|one| json!([one.id, one.cursor])).collect();
    json!({
        "world": state.world,
        "rooms": state.rooms,
        "tasks": state.tasks,
        "sessions": state.sessions,
        "runs": state.runs,
        "generations": state.generations,
        "questions": state.questions,
        "deliveries": state.deliveries,
        "keys": state.keys,
        "said": said,
        "cursors": cursors,
    })
}

/// The state that a journal gives.
pub(crate) fn replay(journal: &[EventRecord]) -> State {
    let mut state = State::default();
    let mut unused = Changes::default();
    for record in journal {
        apply(&mut state, record, &mut unused);
    }
    state
}
