//! Words into a turn: who gets them there, who gets them after it, and that nobody gets them twice.

use rallypoint_model::command::AgentLaunch;
use rallypoint_model::event::Event;
use rallypoint_model::ids::SessionId;
use rallypoint_model::mail::MailMode;

use crate::conversations::{in_room, pair, play, say, talking, told};
use crate::host::{Host, OnSteer, Verb};
use crate::invariants::{documents, replay};
use crate::trees::deep;
use crate::world::World;

const ONE: &str = "[from kim]: @bob one";
const TWO: &str = "[from kim]: @bob two";

/// `bob` is in his turn and has begun; he can be reached there when `can`.
fn at_work(can: bool, on_steer: OnSteer) -> (World, Host, SessionId) {
    let bob = AgentLaunch { takes_words_in_turn: can, ..talking("bob", false, MailMode::Steer) };
    let (mut world, mut host, _, _, bob) = pair(bob, deep());
    host.on_steer = on_steer;
    play(&mut world, &mut host, bob, vec![Verb::Say("Looking."), Verb::Tool("t", "in_progress")]);
    (world, host, bob)
}

fn steps(world: &World) -> Vec<String> {
    let steps = world.facts("session.mid_turn").into_iter().filter_map(|event| match event {
        Event::MidTurnMoved(moved) => serde_json::to_value(moved).ok(),
        _ => None,
    });
    steps.map(|step| step["step"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Entries of the system that say how mail is taken.
fn notices(world: &World) -> usize {
    world.messages().iter().filter(|message| message.metadata["mailMode"] == "followup").count()
}

#[test]
fn words_get_into_the_turn_one_after_the_other_and_make_no_turn_of_their_own() {
    let (mut world, mut host, bob) = at_work(true, OnSteer::Answers);
    in_room(&mut world, "@bob one");
    in_room(&mut world, "@bob two");
    host.work(&mut world);
    assert_eq!(host.steered, [ONE, TWO]);
    assert_eq!(steps(&world), ["given", "taken", "given", "taken"]);
    let run = world.state.sessions[&bob].open_run.expect("its turn goes on");
    assert!(world.state.runs[&run].answer.is_none(), "the answer to the words is no end of the turn");
    say(&mut world, &mut host, bob, "B.");
    assert_eq!(told(&world, bob), [], "no follow-up");
    assert_eq!(notices(&world), 0);
    assert_eq!(documents(&replay(&world.journal)), documents(&world.state));
}

#[test]
fn before_the_turn_has_begun_and_while_it_waits_for_an_answer_words_wait() {
    let bob = AgentLaunch { takes_words_in_turn: true, ..talking("bob", false, MailMode::Steer) };
    let (mut world, mut host, _, _, bob) = pair(bob, deep());
    in_room(&mut world, "@bob one");
    host.work(&mut world);
    assert_eq!(host.steered.len(), 0, "nothing shows that it has its prompt");
    play(&mut world, &mut host, bob, vec![Verb::Say("Looking.")]);
    host.work(&mut world);
    assert_eq!(host.steered, [ONE]);
    play(&mut world, &mut host, bob, vec![Verb::Ask("7")]);
    in_room(&mut world, "@bob two");
    host.work(&mut world);
    assert_eq!(host.steered, [ONE], "it waits for an answer");
    let question_id = world.question();
    let answer = rallypoint_model::question::Answer::Allow;
    world.ok(rallypoint_model::command::Command::AnswerQuestion {
        question_id,
        answer,
        by: "kim".to_owned(),
    });
    host.work(&mut world);
    assert_eq!(host.steered, [ONE, TWO]);
}

#[test]
fn an_agent_that_can_not_be_reached_gets_each_after_its_turn_and_that_is_told_once() {
    let (mut world, mut host, bob) = at_work(false, OnSteer::Answers);
    in_room(&mut world, "@bob one");
    in_room(&mut world, "@bob two");
    host.work(&mut world);
    assert_eq!((host.steered.len(), notices(&world)), (0, 1));
    for words in ["B.", "C.", "D."] {
        say(&mut world, &mut host, bob, words);
    }
    let told: Vec<String> = told(&world, bob).into_iter().map(|(message, _)| message).collect();
    assert_eq!(told, [ONE, TWO]);
}

#[test]
fn an_agent_that_refuses_gets_them_after_its_turn_in_their_order() {
    let (mut world, mut host, bob) = at_work(true, OnSteer::Refuses);
    in_room(&mut world, "@bob one");
    host.work(&mut world);
    in_room(&mut world, "@bob two");
    host.work(&mut world);
    assert_eq!(host.steered, [ONE], "a turn that refused is asked no more");
    assert_eq!((steps(&world), notices(&world)), (vec!["given".to_owned(), "returned".to_owned()], 1));
    for words in ["B.", "C.", "D."] {
        // The turns that follow play no part in this.
        host.on_steer = OnSteer::Refuses;
        say(&mut world, &mut host, bob, words);
    }
    let told: Vec<String> = told(&world, bob).into_iter().map(|(message, _)| message).collect();
    assert_eq!(told, [ONE, TWO]);
    assert_eq!(documents(&replay(&world.journal)), documents(&world.state));
}

#[test]
fn a_turn_that_ends_first_gives_them_back_only_where_the_agent_never_had_them() {
    for (on_steer, step, follow_ups) in [(OnSteer::Keeps, "unknown", 0), (OnSteer::Unaccepted, "returned", 1)]
    {
        let (mut world, mut host, bob) = at_work(true, on_steer);
        in_room(&mut world, "@bob one");
        host.work(&mut world);
        say(&mut world, &mut host, bob, "B.");
        assert_eq!(steps(&world), ["given", step]);
        assert_eq!(told(&world, bob).len(), follow_ups, "{on_steer:?}");
        let doubt = world.messages().iter().filter(|it| it.text.contains("nobody can tell")).count();
        assert_eq!(doubt, 1 - follow_ups, "{on_steer:?}");
    }
}
