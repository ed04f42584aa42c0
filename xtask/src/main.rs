//! Chores of this repository that need more than a line of shell.
//!
//! `cargo xtask tidy` reads the manifests and the tree and fails when one of the agreements about their
//! shape is broken. It changes nothing, starts no build and needs no network, so it can run first.

use std::env;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

mod agents_table;
mod allow_list;
mod finding;
mod manifest;
mod markdown;
mod rust_source;
#[cfg(test)]
mod temp_tree;
mod tidy;
mod tree;

const USAGE: &str = "\
usage: cargo xtask <command>

commands:
  tidy   check manifests, layout, docs and fixtures against the agreements of this repository
  agents-table [--check] FOLDER
         write the table in docs/agents.md from the outcomes in a folder, or compare it
  help   show this text
";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            // Nothing is left to try when standard error is closed too.
            let _ = writeln!(io::stderr().lock(), "xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => run_tidy(),
        ["agents-table", "--check", folder] => agents_table(folder, true),
        ["agents-table", folder] => agents_table(folder, false),
        ["help" | "--help" | "-h"] => {
            print(USAGE)?;
            Ok(ExitCode::SUCCESS)
        }
        [] => bail!("no command given\n\n{USAGE}"),
        other => bail!("unknown command `{}`\n\n{USAGE}", other.join(" ")),
    }
}

fn run_tidy() -> anyhow::Result<ExitCode> {
    let tree = tree::Tree::load(&workspace_root()?)?;
    let report = tidy::run(&tree);
    print(&report.to_string())?;
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn agents_table(folder: &str, check: bool) -> anyhow::Result<ExitCode> {
    if agents_table::run(&workspace_root()?, Path::new(folder), check)? {
        return Ok(ExitCode::SUCCESS);
    }
    print(
        "docs/agents.md: the table is not what the tests saw\n  hint: `make agents-table` writes it anew\n",
    )?;
    Ok(ExitCode::FAILURE)
}

/// The nearest folder upwards that holds this workspace, so that the command works from any folder in it.
fn workspace_root() -> anyhow::Result<PathBuf> {
    let start = env::current_dir().context("cannot tell the current folder")?;
    start
        .ancestors()
        .find(|folder| folder.join("Cargo.toml").is_file() && folder.join("xtask/Cargo.toml").is_file())
        .map(PathBuf::from)
        .with_context(|| format!("no workspace with an `xtask` folder at or above `{}`", start.display()))
}

/// Writes to standard output; a reader that went away (`| head`) is not an error.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
