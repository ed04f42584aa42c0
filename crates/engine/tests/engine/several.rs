//! Several agents in one task, and several tasks on one lane.

use rallypoint_model::command::Command;
use rallypoint_model::limits::Limits;
use rallypoint_model::question::Answer;

use crate::host::{Host, Verb};
use crate::questions::blocked;
use crate::tasks::done;
use crate::world::{World, agent, task};

fn three() -> rallypoint_model::command::CreateTask {
    let mut create = task(1);
    create.agents = vec![agent("ada"), agent("bob"), agent("cyd")];
    create
}

#[test]
fn a_task_of_three_agents_is_checked_only_when_the_last_has_completed() {
    let mut world = World::with_limits(Limits { lane_subagent: 1, ..Limits::default() });
    let mut host =
        Host::new(&[("ada", vec![done("A.")]), ("bob", vec![done("B.")]), ("cyd", vec![done("C.")])]);
    let id = world.create(three());
    let mut seen = Vec::new();
    for _ in 0..3 {
        host.work(&mut world);
        world.pass_to_wakeup();
        seen.push(world.story(id));
    }
    assert_eq!(
        seen,
        [
            "active, not settled: goal completed, goal [starting], goal [queued]",
            "active, not settled: goal completed, goal completed, goal [starting]",
            "validating, not settled: goal completed, goal completed, goal completed",
        ]
    );
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal completed, goal completed, goal completed");
    assert_eq!(world.replies(id, "terminal").len(), 1);
    assert_eq!(world.facts("task.verified").len(), 1);
}

#[test]
fn a_blocked_sibling_does_not_stop_the_others_and_the_task_blocks_when_only_it_is_left() {
    let mut world = World::new();
    let mut host =
        Host::new(&[("ada", vec![blocked(), done("A.")]), ("bob", vec![vec![]]), ("cyd", vec![done("C.")])]);
    let id = world.create(three());
    host.work(&mut world);
    for _ in 0..2 {
        world.pass_to_wakeup();
    }
    assert_eq!(world.story(id), "active, not settled: goal completed, goal [running], goal completed");
    assert_eq!(world.open_questions().len(), 1);
    let bob = world.task(id).sessions[1];
    let generation_id = world.state.sessions[&bob].generation_id.expect("a process");
    host.verb(&mut world, generation_id, Verb::Say("B."));
    host.verb(&mut world, generation_id, Verb::Stop("end_turn"));
    world.pass_to_wakeup();
    assert_eq!(
        world.story(id),
        "blocked(question_asked), exit 3: goal completed, goal completed, goal completed"
    );
    let answer = Answer::Text { text: "main".to_owned() };
    let question_id = world.question();
    world.ok(Command::AnswerQuestion { question_id, answer, by: "kim".to_owned() });
    host.finish(&mut world, id);
    assert_eq!(
        world.story(id),
        "done(proven), exit 0: goal completed, goal completed, goal completed, follow_up completed"
    );
}

#[test]
fn a_permission_that_goes_with_its_run_leaves_the_task_active_for_the_others() {
    let mut world = World::new();
    let mut create = task(1);
    create.agents = vec![agent("ada"), agent("bob")];
    let mut host = Host::new(&[("ada", vec![vec![Verb::AskOn("7"), Verb::Exit(1)]]), ("bob", vec![vec![]])]);
    let id = world.create(create);
    host.work(&mut world);
    assert_eq!(world.story(id), "active, not settled: goal failed, goal [running]");
    assert_eq!(world.open_questions().len(), 0);
}

#[test]
fn a_failure_of_the_last_agent_fails_the_task_and_of_an_earlier_one_is_told_and_checked() {
    let mut world = World::new();
    let mut create = task(1);
    create.agents = vec![agent("ada"), agent("bob")];
    let mut host = Host::new(&[("ada", vec![vec![Verb::Exit(1)]]), ("bob", vec![done("B.")])]);
    let id = world.create(create);
    host.finish(&mut world, id);
    assert_eq!(world.story(id), "done(proven), exit 0: goal failed, goal completed");
    let told: Vec<String> = world.room().into_iter().filter(|line| line.contains("[sub-agent")).collect();
    assert_eq!(
        told,
        ["ada: [sub-agent: ada (shell) — error]", "bob: [sub-agent: bob (shell) — task_complete]"]
    );
}

#[test]
fn the_end_of_two_agents_in_one_moment_is_told_once() {
    let mut world = World::new();
    let mut create = task(1);
    create.agents = vec![agent("ada"), agent("bob")];
    create.timeout_ms = 1_000;
    let id = world.create(create);
    world.pass(1_000);
    assert_eq!(world.story(id), "failed(timed_out), exit 4: goal timed_out, goal timed_out");
    assert_eq!(world.replies(id, "terminal").len(), 1);
}

#[test]
fn twenty_runs_on_a_lane_of_three_all_end_and_never_use_a_fourth_slot() {
    let mut world = World::with_limits(Limits { lane_subagent: 3, ..Limits::default() });
    let mut host = Host::ada(vec![done("Fixed."); 20]);
    let ids: Vec<_> = (1..=20).map(|number| world.create(task(number))).collect();
    for id in &ids {
        host.finish(&mut world, *id);
    }
    host.work(&mut world);
    for id in &ids {
        assert_eq!(world.story(*id), "done(proven), exit 0: goal completed");
    }
    assert_eq!((host.most_slots, world.state.running_slots()), (3, 0));
}

#[test]
fn runs_get_their_slots_in_the_order_in_which_they_came() {
    let mut world = World::with_limits(Limits { lane_subagent: 1, ..Limits::default() });
    let names = ["a", "b", "c", "d"];
    let turns: Vec<(&str, Vec<Vec<Verb>>)> = names.iter().map(|name| (*name, vec![done("ok")])).collect();
    let mut host = Host::new(&turns);
    let mut last = None;
    for (number, name) in (1..).zip(names) {
        let mut create = task(10 - number);
        create.agents = vec![agent(name)];
        last = Some(world.create(create));
        world.now = world.now.plus(1);
    }
    host.finish(&mut world, last.expect("a task"));
    let order: Vec<&str> = host.prompts.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(order, names);
}

#[test]
fn a_stop_ends_every_agent_of_the_task_and_is_told_once() {
    let mut world = World::with_limits(Limits { lane_subagent: 2, ..Limits::default() });
    let mut host = Host::new(&[("ada", vec![vec![]]), ("bob", vec![vec![Verb::AskOn("7")]])]);
    let id = world.create(three());
    host.work(&mut world);
    world.ok(Command::StopTask { task_id: id, by: "kim".to_owned() });
    host.finish(&mut world, id);
    host.work(&mut world);
    assert_eq!(
        world.story(id),
        "interrupted(stopped), exit 130: goal cancelled, goal cancelled, goal cancelled"
    );
    assert_eq!(world.replies(id, "terminal").len(), 1);
    assert!(rallypoint_engine::view::is_idle(&world.state));
}
