//! What makes a green run mean less than it says: tests that are skipped, code that is not there yet, and
//! tests that wait for a length of time instead of for an event.
//!
//! Skipped tests and unwritten code are looked for everywhere, sleeping only in `tests` folders. A named helper
//! that polls with a deadline may sleep between two looks; the list of exceptions names it as
//! `path::function`.

use crate::allow_list::AllowList;
use crate::finding::Finding;
use crate::rust_source::{after, before, find_word, functions, line_at};
use crate::tree::{SourceFile, Tree};

const ALLOWED_SLEEPS: &str = "xtask/allowed-sleeps.txt";
const SLEEPS: &[&str] = &["sleep", "sleep_until", "sleep_ms"];
const UNWRITTEN: &[&str] = &["todo", "unimplemented"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let allowed = AllowList::load(tree, ALLOWED_SLEEPS);
    let mut findings = Vec::new();
    let mut needed = Vec::new();
    for file in tree.rust_files() {
        findings.extend(skipped_tests(file));
        findings.extend(unwritten_code(file));
        if file.is_in_folder_named("tests") {
            findings.extend(sleeps(file, &allowed, &mut needed));
        }
    }
    findings.extend(allowed.findings(&needed));
    findings
}

fn skipped_tests(file: &SourceFile) -> impl Iterator<Item = Finding> {
    let code = file.code();
    find_word(code, "ignore").filter(|&offset| is_attribute(code, offset)).map(move |offset| {
        Finding::at_line(
            &file.path,
            line_at(code, offset),
            "a test is skipped by `ignore`",
            "correct or delete the test; a slow one is run by its name",
        )
    })
}

/// Directly in an attribute, or the effect of a conditional one.
fn is_attribute(code: &str, offset: usize) -> bool {
    let head = before(code, offset).trim_end();
    let conditional =
        head.rsplit("#[").next().is_some_and(|last| last.starts_with("cfg_attr") && !last.contains(']'));
    head.ends_with("#[") || conditional
}

fn unwritten_code(file: &SourceFile) -> Vec<Finding> {
    let code = file.code();
    let mut findings = Vec::new();
    for name in UNWRITTEN {
        for offset in find_word(code, name).filter(|offset| after(code, offset + name.len()).starts_with('!'))
        {
            findings.push(Finding::at_line(
                &file.path,
                line_at(code, offset),
                format!("`{name}!` stands for code that is not written"),
                "write it, or leave out the way that leads here",
            ));
        }
    }
    findings
}

fn sleeps(file: &SourceFile, allowed: &AllowList, needed: &mut Vec<String>) -> Vec<Finding> {
    let code = file.code();
    let functions = functions(code);
    let mut findings = Vec::new();
    for name in SLEEPS {
        for offset in find_word(code, name).filter(|&offset| is_sleep(code, offset, name)) {
            let around = functions.iter().rfind(|function| function.offset < offset);
            let place = around
                .map_or_else(|| file.path.clone(), |function| format!("{}::{}", file.path, function.name));
            if !allowed.contains(&place) {
                findings.push(Finding::at_line(
                    &file.path,
                    line_at(code, offset),
                    "a test sleeps",
                    format!(
                        "wait for the event, or use the fake clock; a helper that polls with a deadline is named \
                         in `{ALLOWED_SLEEPS}` as `{place}` with the reason"
                    ),
                ));
            }
            needed.push(place);
        }
    }
    findings
}

/// A call, by path or by an imported name; neither an import, nor a definition, nor a method of something.
fn is_sleep(code: &str, offset: usize, name: &str) -> bool {
    let head = before(code, offset).trim_end();
    let statement = head.rsplit([';', '{', '}']).next().unwrap_or_default().trim_start();
    let imports = statement.starts_with("use ") || statement.starts_with("pub use ");
    let defines = head.ends_with(" fn") || head.ends_with('.') || imports;
    !defines && (head.ends_with("::") || after(code, offset + name.len()).trim_start().starts_with('('))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    #[test]
    fn skipped_tests_and_unwritten_code_are_found_everywhere() {
        let tree = tree_of(&[(
            "crates/model/src/lib.rs",
            "#[test]\n#[ignore]\nfn a() { todo!() }\n#[ignore = \"slow\"]\nfn b() { unimplemented!(\"x\") }\n\
             #[cfg_attr(unix, ignore)]\nfn ignore() { let todo = \"todo!(\"; } // #[ignore]\n",
        )]);
        assert_eq!(
            headlines(&check(&tree)),
            [
                "crates/model/src/lib.rs:2: a test is skipped by `ignore`",
                "crates/model/src/lib.rs:4: a test is skipped by `ignore`",
                "crates/model/src/lib.rs:6: a test is skipped by `ignore`",
                "crates/model/src/lib.rs:3: `todo!` stands for code that is not written",
                "crates/model/src/lib.rs:5: `unimplemented!` stands for code that is not written",
            ]
        );
    }

    #[test]
    fn sleeping_tests_are_found_unless_their_helper_is_named() {
        let source = "use tokio::time::sleep;\n\
                      fn wait_for() { loop { std::thread::sleep(STEP); } }\n\
                      async fn a() { sleep(STEP).await; clock.sleep(STEP); run(\"sleep 5\"); }\n\
                      fn b() { tokio::time::sleep(STEP); }\n";
        let tree = tree_of(&[
            ("crates/cli/src/lib.rs", source),
            ("crates/cli/tests/run.rs", source),
            ("xtask/allowed-sleeps.txt", "crates/cli/tests/run.rs::wait_for looks until a deadline\n"),
        ]);
        assert_eq!(
            headlines(&check(&tree)),
            ["crates/cli/tests/run.rs:3: a test sleeps", "crates/cli/tests/run.rs:4: a test sleeps"]
        );
    }

    #[test]
    fn an_exception_without_a_sleep_is_a_finding() {
        let tree = tree_of(&[("xtask/allowed-sleeps.txt", "crates/cli/tests/run.rs::gone polls\n")]);
        assert_eq!(
            headlines(&check(&tree)),
            ["xtask/allowed-sleeps.txt:1: the exception for `crates/cli/tests/run.rs::gone` is not needed"]
        );
    }
}
