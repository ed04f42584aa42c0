//! One crash between any two steps that matter, each at its own place: what random moments may miss.

use std::path::PathBuf;
use std::sync::Arc;

use rallypoint_testkit::crash::{Point, Work, crash_at};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Crashes at once. They wait more than they work.
const AT_ONCE: usize = 4;

/// The place, and which times of passing it are crashed at.
const POINTS: &[(&str, &[u32])] = &[
    ("decider:begin", &[1, 2, 4, 9, 16]),
    ("decider:decided", &[1, 2, 3, 5, 8, 12, 16]),
    ("decider:committed", &[1, 2, 3, 5, 8, 12, 16]),
    ("decider:announced", &[1, 2, 3, 5, 8, 12, 16]),
    ("attendant:folder-made", &[1]),
    ("attendant:launched", &[1]),
    ("attendant:attached", &[1]),
    ("attendant:started", &[1]),
    ("attendant:sending", &[1, 2, 3, 4]),
    ("attendant:sent", &[1, 2, 3, 4]),
    ("attendant:reported", &[1, 3, 6]),
    ("attendant:exited", &[1]),
    ("cleaning:begin", &[1]),
    ("cleaning:removed", &[1]),
    ("checks:begin", &[1, 2]),
    ("checks:run", &[1, 2]),
    ("shim:agent-spawned", &[1]),
    ("shim:start-spooled", &[1]),
    ("shim:input-spooled", &[1, 2, 3, 4]),
    ("shim:exit-spooled", &[1]),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_at_any_of_the_named_points_breaks_no_rule() {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut crashes = JoinSet::new();
    for (name, times) in POINTS {
        for at in *times {
            let (slots, point) = (Arc::clone(&slots), Point { name, at: *at });
            crashes.spawn(async move {
                let _slot = slots.acquire().await.unwrap();
                let program = PathBuf::from(env!("CARGO_BIN_EXE_rally"));
                // Two prompts, with a check that fails in between: each step of a task's life, some of them twice.
                let work = Work::CountingTwice { chunks: 3, milliseconds: 40 };
                let what = format!("{}:{}", point.name, point.at);
                match crash_at(&program, &point, work).await {
                    Ok(violations) => (what, violations.iter().map(ToString::to_string).collect()),
                    Err(error) => (what, vec![format!("{error:#}")]),
                }
            });
        }
    }
    let mut crashed = 0;
    let mut wrong: Vec<String> = Vec::new();
    while let Some(result) = crashes.join_next().await {
        let (what, found): (String, Vec<String>) = result.unwrap();
        crashed += 1;
        wrong.extend(found.iter().map(|found| format!("{what}: {found}")));
    }
    println!("{crashed} crashes at {} points", POINTS.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
