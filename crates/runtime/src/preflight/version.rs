//! Versions of agents' programs: read from the package that a program belongs to, else asked for, once per program.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rallypoint_acp::profiles::Profile;
use rallypoint_process::command::{CommandSpec, OutputMode, run_captured};

/// Folders upwards from a program in which its package file is looked for.
const UPWARDS: usize = 4;
/// Longest time that a program may take to say its version.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes kept of what it says.
const KEEP_BYTES: usize = 4 * 1024;
/// Longest package file that is read, in bytes.
const PACKAGE_BYTES: u64 = 1024 * 1024;
/// Letters of a version at most.
const VERSION_CHARS: usize = 40;

/// A file as it was: place, size, time of change.
type Stamp = (PathBuf, u64, i64, i64);

/// What was found out so far. A program that was changed is asked again.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    known: Mutex<HashMap<Stamp, Option<String>>>,
}

impl Versions {
    /// The version of a profile's program at this place, when it can be found out in time.
    pub(crate) async fn of(
        &self,
        profile: &Profile,
        program: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Option<String> {
        let real = program.canonicalize().ok()?;
        let metadata = real.metadata().ok()?;
        let stamp = (real.clone(), metadata.size(), metadata.mtime(), metadata.mtime_nsec());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&stamp).cloned();
        if let Some(version) = known {
            return version;
        }
        let version = match of_package(&real) {
            Some(version) => Some(version),
            None => asked(profile, program, environment).await,
        };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(stamp, version.clone());
        version
    }
}

/// The version in the nearest `package.json` above a program.
fn of_package(program: &Path) -> Option<String> {
    let file = program
        .ancestors()
        .skip(1)
        .take(UPWARDS)
        .map(|folder| folder.join("package.json"))
        .find(|file| file.metadata().is_ok_and(|metadata| metadata.len() <= PACKAGE_BYTES))?;
    let package: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    package.get("version")?.as_str().and_then(in_words)
}

async fn asked(profile: &Profile, program: &Path, environment: &BTreeMap<String, String>) -> Option<String> {
    if profile.version_arguments.is_empty() {
        return None;
    }
    let pairs = environment.iter().map(|(name, value)| (name.clone(), value.clone()));
    let mut argv = vec![program.display().to_string()];
    argv.extend(profile.version_arguments.iter().cloned());
    let finished = run_captured(CommandSpec {
        argv,
        cwd: PathBuf::from("/"),
        env: profile.environment(pairs),
        timeout: ASK_TIMEOUT,
        keep_bytes: KEEP_BYTES,
        stdin: None,
        output: OutputMode::Merged,
    })
    .await
    .ok()?;
    if finished.timed_out {
        return None;
    }
    in_words(&finished.stdout.text())
}

/// The first word that looks like a version: a digit first, after a `v` perhaps, and a dot in it.
fn in_words(text: &str) -> Option<String> {
    text.split(|letter: char| letter.is_whitespace() || letter == '/')
        .map(|word| word.trim_start_matches('v').trim_end_matches([',', ')', ';']))
        .find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()) && word.contains('.'))
        .map(|word| word.chars().take(VERSION_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (said, version) in [
            ("0.61.0\n", Some("0.61.0")),
            ("fast-agent-mcp v0.10.48", Some("0.10.48")),
            ("goose/1.2.3 linux", Some("1.2.3")),
            ("usage: agent [2 options]", None),
        ] {
            assert_eq!(in_words(said).as_deref(), version, "{said}");
        }
    }

    #[tokio::test]
    async fn a_package_says_the_version_else_the_program_is_asked_once() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("dist/agent");
        fs::create_dir(folder.path().join("dist")).unwrap();
        let asked = folder.path().join("asked");
        fs::write(&program, format!("#!/bin/sh\necho x >> {}\necho agent 2.5.0\n", asked.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let registry = rallypoint_acp::profiles::Registry::built_in().unwrap();
        let (versions, environment) = (Versions::default(), BTreeMap::new());
        let gemini = registry.get("gemini").unwrap();
        for _ in 0..2 {
            assert_eq!(versions.of(gemini, &program, &environment).await.as_deref(), Some("2.5.0"));
        }
        assert_eq!(fs::read_to_string(&asked).unwrap(), "x\n");
        fs::write(folder.path().join("package.json"), r#"{"version":"3.0.1"}"#).unwrap();
        let fresh = Versions::default();
        assert_eq!(fresh.of(gemini, &program, &environment).await.as_deref(), Some("3.0.1"));
        assert_eq!(fs::read_to_string(&asked).unwrap(), "x\n");
    }
}
