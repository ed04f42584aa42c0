//! A model server for tests of real agents: loopback only, no model behind it.
//!
//! It speaks Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini `generateContent`, streaming and
//! plain, and does what a [`Marker`] in the last words of the user says. Without a marker it answers one fixed
//! sentence. After the result of a tool it answers a sentence that quotes the head of that result, so that a test sees
//! whether the tool really ran.
//!
//! Agents send requests of their own beside a person's (titles, suggestions, classifications). Those carry no tools, and
//! get the fixed sentence; how many there are is the agent's business and no fact to assert on.

mod anthropic;
mod cache;
mod chat;
mod conversation;
mod gemini;
mod marker;
mod plan;
mod record;
mod reply;
mod responses;
mod routes;
mod server;
mod tools;

#[cfg(test)]
mod tests;

pub use conversation::Api;
pub use marker::Marker;
pub use plan::PLAIN_ANSWER;
pub use record::Request;
pub use reply::Usage;
pub use server::{MockModel, MockOptions};
