//! The least of a test harness: a list, filters, and tests that are shown as skipped where no agents are installed.
//!
//! The usual harness can skip a test only by an attribute, and one that returns early would count as passed.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;

/// One test.
pub(crate) struct Test {
    pub(crate) name: String,
    /// Where `make` installed what it needs; nothing when it did not.
    pub(crate) installed: Option<PathBuf>,
    /// The goal of `make` that does.
    pub(crate) goal: &'static str,
    pub(crate) body: Box<dyn Fn()>,
}

#[derive(Default)]
struct Asked {
    list: bool,
    ignored_only: bool,
    exact: bool,
    filters: Vec<String>,
    left_out: Vec<String>,
}

impl Asked {
    fn read() -> Self {
        let mut asked = Self::default();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => asked.list = true,
                "--ignored" => asked.ignored_only = true,
                "--exact" => asked.exact = true,
                "--skip" => asked.left_out.extend(arguments.next()),
                // Their values matter to the usual harness only.
                "--format" | "--test-threads" | "--color" | "-Z" => drop(arguments.next()),
                other if other.starts_with('-') => {}
                filter => asked.filters.push(filter.to_owned()),
            }
        }
        asked
    }

    fn wants(&self, name: &str) -> bool {
        let hit = |filter: &String| if self.exact { name == filter } else { name.contains(filter.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(hit)) && !self.left_out.iter().any(hit)
    }
}

/// Lists or runs the tests, one after another.
pub(crate) fn run(tests: Vec<Test>) -> ExitCode {
    let asked = Asked::read();
    let wanted = tests.iter().filter(|test| asked.wants(&test.name));
    if asked.list {
        // Skipped ones are listed in both lists: in all, and in that of the skipped.
        for test in wanted.filter(|test| !asked.ignored_only || test.installed.is_none()) {
            say(&format!("{}: test", test.name));
        }
        return ExitCode::SUCCESS;
    }
    let (mut passed, mut skipped, mut failed) = (0, 0, Vec::new());
    for test in wanted {
        if test.installed.is_none() {
            skipped += 1;
            say(&format!(
                "test {} ... ignored, `make {}` installs what it needs and runs it",
                test.name, test.goal
            ));
        } else if asked.ignored_only {
            // None of them is skipped where the agents are installed.
        } else if catch_unwind(AssertUnwindSafe(&test.body)).is_ok() {
            passed += 1;
            say(&format!("test {} ... ok", test.name));
        } else {
            say(&format!("test {} ... FAILED", test.name));
            failed.push(test.name.clone());
        }
    }
    let result = if failed.is_empty() { "ok" } else { "FAILED" };
    say(&format!("\ntest result: {result}. {passed} passed; {} failed; {skipped} ignored", failed.len()));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(101) }
}

fn say(line: &str) {
    // A reader that went away has heard enough.
    let _ = writeln!(io::stdout().lock(), "{line}");
}
