//! What the text of the active sub-agents costs with many of them. `cargo bench -p rallypoint-engine --bench roster`
//! prints medians; what must hold is in the tests, since times of one machine say nothing of another.

#![expect(clippy::print_stdout, reason = "a benchmark tells its numbers to whoever runs it")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use rallypoint_engine::roster::{Active, Roster};
use rallypoint_model::ids::SessionId;
use rallypoint_model::session::SessionStatus;
use uuid::Uuid;

const SESSIONS: u128 = 10_000;
const ROUNDS: usize = 101;

fn active(number: u128, status: SessionStatus) -> Active<'static> {
    Active {
        session_id: SessionId(Uuid::from_u128(number << 64 | number)),
        label: "code-reader",
        agent_type: "codex",
        status,
        workdir: "/srv/example/code/app/",
    }
}

fn filled() -> Roster {
    let mut roster = Roster::default();
    for number in 0..SESSIONS {
        roster.set(&active(number, SessionStatus::Ready));
    }
    roster
}

/// The middle of many runs of `work` on what `prepare` made.
fn median<T>(mut prepare: impl FnMut(usize) -> T, mut work: impl FnMut(T)) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|round| {
            let prepared = prepare(round);
            let start = Instant::now();
            work(prepared);
            start.elapsed()
        })
        .collect();
    times.sort();
    times.get(ROUNDS / 2).copied().unwrap_or_default()
}

fn show(what: &str, time: Duration, base: Duration) {
    let ratio = time.as_secs_f64() / base.as_secs_f64().max(f64::MIN_POSITIVE);
    println!("{what:<58} {:>10.3} ms {ratio:>8.4} ×", time.as_secs_f64() * 1e3);
}

fn main() {
    let anew = median(
        |_| (),
        |()| {
            black_box(filled().text().len());
        },
    );
    println!("{SESSIONS} sessions, median of {ROUNDS}; the ratio is to making all lines anew");
    show("make all lines and the text", anew, anew);

    let mut roster = filled();
    let bytes = roster.text().len();
    let render = median(
        |round| {
            let status = if round % 2 == 0 { SessionStatus::Blocked } else { SessionStatus::Ready };
            (round, status)
        },
        |(_, status)| {
            roster.set(&active(77, status));
            black_box(roster.text().len());
        },
    );
    show("one session begins to wait: one line, the text", render, anew);

    let mut roster = filled();
    let rendered = roster.rendered_lines();
    let flips = [SessionStatus::ToolRunning, SessionStatus::Busy, SessionStatus::Ready];
    let flip = median(
        |round| flips.get(round % flips.len()).copied().unwrap_or(SessionStatus::Ready),
        |status| {
            for number in 0..SESSIONS {
                roster.set(&active(number, status));
            }
            black_box(roster.text().len());
        },
    );
    show("all sessions ready → tool → busy: no line, the same text", flip, anew);
    println!("lines made by those flips: {}; bytes of the text: {bytes}", roster.rendered_lines() - rendered);

    let mut roster = filled();
    roster.news();
    let news = median(
        |round| if round % 2 == 0 { SessionStatus::Blocked } else { SessionStatus::Ready },
        |status| {
            roster.set(&active(77, status));
            black_box(roster.news());
        },
    );
    show("one session begins to wait: what a main agent is told", news, anew);
}
