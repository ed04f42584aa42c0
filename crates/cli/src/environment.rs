//! What of the caller's environment goes along with a task.
//!
//! The daemon chooses for each agent what it may have; what no profile could ever ask for does not leave this
//! process at all.

use std::collections::BTreeMap;
use std::path::Path;

use rallypoint_acp::profiles::{BASE_ENVIRONMENT, Registry};
use rallypoint_process::environment::{BASE_ALLOW_LIST, clean_environment};

/// The variables that some profile may need, and those named. Values that are not UTF-8 stay behind, since JSON can't carry them.
pub(crate) fn for_agents(data_folder: &Path, named: &[String]) -> BTreeMap<String, String> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut allowed = allow_list(data_folder);
    allowed.extend_from_slice(named);
    clean_environment(variables, &allowed).into_iter().collect()
}

fn allow_list(data_folder: &Path) -> Vec<String> {
    let mut allowed: Vec<String> =
        BASE_ALLOW_LIST.iter().chain(BASE_ENVIRONMENT).map(|name| (*name).to_owned()).collect();
    // A configuration that can't be read is reported by the daemon, which reads it for more than this.
    let configured = std::fs::read_to_string(data_folder.join("rally.toml")).unwrap_or_default();
    if let Ok(registry) = Registry::with_overrides(&configured).or_else(|_| Registry::built_in()) {
        allowed.extend(registry.list().flat_map(|profile| profile.env_allow.iter().cloned()));
    }
    allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_the_configuration_widen_the_list() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!allow_list(folder.path()).contains(&"MINE_*".to_owned()));
        let text = "[profiles.mine]\nargv = [\"mine\"]\nenvAllow = [\"MINE_*\"]\n";
        std::fs::write(folder.path().join("rally.toml"), text).unwrap();
        let allowed = allow_list(folder.path());
        assert!(allowed.contains(&"MINE_*".to_owned()) && allowed.contains(&"PATH".to_owned()));
    }
}
