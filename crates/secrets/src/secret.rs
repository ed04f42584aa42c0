//! Values that must not be seen, and the set of them that a redactor is built from.
//!
//! Nothing here prints a value: `Debug` and `Display` show a placeholder, so that a derived `Debug` on a struct that
//! holds a secret, or a value put into a log line by mistake, gives nothing away.

use std::fmt;

/// Shortest value that can be redacted, in bytes. Anything shorter turns up in ordinary text by chance, and replacing
/// it there would both garble the text and tell the reader what the value is.
pub const MIN_SECRET_BYTES: usize = 6;

/// Text whose `Debug` and `Display` print `[redacted]`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// The value itself. The caller is answerable for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for SecretText {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl From<&str> for SecretText {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[redacted]")
    }
}

impl fmt::Display for SecretText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[redacted]")
    }
}

/// One secret under its name. The name is shown in place of the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedSecret {
    pub(crate) name: String,
    pub(crate) value: SecretText,
}

/// The secrets a redactor hides, in the order in which they were added.
///
/// The same name may come with several values (an old and a new token); the same value under several names is shown
/// under the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretSet {
    kept: Vec<NamedSecret>,
    ignored: Vec<String>,
}

impl SecretSet {
    /// Takes (name, value) pairs. Values too short to redact are left out; [`SecretSet::ignored`] names them.
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<SecretText>,
    {
        let mut set = Self::default();
        set.add_pairs(pairs);
        set
    }

    /// Adds pairs by the rule of [`SecretSet::from_pairs`].
    pub fn add_pairs<N, V>(&mut self, pairs: impl IntoIterator<Item = (N, V)>)
    where
        N: Into<String>,
        V: Into<SecretText>,
    {
        for (name, value) in pairs {
            self.add(NamedSecret { name: name.into(), value: value.into() });
        }
    }

    /// Names of the values that were refused because fewer than [`MIN_SECRET_BYTES`] bytes are left of them without
    /// surrounding white space. The caller should warn: these values are **not** hidden.
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Whether nothing is hidden.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Number of values that are hidden.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    pub(crate) fn kept(&self) -> &[NamedSecret] {
        &self.kept
    }

    fn add(&mut self, secret: NamedSecret) {
        if secret.value.expose().trim().len() < MIN_SECRET_BYTES {
            if !self.ignored.contains(&secret.name) {
                self.ignored.push(secret.name);
            }
        } else if !self.kept.contains(&secret) {
            self.kept.push(secret);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_and_display_hide_the_value() {
        let text = SecretText::from("hunter2-hunter2");
        assert_eq!(format!("{text:?} {text} {:?}", Some(&text)), "[redacted] [redacted] Some([redacted])");
        assert_eq!(text.expose(), "hunter2-hunter2");
        let set = SecretSet::from_pairs([("TOKEN", text)]);
        assert!(!format!("{set:?}").contains("hunter2"));
    }

    #[test]
    fn short_values_are_named_once_and_left_out() {
        let set = SecretSet::from_pairs([
            ("PIN", "12345"),
            ("KEY", "123456"),
            ("PIN", "9"),
            ("BLANK", "       \n"),
        ]);
        assert_eq!(set.ignored(), ["PIN", "BLANK"]);
        assert_eq!(set.len(), 1);
        assert!(!set.is_empty());
    }

    #[test]
    fn white_space_does_not_make_a_value_long() {
        let set = SecretSet::from_pairs([("PIN", "  1234\n\n")]);
        assert_eq!(set.ignored(), ["PIN"]);
        assert!(set.is_empty());
    }

    #[test]
    fn length_is_counted_in_bytes() {
        let set = SecretSet::from_pairs([("A", "äöü")]);
        assert_eq!(set.len(), 1);
    }

    #[test]
    fn equal_pairs_are_kept_once() {
        let set = SecretSet::from_pairs([("A", "first-value"), ("A", "first-value"), ("A", "second-value")]);
        assert_eq!(set.len(), 2);
    }
}
