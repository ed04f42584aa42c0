//! Which variables an agent may see.
//!
//! The rule is an allow list: what nobody named is not passed on, so a secret in the daemon's or the caller's
//! environment cannot reach an agent by accident.

use std::collections::BTreeMap;

use crate::sweep::RUN_MARKER_VARIABLE;

/// What every program may know about the person and the machine. Nothing here names a secret, and it stays that way.
pub const BASE_ALLOW_LIST: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TERM", "TMPDIR", "XDG_*"];

const SECRET_WORDS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"];

/// The variables of `source` that `allow` names, sorted by name; of a repeated name the last value counts.
///
/// An entry is an exact name or a prefix with a `*` at its end; a bare `*` allows nothing. The run marker never
/// passes, or an agent started from within another agent would be swept with it.
pub fn clean_environment(
    source: impl IntoIterator<Item = (String, String)>,
    allow: &[String],
) -> Vec<(String, String)> {
    let allowed: BTreeMap<String, String> = source
        .into_iter()
        .filter(|(name, value)| is_usable(name, value) && allow.iter().any(|entry| matches(entry, name)))
        .collect();
    allowed.into_iter().collect()
}

/// Whether a variable of this name is likely to hold a secret.
pub fn looks_secret(name: &str) -> bool {
    let upper = name.to_uppercase();
    SECRET_WORDS.iter().any(|word| upper.contains(word))
}

fn matches(entry: &str, name: &str) -> bool {
    match entry.strip_suffix('*') {
        Some("") => false,
        Some(prefix) => name.starts_with(prefix),
        None => entry == name,
    }
}

/// `exec` refuses NUL bytes, and a name with `=` would come out as another variable.
fn is_usable(name: &str, value: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0') && name != RUN_MARKER_VARIABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn base() -> Vec<String> {
        BASE_ALLOW_LIST.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_named_variables_pass_sorted_and_prefixes_work() {
        let source = pairs(&[
            ("XDG_RUNTIME_DIR", "/run"),
            ("PATH", "/bin"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("LC_ALL", "C"),
            ("PATHS", "no"),
            ("HOME", "/old"),
            ("HOME", "/new"),
            ("A=B", "no"),
            ("TZ", "a\0b"),
        ]);
        let expected =
            pairs(&[("HOME", "/new"), ("LC_ALL", "C"), ("PATH", "/bin"), ("XDG_RUNTIME_DIR", "/run")]);
        assert_eq!(clean_environment(source, &base()), expected);
    }

    #[test]
    fn the_run_marker_never_passes_and_a_bare_star_allows_nothing() {
        let source = pairs(&[(RUN_MARKER_VARIABLE, "outer"), ("X", "1")]);
        let allow = vec![RUN_MARKER_VARIABLE.to_owned(), "RALLY_*".to_owned(), "*".to_owned()];
        assert_eq!(clean_environment(source, &allow), Vec::new());
    }

    #[test]
    fn the_base_list_names_no_secret() {
        assert!(!BASE_ALLOW_LIST.iter().any(|name| looks_secret(name)));
        assert!(looks_secret("github_token") && looks_secret("OPENAI_API_KEY") && looks_secret("PgPassword"));
        assert!(!looks_secret("EDITOR"));
    }
}
