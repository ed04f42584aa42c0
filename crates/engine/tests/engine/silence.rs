//! Silence is a suspicion that is told, never an end.

use rallypoint_model::agent_io::AgentItem;

use crate::host::{Host, Verb, report, said};
use crate::tasks::done;
use crate::world::{World, task};

#[test]
fn a_silent_agent_is_told_of_once_and_its_run_goes_on() {
    let mut world = World::new();
    let mut host = Host::ada(vec![vec![Verb::Say("Thinking")], done("x")]);
    let id = world.create(task(1));
    host.work(&mut world);
    let told =
        |world: &World| world.room().iter().filter(|line| line.contains("has said nothing for")).count();
    for _ in 0..2 {
        world.pass(world.limits.stall_ms);
    }
    assert_eq!((world.story(id).as_str(), told(&world)), ("active, not settled: goal [running]", 1));
    let generation_id = *world.state.generations.keys().next().expect("a generation");
    let words: AgentItem = said(world.state.generations[&generation_id].cursor.frames + 1, "Fixed.");
    report(&mut world, generation_id, vec![words]);
    world.pass(world.limits.stall_ms);
    assert_eq!(told(&world), 2, "a new silence is a new suspicion");
    host.verb(&mut world, generation_id, Verb::Stop("end_turn"));
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed");
}
