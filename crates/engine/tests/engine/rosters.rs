//! The text of the active sub-agents: what it shows, and when its bytes change.

use rallypoint_engine::roster::{Active, News, Roster};
use rallypoint_model::command::Command;
use rallypoint_model::event::Event;
use rallypoint_model::ids::SessionId;
use rallypoint_model::run::RunPurpose;
use rallypoint_model::session::SessionStatus;
use uuid::Uuid;

use crate::host::{Host, Verb};
use crate::tasks::done;
use crate::world::{MAIN_ROOM, World, task};

const MANY: u128 = 10_000;

fn active(number: u128, status: SessionStatus) -> Active<'static> {
    Active {
        session_id: SessionId(Uuid::from_u128(number)),
        label: "ada",
        agent_type: "codex",
        status,
        workdir: "/srv/example/code/app/",
    }
}

const TRANSIENT: [SessionStatus; 5] = [
    SessionStatus::Ready,
    SessionStatus::Running,
    SessionStatus::Busy,
    SessionStatus::ToolRunning,
    SessionStatus::Authenticating,
];
const ENDED: [SessionStatus; 4] =
    [SessionStatus::Completed, SessionStatus::Errored, SessionStatus::Cancelled, SessionStatus::Stopped];

#[test]
fn without_active_sessions_the_text_is_empty() {
    assert_eq!(Roster::default().text(), "");
    let mut world = World::new();
    world.create(task(1));
    // The room's own session is no sub-agent, and the agent has ended.
    let mut host = Host::ada(vec![vec![Verb::Exit(1)]]);
    host.work(&mut world);
    world.pass(1_000);
    assert_eq!(Roster::of_state(&world.state).text(), "");
}

#[test]
fn a_line_has_name_id_type_bucket_and_the_end_of_the_path() {
    let mut roster = Roster::default();
    roster.set(&active(2, SessionStatus::Busy));
    roster.set(&Active { label: " ", workdir: "/", ..active(1, SessionStatus::Blocked) });
    let lines: Vec<&str> = roster.text().lines().collect();
    assert_eq!(lines[0], "## Active sub-agent sessions");
    for word in ["SEND_TO_AGENT { sessionId, text }", "STOP_AGENT { sessionId }", "REPLY"] {
        assert!(lines[1].contains(word), "{word} is not named: {}", lines[1]);
    }
    assert_eq!(
        lines[2..],
        [
            "- [00000000-0000-0000-0000-000000000001] sessionId=00000000-0000-0000-0000-000000000001 agentType=codex status=blocked workdir=…",
            "- [ada] sessionId=00000000-0000-0000-0000-000000000002 agentType=codex status=active workdir=…code/app",
        ]
    );
    assert!(!roster.text().ends_with('\n'));
}

#[test]
fn transient_states_are_one_bucket_and_ended_ones_are_not_listed() {
    for status in TRANSIENT {
        let mut roster = Roster::default();
        roster.set(&active(1, status));
        assert!(roster.text().contains(" status=active "), "{status:?}");
    }
    for status in ENDED {
        let mut roster = Roster::default();
        roster.set(&active(1, SessionStatus::Busy));
        roster.set(&active(1, status));
        assert_eq!(roster.text(), "", "{status:?}");
    }
}

#[test]
fn with_ten_thousand_sessions_flips_render_nothing_and_a_change_one_line() {
    let mut roster = Roster::default();
    for number in (0..MANY).rev() {
        roster.set(&active(number, SessionStatus::Ready));
    }
    let before = roster.text().to_owned();
    assert_eq!((roster.rendered_lines(), before.lines().count()), (10_000, 10_002));
    assert!(before.lines().skip(2).is_sorted(), "lines are in byte order of the ids");
    for status in [SessionStatus::ToolRunning, SessionStatus::Busy, SessionStatus::Ready] {
        for number in 0..MANY {
            roster.set(&active(number, status));
        }
        assert_eq!((roster.text() == before, roster.rendered_lines()), (true, 10_000));
    }
    roster.set(&active(77, SessionStatus::Blocked));
    roster.set(&active(78, SessionStatus::Completed));
    roster.set(&active(MANY, SessionStatus::Running));
    assert_eq!(roster.rendered_lines(), 10_002);
    let after = roster.text().to_owned();
    let kept: std::collections::BTreeSet<&str> = after.lines().collect();
    let gone: Vec<&str> = before.lines().filter(|line| !kept.contains(line)).collect();
    assert_eq!(gone.len(), 2, "lines of sessions that stay changed: {gone:?}");
    roster.set(&active(77, SessionStatus::Ready));
    roster.set(&active(78, SessionStatus::Ready));
    roster.forget(SessionId(Uuid::from_u128(MANY)));
    assert_eq!(roster.text(), before, "the same sessions give the same bytes");
}

#[test]
fn a_roster_that_follows_is_the_roster_of_the_state_and_makes_no_line_for_a_tool() {
    let turn = vec![
        Verb::Say("Looking."),
        Verb::Tool("t", "in_progress"),
        Verb::Tool("t", "completed"),
        Verb::AskOn("7"),
    ];
    let mut world = World::new();
    let mut roster = std::rc::Rc::new(std::cell::RefCell::new(Roster::default()));
    let texts = std::rc::Rc::new(std::cell::RefCell::new(Vec::<String>::new()));
    let (following, seen) = (roster.clone(), texts.clone());
    world.on_commit = Some(Box::new(move |changes, state| {
        let mut roster = following.borrow_mut();
        roster.follow(state, changes);
        let text = roster.text().to_owned();
        assert_eq!(text, Roster::of_state(state).text());
        if seen.borrow().last() != Some(&text) {
            seen.borrow_mut().push(text);
        }
    }));
    let mut host = Host::ada(vec![turn, done("Fixed.")]);
    let id = world.create(task(1));
    host.work(&mut world);
    let question = world.question();
    world.ok(Command::AnswerQuestion {
        question_id: question,
        answer: rallypoint_model::question::Answer::Allow,
        by: "kim".to_owned(),
    });
    let generation = *world.state.generations.keys().next().expect("a process");
    host.verb(&mut world, generation, Verb::Say("Fixed."));
    host.verb(&mut world, generation, Verb::Stop("end_turn"));
    host.finish(&mut world, id);
    let buckets: Vec<Option<&str>> = texts
        .borrow()
        .iter()
        .map(|text| ["active", "blocked"].into_iter().find(|word| text.contains(&format!("status={word}"))))
        .collect();
    assert_eq!(buckets, [Some("active"), Some("blocked"), Some("active"), None]);
    world.on_commit = None;
    let made = std::rc::Rc::get_mut(&mut roster).map(|roster| roster.get_mut().rendered_lines());
    assert_eq!(made, Some(3));
}

/// What the main agent's turns were told of the active sub-agents, in order.
fn told(world: &World) -> Vec<String> {
    let blocks = world.journal.iter().filter_map(|record| match &record.event {
        Event::RunQueued { purpose: RunPurpose::Turn, blocks, .. } => Some(blocks),
        _ => None,
    });
    blocks.flatten().map(|block| block.text.clone()).collect()
}

#[test]
fn a_main_agents_turn_is_told_of_everybody_once_and_then_of_changes_only() {
    let mut world = World::new();
    let mut host = Host::new(&[("ada", vec![vec![Verb::Ask("7")]])]);
    let first = world.create(task(1));
    host.work(&mut world);
    let session = world.session(first);
    assert_eq!(
        told(&world),
        [format!(
            "## Changes of the active sub-agent sessions\n- [ada] sessionId={session} agentType=shell status=blocked workdir=…w"
        )]
    );
    // Another daemon: its main agent's prefix begins with all there are, and nothing is told twice after that.
    world.state.reindex();
    let second = world.create(task(2));
    let text = world.state.rosters.of_room(MAIN_ROOM).expect("a roster").rendered();
    assert_eq!(told(&world).len(), 2);
    assert!(told(&world)[1].starts_with("## Active sub-agent sessions\n"), "{:?}", told(&world));
    assert!(text.contains(&told(&world)[1]), "the text as it was before the second one");
    let made = world.state.rosters.rendered_lines();
    host.work(&mut world);
    world.ok(Command::StopTask { task_id: second, by: "kim".to_owned() });
    world.ok(Command::StopTask { task_id: first, by: "kim".to_owned() });
    host.finish(&mut world, first);
    host.finish(&mut world, second);
    assert!(world.state.active_in(MAIN_ROOM).is_empty());
    assert!(told(&world)[2..].iter().all(|text| text.starts_with("## Changes")), "{:?}", told(&world));
    assert!(told(&world).concat().contains(&format!("- sessionId={session} status=gone")));
    assert!(world.state.rosters.rendered_lines() <= made + 1, "the second one alone made a line");
}

#[test]
fn what_is_told_grows_with_changes_and_not_with_sessions() {
    let mut roster = Roster::default();
    for number in 0..MANY {
        roster.set(&active(number, SessionStatus::Ready));
    }
    let Some(News::Whole(whole)) = roster.news() else { panic!("nothing is told") };
    assert_eq!(whole, roster.text());
    assert_eq!(roster.news(), None);
    for number in 0..MANY {
        roster.set(&active(number, SessionStatus::ToolRunning));
    }
    assert_eq!(roster.news(), None, "a tool is no news");
    roster.set(&active(5, SessionStatus::Blocked));
    roster.set(&active(6, SessionStatus::Blocked));
    roster.set(&active(6, SessionStatus::Busy));
    roster.set(&active(7, SessionStatus::Errored));
    roster.set(&active(MANY, SessionStatus::Running));
    roster.forget(SessionId(Uuid::from_u128(MANY)));
    let Some(News::Changed(text)) = roster.news() else { panic!("nothing is told") };
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains("status=blocked") && lines[1].ends_with("0007 status=gone"), "{text}");
    assert_eq!(roster.rendered_lines(), 10_004);
}
