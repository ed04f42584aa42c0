//! Sinks outside: where a message for a platform conversation is brought to.
//!
//! A sink sends one message and says what came of it, in one of five words: it has it, it is busy, it never takes it,
//! it failed, or nobody can tell. Whether and when a message is offered again is not decided here.

mod hmac;
mod sink;
mod webhook;

pub use sink::{Answered, Outgoing, Sink};
pub use webhook::{SigningKey, Webhook, WebhookError, WebhookTraits};
