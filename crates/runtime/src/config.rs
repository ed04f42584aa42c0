//! The configuration: `rally.toml` in the data folder.

use std::collections::BTreeMap;
use std::path::Path;

use rallypoint_acp::profiles::{ProfileError, Registry};
use rallypoint_model::limits::Limits;
use rallypoint_model::retention::Retention;
use serde::Deserialize;

mod permissions;

pub(crate) use permissions::Permissions;

/// Name of the configuration file in the data folder.
const CONFIG_FILE: &str = "rally.toml";

/// What can be wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there and can't be read.
    #[error("`{file}` can't be read: {source}")]
    Read {
        /// The file.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no valid configuration.
    #[error("`{file}` is not a valid configuration: {message}")]
    Invalid {
        /// The file.
        file: String,
        /// What is wrong, where.
        message: String,
    },
    /// A profile can't be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    default_agent: Option<String>,
    limits: Limits,
    permissions: permissions::Table,
    retention: Retention,
    secrets: BTreeMap<String, String>,
    /// Read by the registry of profiles itself.
    #[serde(rename = "profiles")]
    _profiles: toml::Table,
}

/// The configuration of a daemon.
#[derive(Debug)]
pub struct Config {
    /// Agent of a task that names none.
    pub default_agent: Option<String>,
    /// The limits.
    pub limits: Limits,
    /// What agents may do without a person.
    pub(crate) permissions: Permissions,
    /// How long what is over is kept.
    pub retention: Retention,
    /// Names and values that are never stored or shown.
    pub(crate) secrets: BTreeMap<String, String>,
    /// Kinds of agents.
    pub profiles: Registry,
}

impl Config {
    /// Reads the configuration of a data folder; defaults where there is none.
    pub fn load(folder: &Path) -> Result<Self, ConfigError> {
        let path = folder.join(CONFIG_FILE);
        let name = path.display().to_string();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(ConfigError::Read { file: name, source }),
        };
        Self::parse(&text, &name)
    }

    fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        let invalid = |message: String| ConfigError::Invalid { file: name.to_owned(), message };
        let file: File = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        let profiles = Registry::with_overrides(text)?;
        let permissions = file.permissions.checked(text).map_err(invalid)?;
        Ok(Self {
            default_agent: file.default_agent,
            limits: file.limits,
            permissions,
            retention: file.retention,
            secrets: file.secrets,
            profiles,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_has_the_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::load(folder.path()).unwrap();
        assert_eq!(config.limits, Limits::default());
        assert!(config.profiles.get("shell").is_some());
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_the_file() {
        let error = Config::parse("[limits]\nlaneSubAgentz = 3\n", "rally.toml").unwrap_err();
        assert!(error.to_string().contains("rally.toml"), "{error}");
        assert!(error.to_string().contains("laneSubAgentz"), "{error}");
    }

    #[test]
    fn a_profile_of_the_file_is_an_agent() {
        let text = "[profiles.mine]\nargv = [\"mine\", \"--acp\"]\nenvAllow = [\"MINE_*\"]\n";
        let config = Config::parse(text, "rally.toml").unwrap();
        assert_eq!(config.profiles.get("mine").map(|profile| profile.argv.len()), Some(2));
        assert!(config.profiles.get("shell").is_some());
    }

    #[test]
    fn a_limit_can_be_set_alone() {
        let config = Config::parse("[limits]\nlaneSubagent = 2\n", "rally.toml").unwrap();
        assert_eq!(config.limits.lane_subagent, 2);
        assert_eq!(config.limits.corrective_rounds, 3);
    }
}
