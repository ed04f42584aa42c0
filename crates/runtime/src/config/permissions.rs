//! The table `[permissions]` of the configuration.
//!
//! ```toml
//! [permissions]
//! preset = "standard"
//!
//! [[permissions.rules]]
//! effect = "allow"
//! commands = ["cargo test *", "git status"]
//! ```

use rallypoint_engine::permission::check_rule;
use rallypoint_model::permission::{PermissionRule, Preset};
use serde::Deserialize;
use toml::Spanned;

/// The table as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Table {
    preset: Option<Preset>,
    rules: Vec<Spanned<PermissionRule>>,
}

/// What agents may do without a person, where nobody asks for something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permissions {
    /// The preset.
    pub(crate) preset: Preset,
    /// Rules beside every preset, in order.
    pub(crate) rules: Vec<PermissionRule>,
}

impl Table {
    /// The table with its rules looked at; else which rule of this text is wrong, and where it stands.
    pub(super) fn checked(self, text: &str) -> Result<Permissions, String> {
        let mut rules = Vec::new();
        for (number, rule) in (1_usize..).zip(self.rules) {
            let before = text.get(..rule.span().start).unwrap_or_default();
            let line = before.matches('\n').count().saturating_add(1);
            check_rule(rule.get_ref())
                .map_err(|problem| format!("rule {number} of `permissions.rules`, line {line}: {problem}"))?;
            rules.push(rule.into_inner());
        }
        Ok(Permissions { preset: self.preset.unwrap_or(Preset::Standard), rules })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn parsed(text: &str) -> Result<Permissions, String> {
        Config::parse(text, "rally.toml").map(|config| config.permissions).map_err(|error| error.to_string())
    }

    #[test]
    fn without_a_table_the_preset_is_standard() {
        assert_eq!(parsed(""), Ok(Permissions { preset: Preset::Standard, rules: Vec::new() }));
    }

    #[test]
    fn rules_are_read_in_order() {
        let text = "[permissions]\npreset = \"permissive\"\n\
                    [[permissions.rules]]\neffect = \"deny\"\npaths = [\"**/.env\"]\n\
                    [[permissions.rules]]\neffect = \"allow\"\ntools = [\"fetch\"]\n";
        let permissions = parsed(text).unwrap();
        assert_eq!(permissions.preset, Preset::Permissive);
        let shown: Vec<String> = permissions.rules.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["deny paths **/.env", "allow tools fetch"]);
    }

    #[test]
    fn a_wrong_rule_is_named_with_its_number_and_line() {
        let good = "[permissions]\npreset = \"standard\"\n[[permissions.rules]]\neffect = \"ask\"\ntools = [\"fetch\"]\n\n";
        let wrong = parsed(&format!("{good}[[permissions.rules]]\neffect = \"deny\"\ntools = [\"bash\"]\n"));
        let wrong = wrong.unwrap_err();
        assert!(
            wrong.contains("rally.toml") && wrong.contains("rule 2") && wrong.contains("line 7"),
            "{wrong}"
        );
        assert!(wrong.contains("there is no tool kind `bash`"), "{wrong}");
        for (text, word) in [
            ("[permissions]\npreset = \"wild\"\n", "wild"),
            ("[[permissions.rules]]\neffect = \"permit\"\ntools = [\"*\"]\n", "permit"),
            ("[[permissions.rules]]\neffect = \"deny\"\ntool = [\"*\"]\n", "tool"),
            ("[permissions]\nrule = []\n", "rule"),
        ] {
            let problem = parsed(text).unwrap_err();
            assert!(problem.contains(word) && problem.contains("line"), "{problem}");
        }
    }
}
