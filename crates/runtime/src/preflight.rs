//! What shows of an agent before it is started: where its program is, its version, whether it is logged in.
//!
//! Nothing secret is read: of a variable only whether it has a value, of a file only whether it is there.

mod version;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rallypoint_acp::profiles::{Login, Profile, find_program};
use rallypoint_ops::types::{AgentView, LoginState};

pub(crate) use version::Versions;

/// Whoever asks: their variables say where programs and files are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<'a>(pub(crate) &'a BTreeMap<String, String>);

impl Caller<'_> {
    pub(crate) fn path(&self) -> &str {
        self.0.get("PATH").map_or("", String::as_str)
    }

    fn has(self, variable: &str) -> bool {
        self.0.get(variable).is_some_and(|value| !value.trim().is_empty())
    }

    /// The file that a profile's notation means, when the variable in it is set.
    fn file(self, notation: &str) -> Option<PathBuf> {
        let (variable, rest) = match notation.strip_prefix('$') {
            Some(named) => named.split_once('/')?,
            None => ("HOME", notation.strip_prefix("~/")?),
        };
        let folder = Path::new(self.0.get(variable)?);
        folder.is_absolute().then(|| folder.join(rest))
    }
}

/// The program of a profile, when it is there.
pub(crate) fn program(profile: &Profile, own: &Path, caller: Caller<'_>) -> Option<PathBuf> {
    if profile.is_own_program() {
        return Some(own.to_owned());
    }
    profile.argv.first().and_then(|program| find_program(program, caller.path()))
}

/// Whether a login shows, and by what.
pub(crate) fn login(login: &Login, caller: Caller<'_>) -> (LoginState, Option<String>) {
    if login.is_unknown() {
        return (LoginState::Unknown, None);
    }
    let variable = login.variables.iter().find(|variable| caller.has(variable)).cloned();
    let is_there = |notation: &&String| caller.file(notation).is_some_and(|file| file.exists());
    match variable.or_else(|| login.files.iter().find(is_there).cloned()) {
        Some(shown_by) => (LoginState::Present, Some(shown_by)),
        None => (LoginState::Absent, None),
    }
}

/// All that shows of a profile without starting anything.
pub(crate) fn look(profile: &Profile, own: &Path, caller: Caller<'_>) -> AgentView {
    let built_in = profile.is_own_program();
    let found = program(profile, own, caller);
    let (login, login_shown_by) =
        if built_in { (LoginState::NotNeeded, None) } else { login(&profile.login, caller) };
    let hint = match (&profile.install_hint, &profile.needs) {
        (Some(hint), _) => hint.clone(),
        (None, Some(needs)) => format!("needs {needs}"),
        (None, None) => String::new(),
    };
    AgentView {
        name: profile.name.clone(),
        title: profile.title.clone(),
        built_in,
        installed: found.is_some(),
        program: found.as_ref().map_or_else(
            || profile.argv.first().cloned().unwrap_or_default(),
            |path| path.display().to_string(),
        ),
        install_hint: hint,
        login_hint: profile.login_hint.clone().unwrap_or_default(),
        version: None,
        login,
        login_shown_by,
        docs_url: profile.docs_url.clone().unwrap_or_default(),
        ready: found.is_some() && login != LoginState::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_login_shows_by_a_variable_or_by_a_file_that_is_only_looked_for() {
        let home = tempfile::tempdir().unwrap();
        let home_path = home.path().to_str().unwrap();
        let known = Login {
            variables: vec!["AGENT_KEY".to_owned()],
            files: vec!["$AGENT_HOME/auth.json".to_owned(), "~/.agent/auth.json".to_owned()],
        };
        let state = |pairs: &[(&str, &str)]| login(&known, Caller(&variables(pairs)));
        assert_eq!(state(&[("HOME", home_path), ("AGENT_KEY", " ")]), (LoginState::Absent, None));
        assert_eq!(state(&[("AGENT_KEY", "k")]), (LoginState::Present, Some("AGENT_KEY".to_owned())));
        // A folder in its place can't be read as a file, and need not be.
        std::fs::create_dir_all(home.path().join(".agent/auth.json")).unwrap();
        assert_eq!(
            state(&[("HOME", home_path)]),
            (LoginState::Present, Some("~/.agent/auth.json".to_owned()))
        );
        assert_eq!(state(&[("HOME", "relative")]), (LoginState::Absent, None));
        let agent_home = home.path().join(".agent");
        let shown = state(&[("AGENT_HOME", agent_home.to_str().unwrap())]);
        assert_eq!(shown, (LoginState::Present, Some("$AGENT_HOME/auth.json".to_owned())));
        assert_eq!(login(&Login::default(), Caller(&variables(&[]))), (LoginState::Unknown, None));
    }
}
