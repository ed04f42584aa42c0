//! The configuration: `rally.toml` in the data folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rallypoint_acp::profiles::{ProfileError, Registry};
use rallypoint_model::limits::Limits;
use rallypoint_model::money::PriceTable;
use rallypoint_model::retention::Retention;
use rallypoint_model::routing::RouterSwitch;
use serde::Deserialize;

use crate::channels::{ChannelConfig, Channels};
use crate::prices;
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
    router: RouterSection,
    secrets: BTreeMap<String, String>,
    prices: BTreeMap<String, prices::Entry>,
    channels: BTreeMap<String, ChannelConfig>,
    /// Read by the registry of profiles itself.
    #[serde(rename = "profiles")]
    _profiles: toml::Table,
}

/// How events of sub-agents reach rooms.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RouterSection {
    disabled: bool,
}

/// Variable that switches the router off with `1` or `true`, as its contract names it.
const ROUTER_VARIABLE: &str = "ACPX_SUB_AGENT_ROUTER_DISABLED";
/// Variable that sets the round-trip cap, as its contract names it.
const CAP_VARIABLE: &str = "ACPX_SUB_AGENT_ROUND_TRIP_CAP";

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
    /// Whether events of sub-agents reach rooms.
    pub router: RouterSwitch,
    /// Names and values that are never stored or shown.
    pub(crate) secrets: BTreeMap<String, String>,
    /// What models cost.
    pub prices: PriceTable,
    /// Ways out to platforms.
    pub(crate) channels: Channels,
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
        let mut config = Self::parse(&text, &name)?;
        config.override_with(|variable| std::env::var(variable).ok())?;
        Ok(config)
    }

    /// What the environment says about the router wins over the file.
    fn override_with(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        if let Some(word) = variable(ROUTER_VARIABLE) {
            let off = matches!(word.trim(), "1" | "true");
            self.router = if off { RouterSwitch::Off } else { RouterSwitch::On };
        }
        if let Some(word) = variable(CAP_VARIABLE).filter(|word| !word.trim().is_empty()) {
            self.limits.round_trip_cap = word.trim().parse().map_err(|_| ConfigError::Invalid {
                file: CAP_VARIABLE.to_owned(),
                message: format!("`{word}` is no number of round trips"),
            })?;
        }
        Ok(())
    }

    fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        let invalid = |message: String| ConfigError::Invalid { file: name.to_owned(), message };
        let file: File = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        let profiles = Registry::with_overrides(text)?;
        let patience = Duration::from_millis(file.limits.delivery_timeout_ms);
        let channels = Channels::of_config(&file.channels, patience, |name| std::env::var(name).ok())
            .map_err(|(channel, error)| invalid(format!("the channel `{channel}` can't be used: {error}")))?;
        let permissions = file.permissions.checked(text).map_err(invalid)?;
        Ok(Self {
            default_agent: file.default_agent,
            limits: file.limits,
            permissions,
            retention: file.retention,
            router: if file.router.disabled { RouterSwitch::Off } else { RouterSwitch::On },
            secrets: file.secrets,
            prices: prices::table(&file.prices).map_err(invalid)?,
            channels,
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

    #[test]
    fn the_router_is_switched_by_the_file_and_by_the_variables_of_its_contract() {
        let mut config = Config::parse("[router]\ndisabled = true\n", "rally.toml").unwrap();
        assert_eq!((config.router, config.limits.round_trip_cap), (RouterSwitch::Off, 32));
        let set = |name: &str| match name {
            "ACPX_SUB_AGENT_ROUTER_DISABLED" => Some("0".to_owned()),
            _ => Some("7".to_owned()),
        };
        config.override_with(set).unwrap();
        assert_eq!((config.router, config.limits.round_trip_cap), (RouterSwitch::On, 7));
        config.override_with(|_| Some("true".to_owned())).unwrap_err();
        assert_eq!(config.router, RouterSwitch::Off);
    }
}
