//! Clocks that are moved keep every distance.

use rallypoint_engine::due::next_wakeup;
use rallypoint_model::command::Command;
use rallypoint_model::event::Event;
use rallypoint_model::run::RunStatus;
use rallypoint_model::time::ClockAnchor;

use crate::host::{Host, Verb};
use crate::world::{World, task};

const SIX_HOURS_MS: i64 = 6 * 60 * 60 * 1000;

#[test]
fn after_a_step_everything_is_as_far_away_as_before() {
    for by_ms in [SIX_HOURS_MS, -SIX_HOURS_MS] {
        // One run that speaks, one that asks, and a total time.
        let mut world = World::new();
        let mut host = Host::new(&[
            ("ada", vec![vec![Verb::Say("Half")]]),
            ("bob", vec![vec![Verb::Say("Asking"), Verb::Ask("7")]]),
        ]);
        for (number, name) in [(1, "ada"), (2, "bob")] {
            let mut create = task(number);
            create.agents = vec![crate::world::agent(name)];
            create.timeout_ms = 3_600_000;
            world.create(create);
        }
        host.work(&mut world);
        world.limits.run_timeout_seconds = 1_800;
        let before = next_wakeup(&world.state, &world.limits).unwrap().since(world.now);
        let open = |world: &World| world.state.runs.values().filter(|run| run.is_open()).count();
        assert_eq!(
            (open(&world), world.state.runs.values().any(|run| run.status == RunStatus::WaitingApproval)),
            (2, true)
        );

        world.now = world.now.plus(by_ms);
        world.ok(Command::ShiftClocks { by_ms, anchor: None });
        let after = next_wakeup(&world.state, &world.limits).unwrap().since(world.now);
        assert_eq!(after, before);
        world.ok(Command::Tick);
        assert_eq!(open(&world), 2, "a step ended something");
        assert_eq!(world.facts("clock.shifted").len(), 1);

        // Without the shift the same step would have ended them, when it leads forward.
        if by_ms > 0 {
            world.now = world.now.plus(by_ms);
            world.ok(Command::Tick);
            assert!(world.state.runs.values().all(|run| !run.is_open() || run.cancel.is_some()));
        }
    }
}

#[test]
fn where_nothing_is_under_way_a_step_is_no_fact() {
    let mut world = World::new();
    world.ok(Command::ShiftClocks { by_ms: SIX_HOURS_MS, anchor: None });
    assert!(!world.journal.iter().any(|record| matches!(record.event, Event::ClockShifted { .. })));
}

#[test]
fn how_the_machines_clock_stands_is_kept_and_told_only_when_it_changes() {
    let mut world = World::new();
    let anchor = |offset_ms: i64| Some(ClockAnchor { boot: "b".to_owned(), offset_ms });
    for (by_ms, offset_ms, facts) in [(0, 5, 1), (0, 5, 1), (SIX_HOURS_MS, 7, 2)] {
        world.ok(Command::ShiftClocks { by_ms, anchor: anchor(offset_ms) });
        assert_eq!(world.facts("clock.shifted").len(), facts);
        assert_eq!(world.state.world.as_ref().unwrap().clock, anchor(offset_ms));
    }
}
