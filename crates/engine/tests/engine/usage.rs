//! What runs used: each count once, nothing unknown as a number, nothing guessed as measured.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rallypoint_engine::admission::{money_used, tokens_used};
use rallypoint_engine::apply::apply;
use rallypoint_engine::changes::Changes;
use rallypoint_engine::state::{Run, State};
use rallypoint_engine::usage::of_ended;
use rallypoint_engine::view::is_settled;
use rallypoint_model::agent_io::{AgentItem, AgentOutput, AgentReport};
use rallypoint_model::agent_offer::{ConversationOffer, OfferedChoice, OfferedOption};
use rallypoint_model::command::{AgentLaunch, Command};
use rallypoint_model::ids::{GenerationId, RunId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::money::{Currency, Price};
use rallypoint_model::session::SpoolCursor;
use rallypoint_model::usage::{Measured, Quality, TokenCounts, UsageKind};
use serde_json::json;

use crate::host::Host;
use crate::world::{World, agent, task};

/// One task whose checks never pass, and an agent that is played by hand.
struct Bench {
    world: World,
    host: Host,
    task: TaskId,
}

/// A prompt that an agent has.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Prompted {
    run: RunId,
    generation: GenerationId,
    seq: u64,
}

impl Bench {
    fn new(kind: UsageKind, change: impl FnOnce(&mut AgentLaunch, &mut Host, &mut World)) -> Self {
        let limits = Limits {
            corrective_rounds: 1_000,
            crash_budget: 1_000,
            round_trip_cap: 10_000,
            ..Limits::default()
        };
        let mut world = World::with_limits(limits);
        let mut host = Host::ada(Vec::new());
        host.checks = std::iter::repeat_n(rallypoint_model::task::EvidenceResult::Failed, 1_000).collect();
        let mut launch = AgentLaunch { usage_kind: kind, trusts_load: true, ..agent("ada") };
        change(&mut launch, &mut host, &mut world);
        let mut create = task(1);
        create.agents = vec![launch];
        let task = world.create(create);
        Self { world, host, task }
    }

    /// Lets things go on until an agent has a prompt.
    fn prompted(&mut self) -> Prompted {
        for _ in 0..100 {
            self.host.work(&mut self.world);
            let run = self.world.last_run(self.task);
            if let (true, Some(_), Some(generation), Some(seq)) =
                (run.is_open() && run.answer.is_none(), run.started_at, run.generation_id, run.input_seq)
            {
                return Prompted { run: run.id, generation, seq };
            }
            let settled = is_settled(&self.world.state, self.world.task(self.task));
            if settled {
                self.world.ok(Command::RetryTask { task_id: self.task, by: "kim".to_owned(), text: None });
            } else {
                self.world.pass_to_wakeup();
            }
        }
        panic!("no prompt: {}", self.world.story(self.task));
    }

    fn run(&self, run: RunId) -> &Run {
        &self.world.state.runs[&run]
    }

    fn cursor(&self, generation: GenerationId) -> SpoolCursor {
        self.world.state.generations[&generation].cursor
    }

    /// The next frame of a process, which means this.
    fn frame(&mut self, generation: GenerationId, item: impl FnOnce(u64) -> AgentItem) -> AgentReport {
        let known = self.cursor(generation);
        let cursor = SpoolCursor { record: known.record + 1, skip: 0, frames: known.frames + 1 };
        let report = AgentReport { cursor, items: vec![item(cursor.frames)] };
        self.world.ok(Command::AgentReported { generation_id: generation, report: report.clone() });
        report
    }

    fn call(&mut self, prompt: Prompted, input: u64) -> AgentReport {
        self.frame(prompt.generation, |frame| AgentItem::TokensUsed {
            frame,
            answers: None,
            tokens: tokens(input),
        })
    }

    fn costs(&mut self, prompt: Prompted, amount: f64) {
        self.frame(prompt.generation, |frame| AgentItem::Output {
            first_frame: frame,
            last_frame: frame,
            agent_session_id: None,
            output: AgentOutput::Usage { raw: json!({"cost": {"amount": amount, "currency": "USD"}}) },
        });
    }

    fn answer(&mut self, prompt: Prompted, input: Option<u64>) -> AgentReport {
        let usage = input.map(tokens);
        self.frame(prompt.generation, |frame| AgentItem::PromptAnswered {
            seq: prompt.seq,
            frame,
            stop_reason: "end_turn".to_owned(),
            usage,
        })
    }

    /// The turn fails, and the error may name tokens.
    fn fail(&mut self, prompt: Prompted, input: Option<u64>) {
        if let Some(input) = input {
            let answers = Some(prompt.seq);
            self.frame(prompt.generation, |frame| AgentItem::TokensUsed {
                frame,
                answers,
                tokens: tokens(input),
            });
        }
        self.frame(prompt.generation, |frame| AgentItem::RequestFailed {
            seq: prompt.seq,
            frame,
            code: -32603,
            message: "gone".to_owned(),
        });
    }

    fn exit(&mut self, prompt: Prompted) {
        self.frame(prompt.generation, |_| AgentItem::Exited { code: Some(9), signal: None });
    }

    /// Lets a run come to its end, and says what it used.
    fn used(&mut self, prompt: Prompted) -> (Quality, Option<u64>) {
        self.ended(prompt);
        let usage = of_ended(&self.world.state, self.run(prompt.run)).expect("an account");
        (usage.tokens.quality(), value(&usage.tokens))
    }

    fn agent_cost(&mut self, prompt: Prompted) -> Option<(u64, bool)> {
        self.ended(prompt);
        let usage = self.run(prompt.run).used.clone().expect("an account");
        usage.agent_cost.map(|cost| (cost.micros / 10_000, usage.agent_cost_estimated))
    }

    fn ended(&mut self, prompt: Prompted) {
        while self.run(prompt.run).is_open() {
            assert!(self.world.pass_to_wakeup(), "{}", self.world.story(self.task));
        }
    }
}

fn tokens(input: u64) -> TokenCounts {
    TokenCounts { input, ..TokenCounts::default() }
}

fn value(tokens: &Measured<TokenCounts>) -> Option<u64> {
    match tokens {
        Measured::Measured { value } | Measured::Estimated { value } => Some(value.total()),
        Measured::Unavailable { .. } => None,
    }
}

fn plain(kind: UsageKind) -> Bench {
    Bench::new(kind, |_, _, _| ())
}

#[test]
fn after_its_process_restarts_a_cumulative_cost_starts_anew_and_the_turn_is_not_free() {
    let mut bench = plain(UsageKind::Cumulative);
    let first = bench.prompted();
    bench.costs(first, 0.50);
    bench.answer(first, Some(500));
    assert_eq!(bench.agent_cost(first), Some((50, false)));
    assert_eq!(bench.used(first), (Quality::Measured, Some(500)));
    let second = bench.prompted();
    assert_eq!(second.generation, first.generation);
    bench.costs(second, 0.60);
    bench.exit(second);
    assert_eq!(bench.agent_cost(second), Some((10, false)));
    let third = bench.prompted();
    assert_ne!(third.generation, first.generation);
    bench.costs(third, 0.20);
    bench.answer(third, Some(200));
    assert_eq!(bench.agent_cost(third), Some((20, false)), "less than before: certainly counted anew");
    // What the turn that was cut used is not known.
    assert_eq!(bench.used(second), (Quality::Unavailable, None));
    assert_eq!(bench.used(third).1, Some(200));
}

#[test]
fn a_new_process_that_shows_more_than_the_old_one_is_a_guess() {
    let mut bench = plain(UsageKind::Cumulative);
    let first = bench.prompted();
    bench.costs(first, 0.10);
    bench.answer(first, Some(100));
    bench.ended(first);
    let second = bench.prompted();
    bench.call(second, 150);
    bench.exit(second);
    assert_eq!(bench.used(second), (Quality::Estimated, Some(50)));
    let third = bench.prompted();
    bench.costs(third, 0.30);
    bench.answer(third, Some(300));
    assert_eq!(bench.used(third), (Quality::Estimated, Some(300)));
    assert_eq!(bench.agent_cost(third), Some((30, true)));
    let fourth = bench.prompted();
    bench.costs(fourth, 0.35);
    bench.answer(fourth, Some(350));
    assert_eq!(bench.used(fourth), (Quality::Measured, Some(50)));
    assert_eq!(bench.agent_cost(fourth), Some((5, false)));
}

#[test]
fn a_counter_with_a_run_that_said_nothing_before_it_is_estimated() {
    let mut bench = plain(UsageKind::Cumulative);
    let first = bench.prompted();
    bench.answer(first, None);
    assert_eq!(bench.used(first), (Quality::Unavailable, None));
    let second = bench.prompted();
    bench.costs(second, 0.30);
    bench.answer(second, Some(300));
    assert_eq!(bench.used(second), (Quality::Estimated, Some(300)));
    assert_eq!(bench.agent_cost(second), Some((30, true)));
    let third = bench.prompted();
    bench.costs(third, 0.40);
    bench.answer(third, Some(400));
    assert_eq!(bench.used(third), (Quality::Measured, Some(100)));
    assert_eq!(bench.agent_cost(third), Some((10, false)));
}

#[test]
fn a_counter_that_went_back_within_its_process_is_estimated() {
    let mut bench = plain(UsageKind::Cumulative);
    for (amount, count, expected, cost) in [
        (0.30, 300, (Quality::Measured, Some(300)), Some((30, false))),
        (0.10, 100, (Quality::Estimated, Some(100)), Some((10, true))),
        (0.15, 150, (Quality::Measured, Some(50)), Some((5, false))),
    ] {
        let prompt = bench.prompted();
        bench.costs(prompt, amount);
        bench.answer(prompt, Some(count));
        assert_eq!(bench.used(prompt), expected);
        assert_eq!(bench.agent_cost(prompt), cost);
    }
}

#[test]
fn tokens_of_a_turn_that_fails_or_is_cut_are_kept() {
    let mut bench = plain(UsageKind::PerTurn);
    let named = bench.prompted();
    bench.call(named, 30);
    bench.fail(named, Some(70));
    assert_eq!(bench.used(named), (Quality::Measured, Some(70)), "what the answer says is the whole");
    let called = bench.prompted();
    bench.call(called, 30);
    bench.call(called, 20);
    bench.fail(called, None);
    assert_eq!(bench.used(called), (Quality::Estimated, Some(50)), "that much at least");
    let cut = bench.prompted();
    bench.call(cut, 40);
    bench.exit(cut);
    assert_eq!(bench.used(cut), (Quality::Estimated, Some(40)));
    let silent = bench.prompted();
    bench.fail(silent, None);
    assert_eq!(bench.used(silent), (Quality::Unavailable, None));
    assert_eq!(tokens_used(&bench.world.state, bench.world.task(bench.task)), 160);
}

#[test]
fn what_a_turn_used_before_our_restart_is_in_the_journal() {
    let mut bench = plain(UsageKind::PerTurn);
    let prompt = bench.prompted();
    let call = bench.call(prompt, 30);
    // Everything but the journal is gone; the report that was read last comes again.
    let mut state = State::default();
    let mut changes = Changes::default();
    for record in &bench.world.journal {
        apply(&mut state, record, &mut changes);
    }
    assert_eq!(state.runs[&prompt.run].noted.tokens, Some(tokens(30)));
    bench.world.ok(Command::AgentReported { generation_id: prompt.generation, report: call });
    bench.call(prompt, 12);
    bench.answer(prompt, None);
    assert_eq!(bench.used(prompt), (Quality::Measured, Some(42)));
}

#[test]
fn runs_of_journals_without_an_account_are_counted_by_what_they_reported() {
    let mut bench = plain(UsageKind::Cumulative);
    let first = bench.prompted();
    bench.answer(first, Some(100));
    bench.ended(first);
    let second = bench.prompted();
    bench.answer(second, Some(250));
    bench.ended(second);
    let third = bench.prompted();
    bench.answer(third, None);
    bench.ended(third);
    for run in bench.world.state.runs.values_mut() {
        run.used = None;
    }
    assert_eq!(bench.used(first), (Quality::Measured, Some(100)));
    assert_eq!(bench.used(second), (Quality::Measured, Some(150)));
    assert_eq!(bench.used(third), (Quality::Unavailable, None), "unknown, and not left out");
    let task = bench.world.task(bench.task);
    assert_eq!(tokens_used(&bench.world.state, task), 250);
    assert_eq!(money_used(&bench.world.state, task, Currency::USD), 0);
    let usage = of_ended(&bench.world.state, bench.run(first.run)).unwrap().into_owned();
    assert!(matches!(usage.cost, Measured::Unavailable { .. }), "{usage:?}");
}

fn option(category: &str, current: &str) -> ConversationOffer {
    let option = OfferedOption {
        id: "llm".to_owned(),
        category: category.to_owned(),
        current: current.to_owned(),
        ..OfferedOption::default()
    };
    ConversationOffer { options: vec![option], ..ConversationOffer::default() }
}

fn block(current: &str) -> ConversationOffer {
    let models = OfferedChoice { current: current.to_owned(), values: Vec::new() };
    ConversationOffer { models: Some(models), ..ConversationOffer::default() }
}

#[test]
fn a_model_that_only_the_conversation_names_has_its_price() {
    let cases: [(&str, ConversationOffer, Option<&str>, Option<&str>); 6] = [
        ("as an option", option("model", "mock-1"), None, Some("mock-1")),
        ("in the older block", block("mock-1"), None, Some("mock-1")),
        ("set in the older block", block("other"), Some("mock-1"), Some("mock-1")),
        ("set as an option", option("model", ""), Some("mock-1"), Some("mock-1")),
        ("an option of another kind", option("mode", "mock-1"), None, None),
        ("nowhere", ConversationOffer::default(), None, None),
    ];
    for (what, offer, wanted, expected) in cases {
        let mut bench = Bench::new(UsageKind::PerTurn, |launch, host, world| {
            host.offer = offer;
            launch.wanted.model = wanted.map(str::to_owned);
            let price = Price { input: 1_000_000, output: 0, cache_read: None, cache_write: None };
            world.prices.models.insert("mock-1".to_owned(), (price, Currency::USD));
        });
        let prompt = bench.prompted();
        bench.answer(prompt, Some(7));
        bench.ended(prompt);
        let used = bench.run(prompt.run).used.clone().unwrap();
        assert_eq!(used.model.as_deref(), expected, "{what}");
        assert_eq!(used.known_cost().map(|cost| cost.micros), expected.map(|_| 7), "{what}");
    }
}

/// What happens in one turn.
#[derive(Clone, Debug)]
struct Played {
    /// What its calls use.
    calls: Vec<u64>,
    /// Whether each is told at once. An agent that tells one tells them all.
    told: bool,
    end: End,
    /// Whether the daemon reads its last report again, with nothing in memory.
    restart: bool,
    /// Numbers that come once more after its end.
    replayed: bool,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Answer { told: bool },
    Fail { told: bool },
    Exit,
}

fn played() -> impl Strategy<Value = Played> {
    let end = prop_oneof![
        4 => any::<bool>().prop_map(|told| End::Answer { told }),
        1 => any::<bool>().prop_map(|told| End::Fail { told }),
        2 => Just(End::Exit),
    ];
    let calls = proptest::collection::vec(1_u64..100, 0..4);
    (calls, any::<bool>(), end, any::<bool>(), any::<bool>())
        .prop_map(|(calls, told, end, restart, replayed)| Played { calls, told, end, restart, replayed })
}

fn kinds() -> impl Strategy<Value = UsageKind> {
    prop_oneof![
        Just(UsageKind::PerTurn),
        Just(UsageKind::Cumulative),
        Just(UsageKind::LastCall),
        Just(UsageKind::None)
    ]
}

/// The journal is all there is: whatever was in memory is built anew from it.
fn restarted(world: &mut World) {
    let mut state = State::default();
    let mut changes = Changes::default();
    for record in &world.journal {
        apply(&mut state, record, &mut changes);
    }
    for (id, run) in &world.state.runs {
        let again = &state.runs[id];
        assert_eq!((&again.usage, &again.noted, &again.used), (&run.usage, &run.noted, &run.used));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn sums_never_count_twice_and_no_guess_is_called_measured(
        kind in kinds(),
        turns in proptest::collection::vec(played(), 1..8),
    ) {
        let mut bench = plain(kind);
        // What each run really used, whether all of it was told, and the counters of the processes.
        let mut truth: BTreeMap<RunId, (u64, bool)> = BTreeMap::new();
        let mut counters: BTreeMap<GenerationId, u64> = BTreeMap::new();
        for turn in turns {
            let prompt = bench.prompted();
            let counter = counters.entry(prompt.generation).or_default();
            let start = *counter;
            let mut last_call = 0;
            let mut last_report = None;
            for used in &turn.calls {
                *counter += used;
                last_call = *used;
                let shown = if kind == UsageKind::Cumulative { *counter } else { *used };
                if turn.told {
                    last_report = Some(bench.call(prompt, shown));
                    bench.costs(prompt, *counter as f64 / 100.0);
                }
            }
            let used = *counter - start;
            let shown = match kind {
                UsageKind::PerTurn => used,
                UsageKind::Cumulative => *counter,
                UsageKind::LastCall | UsageKind::None => last_call,
            };
            if turn.restart {
                restarted(&mut bench.world);
                if let Some(report) = last_report.clone() {
                    bench.world.ok(Command::AgentReported { generation_id: prompt.generation, report });
                }
            }
            let told_all = match turn.end {
                End::Answer { told } => {
                    let report = bench.answer(prompt, told.then_some(shown));
                    if turn.replayed {
                        bench.world.ok(Command::AgentReported { generation_id: prompt.generation, report });
                        bench.call(prompt, shown);
                    }
                    told || turn.told
                }
                End::Fail { told } => {
                    bench.fail(prompt, told.then_some(shown));
                    told
                }
                End::Exit => {
                    bench.exit(prompt);
                    false
                }
            };
            truth.insert(prompt.run, (used, told_all));
            bench.ended(prompt);
        }
        let (mut sum, mut all, mut spent) = (0, 0, 0);
        for (run, (used, told_all)) in &truth {
            let usage = bench.run(*run).used.clone().expect("an account");
            all += used;
            sum += value(&usage.tokens).unwrap_or(0);
            spent += usage.agent_cost.map_or(0, |cost| cost.micros / 10_000);
            match usage.tokens {
                Measured::Measured { value } => {
                    prop_assert_eq!(value.total(), *used);
                    prop_assert!(*told_all && matches!(kind, UsageKind::PerTurn | UsageKind::Cumulative));
                }
                Measured::Estimated { .. } => prop_assert!(kind != UsageKind::None),
                Measured::Unavailable { .. } => {}
            }
        }
        prop_assert!(sum <= all, "{sum} of {all}");
        prop_assert!(spent <= all, "{spent} of {all}");
        prop_assert_eq!(tokens_used(&bench.world.state, bench.world.task(bench.task)), sum);
    }
}
