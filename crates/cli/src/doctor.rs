//! `rally doctor`: what this machine has and lacks. Needs no daemon and starts none.

mod disk;

use std::fs;
use std::path::Path;

use rallypoint_acp::profiles::{OWN_PROGRAM, Registry, find_program};
use rallypoint_client::ClientError;
use serde::Serialize;

use crate::autostart::Connector;
use crate::failure::{FAILED, Failure};
use crate::output::Output;

/// Free space below which a data folder gets tight: an unread spool may grow to 1 GiB.
const DISK_WARN_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Free space below which nothing sensible can run.
const DISK_FAIL_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
struct Finding {
    name: &'static str,
    state: State,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// Numbers and rows behind the words.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<serde_json::Value>,
}

impl Finding {
    fn new(name: &'static str, state: State, detail: impl Into<String>) -> Self {
        Self { name, state, detail: detail.into(), next: None, data: None }
    }

    fn data(mut self, data: serde_json::Value) -> Self {
        self.data = Some(data);
        self
    }

    fn next(mut self, step: impl Into<String>) -> Self {
        self.next = Some(step.into());
        self
    }
}

pub(crate) async fn carry_out(connector: &Connector, output: &mut Output) -> Result<u8, Failure> {
    let mut findings = vec![data_folder(connector.data_folder()), free_disk(connector.data_folder())];
    findings.extend(disk::findings(connector.data_folder()));
    findings.push(configuration(connector.data_folder()));
    findings.push(daemon(connector).await);
    findings.push(program("git", State::Warn, "install git, or work in folders without a repository only"));
    findings.push(program("sh", State::Fail, "install a POSIX shell; checks and the `shell` agent need it"));
    findings.push(cgroup());
    findings.push(subreaper());
    findings.extend(agents(connector.data_folder()));
    if output.is_json() {
        output.json(&findings)?;
    } else {
        for finding in &findings {
            for line in lines(finding) {
                output.line(&line)?;
            }
        }
    }
    let failed = findings.iter().any(|finding| finding.state == State::Fail);
    Ok(if failed { FAILED } else { 0 })
}

fn lines(finding: &Finding) -> Vec<String> {
    let state = match finding.state {
        State::Ok => "ok",
        State::Warn => "warn",
        State::Fail => "fail",
    };
    let mut lines = vec![format!("{state:<5} {:<14} {}", finding.name, finding.detail)];
    lines.extend(finding.next.iter().map(|next| format!("{:<20} next: {next}", "")));
    lines
}

/// The nearest folder that exists: the data folder itself is made by the first daemon.
fn existing(folder: &Path) -> &Path {
    folder.ancestors().find(|each| each.exists()).unwrap_or(Path::new("/"))
}

fn data_folder(folder: &Path) -> Finding {
    let name = "data folder";
    let nearest = existing(folder);
    let unusable = |what: String| {
        Finding::new(name, State::Fail, what).next("name another one with `--data DIR` or `RALLY_HOME`")
    };
    if !nearest.is_dir() {
        return unusable(format!("`{}` is not a folder", nearest.display()));
    }
    match tempfile::tempfile_in(nearest) {
        Err(error) => unusable(format!("`{}` can't be written: {error}", nearest.display())),
        Ok(_) if nearest == folder => {
            Finding::new(name, State::Ok, format!("`{}` can be written", folder.display()))
        }
        Ok(_) => {
            Finding::new(name, State::Ok, format!("`{}` will be made at the first start", folder.display()))
        }
    }
}

fn free_disk(folder: &Path) -> Finding {
    let name = "free disk";
    match rustix::fs::statvfs(existing(folder)) {
        Err(error) => Finding::new(name, State::Warn, format!("unknown: {error}")),
        Ok(system) => {
            let free = system.f_bavail.saturating_mul(system.f_frsize);
            let detail = format!("{} MiB", free / 1024 / 1024);
            match free {
                ..DISK_FAIL_BYTES => Finding::new(name, State::Fail, detail).next("make room on that disk"),
                DISK_FAIL_BYTES..DISK_WARN_BYTES => {
                    Finding::new(name, State::Warn, detail).next("make room before long or noisy work")
                }
                _ => Finding::new(name, State::Ok, detail),
            }
        }
    }
}

fn configuration(folder: &Path) -> Finding {
    let name = "configuration";
    let path = folder.join("rally.toml");
    let Ok(text) = fs::read_to_string(&path) else {
        return Finding::new(name, State::Ok, "the defaults, there is no `rally.toml`");
    };
    match Registry::with_overrides(&text) {
        Ok(_) => Finding::new(name, State::Ok, format!("`{}` can be read", path.display())),
        Err(error) => {
            Finding::new(name, State::Fail, error.to_string()).next(format!("correct `{}`", path.display()))
        }
    }
}

async fn daemon(connector: &Connector) -> Finding {
    let name = "daemon";
    match connector.running().await {
        Ok(None) => Finding::new(name, State::Ok, "not running; `rally run` starts one"),
        Ok(Some(status)) if status.version == env!("CARGO_PKG_VERSION") => {
            Finding::new(name, State::Ok, format!("version {}, process {}", status.version, status.pid))
        }
        Ok(Some(status)) => {
            let detail =
                format!("version {}, this program has {}", status.version, env!("CARGO_PKG_VERSION"));
            Finding::new(name, State::Warn, detail)
                .next("`rally daemon stop`; the next command starts the right one")
        }
        Err(ClientError::Lost) => {
            Finding::new(name, State::Fail, "it does not answer").next("end its process and start it again")
        }
        Err(error) => Finding::new(name, State::Fail, error.to_string()).next("`rally daemon stop`"),
    }
}

fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

fn program(name: &'static str, missing: State, next: &str) -> Finding {
    match find_program(name, &search_path()) {
        Some(path) => Finding::new(name, State::Ok, format!("`{}`", path.display())),
        None => Finding::new(name, missing, "not found on `PATH`").next(next),
    }
}

fn cgroup() -> Finding {
    let name = "cgroup v2";
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    match mounts.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|line| line.split(' ').nth(4)) {
        Some(place) => Finding::new(name, State::Ok, format!("mounted at `{place}`")),
        None => Finding::new(name, State::Warn, "not mounted")
            .next("nothing to do: process trees are ended by their shim and by marker"),
    }
}

fn subreaper() -> Finding {
    let name = "subreaper";
    let usable = rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .and_then(|()| rustix::process::set_child_subreaper(None));
    match usable {
        Ok(()) => Finding::new(name, State::Ok, "usable"),
        Err(error) => Finding::new(name, State::Fail, format!("not usable: {error}"))
            .next("a kernel of 3.4 or newer without a filter on `prctl` is needed"),
    }
}

fn agents(folder: &Path) -> Vec<Finding> {
    let text = fs::read_to_string(folder.join("rally.toml")).unwrap_or_default();
    let registry = match Registry::with_overrides(&text).or_else(|_| Registry::built_in()) {
        Ok(registry) => registry,
        Err(error) => return vec![Finding::new("agents", State::Fail, error.to_string())],
    };
    let found: Vec<String> = registry
        .list()
        .filter(|profile| !profile.hidden)
        .filter(|profile| {
            let program = profile.argv.first().map_or("", String::as_str);
            program == OWN_PROGRAM || find_program(program, &search_path()).is_some()
        })
        .map(|profile| format!("`{}`", profile.name))
        .collect();
    let only_own = registry.list().filter(|each| !each.hidden && !each.is_own_program()).all(|profile| {
        profile.argv.first().is_none_or(|program| find_program(program, &search_path()).is_none())
    });
    let finding = Finding::new("agents", State::Ok, format!("found {}", found.join(", ")));
    if only_own { vec![finding.next("`rally agents` says how to install others")] } else { vec![finding] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_below_a_file_is_no_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(data_folder(&folder.path().join("new/data")).state, State::Ok);
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        let finding = data_folder(&file.join("data"));
        assert_eq!(finding.state, State::Fail);
        assert!(finding.next.is_some());
    }

    #[test]
    fn a_finding_has_its_next_step_on_its_own_line() {
        let finding = Finding::new("git", State::Warn, "not found on `PATH`").next("install git");
        assert_eq!(
            lines(&finding),
            ["warn  git            not found on `PATH`", "                     next: install git"]
        );
    }
}
