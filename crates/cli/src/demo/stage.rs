//! What the demo plays on: a small repository with a bug, a test that shows it, and the parts of three agents.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rallypoint_model::task::AgentRequest;
use rallypoint_ops::types::CreateTaskInput;
use toml::{Table, Value};
use uuid::Uuid;

use crate::environment;
use crate::failure::Failure;

const PROGRAM: &str = "#!/bin/sh
# Greets the one who is named, or the world.
name=${1:-world}
printf 'Helo, %s\\n' \"$name\"
";

const TEST: &str = "#!/bin/sh
# Checks what greet.sh says.
failed=0
check() {
  got=$(sh greet.sh $1)
  if [ \"$got\" = \"$2\" ]; then
    echo \"ok: $got\"
  else
    echo \"expected: $2, got: $got\"
    failed=1
  fi
}
check '' 'Hello, world'
check Ada 'Hello, Ada'
exit $failed
";

const GOAL: &str = "Repair greet.sh so that its test passes, and leave notes and a report beside it.";

/// A file appears whole and at the end, so that the one who waits for it never sees half of it.
const NOTES: &str = "Write NOTES.md from what is really in the repository.

$ { echo '# Notes'; echo; for file in *.sh; do echo \"$file: $(sed -n 's/^# //p' \"$file\")\"; done; } > notes.part
$ mv notes.part NOTES.md
";

const REPORT: &str = "Measure the repository into REPORT.md.

$ { echo '# Report'; echo; echo 'Lines:'; wc -l *.sh; } > report.part
$ { echo; echo 'Commits:'; git log --format='%h %s'; } >> report.part
$ { echo; echo 'Test before the repair:'; sh test.sh || echo \"exit code $?\"; } >> report.part
$ mv report.part REPORT.md
";

const REPAIR: &str = "sed 's/Helo/Hello/' greet.sh > greet.part && mv greet.part greet.sh";
const CHECKS: [&str; 3] = ["sh test.sh", "test -s NOTES.md", "test -s REPORT.md"];

/// Milliseconds that the third agent waits for the files of the others.
const FILE_DEADLINE_MS: i64 = 30_000;
/// Milliseconds that it leaves the others to end first, so that it is the one that a failed check goes back to.
const LAST_MS: i64 = 1_500;

/// Everything is in place.
#[derive(Debug)]
pub(crate) struct Stage {
    repository: PathBuf,
    script: PathBuf,
    program: PathBuf,
}

/// Makes the repository and the script of the third agent.
pub(crate) fn set(folder: &Path, program: &Path, without_repair: bool) -> Result<Stage, Failure> {
    let repository = folder.join("greeter");
    let script = folder.join("repairer.toml");
    let failed = |error: io::Error| {
        Failure::failed(format!("the demo's files can't be made in `{}`: {error}", folder.display()))
            .with_hint("`TMPDIR` says where temporary folders go")
    };
    fs::create_dir(&repository).map_err(failed)?;
    fs::write(repository.join("greet.sh"), PROGRAM).map_err(failed)?;
    fs::write(repository.join("test.sh"), TEST).map_err(failed)?;
    fs::write(&script, script_text(without_repair)?).map_err(failed)?;
    git(&repository, &["init", "--quiet"])?;
    git(&repository, &["add", "."])?;
    git(&repository, &["commit", "--quiet", "--message", "a greeting and its test"])?;
    Ok(Stage { repository, script, program: program.to_owned() })
}

fn git(repository: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let hint = "`rally doctor` says whether git is there";
    let mut command = Command::new("git");
    // Settings and hooks of the person have no part in it.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    let ended = command
        .args(["-c", "user.name=demo", "-c", "user.email=demo@example.invalid", "-c", "commit.gpgsign=false"])
        .args(["-c", "init.defaultBranch=main", "-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .current_dir(repository)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::failed(format!("git can't be run: {error}")).with_hint(hint))?;
    if ended.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&ended.stderr);
    Err(Failure::failed(format!("`git {}` failed: {}", arguments.join(" "), words.trim())).with_hint(hint))
}

impl Stage {
    /// One task with three agents.
    pub(crate) fn task(&self, data_folder: &Path) -> CreateTaskInput {
        let shell = |label: &str, task: &str| AgentRequest {
            agent: "shell".to_owned(),
            label: Some(label.to_owned()),
            task: Some(task.to_owned()),
            argv: None,
            ..AgentRequest::default()
        };
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let repairer = AgentRequest {
            agent: "scripted".to_owned(),
            label: Some("repairer".to_owned()),
            task: Some("Repair greet.sh so that `sh test.sh` exits 0.".to_owned()),
            argv: Some(vec![
                text(&self.program),
                "agent-serve".to_owned(),
                "scripted".to_owned(),
                text(&self.script),
            ]),
            ..AgentRequest::default()
        };
        CreateTaskInput {
            goal: GOAL.to_owned(),
            agents: vec![shell("notes", NOTES), shell("measurer", REPORT), repairer],
            cwd: Some(text(&self.repository)),
            checks: CHECKS.map(str::to_owned).to_vec(),
            idempotency_key: Some(Uuid::new_v4().to_string()),
            environment: environment::for_agents(data_folder, &[]),
            requested_by: Some("demo".to_owned()),
            source: Some("cli".to_owned()),
            ..Default::default()
        }
    }
}

/// The third agent's part: it claims first and repairs when its claim comes back, or never.
fn script_text(without_repair: bool) -> Result<String, Failure> {
    let claim = turn(vec![
        step("say", "I read the program while the others write.\n"),
        step("run", "cat greet.sh"),
        await_file("NOTES.md"),
        await_file("REPORT.md"),
        step("pause_ms", LAST_MS),
        step("say", "It is repaired and the test passes.\n"),
        report("corrected the greeting"),
    ]);
    let again = if without_repair {
        turn(vec![step("say", "I am sure that it is repaired.\n"), report("corrected the greeting")])
    } else {
        turn(vec![
            step("say", "The test was run and failed, so my claim was wrong. I repair it now.\n"),
            step("run", REPAIR),
            step("run", "sh test.sh"),
            step("say", "I corrected a letter in greet.sh, and now the test passes.\n"),
            report("corrected a letter in greet.sh"),
        ])
    };
    let script = Table::from_iter([("turns".to_owned(), Value::Array(vec![claim, again]))]);
    toml::to_string(&script)
        .map_err(|error| Failure::failed(format!("the demo's script can't be written: {error}")))
}

fn turn(steps: Vec<Value>) -> Value {
    Value::Table(Table::from_iter([("steps".to_owned(), Value::Array(steps))]))
}

fn step(name: &str, value: impl Into<Value>) -> Value {
    Value::Table(Table::from_iter([(name.to_owned(), value.into())]))
}

fn await_file(path: &str) -> Value {
    let fields =
        [("path".to_owned(), Value::from(path)), ("deadline_ms".to_owned(), Value::from(FILE_DEADLINE_MS))];
    step("await_file", Table::from_iter(fields))
}

/// What it says at its end. The test result in it is a claim like any other.
fn report(summary: &str) -> Value {
    let test = Table::from_iter([
        ("command".to_owned(), Value::from("sh test.sh")),
        ("exitCode".to_owned(), Value::from(0)),
        ("summary".to_owned(), Value::from("passes")),
    ]);
    let fields = Table::from_iter([
        ("diffSummary".to_owned(), Value::from(summary)),
        ("filesChanged".to_owned(), Value::Array(vec![Value::from("greet.sh")])),
        ("testResults".to_owned(), Value::Array(vec![Value::Table(test)])),
    ]);
    step("report", fields)
}

pub(crate) fn introduction() -> [&'static str; 3] {
    [
        "A throw-away repository has a program with a bug and a test that shows it.",
        "Three agents work on it side by side. One of them will claim success too early;",
        "the checks are run by Rallypoint itself, so that the claim does not count.",
    ]
}

/// Three things to type, with the program named so that it is found.
pub(crate) fn what_next(program: &Path) -> [String; 3] {
    let here = std::env::current_dir().ok();
    let short = here.as_deref().and_then(|here| program.strip_prefix(here).ok()).unwrap_or(program);
    let rally = short.display();
    [
        format!("{rally} run '$ date > out.txt' --check 'test -s out.txt'   gives one agent one task"),
        format!("{rally} agents   lists who could do it"),
        format!("{rally} room show   reads what the room holds"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_passes(repository: &Path) -> bool {
        Command::new("sh").arg("test.sh").current_dir(repository).output().unwrap().status.success()
    }

    #[test]
    fn the_bug_is_real_and_so_is_its_repair() {
        let folder = tempfile::tempdir().unwrap();
        let stage = set(folder.path(), Path::new("rally"), false).unwrap();
        assert!(!test_passes(&stage.repository));
        let repaired =
            Command::new("sh").args(["-c", REPAIR]).current_dir(&stage.repository).status().unwrap();
        assert!(repaired.success() && test_passes(&stage.repository));
    }

    #[test]
    fn the_script_repairs_in_its_last_turn_or_never() {
        for (without_repair, repairs) in [(false, true), (true, false)] {
            let script: Table = script_text(without_repair).unwrap().parse().unwrap();
            let turns = script["turns"].as_array().unwrap();
            assert_eq!(turns.len(), 2);
            assert!(!turns[0].to_string().contains("sed "));
            assert_eq!(turns[1].to_string().contains("sed "), repairs);
        }
    }
}
