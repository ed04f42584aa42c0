//! All profiles by name: the built-in ones, changed and joined by a configuration's.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::Profile;

const BUILT_IN: &[(&str, &str)] = &[
    ("claude", include_str!("../../profiles/claude.toml")),
    ("codex", include_str!("../../profiles/codex.toml")),
    ("command", include_str!("../../profiles/command.toml")),
    ("custom", include_str!("../../profiles/custom.toml")),
    ("elizaos", include_str!("../../profiles/elizaos.toml")),
    ("fast-agent", include_str!("../../profiles/fast-agent.toml")),
    ("gemini", include_str!("../../profiles/gemini.toml")),
    ("goose", include_str!("../../profiles/goose.toml")),
    ("opencode", include_str!("../../profiles/opencode.toml")),
    ("pi", include_str!("../../profiles/pi.toml")),
    ("pi-agent", include_str!("../../profiles/pi-agent.toml")),
    ("qwen", include_str!("../../profiles/qwen.toml")),
    ("scripted", include_str!("../../profiles/scripted.toml")),
    ("shell", include_str!("../../profiles/shell.toml")),
    ("vibe", include_str!("../../profiles/vibe.toml")),
];

/// Why a profile cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The text is no TOML.
    #[error("the profiles are no valid TOML: {message}")]
    NotToml {
        /// What the reader says.
        message: String,
    },
    /// A profile has a key that is unknown, missing or of another type.
    #[error("profile `{name}`: {message}")]
    Invalid {
        /// The profile.
        name: String,
        /// What is wrong.
        message: String,
    },
}

impl ProfileError {
    fn invalid(name: &str, message: impl ToString) -> Self {
        Self::Invalid { name: name.to_owned(), message: message.to_string().trim_end().to_owned() }
    }
}

/// All profiles by name.
#[derive(Clone, Debug)]
pub struct Registry {
    profiles: BTreeMap<String, Profile>,
}

impl Registry {
    /// The built-in profiles.
    pub fn built_in() -> Result<Self, ProfileError> {
        Self::with_tables(Table::new())
    }

    /// The built-in profiles with the `[profiles.NAME]` tables of this text laid over them.
    ///
    /// Keys of the text replace keys of the built-in profile of that name; the
    /// rest stays. Other tables of the text are not looked at.
    pub fn with_overrides(toml_text: &str) -> Result<Self, ProfileError> {
        let mut text: Table = toml_text.parse().map_err(|error: toml::de::Error| ProfileError::NotToml {
            message: error.message().to_owned(),
        })?;
        match text.remove("profiles") {
            None => Self::built_in(),
            Some(Value::Table(tables)) => Self::with_tables(tables),
            Some(_) => Err(ProfileError::NotToml { message: "`profiles` is not a table".to_owned() }),
        }
    }

    /// The profile of this name, hidden ones included.
    pub fn get(&self, name: &str) -> Option<&Profile> {
        self.profiles.get(name)
    }

    /// Every profile by name, hidden ones included.
    pub fn list(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.values()
    }

    fn with_tables(mut overrides: Table) -> Result<Self, ProfileError> {
        let mut profiles = BTreeMap::new();
        for (name, text) in BUILT_IN {
            let mut table: Table = text.parse().map_err(|error| ProfileError::invalid(name, error))?;
            if let Some(changes) = overrides.remove(*name) {
                lay_over(&mut table, name, changes)?;
            }
            let profile = Profile { built_in: true, ..profile(name, table)? };
            profiles.insert((*name).to_owned(), profile);
        }
        for (name, changes) in overrides {
            let mut table = Table::new();
            table.insert("title".to_owned(), Value::String(name.clone()));
            lay_over(&mut table, &name, changes)?;
            profiles.insert(name.clone(), profile(&name, table)?);
        }
        Ok(Self { profiles })
    }
}

fn lay_over(table: &mut Table, name: &str, changes: Value) -> Result<(), ProfileError> {
    let Value::Table(changes) = changes else {
        return Err(ProfileError::invalid(name, "it is not a table"));
    };
    table.extend(changes);
    Ok(())
}

fn profile(name: &str, table: Table) -> Result<Profile, ProfileError> {
    let mut profile: Profile = Value::Table(table)
        .try_into()
        .map_err(|error: toml::de::Error| ProfileError::invalid(name, error.message()))?;
    if !profile.name.is_empty() && profile.name != name {
        return Err(ProfileError::invalid(name, format!("its `name` says `{}`", profile.name)));
    }
    let is_slug = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    if !is_slug(name) {
        return Err(ProfileError::invalid(name, "a name has letters, digits, `-`, `_` and `.` only"));
    }
    let waits = profile.argv.is_empty() && profile.needs.is_some();
    if profile.argv.first().is_none_or(String::is_empty) && !waits {
        return Err(ProfileError::invalid(name, "`argv` names no program"));
    }
    profile.name = name.to_owned();
    Ok(profile)
}
