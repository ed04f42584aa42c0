//! The one funnel for text: whatever is stored, logged, shown or sent on passes a [`Redactor`].
//!
//! A [`SecretSet`] knows the values that must not be seen, and every encoded form in which a tool is likely to print
//! them. A [`Redactor`] replaces each of them by a placeholder with the secret's name. Text that arrives in pieces goes
//! through a [`RedactStream`], or through [`Redactor::safe_split`] where the unit of commit is a whole piece, so that a
//! secret cut in two by a buffer's edge is never shown.
//!
//! This crate does not store secrets, does not ask for them, and does not guess: text that merely looks like a secret
//! is left alone. A secret that is encrypted, compressed, spelled backwards or cut by other text passes unseen.

mod forms;
mod matcher;
mod placeholder;
mod redactor;
mod secret;
mod stream;

pub use redactor::Redactor;
pub use secret::{MIN_SECRET_BYTES, SecretSet, SecretText};
pub use stream::RedactStream;

#[cfg(test)]
mod properties;
