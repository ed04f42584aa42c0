//! Which variables reach an agent.
//!
//! Everything else stays behind: a caller that runs inside another agent has
//! variables that make a child believe it is nested, and the secrets of one
//! provider are none of another agent's business.

use super::Profile;

/// Variables that any program may need and that hold no secret of a provider:
/// where things are, how to speak, how to reach the network, and where the
/// usual tool chains live.
pub const BASE_ENVIRONMENT: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PNPM_HOME",
    "VOLTA_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
];

impl Profile {
    /// Whether a variable of this name may reach the agent.
    pub fn allows_variable(&self, name: &str) -> bool {
        let base = BASE_ENVIRONMENT.iter().copied();
        base.chain(self.env_allow.iter().map(String::as_str)).any(|pattern| matches(pattern, name))
    }

    /// The agent's environment: what it may have of the caller's, then what it is always given.
    pub fn environment<N, V>(&self, caller: impl IntoIterator<Item = (N, V)>) -> Vec<(String, String)>
    where
        N: AsRef<str> + Into<String>,
        V: Into<String>,
    {
        let mut environment: Vec<(String, String)> = caller
            .into_iter()
            .filter(|(name, _)| {
                self.allows_variable(name.as_ref()) && !self.env_set.contains_key(name.as_ref())
            })
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        environment.extend(self.env_set.iter().map(|(name, value)| (name.clone(), value.clone())));
        environment
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}
